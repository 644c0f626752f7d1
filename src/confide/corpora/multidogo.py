"""MultiDoGO (Peskov et al. 2019): dialogues with customers of airlines, insurers, media and more.

The annotated part has the customers' turns alone, with a slot label for each word; its splits are
the paper's. The unannotated part, which Domain Private Transformers trains on, has both speakers
and no labels. Its files are called .tsv and hold commas, and its ids end in -1, or in -2 where a
conversation is there again: such a copy is left out, as it could lie in another split than the
first.
"""

import csv
import io
import re
from collections.abc import Iterator
from itertools import groupby, pairwise
from pathlib import Path
from typing import NamedTuple

from confide.corpora.dialogues import PUBLISHED, Dialogue, Utterance, files, records
from confide.errors import InputError
from confide.specs import MultiDogoSpec
from confide.types import Record, Span

ROLES = {"customer": "USR", "agent": "SYS", "bot": "BOT"}
COLUMNS = ("conversationId", "turnNumber", "utterance")
SPEAKER = "authorRole"  # the last column of interest of the unannotated part
LABELS = "slot-labels"  # and of the annotated one
TURN = re.compile(r"(\d+)(?:\.0)?")  # some files were written as floats
SUFFIX = re.compile(r"-\d{1,2}$")  # shorter than the last group of a UUID


class Row(NamedTuple):
    """A turn, and the line it ends on."""

    file: Path
    line: int
    conversation: str
    turn: int
    text: str
    last: str  # who speaks, or the labels

    def refused(self, message: str, key: str | None = None, value: object = None) -> InputError:
        """The error that names the line."""
        return InputError(message, file=self.file, line=self.line, key=key, value=value)


def read(spec: MultiDogoSpec, raw: Path | None = None) -> Iterator[Record]:
    """Conversations by split and domain; the unannotated part has no gold spans.

    InputError names file and line.
    """
    if spec.part == "unannotated" and spec.path is None:
        raise InputError(
            "is needed: the folder data/unannotated; the archive holds the annotated part",
            key="path",
        )
    dialogues = _annotated(spec, raw) if spec.part == "annotated" else _unannotated(spec)
    yield from records(spec, dialogues, spec.path or raw)


def _annotated(spec: MultiDogoSpec, raw: Path | None) -> Iterator[Dialogue]:
    """Of files DOMAIN/SPLIT.tsv."""
    docs: set[str] = set()
    for place, path, text in files(spec.path, tuple(f"*/{split}.tsv" for split in PUBLISHED), raw):
        domain = Path(path).parent.name
        split = Path(path).stem
        for name, rows in _conversations(_rows(place, text, LABELS)).items():
            doc = f"{domain}/{name}"
            if doc in docs:
                raise rows[0].refused("the conversation is in another split, too")
            docs.add(doc)
            yield Dialogue(doc, domain.upper(), tuple(map(_labelled, rows)), PUBLISHED[split])


def _unannotated(spec: MultiDogoSpec) -> Iterator[Dialogue]:
    """Of files DOMAIN.tsv."""
    for place, path, text in files(spec.path, ("*.tsv",), None):
        domain = Path(path).stem
        conversations = _conversations(_rows(place, text, SPEAKER))
        for rows in conversations.values():
            for before, row in pairwise(rows):
                if row.turn != before.turn + 1:
                    message = f"follows turn {before.turn} on line {before.line}: turns are missing"
                    raise row.refused(message, "turnNumber", row.turn)
        for name, rows in _distinct(conversations).items():
            utterances = tuple(Utterance(_role(row), " ".join(row.text.split())) for row in rows)
            yield Dialogue(f"{domain}/{name}", domain.upper(), utterances, None)


def _rows(place: Path, text: str, last: str) -> Iterator[Row]:
    """Turns in file order. InputError where a column is missing, or a row is cut off."""
    delimiter = "\t" if "\t" in text.partition("\n")[0] else ","
    reader = csv.reader(io.StringIO(text, newline=""), delimiter=delimiter, strict=True)
    try:
        header = next(reader, [])
        for column in (*COLUMNS, last):
            if column not in header:
                raise InputError("there is no such column", file=place, line=1, key=column)
        conversation, turn, utterance, final = (header.index(column) for column in (*COLUMNS, last))
        for row in reader:
            if len(row) != len(header):
                raise InputError(
                    f"{len(row)} columns instead of {len(header)}", file=place, line=reader.line_num
                )
            number = TURN.fullmatch(row[turn])
            if number is None or not row[conversation]:
                raise InputError(
                    "expected a conversationId and a turnNumber", file=place, line=reader.line_num
                )
            yield Row(
                place,
                reader.line_num,
                row[conversation],
                turn=int(number[1]),
                text=row[utterance],
                last=row[final],
            )
    except csv.Error as error:
        raise InputError(f"malformed: {error}", file=place, line=reader.line_num) from None


def _conversations(rows: Iterator[Row]) -> dict[str, list[Row]]:
    """Turns in order, by conversation, in order of these.

    InputError where a turn is there twice.
    """
    conversations: dict[str, list[Row]] = {}
    for row in rows:
        conversations.setdefault(row.conversation, []).append(row)
    for turns in conversations.values():
        turns.sort(key=lambda row: (row.turn, row.line))
        for before, row in pairwise(turns):
            if row.turn == before.turn:
                message = f"the conversation has this turn on line {before.line}, too"
                raise row.refused(message, "turnNumber", row.turn)
    return dict(sorted(conversations.items()))


def _distinct(conversations: dict[str, list[Row]]) -> dict[str, list[Row]]:
    """Conversations by id without its suffix, but for copies.

    InputError where two that differ would get one id.
    """
    distinct: dict[str, list[Row]] = {}
    for name, rows in conversations.items():
        first = distinct.setdefault(SUFFIX.sub("", name), rows)
        if first is not rows and [row[3:] for row in first] != [row[3:] for row in rows]:
            message = (
                f"differs from the one on line {first[0].line}, "
                "and only its suffix tells them apart"
            )
            raise rows[0].refused(message, "conversationId")
    return distinct


def _role(row: Row) -> str:
    if row.last not in ROLES:
        raise row.refused(f"expected one of {', '.join(ROLES)}", SPEAKER)
    return ROLES[row.last]


def _labelled(row: Row) -> Utterance:
    """A customer's turn.

    Words that follow one another with one label are one slot, as the labels have no beginnings.
    """
    words = row.text.split(" ")
    labels = row.last.split(" ")
    if len(words) != len(labels):
        raise row.refused(f"{len(labels)} labels for {len(words)} words", LABELS)
    if set(labels) == {"O"}:  # most turns
        return Utterance("USR", " ".join(row.text.split()))
    text = ""
    spans = []
    # A line break is a word, too.
    pairs = ((label, word) for label, word in zip(labels, words, strict=True) if word.strip())
    for label, group in groupby(pairs, key=lambda pair: pair[0]):
        text += " " if text else ""
        value = " ".join(part for _, word in group for part in word.split())
        if label != "O":
            spans.append(Span(len(text), len(text) + len(value), label))
        text += value
    return Utterance("USR", text, tuple(spans))
