"""Draw docs/figures/texts.svg: what training reads of four texts, by the code that decides it.

    python tools/texts_figure.py [--check]

Figures 1 and 7 of Confidentially Redacted Training. `--check` writes nothing, and ends with 1 where
the figure is not what would be drawn.
"""

import argparse
import sys
from pathlib import Path
from typing import NamedTuple

from confide.data.neighbours import processed
from confide.data.partitioning import Raw, Row
from confide.data.redaction import finder_of
from confide.output import templates
from confide.specs import PartitionSpec, RedactSpec
from confide.specs.policies import RegexPolicySpec
from confide.text.digests import digest
from confide.types import MASK

FIGURE = Path(__file__).resolve().parents[1] / "docs/figures/texts.svg"
NAME = "Betty Sims"
TEXTS = ("Hello.", f"Sure, {NAME}.", f"sure, {NAME.lower()}.", f"Sure, {NAME}.")
PLAIN, SECRET, REDACTED, COPY = "plain", "secret", "redacted", "copy"  # classes of the drawing


class Piece(NamedTuple):
    """A stretch of a text that is drawn alike, and the column where it begins."""

    text: str
    kind: str
    start: int


class Line(NamedTuple):
    """One text: as it is, as training reads it, by which updates, and why."""

    before: list[Piece]
    after: list[Piece]
    updates: str
    reason: str


def lines() -> list[Line]:
    """The four texts, behind a policy that misses the name in small letters."""
    find = finder_of(
        RedactSpec(
            policy=RegexPolicySpec(kind="regex", patterns={"name": r"[A-Z]\w+ [A-Z]\w+"}),
            conservative=RegexPolicySpec(kind="regex", patterns={"sure": r"(?i)sure, \w+"}),
        )
    )
    points = [
        Raw(key=str(place), text=text, split="train", domain=None, owner=None, gold=())
        for place, text in enumerate(TEXTS)
    ]
    rows = processed(points, find, PartitionSpec(), digest("sha1"))
    return [line(text, row) for text, row in zip(TEXTS, rows, strict=True)]


def line(text: str, row: Row) -> Line:
    """A text and what became of it; none of the four is a secret from end to end."""
    copied = row.redacted == MASK
    if copied:
        reason = "a copy"
    elif row.spans:
        reason = "found"
    elif row.private:
        reason = "missed, suspected"
    else:
        reason = "nothing to hide"
    return Line(
        before=pieces(text),
        after=pieces(row.redacted, mask=COPY if copied else REDACTED),
        updates="with noise" if row.private else "exact",
        reason=reason,
    )


def pieces(text: str, mask: str = REDACTED) -> list[Piece]:
    """A text in pieces: the name wherever it still stands, masks, and the rest."""
    for special, kind in ((MASK, mask), (NAME, SECRET), (NAME.lower(), SECRET)):
        start = text.find(special)
        if start >= 0:
            end = start + len(special)
            whole = [
                Piece(text[:start], PLAIN, 0),
                Piece(special, kind, start),
                Piece(text[end:], PLAIN, end),
            ]
            return [piece for piece in whole if piece.text]
    return [Piece(text, PLAIN, 0)]


def drawing() -> str:
    """The figure as SVG."""
    return templates.filled(__file__, {"lines": lines()})


def main(arguments: list[str] | None = None) -> int:
    """Draw, or check."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--check", action="store_true", help="write nothing; 1 if it differs")
    asked = parser.parse_args(arguments)
    made = drawing()
    if asked.check:
        return int(not FIGURE.is_file() or FIGURE.read_text(encoding="utf-8") != made)
    FIGURE.write_text(made, encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
