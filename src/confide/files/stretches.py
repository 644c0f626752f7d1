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
    size_of,
)

BLOCK = 1 << 20


class Beside(NamedTuple):
    """A file of what is said, and the digest of the settings that it must be by, if any."""

    path: Path
    by: str = ""

    def of(self, shard: Range) -> Range:
        """What is said of a shard; InputError as `stretch` has it."""
        return stretch(self.path, shard, self.by)


def closing(shard: Range, said: bytes, by: str = "") -> bytes:
    """The line that ends what is said of a shard of the points; nothing for an empty shard.

    said: all lines before it; by: digest of settings, where what is said depends on some
    """
    end = end_of(shard)
    if end == shard.start:
        return b""
    line = {
        "complete": [shard.start, end],
        "points": _sha256(shard),
        "said": hashlib.sha256(said).hexdigest(),
        "by": by,
        "at": end - 1,
    }
    return orjson.dumps(line, option=LINE)


def stretch(path: Path, shard: Range, by: str = "") -> Range:
    """Where the lines of a file lie that belong to a shard of the points, but for the closing one.

    Each line names the byte of its point, "at". Stretches of adjoining shards adjoin, so that no
    line is passed over, whatever order the lines are in.

    InputError unless the line that closes these very points, and all these lines, ends the stretch,
    and says that they are by the same settings.
    """
    start = _first(path, shard.start)
    end = size_of(path) if shard.end is None else _first(path, shard.end)
    whole = _bytes(path, start, end)
    place = whole.rfind(b"\n", 0, max(0, len(whole) - 1)) + 1
    if whole[place:] != closing(shard, whole[:place], by):
        looked_at = f"bytes {shard.start} to {end_of(shard)} of {shard.path}"
        message = (
            "is cut short or changed, or of other points or another policy: "
            f"no line closes {looked_at}; make it again"
        )
        raise InputError(message, file=path)
    return Range(path, start, start + place)


def _sha256(shard: Range) -> str:
    """Of the bytes of a shard, in hexadecimal."""
    digest = hashlib.sha256()
    with readable(shard.path), open(shard.path, "rb") as file:
        file.seek(shard.start)
        left = end_of(shard) - shard.start
        while left and (block := file.read(min(left, BLOCK))):
            digest.update(block)
            left -= len(block)
    return digest.hexdigest()


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
