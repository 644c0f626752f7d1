"""Which texts a person reads: drawn by lot, in strata, from the distinct texts of the train split.

Later copies are left out, since deduplication masks them, and so is what the tool planted; where
copies are read all the same, they are a stratum of which nothing is drawn. The lot depends on the
bytes of the points and of what the policy finds, on a seed and on how many are drawn: a policy that
was mended by what a review showed has its next review on other texts. Nobody chooses a text.
"""

import hashlib
import re
from bisect import bisect_right
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import lru_cache
from heapq import nsmallest
from operator import itemgetter
from pathlib import Path
from typing import NamedTuple

from confide.errors import InputError
from confide.files.io import Range, sha256
from confide.files.rows import Copy, Found, Join, read_rows
from confide.files.shards import shards
from confide.files.stretches import Beside, stretches
from confide.policies import hidden, is_within
from confide.specs.files import ANY
from confide.text.masked import is_masked
from confide.text.planted import is_planted_key
from confide.text.scripts import LETTER, UNSPACED

COPIES = "copies"  # the stratum of later copies
STRATA = ("found", "near", "nothing")  # by what the policy and the conservative one say of a text
OTHER = "other"  # a label that every review has
LEAST_SHARE = 10  # a stratum has at least one tenth of the draws, if it has as many texts
# Of scripts without spaces between words each character counts as one.
WORD = re.compile(rf"[{UNSPACED}]|{LETTER}+")

Mark = tuple[int, int, str]  # start, end and label of a part of a text


class Text(NamedTuple):
    """A text with what the policy finds in it."""

    key: str
    text: str
    stratum: str
    found: tuple[Mark, ...]

    def room(self, most: int | None) -> int:
        """How many missed secrets it may hold: no more than words that are not masked, or `most`.

        A mark of a person has at least one such word, and no word has two marks.
        """
        words = len(self.words_left)
        return words if most is None else min(most, words)

    @property
    def words_left(self) -> tuple[tuple[int, int], ...]:
        """Where words stand that are not masked."""
        return _words_left(self.text, self.found)

    def runs(self, label: str) -> list[list[int]]:
        """Numbers of the spans of a label, or of ANY, in runs without a word between that is left.

        A run counts as one secret: a policy may find one in pieces, and counted apart these would
        make misses look rare. Several secrets side by side are one, too, which does the opposite.
        """
        numbers = [at for at, mark in enumerate(self.found) if label in (mark[2], ANY)]
        numbers.sort(key=lambda number: self.found[number][:2])
        runs: list[list[int]] = []
        end = 0
        for number in numbers:
            if runs and not is_between(self.words_left, end, self.found[number][0]):
                runs[-1].append(number)
            else:
                runs.append([number])
            end = max(end, self.found[number][1])
        return runs


class Wanted(NamedTuple):
    """How many texts to draw and by which lot; `most`: secrets that a text holds, beyond found."""

    size: int
    seed: int
    most: int | None


@dataclass(slots=True)
class Counted:
    """What is known of a stratum without reading it: by label, how many texts have which value."""

    texts: int = 0
    rooms: Counter[int] = field(default_factory=Counter)
    found: dict[str, Counter[int]] = field(default_factory=dict)  # runs of spans
    both: dict[str, Counter[int]] = field(default_factory=dict)  # runs and room, where runs are

    def add(self, text: Text, most: int | None) -> None:
        """Count a text."""
        room = text.room(most)
        self.texts += 1
        self.rooms[room] += 1
        labels = {label for *_, label in text.found}
        for label in (*labels, ANY) if labels else ():
            runs = len(text.runs(label))
            self.found.setdefault(label, Counter())[runs] += 1
            both = self.both.setdefault(label, Counter())
            both[room + runs] += 1
            both[room] -= 1  # it stands among the rooms of all texts

    def ranges(self, label: str) -> Counter[int]:
        """By how many secrets of a label, found or missed, a text may hold: how many texts."""
        whole = Counter(self.rooms)
        whole.update(self.both.get(label, {}))
        return +whole


@dataclass(frozen=True, slots=True)
class Drawn:
    """The texts of a review, in the order in which they are read, and what they are drawn from."""

    texts: list[Text]
    counted: dict[str, Counted]  # by stratum
    points: str  # SHA-256 of the file of points
    spans: str  # and of what the policies find in them

    @property
    def labels(self) -> list[str]:
        """Labels of what the policy finds in any text."""
        labels = {label for counted in self.counted.values() for label in counted.found}
        return sorted(labels - {ANY})


