"""Utility against certified confidentiality (CRT Figure 2): perplexity over Bayesian epsilon.

Each meaning of epsilon (relation, unit, delta) has its own row, and models where it is 0 or
infinite panels of their own. A line is one training run: epsilon is priced after every epoch.
"""

import math

from matplotlib.lines import Line2D

from confide.report.figures import style
from confide.report.figures.epsilon_axis import (
    APART,
    HOLLOW,
    Point,
    Row,
    Track,
    any_hollow,
    bayesian_meanings,
    rests_on_no_misses,
    rows_of,
)
from confide.report.figures.frame import Drawn, Shown, figure
from confide.report.figures.series import Series, group
from confide.report.results import Meaning, Result
from confide.report.seeds import over_seeds

# field of an epoch -> what it is over
QUALITIES = {"valid_ppl": "all tokens", "valid_ppl_public": "public tokens"}


@figure("Utility against confidentiality")
def tradeoff(shown: Shown) -> Drawn:
    """One row per corpus, meaning of epsilon and share of the tokens.

    Panels are for epsilon = 0, finite and infinite.
    """
    rows = [
        Row(
            name=f"{name}, {title}",
            tracks=_tracks(shown.series[name], shown.gamma, meaning, quality),
            epsilon=f"Bayesian confidentiality ε (log scale)\n{meaning.words}",
            quality="validation perplexity",
        )
        for name, results in shown.corpora.items()
        for meaning in bayesian_meanings(results)
        for quality, title in QUALITIES.items()
    ]
    drawn, _ = rows_of(0.2 + 2.6 * len(rows), rows)
    legend = [
        *(_handle(series) for series in group(shown.results)),
        style.dot("after each epoch", 4, linestyle="-"),
        style.dot("final model", 9, markeredgecolor="black"),
    ]
    hollow = any_hollow(rows)
    if hollow:
        condition = "only if the policy\nmisses nothing"
        legend.append(style.dot(condition, 9, fillstyle="none", markeredgewidth=1.6))
    return drawn, _caption(shown, hollow), legend


def _handle(series: Series) -> Line2D:
    """Legend entry; a dagger where epsilon is conditional on the conservative policy."""
    dagger = " †" * any(result.conditional for result in series.results)
    return series.handle(label=series.label + dagger)


def _tracks(drawn: list[Series], gamma: float, meaning: Meaning, quality: str) -> list[Track]:
    tracks = []
    for series in drawn:
        runs = series.at(gamma)
        points = _points(runs, quality)
        if not points:
            continue
        last = points[-1].epsilon
        if last in APART or runs[0].meaning == meaning:
            tracks.append(Track(series, points, hollow=rests_on_no_misses(runs)))
        if last == math.inf and runs[0].run.gamma > 0 and series.look.policy:
            tracks += _perfect(series, meaning, quality)
    return tracks


def _points(runs: list[Result], quality: str) -> tuple[Point, ...]:
    """Epochs that every seed has, with validation perplexity over the seeds."""
    points = []
    for epochs in zip(*(result.epochs for result in runs), strict=False):
        values = [value for epoch in epochs if (value := getattr(epoch, quality)) is not None]
        if values:
            epsilon = sum(epoch.bayesian_epsilon for epoch in epochs) / len(epochs)
            points.append(Point(epsilon, over_seeds(values)))
    return tuple(points)


def _perfect(series: Series, meaning: Meaning, quality: str) -> list[Track]:
    """The run with a perfect policy, for one where nothing holds of a missed secret.

    CRT Figure 2 draws it so.
    """
    runs = [result for result in series.results if result.run.gamma == 0]
    points = _points(runs, quality)
    if not points or points[-1].epsilon == math.inf:
        return []
    shown = points[-1].epsilon == 0 or runs[0].meaning == meaning
    return [Track(series, points, hollow=True)] if shown else []


def _caption(shown: Shown, hollow: bool) -> str:
    """`hollow`: whether a model is drawn so."""
    dagger = "† if the conservative policy catches every miss of the policy. "
    if not any(result.conditional for result in shown.results):
        dagger = ""
    return (
        "Lower left is better. Methods that depend on the screening policy: simulated miss rate "
        f"γ = {shown.gamma:g}. ε: at the rate that was measured; tables have it at that rate's "
        "upper bound, too. Each point is the model after one epoch (ε grows with training); large: "
        "the final model. Horizontal lines carry models with ε = 0 or ∞ across the panels. "
        f"{HOLLOW * hollow}{dagger}{shown.averaged()}"
    )
