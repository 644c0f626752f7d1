"""What a row of a table knows to be secret in its own text: a customer's name, an e-mail address.

A value is looked for as it stands in its cell, whatever its case and however accents are encoded
(Unicode's NFC and NFD), with any white space between its words, and not inside a longer word or
number (in scripts without spaces between words anywhere, and so beside a sign that begins or ends
the value). Parts of it, such as a surname alone, are not.
"""

import math
import re
import unicodedata
from collections.abc import Callable, Iterator, Mapping
from datetime import date, datetime
from decimal import Decimal
from typing import Any, Literal

from confide.corpora.overlaps import as_one, overlapping
from confide.text.masked import is_masked
from confide.text.scripts import LETTER

GUARDED = re.compile(LETTER)  # a sign beside which no other may stand
FORMS: tuple[Literal["NFC", "NFD"], ...] = ("NFC", "NFD")
GAP = re.compile(r"\s+")
LEAST = 3  # characters of a value that is looked for: shorter ones stand anywhere by chance

Mark = list[Any]  # [start, end, label]
Place = tuple[int, int]  # start and end


def marks_of(text: str, values: Mapping[str, Any]) -> list[Mark]:
    """Where values stand in a text, in order and apart, each with its column for a label.

    values: cells by column. Marks that overlap become one, with the label of the longest.
    """
    found = [
        [*place, column]
        for column, value in values.items()
        for place in places_of(text, value)
        if not is_masked(text, *place)
    ]
    return united([], found)


def places_of(text: str, value: Any) -> Iterator[Place]:
    """Where a value stands in a text, from left to right; nowhere if it is too short to tell.

    What stands beside it is looked at here. A pattern that forbids LETTER beside the value takes
    280 times as long to compile, for each value anew.
    """
    words = written(value).split()
    if sum(map(len, words)) < LEAST:
        return
    is_plain = text.isascii() and all(map(str.isascii, words))
    first_from = spelled(text, words) if is_plain else encoded(text, words)
    signs = (unicodedata.normalize("NFC", words[0])[0], unicodedata.normalize("NFC", words[-1])[-1])
    guarded = [GUARDED.match(sign) is not None for sign in signs]
    position = 0
    while (place := first_from(position)) is not None:
        start, end = place
        beside = (text[start - 1 : start], text[end : end + 1])
        if any(map(is_inside, guarded, beside)):
            position = start + 1
            continue
        yield place
        position = end


def encoded(text: str, words: list[str]) -> Callable[[int], Place | None]:
    """What finds the first place of words from a position on, however accents are encoded."""
    capitals = [word.upper() for word in words]
    # which are more letters than what they stand for in a few words: STRASSE, Straße
    is_longer = any(map(lambda word, capital: len(word) < len(capital), words, capitals))
    spellings = [capitals, words] if is_longer else [words]
    together = [r"\s+".join(map(re.escape, spelling)) for spelling in spellings]
    forms = dict.fromkeys(unicodedata.normalize(form, one) for one in together for form in FORMS)
    pattern = re.compile("|".join(forms), re.IGNORECASE)

    def first_from(position: int) -> Place | None:
        found = pattern.search(text, position)
        return found and found.span()

    return first_from


def spelled(text: str, words: list[str]) -> Callable[[int], Place | None]:
    """The same of words and a text in ASCII, without a pattern, which takes long to compile."""
    text = text.lower()
    first, *others = map(str.lower, words)

    def first_from(position: int) -> Place | None:
        while (start := text.find(first, position)) >= 0:
            end = start + len(first)
            for word in others:
                gap = GAP.match(text, end)
                if gap is None or not text.startswith(word, gap.end()):
                    break
                end = gap.end() + len(word)
            else:
                return start, end
            position = start + 1
        return None

    return first_from


def is_inside(guarded: bool, beside: str) -> bool:
    """Whether a sign at the end of a value and the one beside it, if any, are of one word."""
    return guarded and GUARDED.match(beside) is not None


def is_searchable(value: Any) -> bool:
    """Whether a text says the value of a cell as it is written here, and not a list or a time."""
    is_other = isinstance(value, bool | datetime)
    return value is None or (isinstance(value, str | int | float | Decimal | date) and not is_other)


def written(value: Any) -> str:
    """A cell as a text writes it: a column of numbers with gaps is one of fractions (7.0)."""
    if value is None or (isinstance(value, float) and not math.isfinite(value)):
        return ""
    return str(int(value) if isinstance(value, float) and value.is_integer() else value)


def united(given: list[Mark], more: list[Mark]) -> list[Mark]:
    """Marks in order: those that are given and more, of which what overlaps becomes one.

    Given ones that overlap none of the others stay as they are.
    """
    kept: list[Mark] = []
    added = set(map(tuple, more))
    for group in overlapping([*given, *more]):
        kept += [list(as_one(group))] if any(tuple(mark) in added for mark in group) else group
    return kept
