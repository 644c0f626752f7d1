"""Characters as a search compares them: without accents, typography and what does not show.

One table, for secrets and for files, does it, so that no spelling has to be listed: "Ångström" in
either Unicode form, in full width, with a soft hyphen or with its spaces and dashes set by a
typographer is "angstrom".
"""

import re
import unicodedata
from functools import lru_cache

# dropped on both sides: `search` looks at where they stood
SEPARATORS = b" \t\r\n._-+/()\0\"',*`:;|[]~\\"
ACCENTS = ((0x300, 0x36F), (0x1AB0, 0x1AFF), (0x1DC0, 0x1DFF), (0x20D0, 0x20FF), (0xFE20, 0xFE2F))
# letters and marks by name, and yet nothing is drawn
FILLERS = frozenset("\u115f\u1160\u3164\uffa0\u180b\u180c\u180d")
SELECTORS = ((0xFE00, 0xFE0F), (0xE0100, 0xE01EF))  # of the variant of a glyph
UNSEEN = (*ACCENTS, *SELECTORS)
# drawn as such: that of SentencePiece, an empty Braille cell, dots
SPACES = frozenset("\u2581\u2800\u00b7\u2022\u2027")
DASHES = frozenset("\u2212\u2043\u00af\u02d7")  # by use, if not by class
APOSTROPHES = frozenset(
    "\u00b4\u02b9\u02ba\u02bb\u02bc\u02bd\u02c8\u02ee\u2032\u2033\u2034\u2035\u2036\u2037\u05f3\u05f4"
)
LAST_STORED = 0xFFFF  # characters beyond are rare, and many


def plain_character(character: str) -> str:
    """What one character is compared as: none, one or several characters."""
    code = ord(character)
    kind = unicodedata.category(character)
    unseen = any(first <= code <= last for first, last in UNSEEN)
    if kind == "Cf" or character in FILLERS or unseen:
        return ""
    if kind in ("Zs", "Zl", "Zp") or character in SPACES:
        return " "
    if kind == "Pd" or character in DASHES:
        return "-"
    if kind in ("Pi", "Pf") or character in APOSTROPHES:
        return "'"
    if kind[0] == "S" or kind == "No":
        return " "  # such as № and ™, whose letters would join those of a word beside them
    parts = unicodedata.normalize("NFKD", character).casefold()
    parts = unicodedata.normalize("NFKD", parts)
    if parts == character:
        return character
    return "".join(map(plain_character, parts))


class Table(dict[int, str]):
    """Code point -> what it is compared as; filled as characters come."""

    def __missing__(self, code: int) -> str:
        replacement = plain_character(chr(code))
        if code <= LAST_STORED:
            self[code] = replacement
        return replacement


TABLE = Table()
OTHERS = re.compile("[^\x00-\x7f]+")
SHORT = 16  # characters of a run that is worth remembering


def plain(text: str) -> str:
    """A text as it is compared. ASCII stays as it is: its case is folded where bytes are."""
    return OTHERS.sub(lambda match: translated(match[0]), text)


def translated(run: str) -> str:
    """A run of characters none of which is ASCII, as it is compared."""
    return remembered(run) if len(run) <= SHORT else run.translate(TABLE)


@lru_cache(maxsize=1 << 14)
def remembered(run: str) -> str:
    """A short run, translated once: short ones come again and again."""
    return run.translate(TABLE)
