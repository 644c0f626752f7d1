"""Which training texts are later copies of an earlier one (CRT Algorithm 1), by their digests.

A text that contains <MASK> is never a copy of another: else masking two different secrets would
merge two points and neighbouring corpora would no longer align (CRT A.6). Nor is a conversation one
of another of which it has the text and not the turns: which of two equal points is the first may
show in nothing that training reads.
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import TypeVar

import numpy as np
import orjson
import pyarrow as pa
import pyarrow.compute as pc

from confide.files import arrays
from confide.files.buckets import DIGEST, KEYED
from confide.files.columns import Points
from confide.types import MASK

Place = TypeVar("Place")  # what a point is called: its key, or the byte at which it begins
Answers = Sequence[tuple[int, int]] | None  # ranges of the assistants' turns in a conversation
TURNS = b"\xff"  # between a text and what is known of it, such as its turns: a byte of no text


def apart(
    points: Points,
    chosen: np.ndarray,
    digested: Callable[[bytes], bytes],
    marks: Callable[[Points], pa.StringArray] | None = None,
) -> tuple[np.ndarray, np.ndarray]:
    """Records KEYED of those of chosen points (N,) that can be copies of one another.

    First those of the first of each text, then those of the others.

    marks: what is known of points beside their texts, where only those are copies that agree in it.
    """
    places = np.flatnonzero(points.train & chosen & ~points.masked)
    contents = points.texts.take(arrays.integers(places)).cast(pa.binary())
    if marks is not None:
        beside = marks(points).take(arrays.integers(places)).cast(pa.binary())
        contents = pc.binary_join_element_wise(contents, beside, pa.scalar(TURNS))
    encoded = contents.dictionary_encode()
    texts = arrays.from_integers(encoded.indices)  # numbered by their first appearance
    is_first = np.diff(np.maximum.accumulate(texts), prepend=-1) > 0
    unique = map(digested, encoded.dictionary.to_pylist())
    records = np.empty(len(places), KEYED)
    records["digest"] = np.frombuffer(b"".join(unique), f"S{DIGEST}")[texts]
    records["at"] = points.at[places]
    return records[is_first], records[~is_first]


def content(text: str, answers: Answers) -> bytes:
    """What a point and its copies have in common."""
    encoded = text.encode()
    return encoded if answers is None else encoded + TURNS + orjson.dumps(answers)


def can_be_copy(text: str, split: str) -> bool:
    """Whether a point may be a copy of another, or another one of it."""
    return split == "train" and MASK not in text


def digests(
    rows: Iterable[tuple[Place, str, str, Answers]], digest: Callable[[bytes], bytes]
) -> Iterator[tuple[Place, bytes]]:
    """Place and digest of those points (place, text, split, answers) that can be copies of one
    another.
    """
    for place, text, split, answers in rows:
        if can_be_copy(text, split):
            yield place, digest(content(text, answers))


def copies(
    rows: Iterable[tuple[str, str, str, Answers]], digest: Callable[[bytes], bytes]
) -> Iterator[str]:
    """Keys of the training points (key, text, split, answers) that repeat an earlier one.

    In memory are the digests of unique texts.
    """
    seen: set[bytes] = set()
    for key, of_text in digests(rows, digest):
        if of_text in seen:
            yield key
        seen.add(of_text)
