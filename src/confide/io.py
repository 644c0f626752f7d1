"""Files in and out: JSON lines with errors that name file and line, and writes that appear whole or not at all."""

import hashlib
import os
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import orjson

from confide.errors import InputError


@contextmanager
def atomic(path: str | Path) -> Iterator[Path]:
    """Yield a temporary path beside `path`; rename it into place on success, remove it on any failure."""
    path = Path(path)
    path.parent.mkdir(parents=True, exist_ok=True)
    temporary = path.with_name(f".{path.name}.{os.getpid()}.tmp")
    try:
        yield temporary
        os.replace(temporary, path)
    except OSError as error:
        raise InputError(f"cannot be written: {error.strerror or error}", file=path) from error
    finally:
        temporary.unlink(missing_ok=True)


def read_bytes(path: str | Path) -> bytes:
    """Whole file; InputError if it cannot be read."""
    try:
        return Path(path).read_bytes()
    except OSError as error:
        raise InputError(f"cannot be read: {error.strerror or error}", file=path) from error


def read_json(path: str | Path) -> Any:
    """Parsed JSON file; InputError names the file where it is truncated or malformed."""
    try:
        return orjson.loads(read_bytes(path))
    except orjson.JSONDecodeError as error:
        raise InputError(f"malformed JSON: {error.msg}", file=path, line=error.lineno) from None


def read_object(path: Path, *keys: str) -> dict[str, Any]:
    """A JSON object with these keys; InputError names what is missing."""
    value = read_json(path)
    for key in keys:
        if not isinstance(value, dict) or key not in value:
            raise InputError("is missing", file=path, key=key)
    return value


def write_json(path: str | Path, value: Any) -> None:
    """Write sorted, indented JSON atomically (numpy scalars and arrays allowed). NaN and infinity: see `number`."""
    options = orjson.OPT_INDENT_2 | orjson.OPT_SORT_KEYS | orjson.OPT_SERIALIZE_NUMPY | orjson.OPT_APPEND_NEWLINE
    with atomic(path) as temporary:
        temporary.write_bytes(orjson.dumps(value, option=options))


def number(value: float) -> float | str:
    """JSON has no infinity: an unbounded epsilon is written as the string "inf", and read back by float()."""
    return "inf" if value == float("inf") else value


def read_jsonl(path: str | Path) -> Iterator[dict[str, Any]]:
    """One object per line, streamed; blank lines are skipped; errors name file and line, never the text."""
    try:
        with open(path, "rb") as lines:
            for count, line in enumerate(lines, 1):
                if line.isspace():
                    continue
                try:
                    value = orjson.loads(line)
                except orjson.JSONDecodeError as error:
                    raise InputError(f"malformed JSON: {error.msg}", file=path, line=count) from None
                if not isinstance(value, dict):
                    raise InputError("expected a JSON object", file=path, line=count)
                yield value
    except OSError as error:
        raise InputError(f"cannot be read: {error.strerror or error}", file=path) from error


def write_jsonl(path: str | Path, rows: Iterable[Any]) -> int:
    """Stream rows (dicts or dataclasses) to a JSON-lines file atomically; returns how many."""
    count = 0
    with atomic(path) as temporary, open(temporary, "wb", buffering=1 << 20) as out:
        for row in rows:
            out.write(orjson.dumps(row, option=orjson.OPT_APPEND_NEWLINE | orjson.OPT_SERIALIZE_NUMPY))
            count += 1
    return count


def sha256(path: str | Path) -> str:
    """Hex SHA-256 of a file's bytes."""
    digest = hashlib.sha256()
    try:
        with open(path, "rb") as file:
            while block := file.read(1 << 20):
                digest.update(block)
    except OSError as error:
        raise InputError(f"cannot be read: {error.strerror or error}", file=path) from error
    return digest.hexdigest()
