"""Values of public text in the place of masks, as a policy finds them there.

A mask gets a value that stood between the same two words in the public text. Where fewer than
`LEAST` did, it gets one that followed the same word, and else any: so values look as those of that
text do, in its language.

Guarantees: a filled text is a function of the text with its masks, of the public text, of a seed
and of the text's name. What a mask hides is no argument of anything here, so filling is
post-processing. A value may equal a real secret, if the public text names it.
"""

import re
from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from itertools import pairwise
from pathlib import Path
from typing import NamedTuple, Self

from confide.errors import InputError
from confide.files.io import read_json
from confide.text.fakes import Seed, source_of
from confide.types import MASK

LEAST = 5  # values from which on one is drawn among those of the same words
WORD = re.compile(r"\w+|[^\w\s]")

Words = tuple[str, str | None]  # before a mask and behind it; None: whatever is behind it


class FoundValue(NamedTuple):
    """A value of the public text, and the words around it: "" at an end of the text."""

    before: str
    value: str
    after: str


class FoundValues:
    """What a public text has where a policy hides something."""

    def __init__(self, found: Iterable[FoundValue]) -> None:
        self.all: list[str] = []
        self.between: dict[Words, list[str]] = defaultdict(list)
        for before, value, after in found:
            self.all.append(value)
            self.between[before, after].append(value)
            self.between[before, None].append(value)

    @classmethod
    def load(cls, path: Path) -> Self:
        """Those that the stage `found_values` wrote; InputError for another file."""
        rows = read_json(path)
        if not isinstance(rows, list) or not all(map(is_found, rows)):
            raise InputError("expected a list of [word, value, word]", file=path)
        if not rows:
            raise InputError("holds no value", file=path)
        return cls(FoundValue(*row) for row in rows)

    def fill(self, text: str, seed: Seed, named: str) -> str:
        """A text with a value in place of each mask; `named` is what the text is called."""
        whole, *rest = text.split(MASK)
        for number, (before, after) in enumerate(around([whole, *rest])):
            values = self.like(before, after)
            place = source_of(seed, named, f"found {number}").integers(len(values))
            whole += values[int(place)] + rest[number]
        return whole

    def like(self, before: str, after: str) -> Sequence[str]:
        """Values to draw from between two words."""
        for words in ((before, after), (before, None)):
            values = self.between.get(words, ())
            if len(values) >= LEAST:
                return values
        return self.all


def is_found(row: object) -> bool:
    """Whether a row of a file may be a FoundValue."""
    return isinstance(row, list) and [type(field) for field in row] == [str, str, str]


def around(pieces: Sequence[str]) -> Iterator[tuple[str, str]]:
    """The words before and behind each gap between pieces of a text.

    They are in small letters; a gap that adjoins another one has <MASK> there.
    """
    for number, (left, right) in enumerate(pairwise(pieces)):
        before = WORD.findall(left.lower())
        after = WORD.search(right.lower())
        first = "" if number == 0 else MASK
        last = "" if number + 2 == len(pieces) else MASK
        yield before[-1] if before else first, after[0] if after else last


def found_in(text: str, ranges: Sequence[tuple[int, int]]) -> Iterator[FoundValue]:
    """What stands in these ranges of a public text, which are in order and apart; no mask."""
    edges = [0, *(edge for some in ranges for edge in some), len(text)]
    parts = [text[start:end] for start, end in pairwise(edges)]
    for value, (before, after) in zip(parts[1::2], around(parts[::2]), strict=True):
        if MASK not in value:
            yield FoundValue(before, value, after)
