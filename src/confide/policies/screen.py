"""Which texts a regular expression surely matches nowhere, in time linear in the text.

An expression of Python's is rewritten for RE2, which looks through many texts at once, as one that
matches whatever it does and perhaps more: conditions without width are left out, a back-reference
is any text, and a character beyond ASCII belongs to any class that might have one. What RE2 finds
nothing in, `re` need not be asked about; of all other texts `re` says what is found, as it does
without a screen.

Arrow is imported once a screen is made: whoever reads policies alone, such as a plan of the
workflow, would wait for it.
"""

import re
from collections.abc import Callable, Iterable
from functools import cache
from itertools import takewhile
from re import _constants as op  # type: ignore[attr-defined]
from re import _parser as parser  # type: ignore[attr-defined]
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

if TYPE_CHECKING:
    import pyarrow as pa


class Verdict(NamedTuple):
    """Of many texts (N,) bool: in which something may be found, and in which it surely is."""

    may: np.ndarray
    surely: np.ndarray


class Mode(NamedTuple):
    """How an expression is rewritten: its flags, and whether what it says of ASCII must stay.

    spans: also where a match ends, of several that are possible.
    """

    flags: int
    exact: bool
    spans: bool = False


Screen = Callable[["pa.StringArray"], Verdict]
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
SPACES = (op.CATEGORY_SPACE, op.CATEGORY_NOT_SPACE)
# Of ASCII what more a set may have: letters that are also a case of characters beyond it (the
# kelvin sign is a K), and signs that are spaces, but none to expressions of ASCII alone.
FOLDED = frozenset(map(ord, "iIkKsS"))
SEPARATORS = frozenset(range(0x1C, 0x20))
EDGES = {op.AT_BOUNDARY: r"\b", op.AT_NON_BOUNDARY: r"\B"}
ANY = r"[^\n]"
SINGLE = (op.LITERAL, op.NOT_LITERAL, op.IN)  # nodes of one character
REPEATS = (op.MAX_REPEAT, op.MIN_REPEAT, op.POSSESSIVE_REPEAT)
WITHOUT_WIDTH = (op.AT, op.ASSERT, op.ASSERT_NOT)


class Unknown(Exception):
    """A part of an expression of which nothing is known here."""


def screen(patterns: Iterable[str], *, decides: bool = True) -> Screen | None:
    """What is known of texts in which patterns, which `re` compiles, are looked for.

    None where nothing is. decides: a match is a finding; then all is known of texts of ASCII where
    each pattern has the same meaning for RE2.
    """
    patterns = list(patterns)
    wide = _rewritten(widened, patterns)
    same = _rewritten(exactly, patterns) if decides else None
    if wide is None:
        return None

    def verdict(texts: "pa.StringArray") -> Verdict:
        from confide.files import arrays

        if same is None:
            may = _matching(wide, texts)
            return Verdict(may, np.zeros(len(texts), bool))
        ascii_ = _are_ascii(texts)
        matches = _matching(same, texts) & ascii_
        may = matches.copy()
        may[~ascii_] = _matching(wide, texts.filter(arrays.booleans(~ascii_)))
        return Verdict(may, matches)

    return verdict


def _rewritten(rewrite: Callable[[str], str], patterns: list[str]) -> str | None:
    """One expression for all patterns; None where one is unknown, or RE2 finds it too large."""
    from pyarrow import ArrowInvalid

    from confide.files import arrays

    try:
        expression = "|".join(map(rewrite, patterns))
        _matching(expression, arrays.texts([""]))
    except (Unknown, ArrowInvalid):
        return None
    return expression


def _are_ascii(texts: "pa.StringArray") -> np.ndarray:
    """Which texts are of ASCII alone, (N,) bool."""
    import pyarrow.compute as pc

    from confide.files import arrays

    return arrays.from_booleans(pc.string_is_ascii(texts))


def _matching(pattern: str, texts: "pa.StringArray") -> np.ndarray:
    """In which texts RE2 finds an expression, (N,) bool."""
    import pyarrow.compute as pc

    from confide.files import arrays

    return arrays.from_booleans(pc.match_substring_regex(texts, pattern))


