"""The neighbour test (CRT section 3 and A.6).

Does processed text show whether one secret was masked in the raw text? D' is D with one secret
replaced by <MASK>. Where its text stands several times, the first copy has the secret masked and
each later one becomes a whole <MASK>, as deduplication leaves it; in the literal neighbour, and
where nothing is deduplicated, copies stay as they are. Deduplication, redaction and partition run,
by the functions of the stages, on every point that this touches: no other point can change, since
each depends on its own text and on earlier ones like it.

Masks stay masks here, whatever is put in their place for training. That is a function of the masked
text and of the point's name, so what is the same with masks is the same without. A secret that is
missed leaves a trace even where chance would put its own value in place of its mask.
"""

import hashlib
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from heapq import heappush, heappushpop
from pathlib import Path
from typing import Literal, NamedTuple

import numpy as np

from confide.data.partitioning import Ranges, Raw, Row, build, rows
from confide.data.redaction import Finding
from confide.errors import InputError
from confide.files.io import sha256
from confide.files.rows import Copy, Found, Join, document_of
from confide.policies import moved
from confide.specs import PartitionSpec
from confide.text.deduplication import copies
from confide.text.digests import digest
from confide.text.planted import is_planted
from confide.text.tokenizer import Tokenizer
from confide.types import MASK, Partition


class Kind(NamedTuple):
    """What secrets are sampled by.

    Planted ones are the audit's own: they say nothing of what a policy does to a corpus.
    """

    planted: bool
    label: str


class Secret(NamedTuple):
    """One gold occurrence of a secret: characters start to end of the training point `key`."""

    key: str
    text: str
    start: int
    end: int
    label: str

    @property
    def string(self) -> str:
        return self.text[self.start : self.end]

    @property
    def doc(self) -> str:
        """The name of its document."""
        return document_of(self.key)

    @property
    def kind(self) -> Kind:
        """The document's name says whether the tool planted it."""
        return Kind(is_planted(self.doc), self.label)

    @property
    def masked(self) -> str:
        """The text with the secret masked."""
        return self.text[: self.start] + MASK + self.text[self.end :]


class Outcome(NamedTuple):
    """How D and D' differ once processed, and in how many points."""

    kind: Literal["same", "private", "exposed"]
    points: int


Process = Callable[[list[Raw]], Partition]
Placed = tuple[int, Raw]  # a point and its place in the file
# text, assistants' turns, start and end of a secret, and whether its point is the first copy
Case = tuple[str, tuple[tuple[int, int], ...] | None, int, int, bool]


def process_of(
    find: Callable[[str], Finding], spec: PartitionSpec, tokenizer: Tokenizer
) -> Process:
    """Deduplication, redaction and partition of a few points, whose masks stay.

    InputError where the partition refuses them.
    """
    digested = digest("hmac-sha1")

    def process(points: list[Raw]) -> Partition:
        return build(tokenizer, processed(points, find, spec, digested), spec.learn)

    return process


def processed(
    points: Sequence[Raw],
    find: Callable[[str], Finding],
    spec: PartitionSpec,
    digested: Callable[[bytes], bytes],
) -> Iterator[Row]:
    """Rows of a few points: later copies by their digests, spans by `find`, then the partition."""
    texts = ((point.key, point.text, point.split, point.answers) for point in points)
    copied = [Copy(key) for key in copies(texts, digested)]
    findings = [Found(point.key, **finding) for point in points if (finding := find(point.text))]
    return rows(spec, points, Join(Copy, rows=copied), Join(Found, rows=findings))


def secrets_of(points: Iterable[Raw]) -> Iterator[Secret]:
    """Gold occurrences of the train split, in file order.

    One without a character cannot be masked and is left out. A span that is named twice is one
    secret: else whoever repeats those that are found would make misses look rare.
    """
    for key, text, split, _, _, gold, _ in points:
        if split == "train":
            for start, end, label in dict.fromkeys(tuple(span[:3]) for span in gold):
                if start < end:
                    yield Secret(key, text, start, end, label)


