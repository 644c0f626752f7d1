"""Documents in columns, for what is done with many of them at once.

Shapes: D documents, S spans.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, fields
from functools import cached_property
from itertools import chain, pairwise
from typing import Any

import numpy as np

from confide.types import MASK, Record, Span, SplitName

Ranges = tuple[tuple[int, int], ...]
Placed = tuple[int, int, str] | Span  # start, end and label of a span that is certain, or all of it


@dataclass(frozen=True)
class Gold:
    """Spans of all documents, one document after the other: columns (S,)."""

    counts: np.ndarray  # (D,) how many spans each document has
    start: np.ndarray  # in characters of the document
    end: np.ndarray
    labels: Sequence[str]
    certain: np.ndarray  # bool: the score is 1

    @cached_property
    def document(self) -> np.ndarray:
        """(S,) the document that each belongs to."""
        return np.repeat(np.arange(len(self.counts)), self.counts)


@dataclass(frozen=True)
class Documents:
    """What records say, a list (D,) for each field. All spans have a score, or none has one."""

    texts: list[str]
    names: list[str]
    authors: list[str | None]
    domains: list[str | None]
    spans: list[Sequence[Placed]]
    splits: list[SplitName]
    answers: list[Ranges | None]

    @classmethod
    def of(cls, records: Sequence[Record]) -> "Documents":
        """Records in columns."""
        return cls(
            texts=[record.text for record in records],
            names=[record.doc for record in records],
            authors=[record.author for record in records],
            domains=[record.domain for record in records],
            spans=[sorted(record.spans) for record in records],
            splits=[record.split for record in records],
            answers=[record.answers for record in records],
        )

    def __len__(self) -> int:
        return len(self.texts)

    def record(self, number: int) -> Record:
        """One of them."""
        return Record(
            self.texts[number],
            doc=self.names[number],
            author=self.authors[number],
            domain=self.domains[number],
            spans=tuple(Span(*span) for span in self.spans[number]),
            split=self.splits[number],
            answers=self.answers[number],
        )

    def records(self) -> Iterator[Record]:
        """All of them."""
        return map(self.record, range(len(self)))

    def runs(self, size: int) -> Iterator["Documents"]:
        """All of them in order, a run at a time: texts that begin within so many characters."""
        sizes = np.fromiter(map(len, self.texts), np.int64, len(self)) + 1
        number = (np.cumsum(sizes) - sizes) // size
        firsts = np.flatnonzero(np.diff(number, prepend=-1)).tolist()
        if len(firsts) <= 1:  # what is known of their spans stays known
            yield self
            return
        columns = [getattr(self, each.name) for each in fields(self)]
        for first, last in pairwise([*firsts, len(self)]):
            yield Documents(*(column[first:last] for column in columns))

    @cached_property
    def gold(self) -> Gold:
        """All spans. OverflowError for a number of more than 64 bits."""
        counts = np.fromiter(map(len, self.spans), np.int64, len(self))
        values: list[Any] = list(chain.from_iterable(chain.from_iterable(self.spans)))
        # of a span: start, end, label and perhaps a score
        width = len(values) // max(1, int(counts.sum())) or 3
        start, end = (np.fromiter(values[place::width], np.int64) for place in (0, 1))
        certain = np.ones(len(start), bool)
        if width > 3:
            certain = np.array(values[3::width], np.float64) == 1.0
        return Gold(counts, start, end, values[2::width], certain)

    @cached_property
    def in_order(self) -> np.ndarray:
        """(D,) bool: spans are ranges of the text, follow one another, and have labels."""
        gold = self.gold
        sizes = np.fromiter(map(len, self.texts), np.int64, len(self))
        is_first = np.diff(gold.document, prepend=-1) > 0
        before = np.where(is_first, 0, np.append(0, gold.end)[:-1])
        right = (before <= gold.start) & (gold.start < gold.end)
        right &= gold.end <= sizes[gold.document]
        if "" in gold.labels:
            right &= np.array([label != "" for label in gold.labels])
        return np.bincount(gold.document[~right], minlength=len(self)) == 0

    @cached_property
    def masked(self) -> np.ndarray:
        """(D,) bool: a mask stands in the text."""
        return np.array([MASK in text for text in self.texts], bool)

    @cached_property
    def certain(self) -> np.ndarray:
        """(D,) bool: all spans have a score of 1."""
        gold = self.gold
        return np.bincount(gold.document[~gold.certain], minlength=len(self)) == 0
