"""Which training texts are later copies of an earlier one (CRT Algorithm 1), by their digests.

A text that contains <MASK> is never a copy of another: else masking two different secrets would
merge two points and neighbouring corpora would no longer align (CRT A.6). Nor is a conversation one
of another of which it has the text and not the turns: which of two equal points is the first may
show in nothing that training reads.
"""

from collections.abc import Callable, Iterable, Iterator, Sequence

import numpy as np
import orjson
import pyarrow as pa
import pyarrow.compute as pc

from confide.files import arrays
from confide.files.buckets import Apart, keyed
from confide.files.columns import Points
from confide.text.fingerprints import Fingerprints
from confide.types import MASK

Answers = Sequence[tuple[int, int]] | None  # ranges of the assistants' turns in a conversation
TURNS = b"\xff"  # between a text and what is known of it, such as its turns: a byte of no text


def apart(
    points: Points,
    chosen: np.ndarray,
    fingerprints: Fingerprints,
    marks: pa.BinaryArray | None = None,
) -> Apart:
    """What `contents_apart` says of those of chosen points (N,) that can be copies of one another.

    marks: what is known of points (N,) beside their texts, if only those are copies that agree.
    """
    places = np.flatnonzero(points.train & chosen & ~points.masked)
    contents = points.texts_at(places).cast(pa.binary())
    if marks is not None:
        beside = marks.take(arrays.integers(places))
        contents = pc.binary_join_element_wise(contents, beside, pa.scalar(TURNS))
    return contents_apart(points.at[places], contents, fingerprints)


def contents_apart(at: np.ndarray, contents: pa.BinaryArray, fingerprints: Fingerprints) -> Apart:
    """What is first and what is not among contents (N,) that begin at some bytes (N,)."""
    encoded = contents.dictionary_encode()  # in the order in which they first appear
    number = arrays.from_integers(encoded.indices)
    is_first = np.diff(np.maximum.accumulate(number), prepend=-1) > 0
    return keyed(fingerprints(encoded.dictionary), at[is_first]), at[~is_first]


def content(text: str, answers: Answers) -> bytes:
    """What a point and its copies have in common."""
    encoded = text.encode()
    return encoded if answers is None else encoded + TURNS + orjson.dumps(answers)


def can_be_copy(text: str, split: str) -> bool:
    """Whether a point may be a copy of another, or another one of it."""
    return split == "train" and MASK not in text


def copies(
    rows: Iterable[tuple[str, str, str, Answers]], digest: Callable[[bytes], bytes]
) -> Iterator[str]:
    """Keys of the training points (key, text, split, answers) that repeat an earlier one.

    In memory are the digests of unique texts.
    """
    seen: set[bytes] = set()
    for key, text, split, answers in rows:
        if not can_be_copy(text, split):
            continue
        of_text = digest(content(text, answers))
        if of_text in seen:
            yield key
        seen.add(of_text)
