"""What a row of a table knows to be secret in its own text: a customer's name, an e-mail address.

A value is looked for as it stands in its cell, whatever its case and however accents are encoded
(Unicode's NFC and NFD), with any white space between its words, and not inside a longer word or
number (in scripts without spaces between words anywhere, and so beside a sign that begins or ends
the value). Parts of it, such as a surname alone, are not.
"""

import math
import re
import unicodedata
from collections.abc import Iterator, Mapping
from datetime import date, datetime
from decimal import Decimal
from functools import lru_cache
from operator import itemgetter
from typing import Any, Literal

from confide.corpora.overlaps import as_one, overlapping
from confide.text.masked import is_masked
from confide.text.scripts import LETTER

GUARDED = re.compile(LETTER)  # a sign beside which no other may stand
FORMS: tuple[Literal["NFC", "NFD"], ...] = ("NFC", "NFD")
GAP = re.compile(r"\s+")
LEAST = 3  # characters of a value that is looked for: shorter ones stand anywhere by chance
EXACT = 2**53  # floats below hold all digits of a whole number

Mark = list[Any]  # [start, end, label]
Place = tuple[int, int]  # start and end


def marks_of(text: str, values: Mapping[str, Any]) -> list[Mark]:
    """Where values stand in a text, in order and apart, each with its column for a label.

    values: cells by column. Marks that overlap become one, with the label of the longest.
    """
    alike = folded(text)
    found = [
        [*place, column]
        for column, value in values.items()
        for place in places_of(alike, value)
        if not is_masked(text, *place)
    ]
    return united([], found)


def places_of(text: str, value: Any) -> Iterator[Place]:
    """Where a value stands in a folded text, from left to right; nowhere if it is too short to
    tell.
    """
    words = written(value).split()
    if sum(map(len, words)) < LEAST:
        return
    together = " ".join(words)
    spellings = [way for way in spellings_of(together) if first_place(way, text, 0) is not None]
    composed = unicodedata.normalize("NFC", together)
    guarded = [GUARDED.match(sign) is not None for sign in (composed[0], composed[-1])]
    position = 0
    while (place := first_of(spellings, text, position)) is not None:
        start, end = place
        beside = (text[start - 1 : start], text[end : end + 1])
        if any(map(is_inside, guarded, beside)):
            position = start + 1
            continue
        yield place
        position = end


@lru_cache(maxsize=64)  # a conversation's values are looked for in each of its messages
def spellings_of(together: str) -> list[list[str]]:
    """Folded words, given with a blank between, as texts may write them: with accents apart or not,
    and in capitals, which are more letters than what they stand for in a few words (STRASSE,
    Straße).
    """
    if together.isascii():
        return [folded(together).split()]
    written_ways = (together, together.upper())
    ways = [unicodedata.normalize(form, way) for way in written_ways for form in FORMS]
    return [way.split() for way in dict.fromkeys(map(folded, ways))]


def folded(text: str) -> str:
    """A text in which letters that differ by their case alone are the same, sign for sign."""
    alike = of_one_case(text)
    if len(alike) == len(text):
        return alike
    signs = ((sign, of_one_case(sign)) for sign in text)
    return "".join(one if len(one) == 1 else sign.lower() for sign, one in signs)


def of_one_case(text: str) -> str:
    """In small letters. The other case of ß and İ is longer, and ς has none of its own: others
    stand for them.
    """
    return text.replace("ß", "ẞ").replace("İ", "i").upper().lower().replace("ς", "σ")


def first_of(spellings: list[list[str]], text: str, position: int) -> Place | None:
    """The first place of any spelling from a position on; of two that begin there the earlier
    spelling's.
    """
    found = (first_place(words, text, position) for words in spellings)
    places = [place for place in found if place is not None]
    return min(places, key=itemgetter(0), default=None)


def first_place(words: list[str], text: str, position: int) -> Place | None:
    """The first place of words from a position on, with any white space between them."""
    first, *others = words
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


def is_inside(guarded: bool, beside: str) -> bool:
    """Whether a sign at the end of a value and the one beside it, if any, are of one word."""
    return guarded and GUARDED.match(beside) is not None


def is_searchable(value: Any) -> bool:
    """Whether a text says the value of a cell as it is written here, and not a list or a time."""
    is_other = isinstance(value, bool | datetime)
    return value is None or (isinstance(value, str | int | float | Decimal | date) and not is_other)


def is_rounded(value: Any) -> bool:
    """Whether a cell may have been a whole number of more digits than it holds."""
    return isinstance(value, float) and EXACT <= abs(value) < math.inf


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
