"""Which training texts are later copies of an earlier one (CRT Algorithm 1), by their digests.

A text that contains <MASK> is never a copy of another: else masking two different secrets would
merge two points and neighbouring corpora would no longer align (CRT A.6).
"""

from collections.abc import Callable, Iterable, Iterator
from typing import TypeVar

import numpy as np
import pyarrow as pa

from confide.files import arrays
from confide.files.buckets import DIGEST, KEYED
from confide.files.columns import Points
from confide.types import MASK

Place = TypeVar("Place")  # what a point is called: its key, or the byte at which it begins


def apart(
    points: Points, chosen: np.ndarray, digested: Callable[[bytes], bytes]
) -> tuple[np.ndarray, np.ndarray]:
    """Records KEYED of those of chosen points (N,) that can be copies of one another.

    First those of the first of each text, then those of the others.
    """
    places = np.flatnonzero(points.train & chosen & ~points.masked)
    encoded = points.texts.take(arrays.integers(places)).dictionary_encode()
    texts = arrays.from_integers(encoded.indices)  # numbered by their first appearance
    is_first = np.diff(np.maximum.accumulate(texts), prepend=-1) > 0
    unique = map(digested, encoded.dictionary.cast(pa.binary()).to_pylist())
    records = np.empty(len(places), KEYED)
    records["digest"] = np.frombuffer(b"".join(unique), f"S{DIGEST}")[texts]
    records["at"] = points.at[places]
    return records[is_first], records[~is_first]


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
