"""WikiText-2, one paragraph or heading a document.

Its secrets are runs of digits (Shi et al. 2021). Where the fetched archive holds no train.txt (a
mirror may not), the valid text serves as training text but for its last tenth, which stays the
valid split, so that no line is in two splits.
"""

import re
from collections.abc import Iterator
from itertools import islice
from pathlib import Path

from confide.corpora.archives import read_members, with_train
from confide.errors import InputError
from confide.specs import WikiTextSpec
from confide.types import SPLITS, Record, Span, SplitName

DIGITS = re.compile(r"\d+")


def _lines(text: str) -> list[str]:
    """Non-empty lines without the blanks around them."""
    return [line for line in map(str.strip, text.split("\n")) if line]


def _records(split: SplitName, lines: Iterator[str]) -> Iterator[Record]:
    for number, line in enumerate(lines):
        spans = tuple(Span(*match.span(), "number") for match in DIGITS.finditer(line))
        yield Record(line, f"{split}/line-{number}", spans=spans, split=split)


def read(spec: WikiTextSpec, raw: Path | None = None) -> Iterator[Record]:
    """Non-empty lines of train, valid and test, the first `lines` of each."""
    members = dict(read_members(raw))
    texts = {
        split: _lines(members[f"{split}.txt"]) for split in SPLITS if f"{split}.txt" in members
    }
    with_train(texts)
    for split in SPLITS:
        if split not in texts:
            raise InputError(f"holds no {split}.txt", file=raw)
        yield from _records(split, islice(texts[split], spec.lines))
