"""Parts of a text that a mask stands for already, before any policy has looked at it.

No secret is there. Counted among secrets such a part would be one that the policy finds, and the
more masks a corpus comes with, the rarer misses would look.
"""

from confide.types import MASK

REACH = len(MASK) - 1  # characters of a mask that may stand beyond an edge that it lies across


def is_masked(text: str, start: int, end: int) -> bool:
    """Whether all characters from start to end that are not blank belong to <MASK>."""
    first = max(0, start - REACH)
    near = text[first : end + REACH].replace(MASK, " " * len(MASK))
    rest = near[start - first : end - first]
    return not rest.strip() and bool(text[start:end].strip())


def cuts_a_mask(text: str, start: int, end: int) -> bool:
    """Whether one <MASK> lies at an edge of a range, partly in it: in its place would stand half a
    mask, and the policies would find something else.
    """
    around = (text[max(0, edge - REACH) : edge + REACH] for edge in (start, end))
    return any(MASK in some for some in around)
