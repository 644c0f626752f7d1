"""The redacted text of a partition as text again, to hand out, and what still stands in it."""

from collections import Counter
from collections.abc import Iterator, Mapping
from pathlib import Path

import numpy as np

from confide.data.partition_files import LEARNED, REDACTED
from confide.data.vectors import stored
from confide.errors import InputError
from confide.files.rows import read_rows
from confide.scan.search import Searcher
from confide.scan.secrets import collect, long_enough
from confide.text.planted import is_planted
from confide.text.tokenizer import Tokenizer
from confide.types import SPLITS, PoolName

POINTS = "points.jsonl"  # of a dataset, in the folder above that of a partition
TRAIN = SPLITS.index("train")


class RedactedTexts:
    """The training points of a partition as the policy leaves them, in their order.

    Left out are later copies of a text, of which a mask alone is left, and sentences that were
    planted for attacks.
    """

    def __init__(self, redacted: Path, tokenizer: Tokenizer, pools: Mapping[PoolName, int]) -> None:
        """`redacted`: a view; `pools`: how large these are in the ledger of the model that read it.

        InputError where the view's are others, for then it is of another partition, or where the
        points beside it are.
        """
        view = stored(redacted, REDACTED, LEARNED)
        self.tokenizer = tokenizer
        self.ids = view.whole("ids")
        self.starts = view.whole("starts")
        self.points = redacted.resolve().parents[1] / POINTS
        split = view.whole("split")
        is_read = split == TRAIN
        check_pools(redacted, is_read, view.whole("private"), pools)
        documents = documents_of(self.points, split, redacted)
        shown = np.flatnonzero(is_read & ~view.whole("copy") & (documents >= 0))
        self.shown = shown.tolist()
        self.documents = documents[shown].tolist()

    def __len__(self) -> int:
        return len(self.shown)

    def __iter__(self) -> Iterator[str]:
        for point in self.shown:
            yield self.tokenizer.decode(self.ids[self.starts[point] : self.starts[point + 1]])

    def by_document(self) -> Iterator[tuple[int, str]]:
        """The texts, each with the number of its document, from 1 on."""
        number_of = {document: at for at, document in enumerate(dict.fromkeys(self.documents), 1)}
        for document, text in zip(self.documents, self, strict=True):
            yield number_of[document], text

    def secrets(self, min_length: int) -> Counter[str]:
        """How many of the secrets that the corpus marks stand in the texts, by label.

        A policy that finds a secret where it is marked may leave it where it is not, and a value
        that stands in place of a mask may equal one. Shorter ones than `min_length` are not looked
        for.
        """
        labels = collect([self.points], [])
        searcher = Searcher(long_enough(labels, min_length))
        found = {hit.secret for hit in searcher.hits(f"{text}\n".encode() for text in self)}
        label_of = list(labels.values())
        return Counter(label_of[index] for index in found)


def check_pools(
    redacted: Path, is_read: np.ndarray, private: np.ndarray, pools: Mapping[PoolName, int]
) -> None:
    """InputError unless the pools of a view have these sizes.

    is_read and private (N,): points of the train split, and private ones.
    """
    found: dict[PoolName, np.ndarray] = {
        "all": is_read,
        "public": is_read & ~private,
        "private": is_read & private,
    }
    for pool, points in found.items():
        if pools.get(pool, points.sum()) != points.sum():
            message = f"is not what the model was trained on: its pool {pool!r} has another size"
            raise InputError(message, file=redacted)


def documents_of(points: Path, split: np.ndarray, redacted: Path) -> np.ndarray:
    """(N,) int: the number of each point's document, -1 for what the tool planted; InputError
    unless the points' splits are `split`.
    """
    numbers: dict[str, int] = {}
    documents = []
    splits = []
    for doc, name in read_rows(points, "doc", "split"):
        documents.append(-1 if is_planted(doc) else numbers.setdefault(doc, len(numbers)))
        splits.append(SPLITS.index(name) if name in SPLITS else len(SPLITS))
    if not np.array_equal(splits, split):
        raise InputError(f"has other points than {redacted.name}", file=points)
    return np.array(documents, np.int64)
