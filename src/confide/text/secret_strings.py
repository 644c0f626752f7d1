"""What recall counts by secret string: whether it is ever missed, and where it stands.

That is in how many points, texts and authors' points. Strings that are spelled alike are one.
Strings, authors and labels are known by fingerprints, and what is said of one string meets in one
bucket. Memory grows neither with the strings nor with the authors of one of them.
"""

import unicodedata
from collections.abc import Sequence
from dataclasses import dataclass
from functools import reduce
from pathlib import Path
from typing import Any, NamedTuple, TypeVar

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from confide.files import arrays
from confide.files.buckets import Buckets
from confide.text.fingerprints import KEY, Fingerprints

Label = TypeVar("Label", str, bytes)  # its name, or a fingerprint of it
# Of a string and an author, whom a digest names that is made of both, points and texts. A digest
# is a fingerprint here.
PLACES = np.dtype([("digest", KEY), ("string", KEY), ("points", np.int64), ("texts", np.int64)])
# Of a string points, texts, and those of them that may be all of different authors.
TOTALS = np.dtype(
    [
        ("digest", KEY),
        ("points", np.int64),
        ("texts", np.int64),
        ("authors", np.int64),
        ("first_authors", np.int64),
    ]
)
# Of a string under a label whether it is missed, and left unprotected.
FLAGS = np.dtype([("digest", KEY), ("label", KEY), ("missed", bool), ("unprotected", bool)])


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


class Most(NamedTuple):
    """The most that one secret string shows; zeros of no string at all."""

    points: int = 0
    texts: int = 0  # without copies
    authors: int = 0
    first_authors: int = 0  # who had a text with it first

    def beside(self, other: "Most") -> "Most":
        """This and what other strings show."""
        return Most(*map(max, self, other))


def alike(secret: str) -> str:
    """What a secret has in common with others that are it, too: case, blanks and how accents are
    encoded (Unicode's NFC and NFD) do not count.
    """
    return unicodedata.normalize("NFC", " ".join(secret.split()).casefold())


def all_alike(secrets: pa.StringArray) -> pa.StringArray:
    """The same of each of a column (N,); Arrow spells most of them, which are ASCII."""
    content, edges = arrays.content_of(secrets)
    byte = np.frombuffer(content, np.uint8)[edges[0] : edges[-1]]
    edges = edges - edges[0]
    is_edge = np.zeros(len(byte) + 1, bool)
    is_edge[edges] = True
    blank = np.flatnonzero(byte == ord(" "))
    doubled = np.append(np.diff(blank) == 1, False)[: len(blank)]
    stray = blank[is_edge[blank] | is_edge[blank + 1] | doubled]
    others = np.flatnonzero((byte < ord(" ")) | (byte > ord("~")))
    odd = np.unique(np.searchsorted(edges, np.append(stray, others), side="right") - 1)
    lower = pc.ascii_lower(secrets)
    if not len(odd):
        return lower
    is_odd = np.zeros(len(secrets), bool)
    is_odd[odd] = True
    spelled = map(alike, secrets.take(arrays.integers(odd)).to_pylist())
    return pc.replace_with_mask(lower, arrays.booleans(is_odd), arrays.texts(list(spelled)))


class Records(NamedTuple):
    """What is known of the secret strings of some points."""

    places: np.ndarray  # PLACES: of points with authors
    totals: np.ndarray  # TOTALS: of points without, each of which might be anybody's
    flags: np.ndarray  # FLAGS

    def taken_back(self) -> "Records":
        """What makes of these texts, which were counted as the first of their kind, copies."""
        places = self.places.copy()
        places["points"] = 0
        places["texts"] *= -1
        totals = self.totals.copy()
        totals["points"] = 0
        totals["texts"] *= -1
        totals["authors"] = 0
        totals["first_authors"] *= -1
        return Records(places, totals, self.flags[:0])


