"""Numbers over authors: what each author's canaries show, and whom a method costs utility.

They are those of Privacy Regularization, section 3. An author is a number; names never get here.
Intervals are percentiles of bootstraps over authors, who are drawn whole: what they wrote is not
independent of the rest of what they wrote.
"""

from collections.abc import Iterable
from typing import NamedTuple

import numpy as np

from confide.report.figures.levels import Moment
from confide.report.results import Json, Result
from confide.report.seeds import Estimate

REPEATS = 2000
CONFIDENCE = 0.95
EXPOSURE = "sequence_exposure"
FEW = 5  # authors of a group, as in the paper


class Change(NamedTuple):
    """An author, and how much higher a model's test perplexity is than the non-private model's."""

    author: int
    train_points: int
    percent: float


def mean_over(values: list[float]) -> Estimate:
    """Mean with its bootstrap interval; values are the authors'."""
    return _estimate(float(np.mean(values)), _resampled(values))


def difference(first: list[float], second: list[float]) -> Estimate:
    """Mean of the second group of authors minus that of the first; both are resampled."""
    value = float(np.mean(second) - np.mean(first))
    return _estimate(value, _resampled(second, 1) - _resampled(first, 2))


def _resampled(values: list[float], stream: int = 0) -> np.ndarray:
    """(REPEATS,) means of authors drawn with replacement."""
    each = np.asarray(values, float)
    places = np.random.default_rng(stream).integers(len(each), size=(REPEATS, len(each)))
    return each[places].mean(1)


def _estimate(value: float, resampled: np.ndarray) -> Estimate:
    low, high = np.quantile(resampled, [(1 - CONFIDENCE) / 2, (1 + CONFIDENCE) / 2])
    return Estimate(value, float(low), float(high))


# Canaries
# --------------------------------------------------------------------------------------------------


def by_copies(canaries: Json) -> dict[int, dict[int, list[float]]]:
    """Exposures by how often a canary was planted, then by author.

    Canaries without a number are left out.
    """
    grouped: dict[int, dict[int, list[float]]] = {}
    rows = zip(canaries["copies"], canaries["authors"], canaries["exposures"] or (), strict=False)
    for copies, author, exposure in rows:
        if exposure is not None:
            grouped.setdefault(copies, {}).setdefault(author, []).append(float(exposure))
    return grouped


def exposure_curve(models: list[Moment]) -> dict[int, Estimate]:
    """Mean exposure over authors by copies.

    An author's own is the mean over their canaries of all the models (seeds).
    """
    pooled: dict[int, dict[int, list[float]]] = {}
    for model in models:
        for copies, authors in by_copies(model.attacks[EXPOSURE]["canaries"]).items():
            for author, values in authors.items():
                pooled.setdefault(copies, {}).setdefault(author, []).extend(values)
    return {
        copies: mean_over([sum(values) / len(values) for values in authors.values()])
        for copies, authors in sorted(pooled.items())
    }


# Whom a method costs utility
# --------------------------------------------------------------------------------------------------


def baseline(result: Result, results: Iterable[Result]) -> Result | None:
    """The non-private run that a run is compared with, of its dataset and model.

    It is the one of its seed, else the first.
    """
    same = [
        other
        for other in results
        if other.unprotected
        and (other.run.dataset, other.run.model, other.run.domains)
        == (result.run.dataset, result.run.model, result.run.domains)
    ]
    return next(
        (other for other in same if other.run.seed == result.run.seed), same[0] if same else None
    )


def changes(runs: list[Result], results: list[Result]) -> list[Change]:
    """Change of each author's test perplexity against the non-private run, most text first.

    It is the mean over the runs (seeds). Authors that any of the files lacks are left out; none
    where there is nothing to compare with.
    """
    by_run: list[dict[int, Change]] = []
    for result in runs:
        start = baseline(result, results)
        before = {row["author"]: row["ppl"] for row in _authors(start)}
        by_run.append(
            {
                row["author"]: Change(
                    author=row["author"],
                    train_points=row["train_points"],
                    percent=100 * (row["ppl"] / before[row["author"]] - 1),
                )
                for row in _authors(result)
                if row["author"] in before
            }
        )
    shared = set.intersection(*map(set, by_run)) if by_run else set()
    each = [
        by_run[0][author]._replace(
            percent=sum(of_run[author].percent for of_run in by_run) / len(by_run)
        )
        for author in shared
    ]
    return sorted(each, key=lambda change: (-change.train_points, change.author))


def _authors(result: Result | None) -> list[Json]:
    """What a run's evaluation says of each author."""
    return (result.evaluation.get("authors") or []) if result is not None else []


def ends(authors: list[Change]) -> tuple[list[float], list[float]]:
    """Changes of the five authors with the most training text and of the five with the least.

    Fewer where there are few.
    """
    few = min(FEW, len(authors) // 2)
    percent = [change.percent for change in authors]
    return percent[:few], percent[len(percent) - few :]


def gap(runs: list[Result], results: list[Result]) -> Estimate | None:
    """How much more a method costs the authors with the least training text, percentage points.

    That is more than those with the most; None where there are too few to compare.
    """
    most, least = ends(changes(runs, results))
    return difference(most, least) if most else None


def quantiles(authors: list[Change]) -> list[list[Change]]:
    """The authors in five parts of equal size by training text, the least first.

    Fewer parts where there are few authors.
    """
    ordered = authors[::-1]
    cuts = np.array_split(np.arange(len(ordered)), min(5, len(ordered))) if ordered else []
    return [[ordered[place] for place in cut] for cut in cuts]
