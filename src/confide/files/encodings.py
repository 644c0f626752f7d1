"""Lines of a file of text in UTF-8, in UTF-16 if its byte order mark says so, or as the user says.

Nothing else is guessed, no byte is replaced, and what holds a NUL is no text.
"""

import codecs
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Literal

from confide.errors import InputError
from confide.files.io import LONGEST, Range, read_lines, readable, refuse_pipe

Encoding = Literal["cp1252", "latin-1"]  # that no byte order mark tells of
MARK = "\ufeff"  # the byte order mark, decoded
MARKS = {
    codecs.BOM_UTF8: "utf-8",
    codecs.BOM_UTF16_LE: "utf-16-le",
    codecs.BOM_UTF16_BE: "utf-16-be",
}
ENDS = {"utf-16-le": b"\n\0", "utf-16-be": b"\0\n"}  # of lines, where a character is two bytes
OTHERWISE = (
    "; is all of it in another encoding? `encoding: cp1252` (Windows) or latin-1; "
    "`confide init --encoding cp1252`. If some lines are: mend these"
)
MARKED = "; the file begins with a mark of UTF-8: mend this line, and others like it"


def codec_of(path: Path, named: Encoding | None = None) -> str:
    """The codec of a file. InputError if it cannot be read, or its mark says another encoding."""
    marked = mark_of(path)
    if marked is not None and named is not None:
        message = f"begins with the byte order mark of {marked}: leave this out"
        raise InputError(message, file=path, key="encoding", value=named)
    return marked or named or "utf-8"


def mark_of(path: Path) -> str | None:
    """The codec that the byte order mark of a file names; None where there is none."""
    refuse_pipe(path)
    with readable(path), open(path, "rb") as file:
        start = file.read(3)
    return next((codec for mark, codec in MARKS.items() if start.startswith(mark)), None)


def byte_lines(source: Range, codec: str) -> Iterator[bytes]:
    """Lines of a file as its bytes, each with its end; of UTF-16 those of the whole file."""
    if codec in ENDS:
        yield from _wide_lines(source.path, codec)
    else:
        for _, line in read_lines(source):
            yield line


def _wide_lines(path: Path, codec: str) -> Iterator[bytes]:
    """Lines of UTF-16: a byte \\n ends one only where it is half of the character."""
    end = ENDS[codec]
    line = bytearray()
    number = 1
    with readable(path), open(path, "rb", buffering=1 << 20) as file:
        for piece in iter(partial(file.readline, LONGEST), b""):
            line += piece
            if len(line) % 2 and codec == "utf-16-le":
                line += file.read(1)
            if len(line) > LONGEST:
                raise InputError(f"is longer than {LONGEST} bytes", file=path, line=number)
            if len(line) % 2 == 0 and line.endswith(end):
                yield bytes(line)
                line.clear()
                number += 1
    if line:
        yield bytes(line)


def decoded(line: bytes, codec: str, path: Path, number: int) -> str:
    """A line as text, without a byte order mark.

    InputError names file, line and the first byte that is wrong, never the text.
    """
    if codec not in ENDS and b"\0" in line:
        raise binary(path, number)
    try:
        text = line.decode(codec)
    except UnicodeDecodeError as error:
        hint = ""
        if codec == "utf-8":
            hint = MARKED if mark_of(path) == codec else OTHERWISE
        message = f"not {codec.upper()} at byte {error.start} of the line{hint}"
        raise InputError(message, file=path, line=number) from None
    if codec in ENDS and "\0" in text:
        raise binary(path, number)
    return text.removeprefix(MARK) if number == 1 else text


def binary(path: Path, number: int) -> InputError:
    """The error that names a line with a NUL."""
    message = "holds a NUL byte: this is no text, or UTF-16 without a byte order mark"
    return InputError(message, file=path, line=number)


def text_lines(path: Path, named: Encoding | None) -> Iterator[str]:
    """Lines of a whole file as text, each with its end."""
    codec = codec_of(path, named)
    for number, line in enumerate(byte_lines(Range(path), codec), 1):
        yield decoded(line, codec, path, number)
