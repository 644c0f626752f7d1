"""Which texts a regular expression surely matches nowhere, in time linear in the text.

An expression of Python's is rewritten for RE2, which looks through many texts at once, as one that
matches whatever it does and perhaps more: conditions without width are left out, a back-reference
is any text, and a character beyond ASCII belongs to any class that might have one. What RE2 finds
nothing in, `re` need not be asked about; of all other texts `re` says what is found, as it does
without a screen.
"""

import re
from collections.abc import Callable, Iterable, Iterator
from re import _constants as op  # type: ignore[attr-defined]
from re import _parser as parser  # type: ignore[attr-defined]
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from confide.files import arrays

Screen = Callable[[pa.StringArray], np.ndarray]  # (N,) bool: texts in which something may be found
ASCII = range(128)
BEYOND = r"\x{80}-\x{10FFFF}"
ANYTHING = "(?s:.)"
MOST = 50  # repeats that are counted; more are any number
CATEGORIES = {
    op.CATEGORY_DIGIT: r"\d",
    op.CATEGORY_NOT_DIGIT: r"\D",
    op.CATEGORY_SPACE: r"\s",
    op.CATEGORY_NOT_SPACE: r"\S",
    op.CATEGORY_WORD: r"\w",
    op.CATEGORY_NOT_WORD: r"\W",
}
REPEATS = (op.MAX_REPEAT, op.MIN_REPEAT, op.POSSESSIVE_REPEAT)
WITHOUT_WIDTH = (op.AT, op.ASSERT, op.ASSERT_NOT)


class Unknown(Exception):
    """A part of an expression of which nothing is known here."""


def screen(patterns: Iterable[str]) -> Screen | None:
    """Texts in which one of the patterns, which `re` compiles, may match; None: perhaps in all."""
    try:
        wide = "|".join(map(widened, patterns))
        _matching(wide, arrays.texts([""]))
    except (Unknown, pa.ArrowInvalid):  # the latter where RE2 finds it too large
        return None
    return lambda texts: _matching(wide, texts)


def _matching(pattern: str, texts: pa.StringArray) -> np.ndarray:
    return arrays.from_booleans(pc.match_substring_regex(texts, pattern))


def widened(pattern: str) -> str:
    """An expression for RE2 that matches somewhere in every text in which `pattern` does.

    Unknown where there is a part that no rule is known for.
    """
    parsed = parser.parse(pattern)
    flags = parsed.state.flags
    behind = ""
    for kind, value in parsed:
        if kind not in WITHOUT_WIDTH:
            break
        if kind is op.ASSERT and value[0] < 0:
            behind = _sequence(value[1], flags)  # what has to stand before all that is matched
    return behind + _sequence(parsed, flags)


def _sequence(parts: Any, flags: int) -> str:
    return "(?:" + "".join(_part(kind, value, flags) for kind, value in parts) + ")"


def _part(kind: Any, value: Any, flags: int) -> str:
    """One node of Python's parse of an expression."""
    if kind in WITHOUT_WIDTH:
        return ""
    if kind in REPEATS:
        return _repeated(*value, flags)
    if kind is op.BRANCH:
        return "(?:" + "|".join(_sequence(branch, flags) for branch in value[1]) + ")"
    if kind is op.SUBPATTERN:
        _, added, removed, inner = value
        return _sequence(inner, (flags | added) & ~removed)
    if kind is op.ATOMIC_GROUP:
        return _sequence(value, flags)
    if kind is op.GROUPREF:
        return f"{ANYTHING}*"
    if kind is op.GROUPREF_EXISTS:
        _, yes, no = value
        return f"(?:{_sequence(yes, flags)}|{_sequence(no or [], flags)})"
    if kind is op.ANY:
        return ANYTHING
    if kind is op.LITERAL:
        return _class([(op.LITERAL, value)], flags)
    if kind is op.NOT_LITERAL:
        return _class([(op.NEGATE, None), (op.LITERAL, value)], flags)
    if kind is op.IN:
        return _class(value, flags)
    raise Unknown


def _repeated(least: int, most: Any, inner: Any, flags: int) -> str:
    bounded = most is not op.MAXREPEAT and most <= MOST
    counts = f"{min(least, MOST)},{most if bounded else ''}"
    return f"{_sequence(inner, flags)}{{{counts}}}"


def _class(items: list[tuple[Any, Any]], flags: int) -> str:
    """A set of characters: those of ASCII that are in it, and all others where one may be."""
    negated = items[0][0] is op.NEGATE
    items = items[1:] if negated else items
    cased = not flags & re.IGNORECASE
    beyond = negated or not cased or any(_reaches_beyond(*item) for item in items)
    members = [code for code in ASCII if _may_be(code, items, negated=negated, cased=cased)]
    ranges = "".join(rf"\x{{{code:x}}}" for code in members)
    if not members and not beyond:
        raise Unknown
    return f"[{ranges}{BEYOND if beyond else ''}]"


def _reaches_beyond(kind: Any, value: Any) -> bool:
    """Whether an item of a set may have characters that are not ASCII."""
    if kind is op.LITERAL:
        return value not in ASCII
    if kind is op.RANGE:
        return value[1] not in ASCII
    return True


def _may_be(code: int, items: list[tuple[Any, Any]], *, negated: bool, cased: bool) -> bool:
    """Whether a character of ASCII may be in a set, in one of its cases where case is ignored."""
    sign = chr(code)
    spellings = {sign} if cased else {sign, sign.lower(), sign.upper()}
    return any(_is_in(ord(spelling), items) != negated for spelling in spellings)


def _is_in(code: int, items: list[tuple[Any, Any]]) -> bool:
    return any(_has(kind, value, code) for kind, value in items)


def _has(kind: Any, value: Any, code: int) -> bool:
    """Whether an item of a set has a character."""
    if kind is op.LITERAL:
        return code == value
    if kind is op.RANGE:
        return value[0] <= code <= value[1]
    return re.fullmatch(CATEGORIES[value], chr(code)) is not None
