"""Which training texts are later copies of an earlier one (CRT Algorithm 1), by their digests.

A text that contains <MASK> is never a copy of another: else masking two different secrets would
merge two points and neighbouring corpora would no longer align (CRT A.6).
"""

import hashlib
import hmac
import secrets
from collections.abc import Callable, Iterable, Iterator
from typing import TypeVar

from confide.types import MASK

Place = TypeVar("Place")  # what a point is called: its key, or the byte at which it begins


def digest(name: str) -> Callable[[bytes], bytes]:
    """20-byte digest function: SHA-1, or HMAC-SHA-1 under a fresh random key."""
    if name == "hmac-sha1":
        key = secrets.token_bytes(64)
        return lambda text: hmac.digest(key, text, "sha1")
    return lambda text: hashlib.sha1(text).digest()


def digests(
    rows: Iterable[tuple[Place, str, str]], digest: Callable[[bytes], bytes]
) -> Iterator[tuple[Place, bytes]]:
    """Place and digest of those points (place, text, split) that can be copies of one another."""
    for place, text, split in rows:
        if split == "train" and MASK not in text:
            yield place, digest(text.encode())


def copies(rows: Iterable[tuple[str, str, str]], digest: Callable[[bytes], bytes]) -> Iterator[str]:
    """Keys of the training points (key, text, split) whose text stood in an earlier one.

    In memory are the digests of unique texts.
    """
    seen: set[bytes] = set()
    for key, of_text in digests(rows, digest):
        if of_text in seen:
            yield key
        seen.add(of_text)
