"""What recall counts by secret string: whether it is ever missed, and where it stands.

That is in how many points, texts and authors' points. Strings, authors and labels are known by
keyed digests, and those of one string meet in one bucket. Records of a shard are of two kinds: one
line for a string and an author says where it stands; one for a string under a label says whether it
is missed.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple, TypeVar

import numpy as np
import pyarrow as pa

from confide.files import arrays
from confide.files.buckets import DIGEST

NOBODY = b""  # the author of points without one: each might be anybody's
PLACES = b""  # the label of records that say where a string stands, under whatever label
Label = TypeVar("Label", str, bytes)  # its name, or a digest of it
COUNTED = np.dtype(
    [
        ("digest", f"S{DIGEST}"),
        ("author", f"S{DIGEST}"),
        ("label", f"S{DIGEST}"),
        ("points", np.int64),
        ("texts", np.int64),
        ("missed", np.bool_),
        ("unprotected", np.bool_),
    ]
)


class Flags(NamedTuple):
    """How many secrets of a label there are: occurrences, or different strings.

    missed: by the policy, a string in at least one of its points; unprotected: where the
    conservative policy is silent, too.
    """

    secrets: int = 0
    missed: int = 0
    unprotected: int = 0

    def beside(self, other: "Flags") -> "Flags":
        """This and what is known of others."""
        return Flags(*(ours + theirs for ours, theirs in zip(self, other, strict=True)))


def together(labels: dict[Label, Flags], others: dict[Label, Flags]) -> dict[Label, Flags]:
    """What is known of some strings and of others, by label."""
    return labels | {
        label: labels.get(label, Flags()).beside(flags) for label, flags in others.items()
    }


class Shown(NamedTuple):
    """Different secret strings by digest of their label, and the most that one of them shows.

    Of no string at all these are zeros.
    """

    labels: dict[bytes, Flags] = {}
    points: int = 0
    texts: int = 0  # without copies
    authors: int = 0
    first_authors: int = 0  # who had a text with it first

    def beside(self, other: "Shown") -> "Shown":
        """This and what is shown of other strings."""
        return Shown(together(self.labels, other.labels), *map(max, self[1:], other[1:]))


class Strings:
    """The secret strings of one shard, by author and by label."""

    def __init__(self) -> None:
        self.places: dict[tuple[str, str | None], list[int]] = {}
        self.flags: dict[tuple[str, str], list[bool]] = {}

    def add(
        self, author: str | None, strings: dict[tuple[str, str], tuple[bool, bool]], *, fresh: bool
    ) -> None:
        """Add a point.

        `strings`: of each of its secret strings, with its label, whether one was missed, and one
        left unprotected.
        """
        for string in {string for string, _ in strings}:
            place = self.places.setdefault((string, author), [0, 0])
            place[0] += 1
            place[1] += fresh
        for key, flags in strings.items():
            known = self.flags.setdefault(key, [False, False])
            for index, flag in enumerate(flags):
                known[index] |= flag

    def records(self, digested: Callable[[bytes], bytes]) -> np.ndarray:
        """An array of COUNTED, in which strings, authors and labels are digests."""
        rows: list[tuple[Any, ...]] = []
        for (string, author), place in self.places.items():
            owner = NOBODY if author is None else digested(author.encode())
            rows.append((digested(string.encode()), owner, PLACES, *place, False, False))
        for (string, label), flags in self.flags.items():
            rows.append((digested(string.encode()), NOBODY, digested(label.encode()), 0, 0, *flags))
        return np.array(rows, COUNTED)


@dataclass(frozen=True)
class Occurrences:
    """Where secret strings stand in the points of a shard: columns (G,)."""

    line: np.ndarray  # the point
    string: pa.StringArray
    author: np.ndarray  # numbers of names; -1: nobody
    label: np.ndarray  # numbers of names
    fresh: np.ndarray  # bool: the text is no copy
    missed: np.ndarray  # bool
    unprotected: np.ndarray  # bool


def records_of(
    there: Occurrences,
    authors: Sequence[str],
    labels: Sequence[str],
    digested: Callable[[bytes], bytes],
) -> np.ndarray:
    """An array of COUNTED, as `Strings` makes it, in another order."""
    encoded = there.string.dictionary_encode()
    string = arrays.from_integers(encoded.indices).astype(np.int64)
    names = [digested(text) for text in encoded.dictionary.cast(pa.binary()).to_pylist()]
    strings = np.array(names, f"S{DIGEST}")
    # -1, which is nobody, is the last one
    people = np.array([*(digested(name.encode()) for name in authors), NOBODY], f"S{DIGEST}")
    kinds = np.array([digested(name.encode()) for name in labels], f"S{DIGEST}")
    # a string counts once in a point
    _, once = np.unique(there.line * len(strings) + string, return_index=True)
    pairs = string[once] * len(people) + there.author[once] % len(people)
    pair, of_pair = np.unique(pairs, return_inverse=True)
    flag, of_flag = np.unique(string * len(kinds) + there.label, return_inverse=True)
    places = np.zeros(len(pair), COUNTED)
    flags = np.zeros(len(flag), COUNTED)
    if len(pair):
        places["digest"] = strings[pair // len(people)]
        places["author"] = people[pair % len(people)]
        places["label"] = PLACES
        places["points"] = np.bincount(of_pair)
        places["texts"] = np.bincount(of_pair, there.fresh[once])
        flags["digest"] = strings[flag // len(kinds)]
        flags["author"] = NOBODY
        flags["label"] = kinds[flag % len(kinds)]
        flags["missed"] = np.bincount(of_flag, there.missed) > 0
        flags["unprotected"] = np.bincount(of_flag, there.unprotected) > 0
    return np.concatenate([places, flags])


def shown(records: np.ndarray) -> Shown:
    """What the records of some strings, COUNTED, show together."""
    where = records[records["label"] == PLACES]
    if not len(where):
        return Shown()
    where = where[np.lexsort((where["author"], where["digest"]))]
    string = begins(where["digest"])
    pairs = np.flatnonzero(string | begins(where["author"]))  # string and author
    nobody = where["author"][pairs] == NOBODY
    points, texts = (np.add.reduceat(where[name], pairs) for name in ("points", "texts"))
    of_pairs = np.searchsorted(pairs, np.flatnonzero(string))
    most = (points, texts, np.where(nobody, points, 1), np.where(nobody, texts, texts > 0))
    return Shown(flagged(records), *(int(np.add.reduceat(each, of_pairs).max()) for each in most))


def begins(values: np.ndarray) -> np.ndarray:
    """Which of some values (n,) differ from the one before, (n,) bool; the first does."""
    return np.append(True, values[1:] != values[:-1])


def flagged(records: np.ndarray) -> dict[bytes, Flags]:
    """By digest of the label: its strings, and how many are ever missed, and left unprotected."""
    flags = records[records["label"] != PLACES]
    flags = flags[np.lexsort((flags["digest"], flags["label"]))]
    label = begins(flags["label"])
    strings = np.flatnonzero(label | begins(flags["digest"]))
    missed, unprotected = (
        np.logical_or.reduceat(flags[name], strings) for name in ("missed", "unprotected")
    )
    ends = np.append(np.searchsorted(strings, np.flatnonzero(label)), len(strings))
    names = flags["label"][label].tolist()
    return {
        name: Flags(
            int(end - start), int(missed[start:end].sum()), int(unprotected[start:end].sum())
        )
        for name, start, end in zip(names, ends, ends[1:], strict=False)
    }