def quotas(counts: Mapping[Kind, int], places: int) -> dict[Kind, int]:
    """How many secrets of each kind to test, in at most so many places.

    These are all of the rare ones, and as many as fit of the others. Each kind is judged by itself,
    so a rare one needs its secrets more than a frequent one does.
    """
    quota: dict[Kind, int] = {}
    left = places
    for number, (kind, count) in enumerate(
        sorted(counts.items(), key=lambda item: (item[1], item[0]))
    ):
        quota[kind] = min(count, left // (len(counts) - number))
        left -= quota[kind]
    return quota


def draw(secrets: Iterable[Secret], wanted: Mapping[Kind, int], lot: bytes) -> list[Secret]:
    """So many of the secrets of each kind, uniform without replacement.

    Those with the smallest hashes of their places, keyed by the lot, are drawn: in whichever order
    they come. As many are held in memory as are wanted.
    """
    keyed = keyed_by(lot)
    drawn: dict[Kind, list[tuple[int, int, Secret]]] = {kind: [] for kind in wanted}
    for number, secret in enumerate(secrets):
        heap = drawn[secret.kind]
        most = wanted[secret.kind]
        # The largest hash is on top, to be replaced.
        ranked = -hash_of(keyed, secret), -number, secret
        if len(heap) < most:
            heappush(heap, ranked)
        elif most:
            heappushpop(heap, ranked)
    chosen = sorted((ranked for heap in drawn.values() for ranked in heap), reverse=True)
    return [secret for *_, secret in chosen]


def lot_of(points: Path, seed: int) -> bytes:
    """By which lot secrets of these points are drawn.

    It depends on the bytes of the whole file: whoever names documents cannot choose those that
    leave secrets out which a policy misses.
    """
    return hashlib.sha256(f"{sha256(points)} {seed}".encode()).digest()


def keyed_by(lot: bytes) -> hashlib.blake2b:
    """The hash of places that decides which secrets are drawn: 64 bits."""
    return hashlib.blake2b(key=lot, digest_size=8)


def hash_of(keyed: hashlib.blake2b, secret: Secret) -> int:
    """The keyed hash of where a secret stands."""
    place = f"{secret.start} {secret.end} {secret.key}".encode()
    return int.from_bytes(place_of(keyed, place), "big")


def place_of(keyed: hashlib.blake2b, place: bytes) -> bytes:
    """The keyed hash of a place: start, end and key of the point, a blank between them."""
    within = keyed.copy()
    within.update(place)
    return within.digest()


def touched(points: Iterable[Raw], secrets: list[Secret]) -> dict[str, list[Placed]]:
    """Training points, by text, that have the text of a secret before or after it is masked.

    Gold spans are left out: only evaluation reads them, and in D' they would have to be moved.
    """
    alike: dict[str, list[Placed]] = {
        text: [] for secret in secrets for text in (secret.text, secret.masked)
    }
    for place, point in enumerate(points):
        if point.split == "train" and point.text in alike:
            alike[point.text].append((place, point._replace(gold=[])))
    return alike


def neighbour(points: list[Raw], secret: Secret, *, copies_masked: bool) -> list[Raw]:
    """D' in place of D, as far as touched.

    copies_masked: later copies of the text become a whole <MASK>. A text that holds <MASK> has no
    copies, so that only the point of the secret itself changes.
    """
    alone = not copies_masked or MASK in secret.text
    turns = turns_of(points, secret)
    changed = []
    first = True
    for point in points:
        same = point.split == "train" and point.text == secret.text and point.answers == turns
        if not (point.key == secret.key if alone else same):
            changed.append(point)
        elif first:
            changed.append(masked(point, secret))
            first = False
        else:
            answers = None if point.answers is None else ()
            changed.append(point._replace(text=MASK, gold=[], answers=answers))
    return changed


def turns_of(points: Iterable[Raw], secret: Secret) -> Ranges | None:
    """The assistants' turns in the point of a secret."""
    return next((point.answers for point in points if point.key == secret.key), None)


def masked(point: Raw, secret: Secret) -> Raw:
    """The point with the secret masked; the assistants' turns stay around what they were."""
    answers = point.answers
    if answers is not None:
        answers = moved(answers, [(secret.start, secret.end)])
    return point._replace(text=secret.masked, gold=[], answers=answers)


def compare(first: Partition, second: Partition) -> Outcome:
    """How what training reads differs between two partitions.

    same: it is equal. private: it differs only in points that are private on both sides. Else it is
    exposed.
    """
    if len(first.redacted) != len(second.redacted):
        return Outcome("exposed", abs(len(first.redacted) - len(second.redacted)))
    flags = np.zeros(len(first.redacted), bool)
    for name in ("private", "copy", "split", "domain", "owner"):
        flags |= getattr(first, name) != getattr(second, name)
    texts = [
        not np.array_equal(first.redacted[point], second.redacted[point])
        or not np.array_equal(first.redacted.scored(point), second.redacted.scored(point))
        for point in range(len(flags))
    ]
    changed = flags | np.array(texts, bool)
    if not changed.any():
        return Outcome("same", 0)
    stays = first.private & second.private & (first.split == second.split)
    return Outcome("private" if stays[changed].all() else "exposed", int(changed.sum()))


class Tester:
    """Tests secrets one after the other.

    Remembers outcomes, since copies of a text share theirs.
    """

    def __init__(self, process: Process, alike: dict[str, list[Placed]], *, dedup: bool):
        self.process = process
        self.alike = alike
        self.dedup = dedup
        self.known: dict[Case, tuple[Outcome, Outcome]] = {}

    def test(self, secret: Secret) -> tuple[Outcome, Outcome]:
        """Outcomes for the neighbour and for the literal neighbour.

        They differ only where a text has later copies.
        """
        placed = self.alike[secret.text]
        turns = turns_of((point for _, point in placed), secret)
        same = [point for _, point in placed if point.answers == turns]
        said = None if turns is None else tuple(turns)
        case = (secret.text, said, secret.start, secret.end, secret.key == same[0].key)
        if case not in self.known:
            points = [point for _, point in sorted(placed + self.alike[secret.masked])]
            literal = self._outcome(points, secret, copies_masked=False)
            repeated = self.dedup and len(same) > 1 and MASK not in secret.text
            outcome = self._outcome(points, secret, copies_masked=True) if repeated else literal
            self.known[case] = (outcome, literal)
        return self.known[case]

    def _outcome(self, points: list[Raw], secret: Secret, *, copies_masked: bool) -> Outcome:
        first = self.process(points)
        try:
            second = self.process(neighbour(points, secret, copies_masked=copies_masked))
        except InputError:  # a neighbour that the stages refuse says more than any difference
            return Outcome("exposed", len(points))
        return compare(first, second)
