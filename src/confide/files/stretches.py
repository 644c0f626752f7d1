"""What is said of some of the points, such as findings and copies, beside the shards of the points.

Most points have no line. So that a file that lost lines, or is of other points or another policy,
does not read as one that had fewer to say, all that is said of a shard ends with a line that closes
it: {"complete": [start, end], "points", "said", "by", "at"}. These are the bytes of the points that
were looked at, SHA-256 of them and of what is said, and a digest of the settings of who says it.
"""

import hashlib
import math
import os
from pathlib import Path
from typing import NamedTuple

import orjson

from confide.errors import InputError
from confide.files.io import (
    LINE,
    LONGEST,
    Range,
    end_of,
    line_from,
    line_number,
    parsed_line,
    read_jsonl,
    readable,
    sha256_of,
    size_of,
)

NOTHING = hashlib.sha256().hexdigest()


class Beside(NamedTuple):
    """A file of what is said, and the digest of the settings that it must be by, if any."""

    path: Path
    by: str = ""

    def of(self, shard: Range) -> Range:
        """What is said of a shard; InputError as `stretches` has it."""
        return stretches(shard, self)[0]


def closing(shard: Range, said: bytes, by: str = "") -> bytes:
    """The line that ends what is said of a shard of the points; nothing for an empty shard.

    said: all lines before it; by: digest of settings, where what is said depends on some
    """
    return _closing(shard, sha256_of(shard), hashlib.sha256(said).hexdigest(), by)


def _closing(shard: Range, points: str, said: str, by: str) -> bytes:
    """The same, by SHA-256 of the points and of what is said."""
    end = end_of(shard)
    if end == shard.start:
        return b""
    complete = [shard.start, end]
    line = {"complete": complete, "points": points, "said": said, "by": by, "at": end - 1}
    return orjson.dumps(line, option=LINE)


def stretches(shard: Range, *files: Beside) -> list[Range]:
    """Where the lines of each file lie that belong to a shard of the points, but for the closing
    one.

    Each line names the byte of its point, "at". Stretches of adjoining shards adjoin, so that no
    line is passed over, whatever order the lines are in.

    InputError unless the line that closes these very points, and all these lines, ends a stretch,
    and says that they are by the settings of its file.
    """
    points = sha256_of(shard)
    return [_stretch(file, shard, points) for file in files]


def _stretch(file: Beside, shard: Range, points: str) -> Range:
    path, by = file
    start = _first(path, shard.start)
    end = size_of(path) if shard.end is None else _first(path, shard.end)
    place = end - len(_closing(shard, points, NOTHING, by))
    lines = Range(path, start, place)
    if place < start or _bytes(path, place, end) != _closing(shard, points, sha256_of(lines), by):
        looked_at = f"bytes {shard.start} to {end_of(shard)} of {shard.path}"
        message = (
            "is cut short or changed, or of other points or another policy: "
            f"no line closes {looked_at}; make it again"
        )
        raise InputError(message, file=path)
    return lines


def _bytes(path: Path, start: int, end: int) -> bytes:
    with readable(path), open(path, "rb") as file:
        file.seek(start)
        return file.read(end - start)


def _first(path: Path, at: int) -> int:
    """Byte of the first line that belongs to a point at `at` or later; by bisection."""
    if at == 0:
        return 0
    with readable(path), open(path, "rb") as file:
        low = 0
        high = os.fstat(file.fileno()).st_size
        while low < high:
            middle = (low + high) // 2
            place = line_from(file, middle)
            if _point(path, place, file.readline(LONGEST)) < at:
                low = middle + 1
            else:
                high = middle
        return line_from(file, low)


def _point(path: Path, place: int, line: bytes) -> float:
    """Byte of the point that a line, which begins at `place`, belongs to; infinite after the last.

    Blank lines are passed over.
    """
    if line.isspace():
        row = next(read_jsonl(Range(path, place)), {"at": math.inf})
    elif not line:
        return math.inf
    else:
        row = parsed_line(line, path, place)
    if not isinstance(row.get("at"), int | float):
        raise InputError("missing field", file=path, line=line_number(path, place), key="at")
    return row["at"]
