"""Rows of tables in files: CSV and TSV, Parquet, and what `datasets` saves (Arrow streams).

A table is one file, or a folder: one that `save_to_disk` wrote, or one of files of a kind. All of
them are read a little at a time. `pyarrow` is imported where a file needs it. Names of columns are
shown where they look like names: a file without a header begins with text.
"""

import csv
import difflib
import re
from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from itertools import islice
from pathlib import Path
from typing import Any, Literal, NamedTuple

from confide.errors import InputError
from confide.files.encodings import Encoding, text_lines
from confide.files.folders import visible
from confide.files.io import LONGEST, read_object, readable
from confide.types import SPLITS, SplitName

# of a column; a short float has 32 bits or fewer
Kind = Literal["text", "whole number", "short float", "list", "nothing", "other"]
DELIMITERS = {".csv": ",", ".tsv": "\t", ".tab": "\t"}
ARROW = ".arrow"
PARQUET = ".parquet"
KINDS = (*DELIMITERS, PARQUET)  # files of a folder that nobody but their names describes
HIDDEN = (".", "_")  # what names begin with of files, and folders, that Spark leaves beside a table
SAVED = "state.json"  # of a folder that save_to_disk wrote
SAVED_SPLITS = "dataset_dict.json"  # of one with a folder for each split
BATCH = 256  # rows of Arrow that are looked at together
# what others call splits
SPLIT_NAMES: dict[str, SplitName] = {
    "train": "train",
    "training": "train",
    "valid": "valid",
    "validation": "valid",
    "val": "valid",
    "dev": "valid",
    "test": "test",
}
PART = re.compile(r"([A-Za-z]+)(?:[-_.].*)?")  # a file's name that may begin with a split's
OF_SEVERAL = re.compile(r"(.+-)(\d+)-of-(\d+)\b.*")  # a file's name that says how many there are
NAME = re.compile(r"[^\W\d]\w*(?:[./-]\w+)*")  # of a column; with blanks it may be of a person
HEADING = re.compile(r"[^\W\d]\w*(?:[ ./-]+\w+){0,3}[^\w\n]?")  # what may head a column
LONGEST_NAME = 40
SHOWN = 20  # names of columns in an error


class Reading(NamedTuple):
    """What a user says of how a file is written; only CSV needs it."""

    delimiter: str | None = None  # None: by the name of the file
    quotes: bool = True  # whether " begins a quoted field; else it is a character like any other
    encoding: Encoding | None = None


class Piece(NamedTuple):
    """A file of a table, and the split that the folder gives it."""

    path: Path
    split: SplitName | None = None


def pieces(path: Path, reading: Reading) -> list[Piece]:
    """The files of a table, in order.

    Where a folder names all three splits its files have them. Where it lacks one, documents of
    train are divided by the corpus's shares, and have none.
    """
    if not path.is_dir():
        return [Piece(path)]
    parts = _saved_splits(path) if (path / SAVED_SPLITS).exists() else _named(path, reading)
    if {piece.split for piece in parts} >= {*SPLITS}:
        return sorted(parts, key=lambda piece: SPLITS.index(piece.split or "train"))
    return [piece._replace(split=None) if piece.split == "train" else piece for piece in parts]


def _saved_splits(folder: Path) -> list[Piece]:
    """Files of what a DatasetDict saved."""
    file = folder / SAVED_SPLITS
    names = read_object(file, "splits")["splits"]
    if not isinstance(names, list) or not names:
        raise InputError("expected a list of names", file=file, key="splits")
    parts: list[Piece] = []
    for name in names:
        if not isinstance(name, str) or name not in SPLIT_NAMES:
            message = "is none of train, validation, test: give the folder of one split"
            raise InputError(message, file=file, key="splits", value=name)
        split = SPLIT_NAMES[name]
        if any(piece.split == split for piece in parts):
            raise InputError("names a split twice", file=file, key="splits", value=name)
        parts += [Piece(path, split) for path in _saved(folder / name)]
    return parts