def widened(pattern: str) -> str:
    """An expression for RE2 that matches somewhere in every text in which `pattern` does.

    Unknown where there is a part that no rule is known for.
    """
    parsed = parser.parse(pattern)
    mode = Mode(parsed.state.flags, exact=False)
    return _behind(parsed, mode) + _sequence(parsed, mode)


def exactly(pattern: str) -> str:
    """An expression for RE2 that matches somewhere in a text of ASCII if `pattern` does, and where
    it does not, does not.

    Unknown where no such one is known. What a pattern must begin with may be said before it, too.
    """
    parsed = parser.parse(pattern)
    return _exactly(parsed, Mode(parsed.state.flags, exact=True))


def spanning(pattern: str) -> str:
    """An expression for RE2 that finds in a text of ASCII just what `pattern` does, and as much.

    Of several matches that begin at one place both take the one that comes first in the order of
    alternatives, of a greedy repeat the longest, of a lazy one the shortest. Unknown where no such
    expression is known.
    """
    parsed = parser.parse(pattern)
    return _exactly(parsed, Mode(parsed.state.flags, exact=True, spans=True))


def _exactly(parsed: Any, mode: Mode) -> str:
    if mode.flags & re.ASCII or not parsed.getwidth()[0]:
        raise Unknown  # what may match without a character is no finding
    parts = list(parsed)
    opening = [kind for kind, _ in takewhile(lambda part: part[0] in WITHOUT_WIDTH, parts)]
    conditions = parts[: len(opening)]
    rest = parts[len(opening) :]
    edges = [part for part in conditions if part[0] is op.AT]
    for kind, value in conditions:
        ahead = kind is op.ASSERT and value[0] > 0
        if kind is op.ASSERT_NOT or (ahead and not _first(rest, mode) <= _first(value[1], mode)):
            raise Unknown
        if ahead and (len(value[1]) != 1 or value[1][0][0] not in SINGLE):
            raise Unknown
    behind = sum(kind is op.ASSERT and value[0] < 0 for kind, value in conditions)
    if behind > (0 if mode.spans else 1):  # a match would begin with what stands before it
        raise Unknown
    return _behind(conditions, mode) + _sequence([*edges, *rest], mode)


def _behind(parts: Any, mode: Mode) -> str:
    """What has to stand before all that is matched, where a pattern opens with that condition."""
    behind = ""
    for kind, value in takewhile(lambda part: part[0] in WITHOUT_WIDTH, parts):
        if kind is op.ASSERT and value[0] < 0:
            behind = _sequence(value[1], mode)
    return behind


def _first(parts: Any, mode: Mode) -> frozenset[int]:
    """Characters of ASCII with which a sequence begins; Unknown where there are several ways."""
    if not len(parts):
        raise Unknown
    kind, value = parts[0]
    if kind in REPEATS and value[0] > 0:
        return _first(value[2], mode)
    if kind is op.SUBPATTERN and not value[1] and not value[2]:
        return _first(value[3], mode)
    if kind not in SINGLE:
        raise Unknown
    return frozenset(_members(*_items(kind, value), mode))


def _sequence(parts: Any, mode: Mode) -> str:
    return "(?:" + "".join(_part(kind, value, mode) for kind, value in parts) + ")"


def _part(kind: Any, value: Any, mode: Mode) -> str:
    """One node of Python's parse of an expression."""
    if kind in SINGLE:
        return _class(*_items(kind, value), mode)
    if kind is op.BRANCH:
        return "(?:" + "|".join(_sequence(branch, mode) for branch in value[1]) + ")"
    if kind is op.SUBPATTERN:
        _, added, removed, inner = value
        if mode.exact and added & re.ASCII:
            raise Unknown
        return _sequence(inner, mode._replace(flags=(mode.flags | added) & ~removed))
    if kind in (op.MAX_REPEAT, op.MIN_REPEAT):
        least, most, inner = value
        return _repeated(inner, mode, least=least, most=most, lazy=kind is op.MIN_REPEAT)
    if kind is op.ANY:
        return ANYTHING if mode.flags & re.DOTALL or not mode.exact else ANY
    if mode.exact:
        return _edge(kind, value)
    return _wide_part(kind, value, mode)


def _edge(kind: Any, value: Any) -> str:
    """The edge of a word, which of ASCII is the same for RE2."""
    if kind is op.AT and value in EDGES:
        return EDGES[value]
    raise Unknown


