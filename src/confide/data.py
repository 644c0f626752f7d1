"""The partition on disk: points and spans as JSON lines, views as two safetensors files.

redacted.safetensors is all that confidentially redacted training reads; original.safetensors holds the text as it
was and the gold secrets, for other methods and for evaluation. No torch here.
"""

import math
import os
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from operator import itemgetter
from pathlib import Path
from types import NoneType
from typing import Any

import numpy as np
import orjson
from safetensors import SafetensorError, safe_open

from confide.columns import Columns
from confide.errors import InputError
from confide.io import Range, line_from, line_number, located, read_jsonl
from confide.types import SPLITS, Partition, View

ORIGINAL = {"ids": np.int32, "starts": np.int64, "private": np.bool_, "secret": np.bool_}
REDACTED = {
    "ids": np.int32,
    "starts": np.int64,
    "private_tokens": np.bool_,
    "private": np.bool_,
    "copy": np.bool_,
    "split": np.uint8,
    "domain": np.int32,
    "owner": np.int32,
}


FINDING = ("key", "spans", "conservative")  # fields of what a policy says of a point
VALUE = (NoneType, bool, int, float, str, list, dict)  # any of JSON's
TEXT = (str, NoneType)
FIELDS: dict[str, type | tuple[type, ...]] = {  # types of the fields of points, copies, findings and packed files
    **{"key": str, "text": str, "doc": str, "split": str, "path": str, "domain": TEXT, "owner": TEXT},
    **{"gold": list, "spans": list, "canary": (int, NoneType), "conservative": bool, "at": int},
}


def located_rows(source: Path | Range, *fields: str) -> Iterator[tuple[int, Any]]:
    """The given fields of each line, as a tuple (a bare value for one field), with the byte at which the line begins.

    InputError names a field that is missing, or of another type than it has to be.
    """
    return map(itemgetter(0, 2), _checked(source, fields))


def read_rows(source: Path | Range, *fields: str) -> Iterator[Any]:
    """The same without the bytes."""
    return map(itemgetter(2), _checked(source, fields))


def _checked(source: Path | Range, fields: Sequence[str]) -> Iterator[tuple[int, dict[str, Any], Any]]:
    """Byte, object and fields of each line; these are there, of their types, and spans lie within the line's text."""
    pick, alone, spans = itemgetter(*fields), len(fields) == 1, [name for name in ("gold", "spans") if name in fields]
    right: set[Any] = set()  # types of fields that were looked at: most lines have the same
    for at, row in located(source):
        try:
            values = pick(row)
        except KeyError as error:
            raise _wrong("missing field", source, at, str(error.args[0])) from None
        types = type(values) if alone else tuple(map(type, values))
        if types not in right:
            for name in fields:
                if not isinstance(row[name], FIELDS.get(name, VALUE)):
                    raise _wrong("is of another type", source, at, name)
            right.add(types)
        for name in spans:
            if row[name] and not ranges_fit(row[name], row.get("text")):
                raise _wrong("expected lists of start, end and label in the text", source, at, name)
        yield at, row, values


def _wrong(message: str, source: Path | Range, at: int, name: str) -> InputError:
    path = source.path if isinstance(source, Range) else source
    return InputError(message, file=path, line=line_number(path, at), key=name)


def ranges_fit(spans: list[Any], text: str | None) -> bool:
    """Whether spans are lists of start, end, label and more, that lie within a text where it is given."""
    size = len(text) if isinstance(text, str) else 1 << 62
    for span in spans:
        if not isinstance(span, list) or len(span) < 3:
            return False
        start, end, label = span[:3]
        if not type(start) is type(end) is int or not 0 <= start <= end <= size or not isinstance(label, str):
            return False
    return True


def stretch(path: Path, points: Range) -> Range:
    """Where the lines of a file of findings lie that belong to a range of the points: each names the byte of its point, "at".

    The stretches of adjoining ranges adjoin, so that no line is passed over, whatever order the lines are in.
    """
    return Range(path, _first(path, points.start), None if points.end is None else _first(path, points.end))


def _first(path: Path, at: int) -> int:
    """Byte of the first line that belongs to a point at `at` or later; by bisection."""
    if at == 0:
        return 0
    try:
        with open(path, "rb") as file:
            low, high = 0, os.fstat(file.fileno()).st_size
            while low < high:
                middle = (low + high) // 2
                low, high = (middle + 1, high) if _point(path, line_from(file, middle)) < at else (low, middle)
            return line_from(file, low)
    except OSError as error:
        raise InputError(f"cannot be read: {error.strerror or error}", file=path) from error


def _point(path: Path, place: int) -> float:
    """Byte of the point that the line at a byte belongs to; infinite after the last one."""
    row = next(read_jsonl(Range(path, place)), {"at": math.inf})
    if not isinstance(row.get("at"), int | float):
        raise InputError("missing field", file=path, line=line_number(path, place), key="at")
    return row["at"]


class Join:
    """Merge-join of keyed rows, of a file or `rows`, with the points: ask for each point's key in turn, then `finish`."""

    def __init__(
        self, source: Path | Range | None = None, rows: Iterable[dict[str, Any]] = (), fields: Sequence[str] = ("key",)
    ):
        self.path = source.path if isinstance(source, Range) else source
        self.rows = iter(rows) if source is None else map(itemgetter(1), _checked(source, fields))
        self._advance()

    def _advance(self) -> None:
        self.row = next(self.rows, None)
        self.key = None if self.row is None else self.row["key"]

    def take(self, key: str) -> dict[str, Any] | None:
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


def write_partition(partition: Partition, original: Path, redacted: Path) -> None:
    """Write both files, each whole or not at all."""
    write_partitions([partition], original, redacted)


