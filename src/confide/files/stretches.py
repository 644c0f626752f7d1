"""What is said of some of the points, such as findings and copies, beside the shards of the points.

Most points have no line. So that a file that lost lines does not read as one that had fewer to say,
all that is said of a shard ends with a line that closes it: {"complete": [start, end], "at"}, the
bytes of the points that were looked at.
"""

import math
import os
from pathlib import Path

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
    size_of,
)


def closing(shard: Range) -> bytes:
    """The line that ends what is said of a shard of the points; nothing for an empty shard."""
    end = end_of(shard)
    if end == shard.start:
        return b""
    return orjson.dumps({"complete": [shard.start, end], "at": end - 1}, option=LINE)


def stretch(path: Path, shard: Range) -> Range:
    """Where the lines of a file lie that belong to a shard of the points, but for the closing one.

    Each line names the byte of its point, "at". Stretches of adjoining shards adjoin, so that no
    line is passed over, whatever order the lines are in.

    InputError unless the line that closes this very shard ends the stretch.
    """
    start = _first(path, shard.start)
    end = size_of(path) if shard.end is None else _first(path, shard.end)
    closed = closing(shard)
    place = end - len(closed)
    if place < start or _bytes(path, place, end) != closed:
        looked_at = f"bytes {shard.start} to {end_of(shard)} of {shard.path}"
        message = f"is cut short, or of other points: no line closes {looked_at}; make it again"
        raise InputError(message, file=path)
    return Range(path, start, place)


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
