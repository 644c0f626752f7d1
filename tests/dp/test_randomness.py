"""The keystream against AES itself, and its numbers against their distributions."""

import math

import numpy as np
import pytest
import torch
from cryptography.hazmat.primitives.ciphers import Cipher, algorithms, modes
from scipy import stats

from confide.dp.randomness import BLOCK, DeviceNoise, Stream, fresh_seed, key_of
from confide.dp.sampling import generator


def test_bits_are_the_keystream_of_aes_in_counter_mode() -> None:
    stream = Stream(5, "noise")
    found = np.concatenate([stream.bits(count).numpy() for count in (8, 4, 12)])
    cipher = Cipher(algorithms.AES(key_of(5, "noise")[:16]), modes.CTR(bytes(16))).encryptor()
    assert found.tobytes() == cipher.update(bytes(4 * 24))


def test_normal_numbers_are_normal_and_independent() -> None:
    stream, count = Stream(1, "noise"), BLOCK + 12_345
    first, second = (stream.normal(torch.empty(count)) for _ in range(2))
    assert stats.kstest(first.double().numpy(), "norm").pvalue > 1e-3
    assert float(first.double().var()) == pytest.approx(1.0, abs=5 * math.sqrt(2 / count))
    tail = int((first.abs() > 4).sum())
    assert abs(tail - count * stats.norm.sf(4) * 2) < 5 * math.sqrt(count * stats.norm.sf(4) * 2)
    half = (count + 1) // 2
    for one, other in ((first, second), (first[1:], first[:-1]), (first[: count // 2], first[half : half + count // 2])):
        assert abs(torch.corrcoef(torch.stack([one, other]))[0, 1]) < 4.5 / math.sqrt(len(one))
        squares = torch.stack([one.square(), other.square()])
        assert abs(torch.corrcoef(squares)[0, 1]) < 4.5 / math.sqrt(len(one))


@pytest.mark.parametrize("count", [0, 1, 2, 7])
def test_any_number_of_numbers(count: int) -> None:
    values = Stream(2, "noise").normal(torch.full((count,), torch.nan))
    assert values.isfinite().all() and len(values.unique()) == count


def test_the_extremes_of_the_bits_are_finite_numbers(monkeypatch: pytest.MonkeyPatch) -> None:
    extremes = torch.tensor([-(2**31), 0, 2**31 - 1, -(2**31), 0, 2**31 - 1], dtype=torch.int32)
    monkeypatch.setattr(Stream, "bits", lambda self, count: extremes)
    values = Stream(0, "noise").normal(torch.empty(6))
    assert values.isfinite().all() and 6.5 < values.abs().max() < 6.8


def test_uniform_numbers_are_uniform() -> None:
    values = Stream(3, "private batches").uniform(200_000).numpy()
    assert values.min() >= 0 and values.max() < 1 and len(np.unique(values)) == len(values)
    assert stats.kstest(values, "uniform").pvalue > 1e-3


def test_a_stream_goes_on_where_its_state_was_taken() -> None:
    stream, other = Stream(4, "noise"), Stream(9, "other")
    stream.normal(torch.empty(101))
    other.set_state(stream.get_state())
    assert torch.equal(stream.normal(torch.empty(50)), other.normal(torch.empty(50)))


def test_streams_of_one_seed_do_not_coincide_and_are_reproducible() -> None:
    first, second, again = (Stream(7, name).uniform(4) for name in ("noise", "private batches", "noise"))
    assert not torch.equal(first, second) and torch.equal(first, again)
    one, other = (torch.rand(4, generator=generator(7, name)) for name in ("public batches", "lengths"))
    assert not torch.equal(one, other)
    assert len({fresh_seed() for _ in range(10)}) == 10 and fresh_seed().bit_length() > 64


def test_noise_of_a_device_continues_and_its_state_is_more_than_its_seed() -> None:
    """The ledger has digests of states: two keys that share the generator's seed must not share them."""
    first, second = DeviceNoise(3, "noise", "cpu"), DeviceNoise(4, "noise", "cpu")
    first.normal(torch.empty(5))
    state = first.get_state()
    second.set_state(state)
    assert torch.equal(second.get_state(), state)
    assert torch.equal(first.normal(torch.empty(1000)), second.normal(torch.empty(1000)))
    assert not torch.equal(first.get_state(), state)

    other = DeviceNoise(4, "noise", "cpu")
    other.source.set_state(first.source.get_state())
    assert not torch.equal(other.get_state(), first.get_state())
    assert first.get_state()[:32].numpy().tobytes() == key_of(3, "noise")