def write_partitions(parts: Iterable[Partition], original: Path, redacted: Path) -> None:
    """Write both files from parts that follow one another, each file whole or not at all; the last part names all domains.

    Guarantees: redacted.safetensors depends on the redacted views alone, byte for byte.
    """
    first, second, domains = Columns(original, ORIGINAL), Columns(redacted, REDACTED), ()
    tokens = [0, 0]  # so far, of either view
    for columns in (first, second):
        columns.add(starts=np.zeros(1, np.int64))
    for part in parts:
        views, domains = (part.original, part.redacted), part.domains
        for columns, view, before in zip((first, second), views, tokens, strict=True):
            columns.add(ids=view.ids, starts=view.starts[1:] + before)
        first.add(private=part.original.private, secret=part.secret)
        fields = ("private", "copy", "split", "domain", "owner")
        second.add(private_tokens=part.redacted.private, **{name: getattr(part, name) for name in fields})
        tokens = [before + len(view.ids) for before, view in zip(tokens, views, strict=True)]
    first.write()
    second.write({"domains": orjson.dumps(list(domains)).decode()})


def load_partition(original: Path, redacted: Path) -> Partition:
    """Read both files; InputError if one is corrupt, or if their shapes do not fit together."""
    first, _ = _load(original, ORIGINAL)
    second, metadata = _load(redacted, REDACTED)
    count = len(second["starts"]) - 1
    _require(len(first["starts"]) - 1 == count, original, "starts", "number of points differs between the two files")
    for name in ("private", "copy", "split", "domain", "owner"):
        _require(len(second[name]) == count, redacted, name, f"expected {count} entries")
    domains = _domains(redacted, metadata)
    for name, most in (("domain", len(domains)), ("owner", count)):
        least, largest = (int(second[name].min()), int(second[name].max())) if count else (-1, -1)
        _require(least >= -1 and largest < most, redacted, name, "index out of range")
    _require(count == 0 or int(second["split"].max()) < len(SPLITS), redacted, "split", "index out of range")
    return Partition(
        original=_view(original, first, "private"),
        redacted=_view(redacted, second, "private_tokens"),
        secret=_same_length(original, first, "secret"),
        private=second["private"],
        copy=second["copy"],
        split=second["split"],
        domain=second["domain"],
        owner=second["owner"],
        domains=domains,
    )


def check_vocabulary(partition: Partition, size: int, original: Path, redacted: Path) -> None:
    """InputError unless all tokens are among so many."""
    for view, path in ((partition.original, original), (partition.redacted, redacted)):
        _require(not len(view.ids) or int(view.ids.max()) < size, path, "ids", f"has tokens beyond the {size} of the tokenizer")


def within(partition: Partition, domains: Sequence[str], file: Path) -> Partition:
    """The points of some domains; the others belong to no split. InputError for a domain without points to train on."""
    for name in domains:
        if name not in partition.domains:
            known = ", ".join(partition.domains) or "there are none"
            raise InputError(f"is not one of the corpus's domains: {known}", file=file, key="domains", value=name)
        if not ((partition.domain == partition.domains.index(name)) & (partition.split == 0)).any():
            raise InputError("has no points to train on", file=file, key="domains", value=name)
    chosen = np.isin(partition.domain, [partition.domains.index(name) for name in domains])
    return replace(partition, split=np.where(chosen, partition.split, len(SPLITS)).astype(np.uint8))


def _load(path: Path, types: dict[str, Any]) -> tuple[dict[str, np.ndarray], dict[str, str]]:
    """The arrays that `types` names, one-dimensional and of these types, and the metadata."""
    try:
        with safe_open(path, "numpy") as file:
            names, metadata = set(file.keys()), file.metadata() or {}
            arrays = {name: file.get_tensor(name) for name in types if name in names}
    except OSError as error:
        raise InputError(f"cannot be read: {error.strerror or error}", file=path) from None
    except (SafetensorError, AttributeError, TypeError, ValueError) as error:  # also of types that numpy does not have
        raise InputError(f"corrupt safetensors file: {str(error)[:200]}", file=path) from None
    for name, dtype in types.items():
        _require(name in arrays, path, name, "missing array")
        right = arrays[name].ndim == 1 and arrays[name].dtype == dtype
        _require(right, path, name, f"expected a vector of {np.dtype(dtype)}")
    return arrays, metadata


def _view(path: Path, arrays: dict[str, np.ndarray], private: str) -> View:
    ids, starts = arrays["ids"], arrays["starts"]
    ordered = len(starts) > 0 and starts[0] == 0 and starts[-1] == len(ids) and not (np.diff(starts) < 0).any()
    _require(bool(ordered), path, "starts", "does not cut the token ids into points")
    _require(not len(ids) or int(ids.min()) >= 0, path, "ids", "a token has no number below 0")
    return View(ids, starts, _same_length(path, arrays, private))


def _same_length(path: Path, arrays: dict[str, np.ndarray], name: str) -> np.ndarray:
    _require(len(arrays[name]) == len(arrays["ids"]), path, name, f"expected {len(arrays['ids'])} entries")
    return arrays[name]


def _domains(path: Path, metadata: dict[str, str]) -> tuple[str, ...]:
    try:
        names = orjson.loads(metadata["domains"])
    except (KeyError, orjson.JSONDecodeError):
        names = None
    _require(
        isinstance(names, list) and all(isinstance(name, str) for name in names),
        path,
        "domains",
        "missing or malformed metadata",
    )
    return tuple(names)


def _require(condition: bool, path: Path, name: str, message: str) -> None:
    if not condition:
        raise InputError(message, file=path, key=name)
