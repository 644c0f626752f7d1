"""Utility against certified confidentiality (CRT Figure 2): validation perplexity over Bayesian
epsilon, epoch by epoch.

Each meaning of epsilon (relation, unit, delta) has its own row, and models where it is 0 or
infinite panels of their own. A line is one training run: epsilon is priced after every epoch.
"""

import math

from matplotlib.figure import Figure
from matplotlib.lines import Line2D

from confide.report.figures.epsilon_axis import APART, Point, Track, finite_meanings, grid, row
from confide.report.figures.series import Series, averaged, chosen_gamma, corpora, group
from confide.report.figures.style import FAINT, figure, legend, title
from confide.report.results import Meaning, Result
from confide.specs import ReportSpec

QUALITIES = {
    "valid_ppl": "all tokens",
    "valid_ppl_public": "public tokens",
}  # field of an epoch -> what it is over


def tradeoff(spec: ReportSpec, results: list[Result]) -> Figure:
    """One row per corpus, meaning of epsilon and share of the tokens; panels for epsilon = 0,
    finite and infinite.
    """
    gamma = chosen_gamma(spec.gamma, results)
    found = [(name, meaning) for name in corpora(results) for meaning in _meanings(results, name)]
    rows = [(*place, quality) for place in found for quality in QUALITIES]
    drawn = figure(10.6, 1.75 + 3.1 * len(rows))
    for line, (name, meaning, quality) in zip(grid(drawn, len(rows)), rows, strict=True):
        tracks = _tracks(group(results, name), gamma, meaning, quality)
        words = f"Bayesian confidentiality ε (log scale)\n{meaning.words}"
        row(line, tracks, f"{name}, {QUALITIES[quality]}", words, "validation perplexity")
    title(drawn, f"Utility against confidentiality — {spec.title}", _caption(gamma, results))
    extra = [
        Line2D([], [], color=FAINT, marker="o", markersize=4, label="after each epoch"),
        Line2D([], [], color=FAINT, marker="o", markersize=9, linestyle="", markeredgecolor="black", label="final model"),
        Line2D([], [], color=FAINT, marker="o", markersize=9, linestyle="", fillstyle="none", markeredgewidth=1.6,
               label="only if the policy\nmisses nothing"),
    ]  # fmt: skip
    legend(drawn, [_handle(series) for series in group(results)] + extra)
    return drawn


def _handle(series: Series) -> Line2D:
    """Legend entry; a dagger where epsilon holds only if the conservative policy catches every
    miss.
    """
    dagger = " †" * any(result.conditional for result in series.results)
    return Line2D([], [], **series.marks(label=series.label + dagger))


def _meanings(results: list[Result], name: str) -> list[Meaning]:
    return finite_meanings(
        (result.bayesian_epsilon, result.meaning) for result in results if result.corpus == name
    )


def _tracks(drawn: list[Series], gamma: float, meaning: Meaning, quality: str) -> list[Track]:
    found = []
    for series in drawn:
        runs = series.at(gamma)
        points = _points(runs, quality)
        if not points:
            continue
        if points[-1].epsilon in APART or runs[0].meaning == meaning:
            found.append(Track(series, points))
        found += _conditional(series, runs, points, meaning, quality)
    return found


def _points(runs: list[Result], quality: str) -> tuple[Point, ...]:
    """Epochs that every seed has, with the mean and range of validation perplexity."""
    found = []
    for epochs in zip(*(result.epochs for result in runs), strict=False):
        values = [value for epoch in epochs if (value := getattr(epoch, quality)) is not None]
        if values:
            epsilon = sum(epoch.bayesian_epsilon for epoch in epochs) / len(epochs)
            found.append(Point(epsilon, sum(values) / len(values), min(values), max(values)))
    return tuple(found)


def _conditional(
    series: Series, runs: list[Result], points: tuple[Point, ...], meaning: Meaning, quality: str
) -> list[Track]:
    """Where nothing holds for a secret that is missed: the run with a perfect policy, drawn hollow
    (as CRT Figure 2 does).
    """
    perfect = [result for result in series.results if result.run.gamma == 0]
    if points[-1].epsilon < math.inf or not perfect or perfect == runs or not series.look.policy:
        return []
    found = _points(perfect, quality)
    shown = (
        found
        and found[-1].epsilon < math.inf
        and (found[-1].epsilon == 0 or perfect[0].meaning == meaning)
    )
    return [Track(series, found, hollow=True)] if shown else []


def _caption(gamma: float, results: list[Result]) -> str:
    seeds = len({result.run.seed for result in results})
    dagger = "† if the conservative policy catches every miss of the policy. " * any(
        r.conditional for r in results
    )
    return (
        f"Lower left is better. Methods that depend on the screening policy: simulated miss rate γ = {gamma:g}. Each point "
        "is the model after one epoch (ε grows with training); large: the final model. Horizontal lines "
        "carry models with ε = 0 or ∞ across "
        "the panels. Hollow: trained with a perfect policy (γ = 0), which none is known to be; for a missed secret, ε = ∞. "
        f"{dagger}{averaged(seeds)}"
    )