class Everywhere:
    """What is known of all secret strings of a corpus of a size in bytes, in unnamed files."""

    def __init__(self, folder: Path, size: int):
        self.folder = folder
        self.places = Buckets(folder, size, PLACES)
        self.totals = Buckets(folder, size, TOTALS)
        self.flags = Buckets(folder, size, FLAGS)

    def add(self, records: Records) -> None:
        """Add what is known of strings in some more points."""
        self.places.add(records.places)
        self.totals.add(records.totals)
        self.flags.add(records.flags)

    def most(self, threads: int) -> Most:
        """The most that one string shows; nothing can be added behind it."""
        for totals in self.places.each(by_string, threads):
            self.totals.add(totals)
        return reduce(Most.beside, self.totals.each(most, threads), Most())

    def labels(self, threads: int) -> dict[bytes, Flags]:
        """Different strings by fingerprint of their label."""
        nothing: dict[bytes, Flags] = {}
        return reduce(together, self.flags.each(flagged, threads), nothing)


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
        for string in {alike(string) for string, _ in strings}:
            place = self.places.setdefault((string, author), [0, 0])
            place[0] += 1
            place[1] += fresh
        for (string, label), flags in strings.items():
            known = self.flags.setdefault((alike(string), label), [False, False])
            for index, flag in enumerate(flags):
                known[index] |= flag

    def records(self, fingerprints: Fingerprints) -> Records:
        """The same, in which strings, authors and labels are fingerprints."""
        of_name = self._fingerprints(fingerprints)
        places: list[tuple[Any, ...]] = []
        totals: list[tuple[Any, ...]] = []
        for (string, author), (points, texts) in self.places.items():
            key = of_name[string]
            if author is None:
                totals.append((key, points, texts, points, texts))
            else:
                places.append((of_name[author], key, points, texts))
        flags = [
            (of_name[string], of_name[label], *flags)
            for (string, label), flags in self.flags.items()
        ]
        with_authors = np.array(places, PLACES)
        both = of_both(with_authors["string"], with_authors["digest"], fingerprints)
        with_authors["digest"] = both
        return Records(with_authors, np.array(totals, TOTALS), np.array(flags, FLAGS))

    def _fingerprints(self, fingerprints: Fingerprints) -> dict[str, bytes]:
        """Of strings, authors and labels alike."""
        pairs = [*self.places, *self.flags]
        names = {name for pair in pairs for name in pair if name is not None}
        column = arrays.binaries([name.encode() for name in names])
        return dict(zip(names, fingerprints(column).tolist(), strict=True))


def of_both(strings: np.ndarray, authors: np.ndarray, fingerprints: Fingerprints) -> np.ndarray:
    """Fingerprints (n,) of strings and authors together, from those of each."""
    pairs = np.empty((len(strings), 2), KEY)
    pairs[:, 0] = strings
    pairs[:, 1] = authors
    edges = np.arange(len(pairs) + 1) * 2 * pairs.itemsize
    return fingerprints(arrays.binaries_between(pairs.tobytes(), edges))


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
    fingerprints: Fingerprints,
) -> Records:
    """Records as `Strings` makes them, in another order."""
    spellings = there.string.dictionary_encode()
    different = all_alike(spellings.dictionary).dictionary_encode()
    number = arrays.from_integers(different.indices).astype(np.int64)
    string = number[arrays.from_integers(spellings.indices)]
    strings = fingerprints(different.dictionary.cast(pa.binary()))
    people = fingerprints(arrays.binaries([name.encode() for name in authors]))
    kinds = fingerprints(arrays.binaries([name.encode() for name in labels]))
    # a string counts once in a point
    _, once = np.unique(there.line * len(strings) + string, return_index=True)
    named = there.author[once] >= 0
    return Records(
        places_of(
            string[once[named]],
            there.author[once[named]],
            there.fresh[once[named]],
            strings,
            people,
            fingerprints,
        ),
        totals_of(string[once[~named]], there.fresh[once[~named]], strings),
        flags_of(there, string, strings, kinds),
    )


