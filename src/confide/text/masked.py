"""Parts of a text that a mask stands for already, before any policy has looked at it.

No secret is there. Counted among secrets such a part would be one that the policy finds, and the
more masks a corpus comes with, the rarer misses would look.
"""

import re

from confide.types import MASK


def is_masked(text: str, start: int, end: int) -> bool:
    """Whether all characters from start to end that are not blank belong to <MASK>."""
    rest = text.replace(MASK, " " * len(MASK))[start:end]
    return not rest.strip() and bool(text[start:end].strip())


def cuts_a_mask(text: str, start: int, end: int) -> bool:
    """Whether one <MASK> lies at an edge of a range, partly in it: in its place would stand half a
    mask, and the policies would find something else.
    """
    masks = (match.span() for match in re.finditer(MASK, text))
    return any(first < edge < last for first, last in masks for edge in (start, end))
