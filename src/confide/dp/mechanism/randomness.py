"""Where private randomness comes from: which points a noisy update reads, and its noise.

On the CPU both are the keystream of AES-128 in counter mode, a cryptographic generator that is also
faster than torch's; its key is a digest of seed and purpose, so streams of one seed never coincide.
Bits of noise on a GPU are torch's (Philox, not cryptographic). What is made of them is the same on
both: Gaussian numbers in float64 from 64 bits of radius, so that their tail ends at 9.4 standard
deviations. With 32 bits it would end at 6.8, which a training of many steps and weights would show.
"""

import hashlib
import math
import secrets
from abc import ABC, abstractmethod
from collections.abc import Iterator
from contextlib import contextmanager

import numpy as np
import torch
from cryptography.hazmat.primitives.ciphers import Cipher, algorithms, modes
from torch import Tensor

from confide.dp.mechanism.discrete import discrete_gaussian

BLOCK = 1 << 18  # numbers made at once
LOW_BITS = 2**63 - 1  # all bits of an int64 but its sign


def fresh_seed() -> int:
    """128 bits of the system's entropy."""
    return secrets.randbits(128)


def key_of(seed: int, name: str) -> bytes:
    """32 bytes that belong to a seed and a purpose."""
    return hashlib.sha256(f"{seed}/{name}".encode()).digest()


def box_muller(bits: Tensor) -> Tensor:
    """Independent numbers (2 n,) float64 of N(0, 1) from uniform bits (n, 2) int64.

    They are made of a radius and an angle (Box and Muller 1958). The radius is uniform on 2^63
    values, so that |x| reaches 9.41; the angle on 2^64. Two numbers belong to each row of bits.
    """
    below_one = (bits[:, 0] & LOW_BITS).double().add_(0.5).mul_(2.0**-63)
    radius = below_one.log_().mul_(-2).sqrt_()
    angle = bits[:, 1].double().mul_(math.pi * 2.0**-63)
    values = torch.empty(2 * len(bits), dtype=torch.float64, device=bits.device)
    torch.mul(radius, angle.cos(), out=values[0::2])
    torch.mul(radius, angle.sin_(), out=values[1::2])
    return values