def places_of(
    string: np.ndarray,
    author: np.ndarray,
    fresh: np.ndarray,
    strings: np.ndarray,
    people: np.ndarray,
    fingerprints: Fingerprints,
) -> np.ndarray:
    """PLACES of strings (n,) in points with authors (n,): numbers of their fingerprints."""
    pair, of_pair = np.unique(string * len(people) + author, return_inverse=True)
    places = np.zeros(len(pair), PLACES)
    if len(pair):
        places["string"] = strings[pair // len(people)]
        of_people = people[pair % len(people)]
        places["digest"] = of_both(places["string"], of_people, fingerprints)
        places["points"] = np.bincount(of_pair)
        places["texts"] = np.bincount(of_pair, fresh)
    return places


def totals_of(string: np.ndarray, fresh: np.ndarray, strings: np.ndarray) -> np.ndarray:
    """TOTALS of strings (n,) in points without author: numbers of their fingerprints."""
    points = np.bincount(string, minlength=len(strings))
    there = np.flatnonzero(points)
    totals = np.zeros(len(there), TOTALS)
    totals["digest"] = strings[there]
    totals["points"] = totals["authors"] = points[there]
    texts = np.bincount(string, fresh, minlength=len(strings))[there]
    totals["texts"] = totals["first_authors"] = texts
    return totals


def flags_of(
    there: Occurrences, string: np.ndarray, strings: np.ndarray, kinds: np.ndarray
) -> np.ndarray:
    """FLAGS of strings: numbers of their fingerprints."""
    flag, of_flag = np.unique(string * len(kinds) + there.label, return_inverse=True)
    flags = np.zeros(len(flag), FLAGS)
    if len(flag):
        flags["digest"] = strings[flag // len(kinds)]
        flags["label"] = kinds[flag % len(kinds)]
        flags["missed"] = np.bincount(of_flag, there.missed) > 0
        flags["unprotected"] = np.bincount(of_flag, there.unprotected) > 0
    return flags


def by_string(places: np.ndarray) -> np.ndarray:
    """TOTALS of the records PLACES of some pairs of a string and an author."""
    string, strings = arrays.numbered(places["string"])
    key, keys = arrays.numbered(places["digest"])
    pair, of_pair = np.unique(string * len(keys) + key, return_inverse=True)
    texts = np.bincount(of_pair, places["texts"], minlength=len(pair))
    string_of_pair = pair // max(1, len(keys))
    totals = np.zeros(len(strings), TOTALS)
    totals["digest"] = strings
    totals["points"] = np.bincount(string, places["points"], len(strings))
    totals["texts"] = np.bincount(string_of_pair, texts, len(strings))
    totals["authors"] = np.bincount(string_of_pair, minlength=len(strings))
    totals["first_authors"] = np.bincount(string_of_pair, texts > 0, len(strings))
    return totals


def most(totals: np.ndarray) -> Most:
    """The most that one string shows, of the records TOTALS of some strings."""
    string, _ = arrays.numbered(totals["digest"])
    return Most(*(int(np.bincount(string, totals[name]).max(initial=0)) for name in Most._fields))


def flagged(flags: np.ndarray) -> dict[bytes, Flags]:
    """By fingerprint of the label: its strings, how many are ever missed, and left unprotected."""
    string, strings = arrays.numbered(flags["digest"])
    label, labels = arrays.numbered(flags["label"])
    kind, of_kind = np.unique(label * len(strings) + string, return_inverse=True)
    missed = np.bincount(of_kind, flags["missed"]) > 0
    unprotected = np.bincount(of_kind, flags["unprotected"]) > 0
    of_label = kind // max(1, len(strings))
    columns = (
        np.bincount(of_label),
        np.bincount(of_label, missed),
        np.bincount(of_label, unprotected),
    )
    return {
        name: Flags(*(int(column[number]) for column in columns))
        for number, name in enumerate(labels.tolist())
    }
