"""WikiText-2, one paragraph or heading a document.

Its secrets are runs of digits (Shi et al. 2021). Where the fetched archive holds no train.txt (a
mirror may not), the valid text serves as training text but for its last tenth, which stays the
valid split, so that no line is in two splits.
"""

import re
from collections.abc import Iterator
from pathlib import Path

from confide.corpora.archives import by_split
from confide.specs import WikiTextSpec
from confide.types import SPLITS, Record, Span

DIGITS = re.compile(r"\d+")


def _lines(text: str) -> list[str]:
    """Non-empty lines without the blanks around them."""
    return [line for line in map(str.strip, text.split("\n")) if line]


def read(spec: WikiTextSpec, raw: Path | None = None) -> Iterator[Record]:
    """Non-empty lines of train, valid and test: of each the first `lines` behind `skip`.

    With `valid`, the last of these training lines are the valid split, and valid.txt is left out.
    A document's name is the place of its line among all.
    """
    texts = by_split(raw, {split: f"{split}.txt" for split in SPLITS}, _lines)
    first = spec.skip or 0
    end = None if spec.lines is None else first + spec.lines
    lines = {split: list(enumerate(texts[split][first:end], first)) for split in SPLITS}
    parts = [(split, split, lines[split]) for split in SPLITS]
    if spec.valid is not None:
        train = lines["train"]
        cut = len(train) - round(spec.valid * len(train))
        parts = [("train", "train", train[:cut]), ("train", "valid", train[cut:]), parts[-1]]
    for file, split, numbered in parts:
        for number, line in numbered:
            spans = tuple(Span(*match.span(), "number") for match in DIGITS.finditer(line))
            yield Record(line, f"{file}/line-{number}", spans=spans, split=split)