class Noise(ABC):
    """Gaussian noise from a source of bits, which subclasses have, with a state to take and set."""

    @abstractmethod
    def pairs(self, count: int) -> Tensor:
        """The next uniform bits (count, 2) int64."""

    @abstractmethod
    def get_state(self) -> Tensor:
        """(n,) uint8: secret as long as what was drawn is."""

    @abstractmethod
    def set_state(self, state: Tensor) -> None:
        """Continue from a state."""

    def add(self, values: Tensor, deviation: float) -> Tensor:
        """Add independent draws of N(0, deviation^2) to values (n,) float64.

        There they are much finer than in float32. Two calls draw the same numbers as one, as long
        as the first asks for an even count.
        """
        for part in values.split(BLOCK):
            part.add_(box_muller(self.pairs((len(part) + 1) // 2))[: len(part)], alpha=deviation)
        return values


class Stream(Noise):
    """A keystream and the place in it, counted in its blocks of 16 bytes."""

    def __init__(self, seed: int, name: str):
        self.key = key_of(seed, name)[:16]
        self.place = 0

    def bits(self, count: int, kind: type[np.generic] = np.int32) -> Tensor:
        """The next `count` integers (count,), uniform over all of their type.

        A new call begins at a new block.
        """
        keystream = np.zeros(count, dtype=kind)
        if count:
            cipher = Cipher(
                algorithms.AES(self.key), modes.CTR(self.place.to_bytes(16, "big"))
            ).encryptor()
            # zeros become the keystream, in place
            cipher.update_into(keystream.data.cast("B"), keystream.data.cast("B"))
        self.place += -(-keystream.nbytes // 16)
        return torch.from_numpy(keystream)

    def uniform(self, count: int) -> Tensor:
        """Independent uniform numbers (count,) float64 in [0, 1), multiples of 2^-53."""
        return (self.bits(count, np.int64) >> 11).double().add_(2**52).mul_(2.0**-53)

    def pairs(self, count: int) -> Tensor:
        """The next uniform bits (count, 2) int64, one block of the keystream for each pair."""
        return self.bits(2 * count, np.int64).view(count, 2)

    def discrete(self, count: int, bits: int) -> Tensor:
        """Exact independent draws (count,) int64 of the discrete Gaussian of deviation 2^bits."""

        def random_words(size: int) -> np.ndarray:
            return self.bits(size, np.int64).numpy().view(np.uint64)

        return torch.from_numpy(discrete_gaussian(count, bits, random_words))

    def get_state(self) -> Tensor:
        """Key and place (32,) uint8: secret as long as what was drawn is."""
        return torch.frombuffer(
            bytearray(self.key + self.place.to_bytes(16, "big")), dtype=torch.uint8
        )

    def set_state(self, state: Tensor) -> None:
        """Continue from a state."""
        stored = state.numpy().tobytes()
        self.key = stored[:16]
        self.place = int.from_bytes(stored[16:], "big")


@contextmanager
def dropout_from(source: torch.Generator) -> Iterator[None]:
    """Let dropout draw from `source` meanwhile.

    How much a private batch draws must not move what exact updates draw next.
    """
    usual = usual_generator(source.device)
    before = usual.get_state()
    usual.set_state(source.get_state())
    try:
        yield
    finally:
        source.set_state(usual.get_state())
        usual.set_state(before)


def usual_generator(device: torch.device) -> torch.Generator:
    """The one that dropout draws from."""
    if device.type == "cpu":
        return torch.default_generator
    index = torch.cuda.current_device() if device.index is None else device.index
    return torch.cuda.default_generators[index]


def generator_of(rank: int, source: torch.Generator) -> torch.Generator:
    """A generator for each of several processes in which `source` is the same.

    It draws other numbers in each process, and others with every call.
    """
    seed = int.from_bytes(key_of(rank, source.get_state().numpy().tobytes().hex())[:8], "big") >> 1
    torch.rand(1, generator=source, device=source.device)
    return torch.Generator(source.device).manual_seed(seed)


class DeviceNoise(Noise):
    """Noise on a GPU, from torch's generator, whose seed is 63 bits of the key.

    Guarantees: no digest of the state helps to guess that seed, since the state has the other bits,
    too.
    """

    def __init__(self, seed: int, name: str, device: str):
        self.key = key_of(seed, name)
        self.source = torch.Generator(device).manual_seed(int.from_bytes(self.key[:8], "big") >> 1)

    def pairs(self, count: int) -> Tensor:
        """The next uniform bits (count, 2) int64."""
        bits = torch.empty(count, 2, dtype=torch.int64, device=self.source.device)
        return bits.random_(-(2**63), None, generator=self.source)

    def get_state(self) -> Tensor:
        """Key and generator (n,) uint8: secret as long as what was drawn is."""
        return torch.cat(
            [torch.frombuffer(bytearray(self.key), dtype=torch.uint8), self.source.get_state()]
        )

    def set_state(self, state: Tensor) -> None:
        """Continue from a state."""
        self.key = state[:32].numpy().tobytes()
        self.source.set_state(state[32:].clone())


def noise_of(seed: int, name: str, device: str) -> Noise:
    """The source of a job's noise, under a name that no other job has."""
    return (
        Stream(seed, name)
        if torch.device(device).type == "cpu"
        else DeviceNoise(seed, name, device)
    )


def digest(noise: Noise) -> str:
    """SHA-256 of the state of noise: it tells nobody the noise, but shows noise drawn again."""
    return hashlib.sha256(noise.get_state().numpy().tobytes()).hexdigest()
