"""Files in and out: JSON whose errors name file and line, and writes that are whole or absent."""

import glob
import hashlib
import os
import platform
import shutil
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from functools import partial
from json import JSONDecodeError
from pathlib import Path
from typing import Any, BinaryIO, NamedTuple

import orjson
from pydantic import BaseModel, ValidationError
from safetensors import SafetensorError

from confide.errors import InputError, misfit
from confide.files import jsons
from confide.files.jsons import JsonObject

LINE = orjson.OPT_APPEND_NEWLINE | orjson.OPT_SERIALIZE_NUMPY
REFUSED = (JSONDecodeError, jsons.Repeated, jsons.Nested)  # what `refused_json` can explain
LONGEST = 1 << 27  # bytes of a line of text
TEMPORARY = ".tmp"


@contextmanager
def atomic(path: str | Path) -> Iterator[Path]:
    """Yield a temporary path beside `path`, which takes its place on success.

    On any failure it is removed.

    What has its final name is on disk, so that a loss of power leaves the old file or the new one.
    """
    path = Path(path)
    with _beside(path) as temporary:
        yield temporary
        _flush(temporary)
        os.replace(temporary, path)
        _flush(path.parent)


@contextmanager
def atomic_folder(folder: Path) -> Iterator[Path]:
    """Yield a temporary folder, whose files are moved into `folder` on success, each whole.

    On any failure it is removed.
    """
    with _beside(folder) as temporary:
        temporary.mkdir()
        yield temporary
        files = sorted(temporary.iterdir())
        for file in files:
            _flush(file)
        folder.mkdir(exist_ok=True)
        for file in files:
            os.replace(file, folder / file.name)
        _flush(folder)


@contextmanager
def _beside(path: Path) -> Iterator[Path]:
    """A name for what will become `path`, free of what killed processes have left."""
    prefix = f".{path.name}.{platform.node()}."
    temporary = path.with_name(f"{prefix}{os.getpid()}{TEMPORARY}")
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        for left in path.parent.glob(f"{glob.escape(prefix)}*{TEMPORARY}"):
            if not _running(left.name.removeprefix(prefix).removesuffix(TEMPORARY)):
                _remove(left)
        try:
            yield temporary
        finally:
            _remove(temporary)
    except (OSError, SafetensorError) as error:  # safetensors makes the latter of a full disk
        reason = getattr(error, "strerror", None) or error
        raise InputError(f"cannot be written: {reason}", file=path) from error


def is_temporary(path: str | Path) -> bool:
    """Whether a file is named like what `atomic` writes to, on this machine or another."""
    name = Path(path).name
    return name.startswith(".") and name.endswith(TEMPORARY)


def _running(process: str) -> bool:
    """Whether a process of this number is there; what is no number is left alone."""
    try:
        os.kill(int(process), 0)
    except ProcessLookupError:
        return False
    except (ValueError, OverflowError, PermissionError):
        pass
    return True


def _remove(path: Path) -> None:
    if path.is_dir():
        shutil.rmtree(path)
    else:
        path.unlink(missing_ok=True)


def _flush(path: Path) -> None:
    """Wait until a file, or the names in a folder, are on disk."""
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def check_space(folder: Path) -> None:
    """InputError where the disk of a folder is full."""
    if os.statvfs(folder).f_bavail == 0:
        raise InputError("no space is left on this disk", file=folder)


def check_new(path: Path, remedy: str = "") -> None:
    """InputError where what is to be made is there; `remedy`: what to do instead."""
    if path.exists():
        raise InputError(f"exists, and is not overwritten{remedy}", file=path)


@contextmanager
def readable(path: str | Path) -> Iterator[None]:
    """InputError where a file cannot be read meanwhile."""
    try:
        yield
    except OSError as error:
        raise InputError(f"cannot be read: {error.strerror or error}", file=path) from error