def _saved(folder: Path) -> list[Path]:
    """Files of what a Dataset saved; none outside of the folder."""
    file = folder / SAVED
    state = read_object(file, "_data_files")
    if state.get("_indices_data_files"):
        message = "picks rows of its files: save it again after flatten_indices()"
        raise InputError(message, file=file, key="_indices_data_files")
    paths = []
    for entry in state["_data_files"] if isinstance(state["_data_files"], list) else ():
        name = entry.get("filename") if isinstance(entry, dict) else None
        if not isinstance(name, str) or Path(name).name != name or not name.endswith(ARROW):
            raise InputError("expected names of files *.arrow", file=file, key="_data_files")
        paths.append(folder / name)
    if not paths:
        raise InputError("names no files", file=file, key="_data_files")
    return paths


def _named(folder: Path, reading: Reading) -> list[Piece]:
    """Files of a folder by their names, which tell splits if all of them begin with one."""
    if (folder / SAVED).exists():
        return [Piece(path) for path in _saved(folder)]
    files = sorted(tables_below(folder))
    kinds = {path.suffix.lower() for path in files}
    if len(kinds) != 1:
        several = f"holds files of several kinds: {', '.join(sorted(kinds))}; give a folder of one"
        no_table = f"holds no table: no {SAVED} of datasets, and no files *{', *'.join(KINDS)}"
        raise InputError(several if kinds else no_table, file=folder, key="path")
    _check_whole(files)
    splits = [_split_of(path) for path in files]
    return list(map(Piece, files, splits if None not in splits else [None] * len(files)))


def tables_below(folder: Path) -> Iterator[Path]:
    """Tables below a folder by the names of files, without what a failed attempt left there."""
    return (path for path in visible(folder, HIDDEN) if path.suffix.lower() in KINDS)


def _check_whole(files: Sequence[Path]) -> None:
    """InputError where files are missing beside train-00001-of-00003.parquet, or are of two saves.

    They are numbered from 0 or from 1 on. What an older save left beside a newer one would be read
    as well: of other files in all, or of the same number with another tail.
    """
    numbers: dict[tuple[Path, str], dict[str, list[int]]] = defaultdict(lambda: defaultdict(list))
    for path in files:
        if match := OF_SEVERAL.fullmatch(path.name):
            numbers[path.parent, match[1]][match[3]].append(int(match[2]))
    for (folder, name), saves in numbers.items():
        if len(saves) > 1:
            one, other = sorted(saves)[:2]
            message = f"holds files {name}*-of-{one} and {name}*-of-{other}: give a folder of one"
            raise InputError(message, file=folder, key="path")
        ((last, there),) = saves.items()
        _check_numbers(folder, f"{name}*-of-{last}", int(last), there)


def _check_numbers(folder: Path, shown: str, count: int, there: Sequence[int]) -> None:
    """InputError unless files of a save are as many as they say, each there once."""
    first = int(count in there)
    wanted = range(first, first + count)
    twice = [number for number, times in Counter(there).items() if times > 1]
    if twice:
        message = f"holds number {min(twice)} of files {shown} twice: give a folder of one save"
        raise InputError(message, file=folder, key="path")
    missing = count - sum(number in wanted for number in there)
    if missing:
        lowest = next(number for number in wanted if number not in there)
        message = (
            f"lacks {missing} of {count} files {shown}, such as number {lowest}; one file alone is "
            "read by its own name"
        )
        raise InputError(message, file=folder, key="path")


def _split_of(path: Path) -> SplitName | None:
    """Split that the name of a file begins with, as train-00000-of-00002.parquet does."""
    match = PART.fullmatch(path.stem)
    return SPLIT_NAMES.get(match[1].lower()) if match else None


def is_csv(path: Path, reading: Reading) -> bool:
    """Whether a file is read as text. InputError for a name that says nothing."""
    suffix = path.suffix.lower()
    if reading.delimiter is not None or suffix in DELIMITERS:
        return True
    if suffix not in (PARQUET, ARROW):
        suffixes = ", ".join((*KINDS, ARROW))
        raise InputError(
            f"is none of {suffixes}: of CSV say the delimiter", file=path, key="delimiter"
        )
    if reading.encoding is not None:
        message = "is for text: Parquet and Arrow have one of their own"
        raise InputError(message, file=path, key="encoding", value=reading.encoding)
    return False