def draw_sample(wanted: Wanted, *, points: Path, spans: Path, copies: Path, policies: str) -> Drawn:
    """Draw texts; InputError where these files do not belong together, or spans to the policies.

    policies: whose findings the spans are, `confide.provenance.terms.findings_by`
    """
    findings = Beside(spans, policies)
    later_copies = Beside(copies)
    digests = sha256(points), sha256(spans)
    counted: dict[str, Counted] = {}
    for text in texts(points, findings, later_copies):
        counted.setdefault(text.stratum, Counted()).add(text, wanted.most)
    quota = quotas({name: of_stratum.texts for name, of_stratum in counted.items()}, wanted.size)
    lot = f"{digests} {wanted.seed} {wanted.size}".encode()
    keyed = hashlib.blake2b(key=hashlib.sha256(lot).digest(), digest_size=16)

    def place(text: Text) -> bytes:
        hasher = keyed.copy()
        hasher.update(text.key.encode())
        return hasher.digest()

    sample: list[Text] = []
    for stratum in counted:
        alike = (text for text in texts(points, findings, later_copies) if text.stratum == stratum)
        sample += nsmallest(quota[stratum], alike, key=place)
    return Drawn(sorted(sample, key=place), counted, *digests)


def with_copies(
    sample: Drawn, most: int | None, *, points: Path, spans: Path, copies: Path, policies: str
) -> Drawn:
    """The same sample of a corpus whose later copies are read, too: nobody has looked at them."""
    later = Counted()
    for text in texts(points, Beside(spans, policies), Beside(copies), copied=True):
        later.add(text, most)
    return replace(sample, counted=sample.counted | ({COPIES: later} if later.texts else {}))


def texts(points: Path, spans: Beside, copies: Beside, *, copied: bool = False) -> Iterator[Text]:
    """Distinct texts of the train split that are the corpus's own, in file order; or their copies.

    What a policy finds in a text that was masked before is not counted: it is no secret.
    """
    for shard in shards(points):
        yield from _texts_of(shard, spans, copies, copied)


def _texts_of(shard: Range, spans: Beside, copies: Beside, copied: bool) -> Iterator[Text]:
    found, later = stretches(shard, spans, copies)
    findings = Join(Found, found)
    copied_keys = Join(Copy, later)
    for key, text, split in read_rows(shard, "key", "text", "split"):
        copy = copied_keys.take(key)
        finding = findings.take(key)
        if split != "train" or (copy is not None) is not copied or is_planted_key(key):
            continue
        spans_here = finding.spans if finding else []
        marks = tuple(
            (start, end, label)
            for start, end, label, *_ in spans_here
            if not is_masked(text, start, end)
        )
        if any(end > len(text) for _, end, _ in marks):
            raise InputError("a span reaches beyond its text", file=spans.path, key=key)
        nearby = STRATA[1] if finding else STRATA[2]
        yield Text(key, text, STRATA[0] if marks else nearby, marks)
    findings.finish()
    copied_keys.finish()


def quotas(sizes: Mapping[str, int], total: int) -> dict[str, int]:
    """How many texts of each stratum are drawn: by size, and a tenth of all at the least."""
    least = -(-total // LEAST_SHARE)
    quota = {name: min(size, least) for name, size in sizes.items()}
    for _ in range(min(total, sum(sizes.values())) - sum(quota.values())):
        # the one that is furthest from its share
        name = max(
            sizes,
            key=lambda stratum: (
                (sizes[stratum] - quota[stratum]) and sizes[stratum] / quota[stratum]
            ),
        )
        quota[name] += 1
    return quota


@lru_cache(maxsize=1)  # of a text that is counted, which is asked for its words again and again
def _words_left(text: str, found: tuple[Mark, ...]) -> tuple[tuple[int, int], ...]:
    masked = hidden(text, found)
    return tuple(word for word in words_of(text) if not is_within(*word, masked))


def is_between(words: Sequence[tuple[int, int]], first: int, last: int) -> bool:
    """Whether any of these words, in order, has a character from first to last."""
    at = bisect_right(words, first, key=itemgetter(1))
    return at < len(words) and words[at][0] < last


def words_of(text: str) -> Iterator[tuple[int, int]]:
    """Where words stand."""
    return (word.span() for word in WORD.finditer(text))
