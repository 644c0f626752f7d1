"""The user's own corpus: JSON lines {"text", "doc", "author", "domain", "split", "spans"}, or plain text, a document a line.

Documents go whole into one split, by a keyed hash of their name; an author's documents go together, and so do documents
that share an author with one another. A line's own "split" overrules the hash for all lines of its document.
"""

import hashlib
import re
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path
from typing import Any

import orjson

from confide.errors import InputError
from confide.specs import LinesSpec
from confide.types import SPLITS, Record, Span, SplitName

KEYS = frozenset(("text", "doc", "author", "domain", "split", "spans"))
BOM = b"\xef\xbb\xbf"
JSON = (".jsonl", ".json", ".ndjson")
AUTOMATIC = "line-"  # how the document name begins where a line gives none; every one is unique
TAKEN = re.compile(r"(?:doc-)*line-")  # given names that begin so are prefixed, to keep them apart

Row = dict[str, Any]


def _raw_lines(path: Path) -> Iterator[tuple[int, bytes]]:
    """Non-blank lines with their numbers, without line ends."""
    try:
        with open(path, "rb", buffering=1 << 20) as file:
            for number, line in enumerate(file, 1):
                line = (line.removeprefix(BOM) if number == 1 else line).rstrip(b"\r\n")
                if line and not line.isspace():
                    yield number, line
    except OSError as error:
        raise InputError(f"cannot be read: {error.strerror or error}", file=path) from error


def _plain(spec: LinesSpec, path: Path) -> Iterator[Record]:
    """Each line of a text file is a document."""
    for number, line in _raw_lines(path):
        yield Record(_decode(path, number, line), f"{AUTOMATIC}{number}", split=_hashed(spec, f"l{number}"))


def _decode(path: Path, number: int, line: bytes) -> str:
    try:
        return line.decode()
    except UnicodeDecodeError as error:
        raise InputError(f"not UTF-8 at byte {error.start} of the line", file=path, line=number) from None


def _parse(path: Path, number: int, line: bytes) -> Row:
    """A line's JSON object with known keys of the right types. `orjson` refuses bad UTF-8 and lone surrogates."""
    try:
        row = orjson.loads(line)
    except orjson.JSONDecodeError as error:
        raise InputError(f"malformed JSON at character {error.colno}", file=path, line=number) from None
    if not isinstance(row, dict):
        raise InputError("expected a JSON object", file=path, line=number)
    for key, value in row.items():
        if key not in KEYS:
            raise InputError(f"unknown key: one of {', '.join(sorted(KEYS))}", file=path, line=number, key=key)
        if key != "spans" and not isinstance(value, str) and (value is not None or key == "text"):
            raise InputError("expected a string", file=path, line=number, key=key)
    if "text" not in row:
        raise InputError("missing", file=path, line=number, key="text")
    if row.get("split") is not None and row["split"] not in SPLITS:
        raise InputError(f"expected one of {', '.join(SPLITS)}", file=path, line=number, key="split")
    return row


def _spans(path: Path, number: int, row: Row) -> tuple[Span, ...]:
    """Gold spans in order. InputError where one is malformed, out of range or overlaps another."""
    given = row.get("spans")
    if given is None:
        return ()

    def fail(message: str) -> InputError:
        return InputError(message, file=path, line=number, key="spans")

    if not isinstance(given, list) or not all(isinstance(span, list) and len(span) == 3 for span in given):
        raise fail("expected a list of [start, end, label]")
    for start, end, label in given:
        if type(start) is not int or type(end) is not int or not isinstance(label, str) or not label:
            raise fail("expected a list of [start, end, label]")
        if not 0 <= start < end <= len(row["text"]):
            raise fail(f"[{start}, {end}) is not a range within the {len(row['text'])} characters of the text")
    spans = tuple(Span(*span) for span in sorted(given))
    if any(left.end > right.start for left, right in pairwise(spans)):
        raise fail("spans overlap")
    return spans


class Places:
    """Which documents belong together: documents with a split of their own, and groups of documents that share authors."""

    def __init__(self) -> None:
        self.fixed: dict[str, SplitName] = {}
        self.parent: dict[str, str] = {}

    def group(self, node: str) -> str:
        """Name of the group's least node, whatever the order in which links were added."""
        root = node
        while (above := self.parent.get(root, root)) != root:
            root = above
        while (above := self.parent.get(node, node)) != root:
            self.parent[node], node = root, above
        return root

    def link(self, one: str, other: str) -> None:
        low, high = sorted((self.group(one), self.group(other)))
        self.parent[high] = low


def _places(path: Path) -> Places:
    """First pass: only lines that name a document beside an author or a split are parsed."""
    places = Places()
    for number, line in _raw_lines(path):
        if b'"doc"' not in line or not (b'"author"' in line or b'"split"' in line):
            continue
        row = _parse(path, number, line)
        doc, author, split = (row.get(key) for key in ("doc", "author", "split"))
        if doc is not None and split is not None and places.fixed.setdefault(doc, split) != split:
            raise InputError("the document is in another split on an earlier line", file=path, line=number, key="split")
        if doc is not None and author is not None:
            places.link("a" + author, "d" + doc)
    return places


def _hashed(spec: LinesSpec, group: str) -> SplitName:
    """Split of a group by a keyed hash: the same for any order of the file."""
    digest = hashlib.blake2b(group.encode(), digest_size=8, salt=(spec.seed % 2**64).to_bytes(8)).digest()
    share = int.from_bytes(digest) / 2**64
    return "test" if share < spec.test else "valid" if share < spec.test + spec.valid else "train"


def _record(spec: LinesSpec, places: Places, path: Path, number: int, row: Row) -> Record:
    given, author = row.get("doc"), row.get("author")
    node = "a" + author if author is not None else f"l{number}" if given is None else "d" + given
    split = row.get("split") or places.fixed.get(given) or _hashed(spec, places.group(node))
    doc = f"{AUTOMATIC}{number}" if given is None else "doc-" + given if TAKEN.match(given) else given
    return Record(row["text"], doc, author, row.get("domain"), _spans(path, number, row), split)


def _json(spec: LinesSpec, path: Path) -> Iterator[Record]:
    """Each line of a JSONL file is a document, or a part of the one it names."""
    places = _places(path)
    for number, line in _raw_lines(path):
        yield _record(spec, places, path, number, _parse(path, number, line))


def read(spec: LinesSpec, raw: Path | None = None) -> Iterator[Record]:
    """Records in file order, each with its split. `raw` is not used: the spec names the file.

    Guarantees: no document is in two splits, and neither is an author, but for documents whose lines name their split.
    Errors: InputError names file, line and key, never the text.
    """
    if spec.valid + spec.test >= 1:
        raise InputError("leaves nothing for train", key="valid + test", value=spec.valid + spec.test)
    path, empty = Path(spec.path), True
    for record in (_json if path.suffix in JSON else _plain)(spec, path):
        empty = False
        yield record
    if empty:
        raise InputError("holds no documents", file=path)
