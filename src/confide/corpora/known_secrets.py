"""What a row of a table knows to be secret in its own text: a customer's name, an e-mail address.

A value is looked for as it stands in its cell, whatever its case and however accents are encoded
(Unicode's NFC and NFD), with any white space between its words, and not inside a longer word or
number. Parts of it, such as a surname alone, are not.
"""

import math
import re
import unicodedata
from collections.abc import Mapping
from typing import Any, Literal

FORMS: tuple[Literal["NFC", "NFD"], ...] = ("NFC", "NFD")
LEAST = 3  # characters of a value that is looked for: shorter ones stand anywhere by chance

Mark = list[Any]  # [start, end, label]


def marks_of(text: str, values: Mapping[str, Any]) -> list[Mark]:
    """Where values stand in a text, in order and apart, each with its column for a label.

    values: cells by column. Of marks that overlap the longest stays.
    """
    found = [
        [*match.span(), column]
        for column, value in values.items()
        if (pattern := pattern_of(value)) is not None
        for match in pattern.finditer(text)
    ]
    return apart([], found)


def pattern_of(value: Any) -> re.Pattern[str] | None:
    """What finds a value; None for one that is too short to tell."""
    words = written(value).split()
    if sum(map(len, words)) < LEAST:
        return None
    together = r"\s+".join(map(re.escape, words))
    forms = dict.fromkeys(unicodedata.normalize(form, together) for form in FORMS)
    return re.compile(rf"(?<!\w)(?:{'|'.join(forms)})(?!\w)", re.IGNORECASE)


def written(value: Any) -> str:
    """A cell as a text writes it: a column of numbers with gaps is one of fractions (7.0)."""
    if value is None or (isinstance(value, float) and not math.isfinite(value)):
        return ""
    return str(int(value) if isinstance(value, float) and value.is_integer() else value)


def apart(given: list[Mark], more: list[Mark]) -> list[Mark]:
    """Marks in order: all that are given, and of more the longest that overlap no other."""
    kept = list(given)
    for mark in sorted(more, key=lambda mark: (mark[0] - mark[1], mark)):
        if all(mark[1] <= start or end <= mark[0] for start, end, *_ in kept):
            kept.append(mark)
    return sorted(kept)