@contextmanager
def writable(path: str | Path) -> Iterator[None]:
    """InputError where a file cannot be written meanwhile."""
    try:
        yield
    except OSError as error:
        raise InputError(f"cannot be written: {error.strerror or error}", file=path) from error


def refuse_pipe(path: Path) -> None:
    """InputError where a path is a pipe: a corpus is read more than once."""
    if path.is_fifo():
        raise InputError("is a pipe, which can be read only once: take a file", file=path)


def read_bytes(path: str | Path) -> bytes:
    """Whole file; InputError if it cannot be read."""
    with readable(path):
        return Path(path).read_bytes()


def read_json(path: str | Path) -> Any:
    """Parsed JSON file.

    InputError names a file that is cut short, malformed, nested too deep, or has a key twice.
    """
    return parse_json(read_bytes(path), path)


def parse_json(content: bytes, path: str | Path) -> Any:
    """The value of the content of a JSON file, or of a part of it, with the errors of a file."""
    try:
        return jsons.loads(content)
    except REFUSED as error:
        raise refused_json(error, path) from None


def refused_json(error: ValueError, path: str | Path, line: int | None = None) -> InputError:
    """The one-line error of what is no JSON of ours; `line`: where it stands, if that is known."""
    if isinstance(error, JSONDecodeError):
        return InputError(f"malformed JSON: {error.msg}", file=path, line=line or error.lineno)
    return InputError(str(error), file=path, line=line, key=getattr(error, "key", None))


def read_object(path: Path, *keys: str) -> JsonObject:
    """A JSON object with these keys; InputError names what is missing."""
    value = read_json(path)
    for key in keys:
        if not isinstance(value, dict) or key not in value:
            raise InputError("is missing", file=path, key=key)
    return value


def read_file(path: Path, kind: type[BaseModel]) -> JsonObject:
    """A JSON object that has the fields of `kind`, as it is.

    InputError names the first that is wrong, not its value.
    """
    value = read_json(path)
    try:
        kind.model_validate(value)
    except ValidationError as error:
        raise misfit(error, path) from None
    return value


def write_json(path: str | Path, value: Any) -> None:
    """Write sorted, indented JSON atomically; numpy's scalars and arrays are allowed.

    NaN and infinity have no place in JSON: see `number`.
    """
    options = (
        orjson.OPT_INDENT_2
        | orjson.OPT_SORT_KEYS
        | orjson.OPT_SERIALIZE_NUMPY
        | orjson.OPT_APPEND_NEWLINE
    )
    with atomic(path) as temporary:
        temporary.write_bytes(orjson.dumps(value, option=options))


def number(value: float) -> float | str:
    """A number as JSON has it: an unbounded epsilon is "inf", which float() reads back."""
    return "inf" if value == float("inf") else value


class Range(NamedTuple):
    """Whole lines of a file, those that begin from byte `start` on and before `end`.

    None stands for the end of the file.
    """

    path: Path
    start: int = 0
    end: int | None = None


def read_lines(source: str | Path | Range) -> Iterator[tuple[int, bytes]]:
    """Lines, streamed, each with the byte at which it begins.

    InputError for one of more than LONGEST bytes.
    """
    path, at, end = source if isinstance(source, Range) else Range(Path(source))
    with readable(path), open(path, "rb", buffering=1 << 20) as file:
        if at:
            file.seek(at)
        for line in iter(partial(file.readline, LONGEST + 1), b""):
            if end is not None and at >= end:
                return
            if len(line) > LONGEST:
                message = f"is longer than {LONGEST} bytes"
                raise InputError(message, file=path, line=line_number(path, at))
            yield at, line
            at += len(line)


def size_of(path: Path) -> int:
    """Bytes of a file; InputError if it cannot be read."""
    with readable(path):
        return path.stat().st_size


def state_of(path: Path) -> str:
    """Bytes of a file and when it was last written, which tells it from another one of its name.

    InputError if it cannot be read.
    """
    with readable(path):
        found = path.stat()
    return f"{found.st_size} bytes of {found.st_mtime_ns}"


