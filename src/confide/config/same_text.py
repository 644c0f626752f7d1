"""May two corpora of params.yaml hold the same text? One of them must not be public where the other
is protected.

Paths are compared as files, archives by what is read of them. A copy of a file under another name
is not noticed.
"""

import math
import os
from pathlib import Path

from confide.specs import CorpusSpec
from confide.types import SPLITS

SIMULATED = ("customersim", "authors")  # readers that make up their text from a seed


def same_text(first: CorpusSpec, second: CorpusSpec) -> bool:
    """False only where it can be told from the specifications that they have no document in
    common.
    """
    if first == second:
        return True
    if first.reader in SIMULATED or second.reader in SIMULATED:
        made_alike = first.reader == second.reader and (first.variant, first.seed) == (
            second.variant,
            second.seed,
        )
        return made_alike
    paths = [getattr(spec, "path", None) for spec in (first, second)]
    if None not in paths and not meet(*map(Path, paths)):
        return False
    if None in paths and (first.reader != second.reader or paths != [None, None]):
        return False
    return not drawn_apart(first, second)


def meet(first: Path, second: Path) -> bool:
    """Whether one path is the other one, or lies within it, whatever links lead there."""
    one, other = (Path(os.path.realpath(path)) for path in (first, second))
    if one.is_relative_to(other) or other.is_relative_to(one):
        return True
    return one.exists() and other.exists() and one.samefile(other)


def drawn_apart(first: CorpusSpec, second: CorpusSpec) -> bool:
    """Whether two corpora take other dialogues of one source: of other domains, or of other places
    in the same splits.
    """
    if first.reader != second.reader or not hasattr(first, "skip"):
        return False
    if first.domains and second.domains and not set(first.domains) & set(second.domains):
        return True
    if any(getattr(first, key) != getattr(second, key) for key in ("seed", "valid", "test")):
        return False  # what is of one split here may be of another one there
    return all(apart(places(first, split), places(second, split)) for split in SPLITS)


def places(spec: CorpusSpec, split: str) -> tuple[float, float]:
    """The half-open range of a domain's dialogues that is taken of a split."""
    start = getattr(spec.skip, split) if spec.skip else 0
    return start, start + (getattr(spec.sizes, split) if spec.sizes else math.inf)


def apart(first: tuple[float, float], second: tuple[float, float]) -> bool:
    return first[1] <= second[0] or second[1] <= first[0]