def columns(path: Path, reading: Reading) -> dict[str, Kind]:
    """Names of a file's columns, and of what kind they are; those of CSV are text."""
    if is_csv(path, reading):
        return dict.fromkeys(next(_csv(path, reading))[1], "text")
    with _legible(path):
        return {field.name: kind_of(field.type) for field in _schema(path)}


def rows(
    path: Path, reading: Reading, names: Sequence[str], groups: range | None = None
) -> Iterator[tuple[int, list[Any]]]:
    """Line, or number from 1 on, of each row of a file, and what stands in the columns.

    `groups`: of Parquet, of which row groups; None: of all. InputError where a column is not there,
    or stands twice, or the file is broken.
    """
    if is_csv(path, reading):
        yield from _csv_rows(path, reading, names)
    else:
        yield from _arrow_rows(path, names, groups)


def group_sizes(path: Path) -> list[tuple[int, int]]:
    """Rows and bytes, uncompressed, of each row group of a Parquet file."""
    with _legible(path):
        metadata = _parquet(path).metadata
        groups = [metadata.row_group(number) for number in range(metadata.num_row_groups)]
        return [(group.num_rows, group.total_byte_size) for group in groups]


def _csv(path: Path, reading: Reading) -> Iterator[tuple[int, list[str]]]:
    """Line at which each row begins, and its fields; first of all the header.

    Blank lines are no rows.
    """
    csv.field_size_limit(LONGEST)
    delimiter = reading.delimiter or DELIMITERS[path.suffix.lower()]
    lines = text_lines(path, reading.encoding)
    table = csv.reader(lines, delimiter=delimiter, strict=True)
    if not reading.quotes:
        table = csv.reader(lines, delimiter=delimiter, strict=True, quoting=csv.QUOTE_NONE)
    empty = True
    while True:
        line = table.line_num + 1
        try:
            fields = next(table, None)
        except csv.Error:
            message = "malformed quotes or line ends; `quotes: false` where quotes mean nothing"
            raise InputError(message, file=path, line=line) from None
        if fields is None:
            break
        if fields:
            empty = False
            yield line, fields
    if empty:
        raise InputError("is empty: expected a header with names of columns", file=path)


def _csv_rows(
    path: Path, reading: Reading, names: Sequence[str]
) -> Iterator[tuple[int, list[str]]]:
    table = _csv(path, reading)
    line, header = next(table)
    places = [_place(path, header, name, line) for name in names]
    for line, fields in table:
        if len(fields) != len(header):
            message = f"has {len(fields)} fields, and the header has {len(header)}"
            raise InputError(message, file=path, line=line)
        yield line, [fields[place] for place in places]


def _arrow_rows(
    path: Path, names: Sequence[str], groups: range | None
) -> Iterator[tuple[int, list[Any]]]:
    with _legible(path):
        header = [field.name for field in _schema(path)]
    for name in names:
        _place(path, header, name)
    number = 0
    if groups is not None:
        number = sum(count for count, _ in group_sizes(path)[: groups.start])
    for batch in _batches(path, list(dict.fromkeys(names)), groups):
        with _legible(path):
            batch.validate(full=True)
            values = [batch.column(name).to_pylist() for name in names]
        for row in zip(*values, strict=True):
            number += 1
            yield number, list(row)


def _place(path: Path, header: Sequence[str], name: str, line: int | None = None) -> int:
    """Where a column stands; `line`: of a header in CSV. InputError if it does not, or twice."""
    if (count := header.count(name)) == 1:
        return header.index(name)
    help_text = hint(header, name, is_text=line is not None)
    message = "stands twice in the header" if count else f"there is no such column{help_text}"
    raise InputError(message, file=path, line=line, key=name)


