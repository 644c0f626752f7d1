"""Which training texts are later copies of an earlier one (CRT Algorithm 1, deduplication), by the
digests of the texts.

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
    keyed = (
        hmac.new(secrets.token_bytes(64), digestmod="sha1")
        if name == "hmac-sha1"
        else hashlib.sha1()
    )

    def of(text: bytes) -> bytes:
        state = keyed.copy()
        state.update(text)
        return state.digest()

    return of


def digests(
    rows: Iterable[tuple[Place, str, str]], digest: Callable[[bytes], bytes]
) -> Iterator[tuple[Place, bytes]]:
    """Place and digest of those points (place, text, split) that can be copies of one another."""
    for place, text, split in rows:
        if split == "train" and MASK not in text:
            yield place, digest(text.encode())


def copies(rows: Iterable[tuple[str, str, str]], digest: Callable[[bytes], bytes]) -> Iterator[str]:
    """Keys of the training points (key, text, split) whose text stood in an earlier one. Memory:
    digests of unique texts.
    """
    seen: set[bytes] = set()
    for key, found in digests(rows, digest):
        if found in seen:
            yield key
        seen.add(found)
