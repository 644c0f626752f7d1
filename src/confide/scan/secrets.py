"""The secrets that must not leave: gold spans of private points, and whatever was planted.

A secret is known by its index: the order in which secrets first appear in the given points, then in
the given canaries.
"""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

from confide.errors import InputError
from confide.files.io import read_json
from confide.files.rows import read_rows
from confide.scan.variants import length

# lists of strings, or of objects with the key "secret" or "text"
PLANTED = ("secrets", "controls", "canaries")


def collect(points: list[Path], canaries: list[Path]) -> dict[str, str]:
    """Text of every secret -> the label it has first, in order of appearance."""
    labels: dict[str, str] = {}
    for path in points:
        for text, label in gold(path):
            labels.setdefault(text, label)
    for path in canaries:
        for text, label in planted(read_json(path), ""):
            labels.setdefault(text, label)
    return labels


def long_enough(labels: dict[str, str], min_length: int) -> dict[int, str]:
    """The secrets that are looked for, by index: shorter ones, in letters and digits, occur by
    chance.
    """
    return {index: text for index, text in enumerate(labels) if length(text) >= min_length}


def marked(labels: dict[str, str], canaries: list[Path]) -> set[str]:
    """Those of these secrets that are the corpus's own: nobody planted them."""
    own = set(labels)
    for path in canaries:
        own -= {text for text, _ in planted(read_json(path), "")}
    return own


def gold(points: Path) -> Iterator[tuple[str, str]]:
    """Gold spans of all splits. InputError where one does not lie in its text."""
    for key, text, spans in read_rows(points, "key", "text", "gold"):
        for start, end, label, *_ in spans:
            if start == end:  # a span beyond the text was refused when the row was read
                raise InputError("a gold span does not lie in the text", file=points, key=key)
            yield text[start:end], label


def planted(value: Any, label: str) -> Iterator[tuple[str, str]]:
    """Strings in the lists PLANTED, "text" in their objects, and "secret", however deep.

    They are labelled by the list they stand in.
    """
    if isinstance(value, dict):
        for key, entry in value.items():
            if isinstance(entry, str) and (key == "secret" or (key == "text" and label in PLANTED)):
                yield entry, label or key
            elif isinstance(entry, dict | list):
                yield from planted(entry, key)
    elif isinstance(value, list):
        for entry in value:
            if isinstance(entry, str) and label in PLANTED:
                yield entry, label
            else:
                yield from planted(entry, label)


def texts(points: list[Path]) -> Iterator[bytes]:
    """What declared public points say, a piece a point."""
    for path in points:
        for text in read_rows(path, "text"):
            yield text.encode() + b"\n"