def _wide_part(kind: Any, value: Any, mode: Mode) -> str:
    """A node for which RE2 has nothing, as what matches more."""
    if kind in WITHOUT_WIDTH:
        return ""
    if kind is op.POSSESSIVE_REPEAT:
        least, most, inner = value
        return _repeated(inner, mode, least=least, most=most)
    if kind is op.ATOMIC_GROUP:
        return _sequence(value, mode)
    if kind is op.GROUPREF:
        return f"{ANYTHING}*"
    if kind is op.GROUPREF_EXISTS:
        _, yes, no = value
        return f"(?:{_sequence(yes, mode)}|{_sequence(no or [], mode)})"
    raise Unknown


def _repeated(inner: Any, mode: Mode, *, least: int, most: Any, lazy: bool = False) -> str:
    if mode.spans and not inner.getwidth()[0]:
        raise Unknown  # what is repeated may be empty: programs differ in when they stop
    bounded = most is not op.MAXREPEAT and most <= MOST
    if mode.exact and (least > MOST or not (bounded or most is op.MAXREPEAT)):
        raise Unknown
    counts = f"{min(least, MOST)},{most if bounded else ''}"
    return f"{_sequence(inner, mode)}{{{counts}}}{'?' if lazy else ''}"


def _items(kind: Any, value: Any) -> tuple[list[tuple[Any, Any]], bool]:
    """A node of one character as the items of a set, and whether these are what it is not."""
    if kind is op.IN:
        negated = value[0][0] is op.NEGATE
        return (value[1:] if negated else value), negated
    return [(op.LITERAL, value)], kind is op.NOT_LITERAL


def _class(items: list[tuple[Any, Any]], negated: bool, mode: Mode) -> str:
    """A set of characters: those of ASCII that are in it, and all others where one may be."""
    beyond = _has_others(items, negated, mode)
    members = _members(items, negated, mode)
    if not members and not beyond:
        raise Unknown
    ranges = "".join(rf"\x{{{code:x}}}" for code in members)
    return f"[{ranges}{BEYOND if beyond else ''}]"


def _members(items: list[tuple[Any, Any]], negated: bool, mode: Mode) -> list[int]:
    cased = not mode.flags & re.IGNORECASE
    if mode.exact and not cased:
        raise Unknown
    inside = frozenset().union(*(_codes(*item) for item in items))
    members = {code for code in ASCII if _may_be(code, inside, negated=negated, cased=cased)}
    if not cased and _has_others(items, negated, mode):
        members |= FOLDED
    if not mode.exact and any(value in SPACES for kind, value in items if kind is op.CATEGORY):
        members |= SEPARATORS
    return sorted(members)


def _has_others(items: list[tuple[Any, Any]], negated: bool, mode: Mode) -> bool:
    """Whether a set may have characters that are not ASCII."""
    ignores_case = bool(mode.flags & re.IGNORECASE)
    return negated or ignores_case or any(_reaches_beyond(*item) for item in items)


def _reaches_beyond(kind: Any, value: Any) -> bool:
    """Whether an item of a set may have characters that are not ASCII."""
    if kind is op.LITERAL:
        return value not in ASCII
    if kind is op.RANGE:
        return value[1] not in ASCII
    return True


def _may_be(code: int, inside: frozenset[int], *, negated: bool, cased: bool) -> bool:
    """Whether a character of ASCII may be in a set, in one of its cases where case is ignored."""
    if cased:
        return (code in inside) != negated
    sign = chr(code)
    return any(
        (ord(spelled) in inside) != negated for spelled in (sign, sign.lower(), sign.upper())
    )


def _codes(kind: Any, value: Any) -> frozenset[int]:
    """The characters of ASCII that an item of a set has."""
    if kind is op.LITERAL:
        return frozenset((value,)).intersection(ASCII)
    if kind is op.RANGE:
        first, last = value
        return frozenset(range(first, last + 1)).intersection(ASCII)
    return _of_category(value)


@cache
def _of_category(category: Any) -> frozenset[int]:
    """The characters of ASCII that are of a category."""
    return frozenset(code for code in ASCII if re.fullmatch(CATEGORIES[category], chr(code)))
