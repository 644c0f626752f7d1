"""Points, copies and findings as JSON lines of declared types, and a merge-join of them."""

import math
import re
from collections.abc import Iterable, Iterator, Sequence
from functools import cache
from operator import attrgetter, itemgetter
from pathlib import Path
from typing import Any, Generic, TypeVar

from msgspec import DecodeError, Struct, ValidationError, defstruct
from msgspec.json import Decoder

from confide.errors import InputError
from confide.files import jsons
from confide.files.io import Range, line_number, read_lines

Spans = list[tuple[int, int, str, float]]  # start, end, label, score
# Types of the fields of points and packed files; other fields may hold anything.
FIELDS: dict[str, Any] = {
    **dict.fromkeys(("key", "text", "split", "path"), str),
    **dict.fromkeys(("domain", "owner"), str | None),
    "gold": Spans,
    "canary": int | None,  # index into the planted canaries
    "answers": list[tuple[int, int]] | None,  # ranges of assistants' turns
}
# Fields that only some points have, and what they are elsewhere.
OPTIONAL: dict[str, Any] = {
    **dict.fromkeys(("domain", "owner", "canary", "answers"), None),
    "gold": [],
}
# Of msgspec's messages, which quote no values.
MISSING = re.compile(r"missing required field `(\w+)`\Z")
PLACE = re.compile(r"`\$\.(\w+)")

Keyed = TypeVar("Keyed", "Copy", "Found")


class Copy(Struct, gc=False):
    """A later copy of a point."""

    key: str


class Found(Struct, gc=False):
    """What the policies say of a point.

    That is the spans of pi, whether pi_c fires, and whether one of them raised.
    """

    key: str
    spans: Spans
    conservative: bool
    failed: bool = False


def point_of(
    *,
    key: str,
    text: str,
    split: str,
    domain: str | None = None,
    owner: str | None = None,
    gold: Sequence[tuple[Any, ...]] = (),
    canary: int | None = None,
    answers: Sequence[tuple[int, int]] | None = None,
) -> dict[str, Any]:
    """Fields of a point, in the order in which they are written; what it has not is left out."""
    point: dict[str, Any] = {"key": key, "text": text, "split": split}
    if domain is not None:
        point["domain"] = domain
    if owner is not None:
        point["owner"] = owner
    if gold:
        point["gold"] = gold
    if canary is not None:
        point["canary"] = canary
    if answers is not None:
        point["answers"] = answers
    return point


def document_of(key: str) -> str:
    """The name of a point's document: its key is that and a number."""
    return key.rpartition(":")[0]


def located_rows(source: Path | Range, *fields: str) -> Iterator[tuple[int, Any]]:
    """The given fields of each line, with the byte at which the line begins.

    They are a tuple, or a bare value for one field; "doc" is what the key says of it.

    InputError names a field that is missing, of another type than it has to be, or has spans beyond
    the text.
    """
    pick = attrgetter(*fields)
    return ((at, pick(row)) for at, row in _decoded(source, _kind(fields)))


def read_rows(source: Path | Range, *fields: str) -> Iterator[Any]:
    """The given fields of each line, as `located_rows` gives them, without the bytes."""
    return map(attrgetter(*fields), map(itemgetter(1), _decoded(source, _kind(fields))))


@cache
def _kind(fields: tuple[str, ...]) -> type[Struct]:
    names = dict.fromkeys("key" if name == "doc" else name for name in fields)
    types = [(name, FIELDS.get(name, Any)) for name in names]
    return defstruct(
        "Row",
        [(*field, OPTIONAL[field[0]]) if field[0] in OPTIONAL else field for field in types],
        namespace={"doc": property(lambda row: document_of(row.key))},
        gc=False,
        kw_only=True,
    )


def _decoded(source: Path | Range, kind: type[Struct]) -> Iterator[tuple[int, Any]]:
    """Lines as objects of a kind, with the byte at which they begin; blank lines are skipped.

    Errors never quote the text.
    """
    decode = Decoder(kind).decode
    names = kind.__struct_fields__
    spans = next((name for name in ("gold", "spans") if name in names), None)
    quoted = f'"{spans}"'.encode()
    for at, line in read_lines(source):
        try:
            row = decode(line)
        except (DecodeError, UnicodeDecodeError, RecursionError) as error:
            if line.isspace():
                continue
            raise _refused(error, source, at) from None
        if spans:
            if line.count(quoted) > 1 or b"\\u00" in line:  # or spelled in another way
                _check_keys(line, source, at)
            text = getattr(row, "text", None)
            size = math.inf if text is None else len(text)
            for start, end, _, _ in getattr(row, spans):
                if not 0 <= start <= end <= size:
                    raise _wrong("reaches beyond the text", source, at, spans)
        yield at, row


def _check_keys(line: bytes, source: Path | Range, at: int) -> None:
    """InputError where a key stands twice: the last would win, and secrets could be gone."""
    try:
        jsons.check_keys(line)
    except (jsons.Repeated, jsons.Nested) as error:
        raise _wrong(str(error), source, at) from None


def _refused(error: Exception, source: Path | Range, at: int) -> InputError:
    said = str(error)
    if not isinstance(error, ValidationError):
        return _wrong("malformed JSON", source, at)
    if missing := MISSING.search(said):
        return _wrong("missing field", source, at, missing[1])
    if place := PLACE.search(said):
        return _wrong("is of another type", source, at, place[1])
    return _wrong("expected a JSON object", source, at)


def _wrong(message: str, source: Path | Range, at: int, name: str | None = None) -> InputError:
    path = source.path if isinstance(source, Range) else source
    return InputError(message, file=path, line=line_number(path, at), key=name)


class Join(Generic[Keyed]):
    """Merge-join of keyed rows, of a file or `rows`, with the points.

    Ask for each point's key in turn, then `finish`.
    """

    def __init__(
        self, kind: type[Keyed], source: Path | Range | None = None, rows: Iterable[Keyed] = ()
    ):
        self.path = source.path if isinstance(source, Range) else source
        self.rows: Iterator[Any] = iter(rows)
        if source is not None:
            self.rows = map(itemgetter(1), _decoded(source, kind))
        self._advance()

    def _advance(self) -> None:
        self.row = next(self.rows, None)
        self.key = None if self.row is None else self.row.key

    def take(self, key: str) -> Keyed | None:
        """The row of this point, if it has one."""
        if key != self.key:
            return None
        row = self.row
        self._advance()
        return row

    def finish(self) -> None:
        """InputError if a row belongs to no point, or stands out of the order of the points."""
        if self.row is not None:
            raise InputError("matches no point, or is out of order", file=self.path, key=self.key)
