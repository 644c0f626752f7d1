"""The keystream against AES itself, and its numbers against their distributions."""

import math

import numpy as np
import pytest
import torch
from cryptography.hazmat.primitives.ciphers import Cipher, algorithms, modes
from scipy import stats

from confide.dp.mechanism import randomness
from confide.dp.mechanism.randomness import (
    BLOCK,
    DeviceNoise,
    Noise,
    Stream,
    box_muller,
    fresh_seed,
    key_of,
)
from confide.dp.mechanism.sampling import generator


def test_bits_are_the_keystream_of_aes_in_counter_mode() -> None:
    stream = Stream(5, "noise")
    found = np.concatenate([stream.bits(count).numpy() for count in (8, 4, 12)])
    cipher = Cipher(algorithms.AES(key_of(5, "noise")[:16]), modes.CTR(bytes(16))).encryptor()
    assert found.tobytes() == cipher.update(bytes(4 * 24))


def normal(source: Noise, count: int) -> torch.Tensor:
    """Draws of N(0, 1)."""
    return source.add(torch.zeros(count, dtype=torch.float64), 1.0)


def test_normal_numbers_are_normal_and_independent() -> None:
    stream = Stream(1, "noise")
    count = BLOCK + 12_345
    first, second = (normal(stream, count) for _ in range(2))
    assert stats.kstest(first.double().numpy(), "norm").pvalue > 1e-3
    assert float(first.double().var()) == pytest.approx(1.0, abs=5 * math.sqrt(2 / count))
    tail = int((first.abs() > 4).sum())
    assert abs(tail - count * stats.norm.sf(4) * 2) < 5 * math.sqrt(count * stats.norm.sf(4) * 2)
    half = (count + 1) // 2
    for one, other in (
        (first, second),
        (first[1:], first[:-1]),
        (first[: count // 2], first[half : half + count // 2]),
    ):
        assert abs(torch.corrcoef(torch.stack([one, other]))[0, 1]) < 4.5 / math.sqrt(len(one))
        squares = torch.stack([one.square(), other.square()])
        assert abs(torch.corrcoef(squares)[0, 1]) < 4.5 / math.sqrt(len(one))


@pytest.mark.parametrize("count", [0, 1, 2, 7])
def test_any_number_of_numbers(count: int) -> None:
    values = normal(Stream(2, "noise"), count)
    assert values.isfinite().all() and len(values.unique()) == count


@pytest.mark.parametrize("split", [2, 600, BLOCK, BLOCK + 2])
def test_numbers_do_not_depend_on_how_many_are_drawn_at_once(
    split: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    count = BLOCK + 1001
    whole = normal(Stream(6, "noise"), count)
    stream = Stream(6, "noise")
    parts = [normal(stream, size) for size in (split, count - split)]
    assert torch.equal(torch.cat(parts), whole)
    monkeypatch.setattr(randomness, "BLOCK", 1 << 10)
    assert torch.equal(normal(Stream(6, "noise"), count), whole)
    start = torch.linspace(-1, 1, count, dtype=torch.float64)
    assert torch.equal(
        Stream(6, "noise").add(start.clone(), 0.3), torch.add(start, whole, alpha=0.3)
    )


def test_the_extremes_of_the_bits_are_finite_and_reach_nine_deviations() -> None:
    extremes = torch.tensor([-(2**63), -1, 0, 1, 2**62, 2**63 - 1])
    values = box_muller(torch.cartesian_prod(extremes, extremes))
    assert values.isfinite().all() and 9.4 < values.abs().max() < 9.5
    largest = box_muller(torch.tensor([[0, 0]])).tolist()
    assert largest == [pytest.approx(math.sqrt(2 * 64 * math.log(2))), 0.0]


@pytest.mark.parametrize("beyond", [5.0, 6.7, 8.5])
def test_the_tail_is_that_of_a_gaussian(beyond: float) -> None:
    """Bits whose radius is beyond a bound: of those, r^2 / 2 is exponential, and angles are
    uniform.
    """
    # of all radii
    source = np.random.default_rng(0)
    share = math.exp(-(beyond**2) / 2)
    low = source.integers(0, int(share * 2**63), 20_000)
    bits = torch.from_numpy(np.stack([low, source.integers(-(2**63), 2**63 - 1, len(low))], axis=1))
    pairs = box_muller(bits).view(-1, 2).double().numpy()
    excess = (np.square(pairs).sum(1) - beyond**2) / 2
    assert stats.kstest(excess, "expon").pvalue > 1e-3
    assert (
        stats.kstest(np.arctan2(pairs[:, 1], pairs[:, 0]) / (2 * math.pi) + 0.5, "uniform").pvalue
        > 1e-3
    )


def test_a_device_draws_from_all_bits() -> None:
    bits = DeviceNoise(3, "noise", "cpu").pairs(20_000)
    assert stats.kstest(bits.double().flatten().numpy() * 2.0**-64 + 0.5, "uniform").pvalue > 1e-3
    values = normal(DeviceNoise(3, "noise", "cpu"), 40_000)
    assert (
        torch.equal(values, box_muller(bits)) and stats.kstest(values.numpy(), "norm").pvalue > 1e-3
    )


def test_uniform_numbers_are_uniform() -> None:
    values = Stream(3, "private batches").uniform(200_000).numpy()
    assert values.min() >= 0 and values.max() < 1 and len(np.unique(values)) == len(values)
    assert stats.kstest(values, "uniform").pvalue > 1e-3


def test_a_stream_goes_on_where_its_state_was_taken() -> None:
    stream = Stream(4, "noise")
    other = Stream(9, "other")
    normal(stream, 101)
    other.set_state(stream.get_state())
    assert torch.equal(normal(stream, 50), normal(other, 50))


def test_streams_of_one_seed_do_not_coincide_and_are_reproducible() -> None:
    first, second, again = (
        Stream(7, name).uniform(4) for name in ("noise", "private batches", "noise")
    )
    assert not torch.equal(first, second) and torch.equal(first, again)
    one, other = (
        torch.rand(4, generator=generator(7, name)) for name in ("public batches", "lengths")
    )
    assert not torch.equal(one, other)
    assert len({fresh_seed() for _ in range(10)}) == 10 and fresh_seed().bit_length() > 64


def test_noise_of_a_device_continues_and_its_state_is_more_than_its_seed() -> None:
    """The ledger has digests of states: two keys that share the generator's seed must not share
    them.
    """
    first = DeviceNoise(3, "noise", "cpu")
    second = DeviceNoise(4, "noise", "cpu")
    normal(first, 5)
    state = first.get_state()
    second.set_state(state)
    assert torch.equal(second.get_state(), state)
    assert torch.equal(normal(first, 1000), normal(second, 1000))
    assert not torch.equal(first.get_state(), state)

    other = DeviceNoise(4, "noise", "cpu")
    other.source.set_state(first.source.get_state())
    assert not torch.equal(other.get_state(), first.get_state())
    assert first.get_state()[:32].numpy().tobytes() == key_of(3, "noise")
