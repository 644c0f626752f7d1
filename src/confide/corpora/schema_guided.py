"""Schema-Guided Dialogues (Rastogi et al. 2020) and MultiWOZ 2.2 (Zang et al. 2020).

Two speakers talk, and slots are given by service and turn. MultiWOZ differs in three ways: a turn
has frames of all services, a slot has its value beside its range, and a slot may be copied from
another one (`copy_from`), and then stands nowhere in the turn. A dialogue's domain is its service
without the version (Banks_1: BANKS); of several, the first, or MULTI; and GENERAL where no service
is named.
"""

import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from confide.corpora.dialogues import BREAKS, PUBLISHED, Dialogue, Utterance, files, records
from confide.errors import InputError
from confide.files.io import parse_json
from confide.specs import MultiWozSpec, SchemaGuidedSpec
from confide.types import Record, Span

ROLES = {"USER": "USR", "SYSTEM": "SYS"}
VERSION = re.compile(r"_\d+$")
SEVERAL = "MULTI"
NONE = "GENERAL"

Fail = Callable[[str, str], InputError]  # message and key


def read(spec: SchemaGuidedSpec | MultiWozSpec, raw: Path | None = None) -> Iterator[Record]:
    """Dialogues by split and domain. InputError names file, line and place."""
    dialogues = []
    names = set()
    place = spec.path or raw
    patterns = tuple(f"{split}/dialogues_*.json" for split in PUBLISHED)
    for file, path, text in files(spec.path, patterns, raw):
        for dialogue in _dialogues(spec, file, path.partition("/")[0], text):
            if dialogue.name in names:
                raise InputError(
                    "its dialogue_id is there twice", file=file, line=_line(text, dialogue.name)
                )
            names.add(dialogue.name)
            dialogues.append(dialogue)
    there = {dialogue.split for dialogue in dialogues}
    missing = [name for name, split in PUBLISHED.items() if split not in there]
    if spec.splits == "published" and missing:
        message = f"holds no dialogues in {' and '.join(missing)}"
        raise InputError(message, file=place, key="splits", value=spec.splits)
    if spec.splits == "drawn" or missing:
        dialogues = [dialogue._replace(split=None) for dialogue in dialogues]
    yield from records(spec, dialogues, place)


def _line(text: str, name: str) -> int:
    """The line on which a dialogue's id stands."""
    return text.count("\n", 0, max(text.find(f'"{name.rpartition("/")[2]}"'), 0)) + 1


def _dialogues(
    spec: SchemaGuidedSpec | MultiWozSpec, file: Path, folder: str, text: str
) -> Iterator[Dialogue]:
    """Dialogues of a file."""
    rows = parse_json(text.encode(), file)
    if not isinstance(rows, list):
        raise InputError("expected a list of dialogues", file=file, line=1)
    for index, row in enumerate(rows):
        name = row.get("dialogue_id") if isinstance(row, dict) else None
        if not isinstance(name, str) or not name:
            raise InputError("expected a string", file=file, line=1, key=f"[{index}].dialogue_id")

        def fail(message: str, key: str, index: int = index, name: str = name) -> InputError:
            # a place and no name, which may hold anything
            return InputError(message, file=file, line=_line(text, name), key=f"[{index}].{key}")

        services = _field(row, "services", list, "services", fail)
        turns = _field(row, "turns", list, "turns", fail)
        utterances = tuple(_utterance(turn, number, fail) for number, turn in enumerate(turns))
        yield Dialogue(
            f"{folder}/{name}", _domain(spec, services, fail), utterances, PUBLISHED[folder]
        )


def _field(value: Any, key: str, kind: type, where: str, fail: Fail) -> Any:
    """A field that has to be there, and of its type."""
    if not isinstance(value, dict) or not isinstance(value.get(key), kind):
        raise fail(f"is missing, or no {kind.__name__}", where)
    return value[key]


def _domain(spec: SchemaGuidedSpec | MultiWozSpec, services: list[Any], fail: Fail) -> str:
    if not all(isinstance(service, str) for service in services):
        raise fail("expected strings", "services")
    domains = list(dict.fromkeys(VERSION.sub("", service).upper() for service in services))
    return (
        SEVERAL if spec.several == "multi" and len(domains) > 1 else domains[0] if domains else NONE
    )


def _utterance(turn: Any, number: int, fail: Fail) -> Utterance:
    """A turn with all slots that stand in it; blanks around it are not part of it."""
    where = f"turns[{number}]"
    speaker = _field(turn, "speaker", str, f"{where}.speaker", fail)
    utterance = _field(turn, "utterance", str, f"{where}.utterance", fail)
    if speaker not in ROLES:
        raise fail(f"expected one of {', '.join(ROLES)}", f"{where}.speaker")
    if str(turn.get("turn_id", number)) != str(number):
        raise fail(f"expected {number}: a turn is missing, or there twice", f"{where}.turn_id")
    text = utterance.translate(BREAKS)
    shift = len(text) - len(text.lstrip())
    stripped = text.strip()
    spans = []
    for service, frame in enumerate(_field(turn, "frames", list, f"{where}.frames", fail)):
        for place, slot in enumerate(
            _field(frame, "slots", list, f"{where}.frames[{service}].slots", fail)
        ):
            there = f"{where}.frames[{service}].slots[{place}]"
            label = _field(slot, "slot", str, f"{there}.slot", fail)
            if "copy_from" in slot and "start" not in slot:
                continue
            start = _field(slot, "start", int, f"{there}.start", fail)
            end = _field(slot, "exclusive_end", int, f"{there}.exclusive_end", fail)
            if not 0 <= start < end <= len(utterance):
                raise fail(
                    f"[{start}, {end}) is not a range within the {len(utterance)} characters", there
                )
            if slot.get("value", utterance[start:end]) != utterance[start:end]:
                raise fail("its value is not what stands at its range", there)
            span = Span(max(start - shift, 0), min(end - shift, len(stripped)), label)
            spans += [span] if span.start < span.end else []
    return Utterance(ROLES[speaker], stripped, tuple(spans))
