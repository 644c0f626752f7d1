"""Documents of the training text and held-out ones, so that nothing but training tells them apart.

The unit is a document, since points of one document are alike. Of each the longest point counts
that stands in no other document, and one secret that no other document has: neither choice looks at
which side a document is on. As many are drawn of each side. So, if training left no trace in what
is measured, who is a member is a fair draw, which is the null of every test here. That the corpus
was split by lot is taken for granted; `blind` scores show where it was not.
"""

from collections import Counter
from collections.abc import Iterable
from pathlib import Path
from typing import NamedTuple

import numpy as np

from confide.files.rows import read_rows
from confide.text.planted import is_planted

SIDES = ("train", "test")


class Entry(NamedTuple):
    """A point of a document, or a secret in its point."""

    text: str
    start: int
    end: int

    @property
    def part(self) -> str:
        """What is scored."""
        return self.text[self.start : self.end]


class Sides(NamedTuple):
    """As many members as others."""

    members: list[Entry]
    others: list[Entry]


class Corpus(NamedTuple):
    """What a corpus gives to these tests."""

    points: Sides
    secrets: Sides
    reference: list[str]  # points that neither side has: of the valid split


def read(points: Path, limit: int, rng: np.random.Generator) -> Corpus:
    """At most `limit` documents of each side; nothing that was planted."""
    texts: dict[str, dict[str, list[Entry]]] = {side: {} for side in SIDES}
    secrets: dict[str, dict[str, list[Entry]]] = {side: {} for side in SIDES}
    reference = []
    for doc, text, split, gold in read_rows(points, "doc", "text", "split", "gold"):
        if is_planted(doc):
            continue
        if split not in SIDES:
            reference.append(text)
            continue
        texts[split].setdefault(doc, []).append(Entry(text, 0, len(text)))
        for start, end, *_ in gold:
            if text[start:end].strip():
                secrets[split].setdefault(doc, []).append(Entry(text, start, end))
    return Corpus(
        points=drawn(longest(texts), limit, rng),
        secrets=drawn(longest(secrets), limit, rng),
        reference=reference,
    )


def longest(sides: dict[str, dict[str, list[Entry]]]) -> dict[str, list[Entry]]:
    """Of each document the longest entry whose part stands in no other document, if there is one.

    The first of equally long ones.
    """
    documents: Counter[str] = Counter()
    for side in sides.values():
        for entries in side.values():
            documents.update({entry.part for entry in entries})

    def best(entries: Iterable[Entry]) -> Entry | None:
        own = [entry for entry in entries if documents[entry.part] == 1]
        return max(own, key=lambda entry: entry.end - entry.start, default=None)

    return {
        name: [entry for entries in side.values() if (entry := best(entries)) is not None]
        for name, side in sides.items()
    }


def drawn(sides: dict[str, list[Entry]], limit: int, rng: np.random.Generator) -> Sides:
    """As many of each side, by lot."""
    size = min(limit, *(len(entries) for entries in sides.values()))
    members, others = (
        [sides[name][place] for place in rng.choice(len(sides[name]), size, replace=False)]
        for name in SIDES
    )
    return Sides(members, others)
