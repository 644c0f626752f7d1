"""Words that somebody else might have chosen for a title, a label or a name, and what each medium
must not make of them.
"""

import unicodedata

SCRIPT = "<script>alert(1)</script>"
TITLE = (
    f"{SCRIPT} {{x}} {{{{7*7}}}} "
    f"$\\frac{{$ a_b^c \x1b[2J\x9b1A\u202e\rscan: 0 hits\n=cmd|' /C calc'!A0 "
)
TITLE += "[x](javascript:y) `c` | *b* </title>"
FORMULA = "=cmd|' /C calc'!A0\x1b[2J\nscan: 0 hits"
SPELLED = "\\x1b[2J"  # how the beginning of both is seen


def unseen(text: str) -> set[str]:
    """Characters of a text, but for ends of lines, that cannot be seen."""
    return {
        one
        for one in text
        if one != "\n" and unicodedata.category(one) in ("Cc", "Cf", "Cs", "Zl", "Zp")
    }
