"""Webis TL;DR-17 (Völske et al. 2017): posts of Reddit as JSON lines.

The keys `author` and one of text are read. The corpus is on Zenodo (record 1043504, CC BY 4.0) and
too large to be fetched here: `path` is the unpacked file. Posts whose author was deleted are left
out. A document is a post, a paragraph a line; authors are in all splits (see authored.py).
"""

from collections.abc import Iterator
from pathlib import Path

from confide.corpora.authored import Sample, paragraphs, records
from confide.corpora.lines import Line, unless_blank
from confide.files.io import parsed_line, read_lines
from confide.files.jsons import JsonObject
from confide.specs import RedditSpec
from confide.types import Record

DELETED = "[deleted]"


def read(spec: RedditSpec, raw: Path | None = None) -> Iterator[Record]:
    """Posts in file order.

    InputError names file, line and key of what is truncated or missing, never the text.
    """
    path = Path(spec.path)
    yield from records(spec, spec.least, lambda: posts(path, spec.text), path)


def posts(path: Path, key: str) -> Iterator[Sample]:
    """Author and text of each post that has both."""
    for number, (at, line) in enumerate(read_lines(path), 1):
        if line.isspace():
            continue
        place = Line(path, number, line)
        row = parsed_line(line, path, at)
        author, text = (_value(place, row, field) for field in ("author", key))
        if unless_blank(author) and author != DELETED and (text := paragraphs(text)):
            yield Sample(author, f"post-{number}", text)


def _value(line: Line, row: JsonObject, key: str) -> str:
    """A string of the row; null is an empty one."""
    if key not in row:
        raise line.refused("is missing", key)
    if not isinstance(row[key], str | None):
        raise line.refused("expected a string", key)
    return row[key] or ""
