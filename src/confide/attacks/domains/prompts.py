"""What the attacks on domains read: prompts, real text to compare with, secrets of a domain.

Prompts and real text are of held-out dialogues. A dialogue is a point with control tokens
(`corpora/dialogues.py`). Prompts are its beginnings after each utterance but the last, each with
the control token of the next speaker, as in Domain Private Transformers (section 6.3 and its code);
a model has ended its utterance where it writes any control token.
"""

import re
from collections.abc import Iterable
from pathlib import Path
from typing import NamedTuple

from confide.errors import InputError
from confide.files.rows import read_rows
from confide.scan.search import Searcher
from confide.scan.variants import length
from confide.specs import PromptedSpec
from confide.types import CONVERSATION_END, CONVERSATION_START

ROLES = ("USR:", "SYS:", "BOT:")


class Prompt(NamedTuple):
    """The beginning of a dialogue, up to the next speaker's control token."""

    text: str
    domain: str
    dialogue: str  # name of the conversation: prompts of one have text in common


class Utterance(NamedTuple):
    """What somebody said in a held-out dialogue."""

    text: str
    dialogue: str


class Texts(NamedTuple):
    """What the attack reads of the points."""

    prompts: list[Prompt]
    held_out: dict[str, list[Utterance]]  # of each prompt and target domain
    secrets: dict[str, Searcher]  # of each target domain's training text
    counts: dict[str, int]  # how many secrets those are
    controls: tuple[str, ...]  # all control tokens


def read(spec: PromptedSpec, points: Path) -> Texts:
    """Everything; InputError names a domain that is not there or has no dialogue to be cut."""
    dialogues: dict[str | None, list[tuple[str, str]]] = {}
    domains: dict[str, None] = {}
    for text, split, domain, doc in read_rows(points, "text", "split", "domain", "doc"):
        if domain is not None:
            domains[domain] = None
        if split == "test":
            dialogues.setdefault(domain, []).append((doc, text))
    for key in ("prompts", "targets"):
        for domain in getattr(spec, key):
            if domain not in domains:
                known = ", ".join(sorted(domains)) or "the points name none"
                raise InputError(f"unknown: one of {known}", file=points, key=key, value=domain)
            if domain not in dialogues:
                message = "has no point in the test split"
                raise InputError(message, file=points, key=key, value=domain)
    prompts = []
    for domain in spec.prompts:
        prompts += _prompts(spec, domain, dialogues[domain], points)
    wanted = dict.fromkeys([*spec.prompts, *spec.targets])
    held_out = {domain: _utterances(spec, domain, dialogues[domain]) for domain in wanted}
    secrets = {domain: own_secrets(points, domain, spec.min_secret) for domain in spec.targets}
    return Texts(
        prompts,
        held_out,
        secrets={domain: searcher_of(values) for domain, values in secrets.items()},
        counts={domain: len(values) for domain, values in secrets.items()},
        controls=(
            CONVERSATION_START,
            CONVERSATION_END,
            *ROLES,
            *(f"<{domain}>" for domain in domains),
        ),
    )


def searcher_of(values: Iterable[str]) -> Searcher:
    """A search for some secrets, which are numbered in their order."""
    return Searcher(dict(enumerate(values)))


def turns(text: str, domain: str) -> list[re.Match[str]]:
    """Where each utterance begins: its control tokens.

    They name the domain in all of a dialogue or nowhere.
    """
    token = f"<{domain}> "
    speaker = rf"(?<!\S){re.escape(token) if token in text else ''}(?:{'|'.join(ROLES)})(?!\S)"
    return list(re.finditer(speaker, text))


def _prompts(
    spec: PromptedSpec, domain: str, dialogues: list[tuple[str, str]], points: Path
) -> list[Prompt]:
    """Of the first dialogues of a domain the first prefixes."""
    prompts = [
        Prompt(text[: turn.end()], domain, doc)
        for doc, text in dialogues[: spec.dialogues]
        for turn in turns(text, domain)[1 : spec.prefixes + 1]
    ]
    if not prompts:
        dialogue = f"dialogue of two utterances ({' '.join(ROLES)})"
        message = f"none of its first test points is a {dialogue}; point: dialogue is"
        raise InputError(message, file=points, key="prompts", value=domain)
    return prompts


def _utterances(
    spec: PromptedSpec, domain: str, dialogues: list[tuple[str, str]]
) -> list[Utterance]:
    """What was said in the test dialogues of a domain, first so many that are not empty."""
    utterances: list[Utterance] = []
    for doc, text in dialogues:
        starts = turns(text, domain)
        ends = [*(turn.start() for turn in starts[1:]), len(text)]
        for turn, end in zip(starts, ends, strict=False):
            said = text[turn.end() : end].removesuffix(CONVERSATION_END).strip()
            if said:
                utterances.append(Utterance(said, doc))
        if len(utterances) >= spec.held_out:
            break
    return utterances[: spec.held_out]


def own_secrets(points: Path, domain: str, shortest: int) -> list[str]:
    """Gold secrets of a domain's training text that stand in no other domain's.

    They have `shortest` letters and digits at least.
    """
    secrets: dict[str, None] = {}
    for text, split, place, gold in read_rows(points, "text", "split", "domain", "gold"):
        if split == "train" and place == domain:
            secrets |= dict.fromkeys(text[start:end] for start, end, *_ in gold)
    values = [secret for secret in secrets if length(secret) >= shortest]
    rows = read_rows(points, "text", "split", "domain")
    others = (
        text.encode() + b"\n" for text, split, place in rows if split == "train" and place != domain
    )
    common = {hit.secret for hit in searcher_of(values).hits(others)}
    return [value for index, value in enumerate(values) if index not in common]
