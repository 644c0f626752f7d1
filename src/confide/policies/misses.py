"""A policy made to miss a chosen share of secrets: the imperfect screening of CRT's gamma sweep.

A secret is missed or found everywhere, by a keyed hash of its string, so that the same secrets are
missed in every run, and those missed at a small gamma are missed at every larger one.
"""

import hashlib
from collections.abc import Callable

from confide.policies.spans import Policy


def with_misses(policy: Policy, gamma: float, seed: int) -> Policy:
    """The policy without the spans whose string falls into the missed share `gamma` of [0, 1]."""
    if gamma <= 0:
        return policy
    missed = missing(gamma, seed)
    return lambda text: [span for span in policy(text) if not missed(text[span.start : span.end])]


def missing(gamma: float, seed: int) -> Callable[[str], bool]:
    """Whether a secret string is missed: its keyed hash, uniform on [0, 1), lies below gamma."""
    key = str(seed).encode()
    bound = int(gamma * 2**64)
    hashed = hashlib.blake2b(key=key, digest_size=8)

    def missed(secret: str) -> bool:
        digest = hashed.copy()
        digest.update(secret.encode())
        return int.from_bytes(digest.digest(), "big") < bound

    return missed
