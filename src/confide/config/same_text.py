"""May two corpora of params.yaml hold the same text? Then both are public, or neither is.

Paths are compared as files, archives by what is read of them. A copy of a file under another name
is not noticed, unless it may be that of the archive which the same reader knows.
"""

import math
import os
from collections.abc import Iterator
from pathlib import Path

from confide.files.folders import found_below
from confide.specs import AuthorsSpec, CorpusSpec, CustomerSimSpec, DialoguesSpec, WikiTextSpec
from confide.types import SPLITS

Simulated = CustomerSimSpec | AuthorsSpec  # their readers make up text from a seed


def same_text(first: CorpusSpec, second: CorpusSpec) -> bool:
    """False only where it can be told that two specifications have no document in common."""
    if first == second:
        return True
    if isinstance(first, Simulated) and isinstance(second, Simulated):
        source = (first.reader, first.variant, first.seed)
        return source == (second.reader, second.variant, second.seed)
    if isinstance(first, Simulated) or isinstance(second, Simulated):
        return False
    path: str | None = getattr(first, "path", None)
    other: str | None = getattr(second, "path", None)
    if path is not None and other is not None:
        return meet(Path(path), Path(other)) and not drawn_apart(first, second)
    if first.reader != second.reader:
        return False
    return not drawn_apart(first, second)


def meet(path: Path, *others: Path) -> bool:
    """Whether a path is one of the others, or one lies within the other, or a file lies below both,
    whatever links lead there.
    """
    real = Path(os.path.realpath(path))
    others_real = [Path(os.path.realpath(other)) for other in others]
    if any(real.is_relative_to(other) or other.is_relative_to(real) for other in others_real):
        return True
    files = set(identities(real))
    return bool(files) and any(file in files for other in others_real for file in identities(other))


def identities(place: Path) -> Iterator[tuple[int, int]]:
    """Device and number of all files at a path, and of all that links below it lead to."""
    for _, known in found_below(place):
        yield known.st_dev, known.st_ino


def drawn_apart(first: CorpusSpec, second: CorpusSpec) -> bool:
    """Whether two corpora take other documents of one source.

    They are of other domains, or of other places in the same splits.
    """
    if isinstance(first, WikiTextSpec) and isinstance(second, WikiTextSpec):
        return apart(lines(first), lines(second))
    if isinstance(first, DialoguesSpec) and isinstance(second, DialoguesSpec):
        return first.reader == second.reader and dialogues_apart(first, second)
    return False


def dialogues_apart(first: DialoguesSpec, second: DialoguesSpec) -> bool:
    """The same of two corpora that one reader reads."""
    if not alike(first, second, "part", "several"):
        return False  # what is of one domain here may be of another one there
    if first.domains and second.domains and not domains(first) & domains(second):
        return True
    if source(first) != source(second) or not alike(
        first, second, "splits", "seed", "valid", "test"
    ):
        return False  # what stands in one place here may stand in another one there
    return all(apart(places(first, split), places(second, split)) for split in SPLITS)


def source(spec: DialoguesSpec) -> str | None:
    """The file or folder that a corpus is read from, whatever links lead there; None: an archive,
    whose splits may be others than those of its publisher's folder.
    """
    path: str | None = getattr(spec, "path", None)
    return None if path is None else os.path.realpath(path)


def alike(first: DialoguesSpec, second: DialoguesSpec, *names: str) -> bool:
    """Whether two specifications say the same of these fields, as far as they have them."""
    return all(getattr(first, name, None) == getattr(second, name, None) for name in names)


def domains(spec: DialoguesSpec) -> set[str]:
    """Names of the domains that are read, as the readers write them."""
    return {name.upper() for name in spec.domains or ()}


def places(spec: DialoguesSpec, split: str) -> tuple[float, float]:
    """The half-open range of a domain's dialogues that is taken of a split."""
    start = getattr(spec.skip, split) if spec.skip else 0
    return start, start + (getattr(spec.sizes, split) if spec.sizes else math.inf)


def lines(spec: WikiTextSpec) -> tuple[float, float]:
    """The same of the lines of each split."""
    start = spec.skip or 0
    return start, start + (math.inf if spec.lines is None else spec.lines)


def apart(first: tuple[float, float], second: tuple[float, float]) -> bool:
    return first[1] <= second[0] or second[1] <= first[0]