def end_of(source: Range) -> int:
    """The byte at which a range ends; InputError if its file cannot be read."""
    return size_of(source.path) if source.end is None else source.end


def is_short(source: Range) -> bool:
    """Whether so few bytes are in a range that none of its lines can be longer than LONGEST."""
    return end_of(source) - source.start <= LONGEST


def line_from(file: BinaryIO, place: int) -> int:
    """Byte at which the first line begins that does not begin before `place`.

    The file then stands there.
    """
    file.seek(max(place - 1, 0))
    while place and (piece := file.readline(1 << 20)) and not piece.endswith(b"\n"):
        pass  # a line of any length, in pieces
    return file.tell()


def count_lines(path: Path, start: int, end: int) -> int:
    """Ends of lines between two bytes of a file."""
    import numpy as np  # for which the program does not wait to start

    count = 0
    left = end - start
    with open(path, "rb") as file:
        file.seek(start)
        while block := file.read(min(left, 1 << 20)):
            count += int(np.count_nonzero(np.frombuffer(block, np.uint8) == ord("\n")))
            left -= len(block)
    return count


def line_number(path: Path, at: int) -> int:
    """Number of the line that begins at a byte.

    For errors, since it reads all that stands before.
    """
    return count_lines(path, 0, at) + 1


def read_jsonl(source: str | Path | Range) -> Iterator[JsonObject]:
    """One object per line, streamed; blank lines are skipped.

    Errors name file and line, never the text.
    """
    path = source.path if isinstance(source, Range) else Path(source)
    for at, line in read_lines(source):
        if line.isspace():
            continue
        yield parsed_line(line, path, at)


def parsed_line(line: bytes, path: Path, at: int) -> JsonObject:
    """The object that a line holds, which begins at a byte of a file.

    The error names file and line, never the text.
    """
    try:
        value = jsons.loads(line)
    except REFUSED as error:
        raise refused_json(error, path, line_number(path, at)) from None
    if not isinstance(value, dict):
        raise InputError("expected a JSON object", file=path, line=line_number(path, at))
    return value


def dump_lines(rows: Iterable[Any]) -> bytes:
    """Rows (dicts or dataclasses) as JSON lines."""
    lines = bytearray()  # a list of lines would hold the kilobyte that orjson takes for each
    for row in rows:
        lines += orjson.dumps(row, option=LINE)
    return bytes(lines)


def write_jsonl(path: str | Path, rows: Iterable[Any]) -> int:
    """Stream rows (dicts or dataclasses) to a JSON-lines file atomically; returns how many."""
    written = 0

    def lines() -> Iterator[bytes]:
        nonlocal written
        for row in rows:
            written += 1
            yield orjson.dumps(row, option=LINE)

    write_pieces(path, lines())
    return written


def write_text(path: str | Path, text: str) -> None:
    """Write text atomically."""
    write_pieces(path, [text.encode()])


def write_pieces(path: str | Path, pieces: Iterable[bytes]) -> None:
    """Write bytes one after the other, atomically."""
    with atomic(path) as temporary, open(temporary, "wb", buffering=1 << 20) as out:
        for piece in pieces:
            out.write(piece)


def sha256_of(source: Range) -> str:
    """Hex SHA-256 of the bytes of a range."""
    digest = hashlib.sha256()
    left = end_of(source) - source.start
    buffer = memoryview(bytearray(1 << 18))  # which the processor's cache holds
    with readable(source.path), open(source.path, "rb", buffering=0) as file:
        file.seek(source.start)
        while left and (size := file.readinto(buffer[: min(left, len(buffer))])):
            digest.update(buffer[:size])
            left -= size
    return digest.hexdigest()


def sha256(path: str | Path) -> str:
    """Hex SHA-256 of a file's bytes."""
    with readable(path), open(path, "rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()
