"""What recall counts by secret string: whether it is ever missed, and in how many points, texts and authors' points it stands.

Strings and authors are known by keyed digests; records of a shard hold no more than one line for a string and an author, and
those of one string meet in one bucket.
"""

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from confide.buckets import DIGEST

NOBODY = b""  # the author of points without one: each might be anybody's
COUNTED = np.dtype(
    [
        *(("digest", f"S{DIGEST}"), ("author", f"S{DIGEST}")),
        *(("points", np.int64), ("texts", np.int64), ("missed", np.bool_), ("unprotected", np.bool_)),
    ]
)


class Shown(NamedTuple):
    """Different secret strings and the most that one of them shows; of no string at all, zeros."""

    secrets: int = 0
    missed: int = 0  # in at least one of their points
    unprotected: int = 0
    points: int = 0
    texts: int = 0  # without copies
    authors: int = 0
    first_authors: int = 0  # who had a text with it first

    def beside(self, other: "Shown") -> "Shown":
        """This and what is shown of other strings."""
        sums = [one + two for one, two in zip(self[:3], other[:3], strict=True)]
        return Shown(*sums, *map(max, self[3:], other[3:]))


class Strings:
    """The secret strings of one shard, by author."""

    def __init__(self) -> None:
        self.counts: dict[tuple[str, str | None], list[int]] = {}

    def add(self, author: str | None, strings: dict[str, tuple[bool, bool]], *, fresh: bool) -> None:
        """Add a point: of each of its secret strings whether an occurrence was missed, and left unprotected."""
        for string, flags in strings.items():
            count = self.counts.setdefault((string, author), [0, 0, 0, 0])
            count[0] += 1
            count[1] += fresh
            for place, flag in enumerate(flags, 2):
                count[place] |= flag

    def records(self, digested: Callable[[bytes], bytes]) -> np.ndarray:
        """An array of COUNTED, in which strings and authors are digests."""
        rows: list[tuple[Any, ...]] = [
            (digested(string.encode()), NOBODY if author is None else digested(author.encode()), *count)
            for (string, author), count in self.counts.items()
        ]
        return np.array(rows, COUNTED)


def shown(records: np.ndarray) -> Shown:
    """What the records of some strings, COUNTED, show together."""
    if not len(records):
        return Shown()
    records = records[np.lexsort((records["author"], records["digest"]))]
    string = np.append(True, records["digest"][1:] != records["digest"][:-1])
    pairs = np.flatnonzero(string | np.append(True, records["author"][1:] != records["author"][:-1]))  # string and author
    nobody = records["author"][pairs] == NOBODY
    points, texts = (np.add.reduceat(records[name], pairs) for name in ("points", "texts"))
    starts = np.flatnonzero(string)
    of_pairs = np.searchsorted(pairs, starts)
    missed, unprotected = (np.logical_or.reduceat(records[name], starts).sum() for name in ("missed", "unprotected"))
    most = (points, texts, np.where(nobody, points, 1), np.where(nobody, texts, texts > 0))
    return Shown(len(starts), int(missed), int(unprotected), *(int(np.add.reduceat(each, of_pairs).max()) for each in most))
