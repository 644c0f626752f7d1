"""Multi-domain dialogues as Domain Private Transformers reads them (Appendix C).

They may come from files of several kinds. A dialogue is one line: <_soc_>, each utterance as
"<DOMAIN> ROLE: text", <_eoc_>, with single spaces between. Its domain becomes that of its record,
and the conversation the owner. Splits that nobody published are drawn in each domain, by
conversation: of a seeded shuffle the first fifth is test, the next valid. Gold spans are the slots
that `secrets` names.
"""

from collections.abc import Iterable, Iterator
from fnmatch import fnmatchcase
from pathlib import Path
from typing import NamedTuple

import numpy as np

from confide.corpora.archives import fetched, read_members
from confide.corpora.overlaps import as_one, overlapping
from confide.corpora.shares import check_train
from confide.errors import InputError
from confide.files.io import read_bytes
from confide.specs import DialoguesSpec
from confide.types import CONVERSATION_END, CONVERSATION_START, SPLITS, Record, Span, SplitName

# What would end an utterance's line, and tabs; one for one, so that ranges stay as they are.
BREAKS = str.maketrans("\n\r\t\v\f", "     ")
# Splits by the names of their files.
PUBLISHED: dict[str, SplitName] = {"train": "train", "dev": "valid", "test": "test"}


class Utterance(NamedTuple):
    """What one speaker says in a turn, on one line."""

    role: str  # USR, SYS or BOT
    text: str
    spans: tuple[Span, ...] = ()  # of all slots, in characters of `text`


class Dialogue(NamedTuple):
    """A conversation; no two of a corpus have one name."""

    name: str
    domain: str  # in capitals
    utterances: tuple[Utterance, ...]
    split: SplitName | None  # None: to be drawn


def files(
    folder: str | None, patterns: tuple[str, ...], raw: Path | None
) -> Iterator[tuple[Path, str, str]]:
    """Place (for messages), path and text of each file that a pattern matches.

    Without a folder, of each member of a fetched archive.
    """
    if folder is None:
        archive = fetched(raw)
        yield from ((archive / path, path, text) for path, text in read_members(archive))
        return
    root = Path(folder)
    places = sorted({place for pattern in patterns for place in root.glob(pattern)})
    if not places:
        raise InputError(f"is not a folder that holds {' or '.join(patterns)}", file=folder)
    for place in places:
        yield place, place.relative_to(root).as_posix(), _decode(place, read_bytes(place))


def _decode(path: Path, content: bytes) -> str:
    try:
        return content.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = content.count(b"\n", 0, error.start) + 1
        raise InputError("not UTF-8", file=path, line=line) from None


def records(
    spec: DialoguesSpec, dialogues: Iterable[Dialogue], place: str | Path | None
) -> Iterator[Record]:
    """Records by split and domain, of each at most as many as `sizes` says.

    Guarantees: all of a conversation is in one split, and which one does not depend on the other
    domains. Errors: InputError names a domain that is not there, or has nothing in a split, and a
    slot of `secrets` that is not there.
    """
    domains: dict[str, list[Dialogue]] = {}
    for dialogue in dialogues:
        domains.setdefault(dialogue.domain, []).append(dialogue)
    secrets = _secrets(spec, domains, place)
    splits_by_domain = {
        domain: _by_split(spec, domains[domain])
        for domain in _domains_to_read(spec, domains, place)
    }
    for domain, by_split in splits_by_domain.items() if spec.domains else ():
        for split in SPLITS:
            if not by_split[split]:
                there = ", ".join(f"{len(by_split[split])} in {split}" for split in SPLITS)
                raise InputError(
                    f"has no dialogues in {split}: {there}", file=place, key="domains", value=domain
                )
    for split in SPLITS:
        for domain in splits_by_domain:
            for dialogue in splits_by_domain[domain][split]:
                text, spans = _render(spec, dialogue, secrets)
                yield Record(
                    text,
                    doc=dialogue.name,
                    author=dialogue.name,
                    domain=domain,
                    spans=spans,
                    split=split,
                )


def _domains_to_read(
    spec: DialoguesSpec, domains: Iterable[str], place: str | Path | None
) -> list[str]:
    """Domains to be read, in the order in which they are named."""
    if spec.domains is None:
        return sorted(domains)
    names = list(dict.fromkeys(domain.upper() for domain in spec.domains))
    for domain in names:
        if domain not in domains:
            raise InputError(
                f"unknown: one of {', '.join(sorted(domains))}",
                file=place,
                key="domains",
                value=domain,
            )
    return names


def _secrets(
    spec: DialoguesSpec, domains: dict[str, list[Dialogue]], place: str | Path | None
) -> set[str]:
    """Labels of slots that are secret.

    A pattern of the user's own that fits none is a mistake, and would hide misses.
    """
    labels = {
        span.label
        for in_domain in domains.values()
        for dialogue in in_domain
        for utterance in dialogue.utterances
        for span in utterance.spans
    }
    usual = type(spec).model_fields["secrets"].default
    secrets: set[str] = set()
    for pattern in spec.secrets:
        fitting = {label for label in labels if fnmatchcase(label, pattern)}
        if labels and not fitting and pattern not in usual:
            message = f"no slot fits: {', '.join(sorted(labels))}"
            raise InputError(message, file=place, key="secrets", value=pattern)
        secrets |= fitting
    return secrets


def _by_split(spec: DialoguesSpec, dialogues: list[Dialogue]) -> dict[SplitName, list[Dialogue]]:
    """Dialogues of a domain as published, or drawn; of each split the part that is wanted."""
    by_split: dict[SplitName, list[Dialogue]] = {
        split: [dialogue for dialogue in dialogues if dialogue.split == split] for split in SPLITS
    }
    names = sorted(
        (dialogue for dialogue in dialogues if dialogue.split is None),
        key=lambda dialogue: dialogue.name,
    )
    if names:
        check_train(spec.valid, spec.test)
    shuffled = [names[index] for index in np.random.default_rng(spec.seed).permutation(len(names))]
    test = int(spec.test * len(shuffled))
    valid = int(spec.valid * len(shuffled))
    by_split["test"] += shuffled[:test]
    by_split["valid"] += shuffled[test : test + valid]
    by_split["train"] += shuffled[test + valid :]
    for split in SPLITS:
        # what is None has no sizes: nothing is skipped, and all is kept
        rest = by_split[split][getattr(spec.skip, split, 0) :]
        by_split[split] = rest[: getattr(spec.sizes, split, None)]
    return by_split


def _render(
    spec: DialoguesSpec, dialogue: Dialogue, secrets: set[str]
) -> tuple[str, tuple[Span, ...]]:
    """Text of a dialogue, and its secrets in characters of it."""
    between = " " if spec.control_tokens else "\n"
    token = f"<{dialogue.domain}> " if spec.control_tokens and spec.domain_tokens else ""
    whole = CONVERSATION_START + between if spec.control_tokens else ""
    spans = []
    for role, text, slots in dialogue.utterances:
        whole += f"{token}{role}: " if text else f"{token}{role}:"
        start = len(whole)
        groups = overlapping(span for span in slots if span.label in secrets)
        spans += [Span(start + s, start + e, label) for s, e, label in map(as_one, groups)]
        whole += text + between
    if spec.control_tokens:
        return whole + CONVERSATION_END, tuple(spans)
    return whole.removesuffix(between), tuple(spans)
