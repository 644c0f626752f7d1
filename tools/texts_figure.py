"""Draw docs/figures/texts.svg: what training reads of four texts, by the code that decides it.

    python tools/texts_figure.py [--check]

Figures 1 and 7 of Confidentially Redacted Training. `--check` writes nothing, and ends with 1 where
the figure is not what would be drawn.
"""

import argparse
import sys
from hashlib import sha1
from pathlib import Path
from typing import NamedTuple

from jinja2 import Environment, FileSystemLoader, StrictUndefined

from confide.policies import policy, redacted_text
from confide.specs.policies import RegexPolicySpec
from confide.text.deduplication import copies
from confide.types import MASK

FIGURE = Path(__file__).resolve().parents[1] / "docs/figures/texts.svg"
TEMPLATE = "texts.svg.jinja"
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
    find = policy(RegexPolicySpec(kind="regex", patterns={"name": r"[A-Z]\w+ [A-Z]\w+"}))
    wary = policy(RegexPolicySpec(kind="regex", patterns={"sure": r"(?i)sure, \w+"}))
    rows = [(str(place), text, "train", None) for place, text in enumerate(TEXTS)]
    later = set(copies(rows, lambda text: sha1(text).digest()))
    drawn = []
    for place, text in enumerate(TEXTS):
        read = redacted_text(text, find(text))
        updates, reason = "with noise", "found"
        copied = str(place) in later
        if copied:
            read, reason = MASK, "a copy"
        elif read == text and wary(text):
            reason = "missed, suspected"
        elif read == text:
            updates, reason = "exact", "nothing to hide"
        mask = COPY if copied else REDACTED
        drawn.append(Line(pieces(text, mask), pieces(read, mask), updates, reason))
    return drawn


def pieces(text: str, mask: str) -> list[Piece]:
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
    loader = FileSystemLoader(Path(__file__).parent)
    environment = Environment(
        loader=loader,
        undefined=StrictUndefined,
        autoescape=True,
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
    )
    return environment.get_template(TEMPLATE).render(lines=lines())


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
