"""Which state of a model a comparison takes: at equal utility, or after equal epochs.

Equal utility is the epoch whose validation perplexity is nearest to a level, of those after which
the model was attacked; a run that never comes within 10 % of the level is not compared, but drawn
hollow. Verdicts compare at the level itself, between two epochs. The paper (Privacy
Regularization, section 3) compares at equal perplexity alone: there the unmitigated model has seen
the canaries less often than the others (copies x epochs), so the final models stand beside it.
"""

import math
from collections.abc import Callable
from itertools import pairwise
from typing import NamedTuple

from matplotlib.lines import Line2D

from confide.report.figures.style import dot
from confide.report.results import Json, Result
from confide.specs import ReportSpec

NEAR = 0.1
STEP = 1.5  # ratio of two epochs' perplexities, above which nothing is told of what lies between
OUTSIDE = "†"


class Moment(NamedTuple):
    """A model at one moment of its training, with the attacks on it as it was then."""

    epoch: int
    ppl: float | None  # on valid points
    level: float | None  # that was asked for; None: the final model
    attacks: dict[str, Json]  # by kind

    @property
    def ratio(self) -> float | None:
        """Its perplexity over the level; None for a final model."""
        return None if self.level is None or self.ppl is None else self.ppl / self.level

    @property
    def near(self) -> bool:
        """Whether it may stand beside others at this level; final models always may."""
        return self.ratio is None or abs(self.ratio - 1) <= NEAR


def moment(result: Result, level: float | None, kind: str) -> Moment | None:
    """A run at a level (None: its final model).

    None where it was not attacked so, or has no validation perplexity.
    """
    if level is None:
        ppl = {epoch.epoch: epoch.valid_ppl for epoch in result.epochs}
        last = max(ppl, default=0)
        return Moment(last, ppl.get(last), None, result.attacks) if kind in result.attacks else None
    ppl_where_attacked = attacked(result, kind)
    if not ppl_where_attacked:
        return None
    nearest = min(
        ppl_where_attacked, key=lambda epoch: abs(math.log(ppl_where_attacked[epoch] / level))
    )
    return Moment(nearest, ppl_where_attacked[nearest], level, result.trajectory[nearest])


def attacked(result: Result, kind: str) -> dict[int, float]:
    """Validation perplexity after each epoch whose model was attacked so."""
    return {
        epoch.epoch: epoch.valid_ppl
        for epoch in result.epochs
        if epoch.valid_ppl is not None and kind in result.trajectory.get(epoch.epoch, ())
    }


def at_level(
    result: Result, level: float, kind: str, measure: Callable[[Json], float | None]
) -> float | None:
    """A number of an attack at a validation perplexity.

    It is that of the first two epochs in a row which have the level between them, weighted by the
    logarithms of their perplexities. None where there are no such, where they are further than
    STEP apart, or where nothing was measured.
    """
    for (before, first), (after, second) in pairwise(sorted(attacked(result, kind).items())):
        if not min(first, second) <= level <= max(first, second):
            continue
        if max(first, second) > STEP * min(first, second):
            return None
        start, end = (measure(result.trajectory[epoch][kind]) for epoch in (before, after))
        if start is None or end is None:
            return None
        share = math.log(first / level) / math.log(first / second) if first != second else 0.0
        return (1 - share) * start + share * end
    return None


def moments(runs: list[Result], level: float | None, kind: str) -> list[Moment]:
    """The runs that have one, at a level."""
    there = (moment(result, level, kind) for result in runs)
    return [one for one in there if one is not None]


def levels(spec: ReportSpec, results: list[Result], kind: str) -> list[float | None]:
    """A study's levels that any of its runs can be compared at, then None: the final models."""
    return [*(level for level in spec.ppl_levels if moments(results, level, kind)), None]


def heading(level: float | None) -> str:
    return "final models" if level is None else f"validation perplexity ≈ {level:g}"


def epoch_words(models: list[Moment]) -> str:
    """When models were as they are compared: epoch and ratio to the level, over the seeds."""
    epochs = sorted({model.epoch for model in models})
    when = f"epoch {epochs[0]}" if len(epochs) == 1 else f"epochs {epochs[0]}–{epochs[-1]}"
    ratios = [model.ratio for model in models if model.ratio is not None]
    if ratios:
        when += f", ×{sum(ratios) / len(ratios):.2f}"
    return when if all(model.near for model in models) else f"{when} {OUTSIDE}"


def hollow(at_levels: list[float | None]) -> list[Line2D]:
    """Legend entry of runs that may not be compared, where a level is shown."""
    label = f"{OUTSIDE} level not reached"
    return (
        [dot(label, 6, fillstyle="none", linestyle="-", linewidth=0.8)]
        if len(at_levels) > 1
        else []
    )


def caption(at_levels: list[float | None]) -> str:
    """What the panels compare, for captions."""
    text = (
        "Final models: each after all of its epochs. A canary planted c times has been read "
        "c × epochs times. "
    )
    if len(at_levels) == 1:
        return text
    return (
        "At a perplexity level: each run after the epoch whose validation perplexity is nearest, "
        f"which is named with its ratio to the level; {OUTSIDE} and hollow: never within "
        f"{NEAR:.0%}, no fair comparison. Runs get there after different numbers of passes over "
        f"the canaries. {text}"
    )