def hint(header: Sequence[str], column: str, is_text: bool) -> str:
    """What to say of the columns after an error: their names, unless they may be values.

    `is_text`: the header is the first line of a file, which may have none: then what stands there
    may be anything, and is shown only where it is nearly what was asked for.
    """
    if is_text and len(header) == 1 and not is_name(header[0]):
        return ", and line 1 is one column: is the delimiter another?"
    if is_text and not all(map(is_heading, header)):
        return ", and line 1 does not look like a header"
    folded = {name.lower(): name for name in header if is_name(name) or not is_text}
    close = difflib.get_close_matches(column.lower(), folded, n=1)
    meant = f": did you mean {folded[close[0]]}?" if close else ""
    if is_text:
        return f"{meant} (line 1 has {len(header)})"
    return f"{meant} (columns: {column_names(header, is_text)})"


def column_names(header: Sequence[str], is_text: bool, subset: Sequence[str] | None = None) -> str:
    """Names of columns, of the chosen ones, as many as a line has room for.

    One with blanks may be no name, and is told by its number.
    """
    names = header if subset is None else subset
    labels = [
        name if is_name(name) or not is_text else f"the name of column {header.index(name) + 1}"
        for name in names[:SHOWN]
    ]
    more = [f"{len(names) - SHOWN} more"] if len(names) > SHOWN else []
    return ", ".join([*labels, *more])


def is_heading(cell: str) -> bool:
    """Whether a cell of the first line may be the name of a column."""
    return len(cell) <= LONGEST_NAME and HEADING.fullmatch(cell) is not None


def is_name(column: str) -> bool:
    """Whether it can be shown as the name of a column."""
    return len(column) <= LONGEST_NAME and NAME.fullmatch(column) is not None


def _schema(path: Path) -> Any:
    """The Arrow schema of a file."""
    if path.suffix.lower() == PARQUET:
        return _parquet(path).schema_arrow
    with _stream(path) as reader:
        return reader.schema


def _batches(path: Path, names: Sequence[str], groups: range | None = None) -> Iterator[Any]:
    """Some rows at a time, of these columns and, of Parquet, of these row groups."""
    if path.suffix.lower() == PARQUET:
        with _legible(path):
            batches = _parquet(path).iter_batches(BATCH, row_groups=groups, columns=names)
        yield from _each(path, batches)
        return
    with _legible(path):
        stream = _stream(path)
    for batch in _each(path, stream):
        part = batch.select(names)
        for start in range(0, part.num_rows, BATCH):
            yield part.slice(start, BATCH)


def _each(path: Path, batches: Iterator[Any]) -> Iterator[Any]:
    while True:
        with _legible(path):
            batch = next(batches, None)
        if batch is None:
            return
        yield batch


def _parquet(path: Path) -> Any:
    import pyarrow.parquet

    with readable(path):
        path.stat()
    return pyarrow.parquet.ParquetFile(path, pre_buffer=False, buffer_size=1 << 20)


def _stream(path: Path) -> Any:
    """The record batches of an Arrow stream, which is mapped and not read whole."""
    import pyarrow

    with readable(path):
        path.stat()
    return pyarrow.ipc.open_stream(pyarrow.memory_map(str(path)))


@contextmanager
def _legible(path: Path) -> Iterator[None]:
    """InputError where pyarrow cannot read a file; its own words may quote it."""
    import pyarrow

    try:
        yield
    except InputError:
        raise
    except (pyarrow.ArrowException, OSError, ValueError, OverflowError):
        kind = "Parquet" if path.suffix.lower() == PARQUET else "Arrow, as datasets saves it"
        raise InputError(f"is broken, or no file of {kind}", file=path) from None


def kind_of(arrow: Any) -> Kind:
    """Kind of a column by its Arrow type; a dictionary is what it holds."""
    from pyarrow import types

    kind = arrow.value_type if types.is_dictionary(arrow) else arrow
    if types.is_string(kind) or types.is_large_string(kind) or types.is_string_view(kind):
        return "text"
    if types.is_integer(kind):
        return "whole number"
    if types.is_float16(kind) or types.is_float32(kind):
        return "short float"
    if types.is_list(kind) or types.is_large_list(kind):
        return "list"
    return "nothing" if types.is_null(kind) else "other"


def sample(path: Path, reading: Reading, names: Sequence[str], count: int) -> list[list[Any]]:
    """The first rows of a file."""
    return [row for _, row in islice(rows(path, reading, names), count)]
