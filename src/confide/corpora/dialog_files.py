"""The CustomerSim dialogues of Shi et al. (2021) as published, with gold spans.

The spans follow the agenda. A user's turn is read as the answer to the slot that the system asked
for one turn earlier; values that are given out of turn are told by their shape, a name only where
it makes or ends the turn. The authors' 10 canaries are never fetched.
"""

import math
import re
from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path

from confide.corpora.archives import read_members
from confide.errors import InputError
from confide.specs import DialogFilesSpec
from confide.types import SPLITS, Record, Span

ASKED = (
    ("full name", "name"),
    ("order number", "order"),
    ("phone number", "phone"),
    ("shipping address", "address"),
)
TRACKING = re.compile(r"(?<![A-Z0-9])[A-Z0-9]{10}(?![A-Z0-9])")
SHAPES = {  # tried in this order: what one shape has claimed, no other may
    "address": re.compile(
        r"(?:\d{3,5}|PSC \d{4},|Unit \d{4}|US\w{1,8}) [A-Z].{0,200}?\b[A-Z]{2} \d{5}"
    ),
    "order": re.compile(r"\d{3}-\d{5}-\d{4}"),
    "phone": re.compile(r"\d{3}([-.]?)\d{3}\1\d{4}"),
}
FRAME = r"(?:I am |My name's |Yep - I'm |Sure, |Yes, )?"
NAME = r"([A-Z][\w'’-]* [A-Z][\w'’-]*)"  # given name and surname
ANSWERED = re.compile(rf"^{FRAME}{NAME}")
# A name that nobody asked for: the whole turn, or what ends it.
VOLUNTEERED = re.compile(rf"(?:^|(?<=[.\d] )){FRAME}{NAME}(?=\.?$)")


def _slot(turn: str) -> str | None:
    """The slot that a system's turn asks for."""
    return next((slot for words, slot in ASKED if words in turn), None)


def _free(spans: Sequence[Span], start: int, end: int) -> bool:
    return all(end <= span.start or start >= span.end for span in spans)


def _answers(turn: str, slot: str | None) -> list[Span]:
    """Spans of a user's turn without its speaker."""
    spans: list[Span] = []
    for label, shape in SHAPES.items():
        matches = [Span(*match.span(), label) for match in shape.finditer(turn)]
        spans += [span for span in matches if _free(spans, span.start, span.end)]
    match = ANSWERED.search(turn) if slot == "name" else VOLUNTEERED.search(turn)
    if match and _free(spans, *match.span(1)):
        spans.append(Span(*match.span(1), "name"))
    return sorted(spans)


def gold(text: str) -> tuple[Span, ...]:
    """Spans of a dialogue of SYS: and USR: lines."""
    spans: list[Span] = []
    start = 0
    slot = None
    for line in text.split("\n"):
        speaker = line[:5]
        turn = line[5:]
        if speaker == "SYS: ":
            slot = _slot(turn)
            in_turn = [Span(*match.span(), "tracking") for match in TRACKING.finditer(turn)]
        else:
            in_turn = _answers(turn, slot) if speaker == "USR: " else []
        spans += [Span(start + 5 + s, start + 5 + e, label) for s, e, label, _ in in_turn]
        start += len(line) + 1
    return tuple(spans)


def read(spec: DialogFilesSpec, raw: Path | None = None) -> Iterator[Record]:
    """Dialogues by split and number. InputError if `sizes` asks for more than the archive has."""
    counts: Counter[str] = Counter()
    for path, text in read_members(raw):
        doc = path.removesuffix(".txt")
        split = doc.partition("/")[0]
        if split not in SPLITS:
            raise InputError("a dialogue lies in no split's folder", file=raw, key="path")
        if counts[split] < getattr(spec.sizes, split, math.inf):
            counts[split] += 1
            yield Record(text.rstrip("\n"), doc, spans=gold(text), split=split)
    for split, size in spec.sizes or ():
        if counts[split] < size:
            message = f"more than the {counts[split]} dialogues there are"
            raise InputError(message, file=raw, key=f"sizes.{split}", value=size)
