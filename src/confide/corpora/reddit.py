"""Webis TL;DR-17 (Völske et al. 2017): posts of Reddit as JSON lines.

The keys `author` and one of text are read. The corpus is on Zenodo (record 1043504, CC BY 4.0) and
too large to be fetched here: `path` is the unpacked file. Posts whose author was deleted are left
out. A document is a post, a paragraph a line; authors are in all splits (see authored.py).
"""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import orjson

from confide.corpora.authored import Sample, paragraphs, records
from confide.corpora.lines import Line, somebody
from confide.files import jsons
from confide.files.io import read_lines
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
    for number, (_, line) in enumerate(read_lines(path), 1):
        if line.isspace():
            continue
        place = Line(path, number, line)
        row = _parse(place)
        author, text = (_value(place, row, field) for field in ("author", key))
        if somebody(author) and author != DELETED and (text := paragraphs(text)):
            yield Sample(author, f"post-{number}", text)


def _parse(line: Line) -> Any:
    try:
        return jsons.loads(line.content)
    except orjson.JSONDecodeError as error:
        raise line.refused(f"malformed or cut off JSON at character {error.colno}") from None
    except (jsons.Repeated, jsons.Nested) as error:
        raise line.refused(str(error)) from None


def _value(line: Line, row: Any, key: str) -> str:
    """A string of the row; null is an empty one."""
    if not isinstance(row, dict):
        raise line.refused("expected a JSON object")
    if key not in row:
        raise line.refused("is missing", key)
    if not isinstance(row[key], str | None):
        raise line.refused("expected a string", key)
    return row[key] or ""
