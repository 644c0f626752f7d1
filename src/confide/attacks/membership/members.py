"""Who a membership attack asks about: secrets of the training text, and strings that are not in it.

Honest setting: members stand in one document of train, non-members in one of valid or test. So it
is the lot that split the documents which made them so: of what stands in several documents the
common would more often be in train, and a model of other text could tell. Published setting
(Selective-DP on WikiText; Shi et al. 2022): non-members are uniform strings of spaces and digits,
told apart by their form alone. The candidates depend on corpus and seed, not on the model.
"""

import re
from collections.abc import Collection, Iterable, Iterator
from pathlib import Path
from typing import NamedTuple

import numpy as np

from confide.attacks.statistics.scoring import view_of
from confide.files.rows import read_rows
from confide.specs import MembershipSpec
from confide.text.tokenizer import Tokenizer
from confide.types import View

RANDOM = list(" 0123456789")  # of the published non-members
WORD = re.compile(r"\w+")


class Candidate(NamedTuple):
    """A secret in the text where it first occurs, and its kind."""

    secret: str
    text: str
    start: int
    end: int
    member: bool
    label: str = ""

    def with_secret(self, secret: str) -> "Candidate":
        """The candidate with another secret in the same place of its text."""
        text = self.text[: self.start] + secret + self.text[self.end :]
        return self._replace(secret=secret, text=text, end=self.start + len(secret))


def occurrences(points: Path, labels: Collection[str]) -> dict[tuple[str, bool], Candidate]:
    """Each secret of the labels at its first place in train (key: secret, True) and outside.

    The first place of a secret is never a later copy, so deduplication takes no candidate away.
    """
    first: dict[tuple[str, bool], Candidate] = {}
    for candidate, _ in everywhere(points, labels):
        first.setdefault((candidate.secret, candidate.member), candidate)
    return first


def first_occurrences(points: Path, labels: Collection[str]) -> list[Candidate]:
    """Each secret of the labels that one document holds, and no other, at its first place.

    Another holds it, too, where it is not marked there.
    """
    first: dict[str, Candidate] = {}
    documents: dict[str, set[str]] = {}
    for candidate, doc in everywhere(points, labels):
        first.setdefault(candidate.secret, candidate)
        documents.setdefault(candidate.secret, set()).add(doc)
    by_word = by_first_word(secret for secret, docs in documents.items() if len(docs) == 1)
    for text, doc in read_rows(points, "text", "doc"):
        for secret in written_in(text, by_word):
            documents[secret].add(doc)
    return [candidate for secret, candidate in first.items() if len(documents[secret]) == 1]


def by_first_word(secrets: Iterable[str]) -> dict[str, list[tuple[str, int]]]:
    """Secrets by the first word in them, with how many characters stand before it."""
    by_word: dict[str, list[tuple[str, int]]] = {}
    for secret in secrets:
        word = WORD.search(secret)
        if word is not None:
            by_word.setdefault(word[0], []).append((secret, word.start()))
    return by_word


def written_in(text: str, by_word: dict[str, list[tuple[str, int]]]) -> Iterator[str]:
    """The secrets that stand in a text as whole words, marked or not."""
    for word in WORD.finditer(text):
        for secret, before in by_word.get(word[0], ()):
            start = word.start() - before
            end = start + len(secret)
            ends_in_a_word = WORD.match(secret[-1]) and WORD.match(text, end)
            if start >= 0 and text.startswith(secret, start) and not ends_in_a_word:
                yield secret


def everywhere(points: Path, labels: Collection[str]) -> Iterator[tuple[Candidate, str]]:
    """Each secret of the labels wherever it stands, and the document that it stands in."""
    for text, doc, split, gold in read_rows(points, "text", "doc", "split", "gold"):
        for start, end, label, *_ in gold:
            secret = text[start:end]
            if label in labels and secret.strip():
                yield Candidate(secret, text, start, end, split == "train", label=label), doc


def choose(candidates: list[Candidate], limit: int, rng: np.random.Generator) -> list[Candidate]:
    """As many non-members as members, at most `limit` each, drawn without replacement.

    The members come first.
    """
    members = [candidate for candidate in candidates if candidate.member]
    others = [candidate for candidate in candidates if not candidate.member]
    size = min(limit, len(members), len(others))
    return drawn(members, size, rng) + drawn(others, size, rng)


def drawn(candidates: list[Candidate], size: int, rng: np.random.Generator) -> list[Candidate]:
    """So many of the candidates without replacement, in their order."""
    return [candidates[i] for i in np.sort(rng.choice(len(candidates), size, replace=False))]


def against_random(
    secrets: list[Candidate], limit: int, rng: np.random.Generator
) -> list[Candidate]:
    """At most `limit` training secrets, and random strings of the same lengths in their places.

    No string is a training secret. Strings may repeat, as they do where they were published.
    """
    taken = {candidate.secret for candidate in secrets}
    members = drawn(secrets, min(limit, len(secrets)), rng)
    others = []
    for member in members:
        string = member.secret
        while string in taken:
            string = "".join(rng.choice(RANDOM, len(member.secret)))
        others.append(member.with_secret(string)._replace(member=False))
    return members + others


def candidates_of(spec: MembershipSpec, points: Path) -> list[Candidate]:
    """The candidates of a setting, members first and as many non-members of each kind.

    In the context `bare` they come without the text around them.
    """
    rng = np.random.default_rng(spec.seed)
    if spec.non_members == "random":
        secrets = [one for one in occurrences(points, spec.labels).values() if one.member]
        chosen = against_random(secrets, spec.limit, rng)
    else:
        secrets = first_occurrences(points, spec.labels)
        chosen = []
        for label in spec.labels:
            of_kind = [candidate for candidate in secrets if candidate.label == label]
            chosen += choose(of_kind, spec.limit, rng)
        chosen.sort(key=lambda candidate: not candidate.member)
    return chosen if spec.context == "text" else [bare(candidate) for candidate in chosen]


def bare(candidate: Candidate) -> Candidate:
    """The secret alone after a space.

    The space is scored with it only where the tokenizer joins the two.
    """
    return candidate._replace(text=f" {candidate.secret}", start=1, end=1 + len(candidate.secret))


def tokens_of(candidates: list[Candidate], tokenizer: Tokenizer) -> View:
    """Texts of the candidates as token ids; `private` marks the tokens that overlap the secret."""
    encoded = tokenizer.encode_batch([candidate.text for candidate in candidates])
    marks = [
        np.array([start < candidate.end and end > candidate.start for start, end in offsets])
        for candidate, (_, offsets) in zip(candidates, encoded, strict=True)
    ]
    return view_of([ids for ids, _ in encoded], marks)
