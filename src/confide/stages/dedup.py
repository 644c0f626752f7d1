"""List later copies of training texts (CRT Algorithm 1, deduplication): the first occurrence stays, the rest are named.

Only keys of points are written. A text that contains <MASK> is never a copy of another: else masking two different
secrets would merge two points and neighbouring corpora would no longer align (CRT A.6).
"""

import hashlib
import hmac
import secrets
import sys
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path

from confide.data import read_rows
from confide.io import write_jsonl
from confide.specs import DedupSpec
from confide.types import MASK

WARNING = "dedup: warning: plain SHA-1 digests of short secrets can be guessed by enumeration; hmac-sha1 is the safe choice"


def dedup(spec: DedupSpec, *, points: Path, output: Path) -> None:
    """Write one line {"key"} per later copy in the train split, in file order.

    Guarantees: the key of the digests exists only in memory; no digest and no text is written.
    """
    if spec.digest == "sha1":
        print(WARNING, file=sys.stderr)
    rows = read_rows(points, "key", "text", "split")
    write_jsonl(output, ({"key": key} for key in copies(rows, digest(spec.digest))))


def digest(name: str) -> Callable[[bytes], bytes]:
    """20-byte digest function: SHA-1, or HMAC-SHA-1 under a fresh random key."""
    keyed = hmac.new(secrets.token_bytes(64), digestmod="sha1") if name == "hmac-sha1" else hashlib.sha1()

    def of(text: bytes) -> bytes:
        state = keyed.copy()
        state.update(text)
        return state.digest()

    return of


def copies(rows: Iterable[tuple[str, str, str]], digest: Callable[[bytes], bytes]) -> Iterator[str]:
    """Keys of the training points whose text stood in an earlier one. Memory: the digests of unique texts."""
    seen: set[bytes] = set()
    for key, text, split in rows:
        if split != "train" or MASK in text:
            continue
        size = len(seen)
        seen.add(digest(text.encode()))
        if len(seen) == size:
            yield key
