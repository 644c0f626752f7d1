"""The redacted text of a partition as text again, to hand out, and what still stands in it."""

from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import numpy as np

from confide.data.partition_files import LEARNED, REDACTED
from confide.data.vectors import stored
from confide.errors import InputError
from confide.files.rows import read_rows
from confide.scan.search import Searcher
from confide.scan.secrets import collect
from confide.scan.variants import length
from confide.text.planted import is_planted
from confide.text.tokenizer import Tokenizer
from confide.types import SPLITS

POINTS = "points.jsonl"  # of a dataset, in the folder above that of a partition
TRAIN = SPLITS.index("train")


class Searched(NamedTuple):
    """How many texts there are, and how many of the corpus's secrets stand in them, by label."""

    texts: int
    secrets: Counter[str]


def searched(redacted: Path, tokenizer: Tokenizer, min_length: int) -> Searched:
    """Search the redacted texts of a partition for the secrets that its corpus marks.

    A policy that finds a secret where it is marked may leave it where it is not, and a value that
    stands in place of a mask may equal one. Shorter secrets than `min_length` letters and digits
    are not looked for: they occur by chance.
    """
    labels = collect([points_of(redacted)], [])
    wanted = {index: text for index, text in enumerate(labels) if length(text) >= min_length}
    count = 0

    def texts() -> Iterator[bytes]:
        nonlocal count
        for text in redacted_texts(redacted, tokenizer):
            count += 1
            yield f"{text}\n".encode()

    found = {hit.secret for hit in Searcher(wanted).hits(texts())}
    label_of = list(labels.values())
    return Searched(count, Counter(label_of[index] for index in found))


def points_of(redacted: Path) -> Path:
    """The points that a redacted view is of."""
    return redacted.resolve().parents[1] / POINTS


def redacted_texts(redacted: Path, tokenizer: Tokenizer) -> Iterator[str]:
    """The training points of a partition as the policy leaves them, in their order.

    Left out are later copies of a text, of which a mask alone is left, and sentences that were
    planted for attacks. InputError where the points beside the partition are others.
    """
    view = stored(redacted, REDACTED, LEARNED)
    ids = view.whole("ids")
    starts = view.whole("starts")
    is_read = (view.whole("split") == TRAIN) & ~view.whole("copy")
    points = points_of(redacted)
    planted = np.array([is_planted(doc) for doc in read_rows(points, "doc")], bool)
    if len(planted) != len(is_read):
        raise InputError(f"has other points than {redacted.name}", file=points)
    for point in np.flatnonzero(is_read & ~planted).tolist():
        yield tokenizer.decode(ids[starts[point] : starts[point + 1]])
