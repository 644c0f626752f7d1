"""The redacted text of a partition as text again, to hand out, and what still stands in it."""

from collections import Counter
from collections.abc import Iterator, Mapping
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
from confide.types import SPLITS, PoolName

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


def check_is_read(redacted: Path, pools: Mapping[PoolName, int]) -> None:
    """InputError unless a redacted view has pools of these sizes, which a ledger names.

    It is of another partition else, of which a model's certificate says nothing.
    """
    view = stored(redacted, REDACTED, LEARNED)
    is_read = view.whole("split") == TRAIN
    private = view.whole("private")
    found: dict[PoolName, np.ndarray] = {
        "all": is_read,
        "public": is_read & ~private,
        "private": is_read & private,
    }
    for pool, points in found.items():
        if pools.get(pool, points.sum()) != points.sum():
            message = f"is not what the model was trained on: its pool {pool!r} has another size"
            raise InputError(message, file=redacted)


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
    split = view.whole("split")
    is_read = (split == TRAIN) & ~view.whole("copy")
    points = points_of(redacted)
    planted = np.zeros(len(split), bool)
    numbers = []
    for place, (doc, name) in enumerate(read_rows(points, "doc", "split")):
        planted[place : place + 1] = is_planted(doc)
        numbers.append(SPLITS.index(name))
    if not np.array_equal(numbers, split):
        raise InputError(f"has other points than {redacted.name}", file=points)
    for point in np.flatnonzero(is_read & ~planted).tolist():
        yield tokenizer.decode(ids[starts[point] : starts[point + 1]])
