"""Where private randomness comes from: which points a noisy update reads, and its noise.

On the CPU both are the keystream of AES-128 in counter mode, a cryptographic generator that is also faster than torch's; its
key is a digest of seed and purpose, so streams of one seed never coincide. Noise on a GPU is torch's (Philox, not
cryptographic).
"""

import hashlib
import math
import secrets
from collections.abc import Iterator
from contextlib import contextmanager

import numpy as np
import torch
from cryptography.hazmat.primitives.ciphers import Cipher, algorithms, modes
from torch import Tensor

BLOCK = 1 << 20  # numbers made at once


def fresh_seed() -> int:
    """128 bits of the system's entropy."""
    return secrets.randbits(128)


def key_of(seed: int, name: str) -> bytes:
    """32 bytes that belong to a seed and a purpose."""
    return hashlib.sha256(f"{seed}/{name}".encode()).digest()


class Stream:
    """A keystream and the place in it, counted in its blocks of 16 bytes."""

    def __init__(self, seed: int, name: str):
        self.key, self.place = key_of(seed, name)[:16], 0

    def bits(self, count: int, kind: type[np.generic] = np.int32) -> Tensor:
        """The next `count` integers (count,), uniform over all of their type; a new call begins at a new block."""
        found = np.zeros(count, dtype=kind)
        if count:
            cipher = Cipher(algorithms.AES(self.key), modes.CTR(self.place.to_bytes(16, "big"))).encryptor()
            cipher.update_into(found.data.cast("B"), found.data.cast("B"))  # zeros become the keystream, in place
        self.place += -(-found.nbytes // 16)
        return torch.from_numpy(found)

    def uniform(self, count: int) -> Tensor:
        """Independent uniform numbers (count,) float64 in [0, 1), multiples of 2^-53."""
        return (self.bits(count, np.int64) >> 11).double().add_(2**52).mul_(2.0**-53)

    def normal(self, values: Tensor) -> Tensor:
        """Overwrite values (n,) by independent draws of N(0, 1) (Box and Muller 1958, in float32: |x| < 6.8)."""
        for part in values.split(BLOCK):
            half = (len(part) + 1) // 2
            first, second = self.bits(2 * half).float().view(2, half)
            radius = first.abs_().clamp_(min=0.25).mul_(2.0**-31).log_().mul_(-2).sqrt_()  # abs: floats are dense at 0
            angle = second.mul_(math.pi * 2.0**-31)
            part[:half] = radius * angle.cos()
            part[half:] = (radius * angle.sin_())[: len(part) - half]
        return values

    def get_state(self) -> Tensor:
        """Key and place (32,) uint8: secret as long as what was drawn is."""
        return torch.frombuffer(bytearray(self.key + self.place.to_bytes(16, "big")), dtype=torch.uint8)

    def set_state(self, state: Tensor) -> None:
        """Continue from a state."""
        stored = state.numpy().tobytes()
        self.key, self.place = stored[:16], int.from_bytes(stored[16:], "big")


@contextmanager
def dropout_from(source: torch.Generator) -> Iterator[None]:
    """Let dropout draw from `source` meanwhile: how much a private batch draws must not move what exact updates draw next."""
    device = source.device
    on_cpu = device.type == "cpu"
    usual = torch.get_rng_state() if on_cpu else torch.cuda.get_rng_state(device)
    place = torch.set_rng_state if on_cpu else lambda state: torch.cuda.set_rng_state(state, device)
    place(source.get_state())
    try:
        yield
    finally:
        source.set_state(torch.get_rng_state() if on_cpu else torch.cuda.get_rng_state(device))
        place(usual)


def usual_generator(device: str) -> torch.Generator:
    """The one that dropout draws from."""
    return torch.default_generator if device == "cpu" else torch.cuda.default_generators[torch.cuda.current_device()]


def generator_of(rank: int, source: torch.Generator) -> torch.Generator:
    """One for each of several processes in which `source` is the same: other numbers in each, and others with every call."""
    seed = int.from_bytes(key_of(rank, source.get_state().numpy().tobytes().hex())[:8], "big") >> 1
    torch.rand(1, generator=source, device=source.device)
    return torch.Generator(source.device).manual_seed(seed)


class DeviceNoise:
    """The same for noise on a GPU, from torch's generator, whose seed is 63 bits of the key.

    Guarantees: no digest of the state helps to guess that seed, since the state has the other bits, too.
    """

    def __init__(self, seed: int, name: str, device: str):
        self.key = key_of(seed, name)
        self.source = torch.Generator(device).manual_seed(int.from_bytes(self.key[:8], "big") >> 1)

    def normal(self, values: Tensor) -> Tensor:
        """Overwrite values (n,) by independent draws of N(0, 1)."""
        return values.normal_(generator=self.source)

    def get_state(self) -> Tensor:
        """Key and generator (n,) uint8: secret as long as what was drawn is."""
        return torch.cat([torch.frombuffer(bytearray(self.key), dtype=torch.uint8), self.source.get_state()])

    def set_state(self, state: Tensor) -> None:
        """Continue from a state."""
        self.key = state[:32].numpy().tobytes()
        self.source.set_state(state[32:].clone())


Noise = Stream | DeviceNoise


def noise_of(seed: int, name: str, device: str) -> Noise:
    """The source of a job's noise, under a name that no other job has."""
    return Stream(seed, name) if torch.device(device).type == "cpu" else DeviceNoise(seed, name, device)
