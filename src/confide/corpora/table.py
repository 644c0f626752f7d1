"""The user's own table: CSV, TSV, Parquet, or a folder that `datasets` saved; a document a row.

A row is read as a JSON line of the reader `lines`, with what the specification names as its keys,
so that both give the same points. Several processes divide the row groups of Parquet files; other
tables are read by one, whatever `--threads` says.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import orjson

from confide.corpora import lines
from confide.corpora.known_secrets import (
    Mark,
    is_rounded,
    is_searchable,
    marks_of,
    united,
    written,
)
from confide.corpora.lines import Form, Line, Shard
from confide.corpora.table_files import (
    PARQUET,
    SPLIT_NAMES,
    Piece,
    Reading,
    columns,
    group_sizes,
    is_csv,
    pieces,
    rows,
)
from confide.errors import InputError
from confide.files import jsons
from confide.files import shards as files_in_shards
from confide.files.io import Range
from confide.specs import TableSpec

OPTIONAL = ("doc", "author", "domain", "split")  # keys whose values are names
PARSED = ("spans", "messages")  # keys whose values are lists, or JSON
KINDS = {
    **dict.fromkeys(("text",), ("text",)),
    **dict.fromkeys(OPTIONAL, ("text", "whole number", "nothing")),
    **dict.fromkeys(PARSED, ("text", "list", "nothing")),
}


def form_of(spec: TableSpec) -> Form:
    """How rows are read."""
    reading = reading_of(spec)
    found = {piece.path: piece for piece in pieces(Path(spec.path), reading)}
    return lines.TEXTS._replace(
        plain=False,
        rows=partial(table_lines, columns_of(spec), spec.secrets, reading, found),
        shards=shards_of(found, reading),
    )


def shards_of(
    found: Mapping[Path, Piece], reading: Reading
) -> Callable[[], Iterator[Shard]] | None:
    """How files are divided; None where one of them is not Parquet."""
    parquet = all(path.suffix.lower() == PARQUET and not is_csv(path, reading) for path in found)
    return partial(group_shards, list(found)) if parquet else None


def group_shards(files: Sequence[Path]) -> Iterator[Shard]:
    """Row groups of Parquet files, small ones together."""
    number = 1
    for path in files:
        first = rows = size = 0
        groups = group_sizes(path)
        for group, (count, in_bytes) in enumerate(groups, 1):
            rows += count
            size += in_bytes
            if size >= files_in_shards.SIZE or group == len(groups):
                yield Shard(Range(path, first, group), number)
                number += rows
                first = group
                rows = size = 0


def columns_of(spec: TableSpec) -> dict[str, str]:
    """Names of the columns by key, of those that are read."""
    column_by_key = {key: getattr(spec, key) for key in ("text", *OPTIONAL, "spans")}
    return {key: column for key, column in column_by_key.items() if column is not None}


def reading_of(spec: TableSpec) -> Reading:
    """How the files are written."""
    return Reading(spec.delimiter, spec.quotes, spec.encoding)


def table_lines(
    column_by_key: Mapping[str, str],
    secrets: Sequence[str],
    reading: Reading,
    found: Mapping[Path, Piece],
    shard: Shard,
) -> Iterator[Line]:
    """Each row of a shard as a JSON line.

    `column_by_key`: columns by key; `secrets`: those whose values are secret in the text; `found`:
    all files of the table. A shard without an end is the whole table.
    """
    wanted = [*column_by_key.values(), *secrets]
    path, start, end = shard.range
    groups = None if end is None else range(start, end)
    number = shard.number - 1
    for piece in found.values() if groups is None else [found[path]]:
        check_columns(piece, reading, column_by_key, secrets)
        for place, values in rows(piece.path, reading, wanted, groups):
            number += 1
            line = Line(piece.path, number, b"", place)
            named = values[: len(column_by_key)]
            cells = zip(column_by_key.items(), named, strict=True)
            row = {key: value_of(line, key, column, value) for (key, column), value in cells}
            if secrets:
                known = dict(zip(secrets, values[len(column_by_key) :], strict=True))
                check_secrets(line, known)
                row["spans"] = with_known(row.get("spans"), marks_of(row["text"], known))
            if piece.split is not None:
                row["split"] = piece.split
            yield line._replace(content=content_of(line, row))


def check_columns(
    piece: Piece, reading: Reading, column_by_key: Mapping[str, str], secrets: Sequence[str]
) -> None:
    """InputError for a column of another kind than its key needs, or a second word on splits.

    Columns of other keys are secret, as `secrets` are.
    """
    there = columns(piece.path, reading)
    more = [column for key, column in column_by_key.items() if key not in KINDS]
    for column in (*secrets, *more):
        if there.get(column) == "short float":
            message = "holds floats of 32 bits or fewer, which are other numbers than a text says"
            raise InputError(f"{message}: save the column as text", file=piece.path, key=column)
    for key, column in column_by_key.items():
        if column in there and key in KINDS and there[column] not in KINDS[key]:
            kinds = " or ".join(kind for kind in KINDS[key] if kind != "nothing")
            message = f"expected a column of {kinds} for {key}"
            raise InputError(message, file=piece.path, key=column)
    if piece.split is not None and "split" in column_by_key:
        message = "the folder has splits of its own: leave this out"
        raise InputError(message, file=piece.path, key="split", value=column_by_key["split"])


def check_secrets(line: Line, known: Mapping[str, Any]) -> None:
    """InputError for a value, by column, that no text says as it is."""
    for column, value in known.items():
        if not is_searchable(value):
            message = f"is no text, number or day, but of the type {type(value).__name__}"
            raise line.refused(f"{message}, which nothing can be searched for", column)
        if is_rounded(value):
            message = "is a float that lacks digits: the column must be text or whole numbers"
            raise line.refused(message, column)


def value_of(line: Line, key: str, column: str, value: Any) -> Any:
    """What a cell says, as JSON has it: an empty one says nothing, but for the text."""
    if key == "text":
        if not isinstance(value, str):
            raise line.refused("has no text: it is null", column)
        return value
    if value is None or value == "":
        return None
    if key in OPTIONAL:
        name = str(value)
        if key != "split":
            return name
        if name.lower() not in SPLIT_NAMES:
            raise line.refused("expected train, valid (or validation, dev) or test", column)
        return SPLIT_NAMES[name.lower()]
    if key not in PARSED:
        check_secrets(line, {column: value})
        return written(value)
    if isinstance(value, str):
        try:
            value = jsons.loads(value)
        except ValueError:
            raise line.refused("expected JSON", column) from None
    return triples(value) if key == "spans" else [pruned(message) for message in as_list(value)]


def with_known(spans: Any, known: list[Mark]) -> Any:
    """Spans of a row, and marks of what it knows to be secret; what overlaps becomes one.

    What is no list of spans stays as it is: the reader refuses it.
    """
    if spans is None:
        return known
    is_whole = isinstance(spans, list) and all(map(lines.is_span, spans))
    return united(spans, known) if is_whole else spans


def as_list(value: Any) -> Any:
    """A list of messages, or what is none as one: the reader refuses it."""
    return value if isinstance(value, list) else [value]


def pruned(message: Any) -> Any:
    """A message, or a part of its content, without fields that say nothing, as those of other rows
    are in a table.
    """
    if not isinstance(message, dict):
        return message
    fields = {name: value for name, value in message.items() if value is not None}
    if isinstance(fields.get("content"), list):
        fields["content"] = [pruned(part) for part in fields["content"]]
    return fields | {"spans": triples(fields["spans"])} if "spans" in fields else fields


def triples(spans: Any) -> Any:
    """Spans as [start, end, label], of a list of records, which is what a column can hold."""
    if not isinstance(spans, list):
        return spans
    return [
        [span["start"], span["end"], span["label"]]
        if isinstance(span, dict) and span.keys() == {"start", "end", "label"}
        else span
        for span in spans
    ]


def content_of(line: Line, row: dict[str, Any]) -> bytes:
    """A row as JSON. InputError for what JSON does not have, such as dates or bytes."""
    try:
        return orjson.dumps(row)
    except orjson.JSONEncodeError:
        raise line.refused("holds a value that is neither text, number nor list") from None
