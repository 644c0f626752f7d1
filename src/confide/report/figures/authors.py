"""Numbers over authors (Privacy Regularization, section 4): what each author's canaries show, and
whom a method costs utility.

An author is a number; names never get here. Intervals are percentiles of bootstraps over authors,
who are drawn whole: what they wrote is not independent of the rest of what they wrote.
"""

from collections.abc import Iterable
from typing import NamedTuple

import numpy as np

from confide.report.figures.levels import Moment
from confide.report.results import Json, Result

REPEATS = 2000
CONFIDENCE = 0.95
FEW = 5  # authors of a group, as in the paper


class Estimate(NamedTuple):
    """A mean over authors with its interval."""

    value: float
    low: float
    high: float


class Change(NamedTuple):
    """An author, and by how much a model's test perplexity of their text is above the non-private
    model's.
    """

    author: int
    train_points: int
    percent: float


def mean_over(values: list[float]) -> Estimate:
    """Mean with its bootstrap interval; values are the authors'."""
    drawn = _resampled(values)
    return Estimate(float(np.mean(values)), *_ends(drawn))


def difference(first: list[float], second: list[float]) -> Estimate:
    """Mean of the second group of authors minus that of the first; both are resampled."""
    drawn = _resampled(second, 1) - _resampled(first, 2)
    return Estimate(float(np.mean(second) - np.mean(first)), *_ends(drawn))


def _resampled(values: list[float], stream: int = 0) -> np.ndarray:
    """(REPEATS,) means of authors drawn with replacement."""
    each = np.asarray(values, float)
    return each[np.random.default_rng(stream).integers(len(each), size=(REPEATS, len(each)))].mean(
        1
    )


def _ends(drawn: np.ndarray) -> tuple[float, float]:
    low, high = np.quantile(drawn, [(1 - CONFIDENCE) / 2, (1 + CONFIDENCE) / 2])
    return float(low), float(high)


# Canaries
# ----------------------------------------------------------------------------------------------------------


def by_copies(canaries: Json) -> dict[int, dict[int, list[float]]]:
    """Exposures of one attack, by how often a canary was planted, then by author; those without a
    number are left out.
    """
    found: dict[int, dict[int, list[float]]] = {}
    rows = zip(canaries["copies"], canaries["authors"], canaries["exposures"] or (), strict=False)
    for copies, author, exposure in rows:
        if exposure is not None:
            found.setdefault(copies, {}).setdefault(author, []).append(float(exposure))
    return found


def exposure_curve(models: list[Moment]) -> dict[int, Estimate]:
    """Mean exposure over authors by copies; an author's own is the mean over their canaries of all
    the models (seeds).
    """
    pooled: dict[int, dict[int, list[float]]] = {}
    for one in models:
        for copies, authors in by_copies(one.attacks["sequence_exposure"]["canaries"]).items():
            for author, values in authors.items():
                pooled.setdefault(copies, {}).setdefault(author, []).extend(values)
    each = {
        copies: [sum(values) / len(values) for values in authors.values()]
        for copies, authors in sorted(pooled.items())
    }
    return {copies: mean_over(values) for copies, values in each.items()}


# Whom a method costs utility
# ---------------------------------------------------------------------------------------


def baseline(result: Result, results: Iterable[Result]) -> Result | None:
    """The non-private run that a run is compared with: of its dataset and model, if there is one of
    its seed.
    """
    where = (result.run.dataset, result.run.model, result.run.domains)
    same = [one for one in results if one.run.method == "nonprivate"]
    same = [one for one in same if (one.run.dataset, one.run.model, one.run.domains) == where]
    return next((one for one in same if one.run.seed == result.run.seed), same[0] if same else None)


def changes(runs: list[Result], results: list[Result]) -> list[Change]:
    """Change of each author's test perplexity against the non-private run, mean over the runs
    (seeds); most text first.

    Authors that any of the files lacks are left out; none where there is nothing to compare with.
    """
    found: list[dict[int, tuple[int, float]]] = []
    for result in runs:
        start = baseline(result, results)
        before = (
            {}
            if start is None
            else {row["author"]: row["ppl"] for row in start.evaluation.get("authors") or ()}
        )
        own = {
            row["author"]: row
            for row in result.evaluation.get("authors") or ()
            if row["author"] in before
        }
        found.append(
            {a: (row["train_points"], 100 * (row["ppl"] / before[a] - 1)) for a, row in own.items()}
        )
    shared = set.intersection(*map(set, found)) if found else set()
    each = [Change(a, found[0][a][0], sum(own[a][1] for own in found) / len(found)) for a in shared]
    return sorted(each, key=lambda one: (-one.train_points, one.author))


def ends(authors: list[Change]) -> tuple[list[float], list[float]]:
    """Changes of the five authors with the most training text and of the five with the least; fewer
    where there are few.
    """
    few = min(FEW, len(authors) // 2)
    return [one.percent for one in authors[:few]], [
        one.percent for one in authors[len(authors) - few :]
    ]


def gap(runs: list[Result], results: list[Result]) -> Estimate | None:
    """How much more a method costs the authors with the least training text than those with the
    most, percentage points.
    """
    most, least = ends(changes(runs, results))
    return difference(most, least) if most else None


def quantiles(authors: list[Change], parts: int = 5) -> list[list[Change]]:
    """The authors in parts of equal size by training text, the least first; fewer parts where there
    are few authors.
    """
    ordered = authors[::-1]
    cuts = np.array_split(np.arange(len(ordered)), min(parts, len(ordered))) if ordered else []
    return [[ordered[place] for place in cut] for cut in cuts]
