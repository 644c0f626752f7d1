"""Who a membership attack asks about: secrets of the training text, and secrets, or strings, that
are not in it.

Honest setting: members occur in train only, non-members in valid or test only, so both come from
the same source. Published setting (Selective-DP on WikiText; Shi et al. 2022): non-members are
uniform strings of spaces and digits, told apart by their form alone. The candidates depend on
corpus and seed, not on the model.
"""

from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import numpy as np

from confide.files.rows import read_rows
from confide.specs import MembershipSpec
from confide.text.tokenizer import Tokenizer
from confide.types import View

RANDOM = list(" 0123456789")  # of the published non-members


class Candidate(NamedTuple):
    """A secret in the text where it first occurs."""

    secret: str
    text: str
    start: int
    end: int
    member: bool


def occurrences(points: Path, label: str) -> dict[tuple[str, bool], Candidate]:
    """Each distinct secret of a label at its first place in train (key: secret, True) and at its
    first outside (False).

    The first place of a secret is never a later copy, so deduplication takes no candidate away.
    """
    first: dict[tuple[str, bool], Candidate] = {}
    for text, split, gold in read_rows(points, "text", "split", "gold"):
        for start, end, kind, *_ in gold:
            secret = text[start:end]
            member = split == "train"
            if kind == label and secret.strip():
                first.setdefault((secret, member), Candidate(secret, text, start, end, member))
    return first


def first_occurrences(points: Path, label: str) -> Iterator[Candidate]:
    """Each distinct secret of a label once, at its first place, if it stands in train only or
    outside train only.
    """
    first = occurrences(points, label)
    return (
        candidate
        for (secret, member), candidate in first.items()
        if (secret, not member) not in first
    )


def choose(candidates: list[Candidate], limit: int, rng: np.random.Generator) -> list[Candidate]:
    """As many non-members as members, at most `limit` each, drawn without replacement: members
    first.
    """
    sides = [[c for c in candidates if c.member], [c for c in candidates if not c.member]]
    size = min(limit, *(len(side) for side in sides))
    picks = [np.sort(rng.choice(len(side), size, replace=False)) for side in sides]
    return [side[i] for side, pick in zip(sides, picks, strict=True) for i in pick]


def against_random(
    secrets: list[Candidate], limit: int, rng: np.random.Generator
) -> list[Candidate]:
    """At most `limit` of the training secrets, and as many random strings of the same lengths in
    their places.

    No string is a training secret. Strings may repeat, as they do where they were published.
    """
    taken = {candidate.secret for candidate in secrets}
    members = [
        secrets[i]
        for i in np.sort(rng.choice(len(secrets), min(limit, len(secrets)), replace=False))
    ]
    others = []
    for own in members:
        drawn = own.secret
        while drawn in taken:
            drawn = "".join(rng.choice(RANDOM, len(own.secret)))
        others.append(
            own._replace(
                secret=drawn, text=own.text[: own.start] + drawn + own.text[own.end :], member=False
            )
        )
    return members + others


def candidates_of(spec: MembershipSpec, points: Path) -> list[Candidate]:
    """The candidates of a setting, members first and as many non-members; `bare`: without the text
    around them.
    """
    rng = np.random.default_rng(spec.seed)
    if spec.non_members == "random":
        secrets = [
            candidate for candidate in occurrences(points, spec.label).values() if candidate.member
        ]
        chosen = against_random(secrets, spec.limit, rng)
    else:
        chosen = choose(list(first_occurrences(points, spec.label)), spec.limit, rng)
    return chosen if spec.context == "text" else [bare(candidate) for candidate in chosen]


def bare(candidate: Candidate) -> Candidate:
    """The secret alone after a space, which is scored with it only where the tokenizer joins the
    two.
    """
    return candidate._replace(text=f" {candidate.secret}", start=1, end=1 + len(candidate.secret))


def tokens_of(candidates: list[Candidate], tokenizer: Tokenizer) -> View:
    """Texts of the candidates as token ids; `private` marks the tokens that overlap the secret."""
    encoded = tokenizer.encode_batch([candidate.text for candidate in candidates])
    marks = [
        [start < candidate.end and end > candidate.start for start, end in offsets]
        for candidate, (_, offsets) in zip(candidates, encoded, strict=True)
    ]
    starts = np.cumsum([0] + [len(ids) for ids, _ in encoded])
    ids = np.concatenate([np.asarray(ids, dtype=np.int32) for ids, _ in encoded])
    return View(ids, starts, np.concatenate([np.asarray(mark, dtype=bool) for mark in marks]))
