"""Utility against certified confidentiality (CRT Figure 2): validation perplexity over Bayesian epsilon, epoch by epoch.

Epsilons of different meaning (relation, unit, delta) never share an axis: each meaning has its own row. Where epsilon is 0
or infinite there is no place on the axis, so those runs stand in panels of their own beside it.
"""

import math
from typing import Any, NamedTuple

from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D

from confide.report.results import Meaning, Result
from confide.report.series import Series, chosen_gamma, datasets, group
from confide.report.style import FAINT, figure, legend, plain_log, title
from confide.specs import ReportSpec

QUALITIES = {"valid_ppl": "all tokens", "valid_ppl_public": "public tokens"}  # field of an epoch -> what it is over


class Point(NamedTuple):
    """One epoch over the seeds."""

    epsilon: float
    ppl: float
    low: float
    high: float


class Track(NamedTuple):
    """A series at one gamma; `hollow`: the claim holds only if the policy misses nothing."""

    series: Series
    points: tuple[Point, ...]
    hollow: bool = False

    @property
    def last(self) -> Point:
        return self.points[-1]


def tradeoff(spec: ReportSpec, results: list[Result]) -> Figure:
    """One row per dataset, meaning of epsilon and share of the tokens; panels for epsilon = 0, finite and infinite."""
    gamma = chosen_gamma(spec.gamma, results)
    found = [(name, meaning) for name in datasets(results) for meaning in _meanings(results, name)]
    rows = [(*row, quality) for row in found for quality in QUALITIES]
    drawn = figure(10.6, 1.75 + 3.1 * len(rows))
    grid = drawn.subplots(len(rows), 3, squeeze=False, sharey="row", gridspec_kw={"width_ratios": (0.16, 1, 0.2)})
    for line, (name, meaning, quality) in zip(grid, rows, strict=True):
        tracks = _tracks(group(results, name), gamma, meaning, quality)
        _row(line, tracks, f"{name}, {QUALITIES[quality]}", meaning)
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
    """Legend entry; a dagger where epsilon holds only if the conservative policy catches every miss."""
    dagger = " †" * any(result.conditional for result in series.results)
    return Line2D([], [], **series.marks(label=series.label + dagger))


def _meanings(results: list[Result], name: str) -> list[Meaning]:
    """Meanings of the finite, non-zero epsilons of a dataset; at least one, else that of whatever was run."""
    own = [result for result in results if result.run.dataset == name]
    kept = [result.meaning for result in own if 0 < result.bayesian_epsilon < math.inf]
    return list(dict.fromkeys(kept or [own[0].meaning]))


def _tracks(drawn: list[Series], gamma: float, meaning: Meaning, quality: str) -> list[Track]:
    found = []
    for series in drawn:
        runs = series.at(gamma)
        points = _points(runs, quality)
        if not points:
            continue
        if points[-1].epsilon in (0, math.inf) or runs[0].meaning == meaning:
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


def _conditional(series: Series, runs: list[Result], points: tuple[Point, ...], meaning: Meaning, quality: str) -> list[Track]:
    """Where nothing holds for a secret that is missed: the run with a perfect policy, drawn hollow (as CRT Figure 2 does)."""
    perfect = [result for result in series.results if result.run.gamma == 0]
    if points[-1].epsilon < math.inf or not perfect or perfect == runs or not series.look.policy:
        return []
    found = _points(perfect, quality)
    shown = found and found[-1].epsilon < math.inf and (found[-1].epsilon == 0 or perfect[0].meaning == meaning)
    return [Track(series, found, hollow=True)] if shown else []


def _row(line: Any, tracks: list[Track], name: str, meaning: Meaning) -> None:
    zero, finite, infinite = line
    for track in tracks:
        if track.last.epsilon == 0:
            _aside(zero, track)
        elif track.last.epsilon == math.inf:
            _aside(infinite, track)
        else:
            _path(finite, track)
    for track in tracks:
        if track.last.epsilon in (0, math.inf) and not track.hollow:
            own = track.series.look
            for axes in line:
                axes.axhline(track.last.ppl, color=own.color, linestyle=own.line, linewidth=0.9, alpha=0.7)
    plain_log(zero, "y")
    if finite.lines and any(track.last.epsilon not in (0, math.inf) for track in tracks):
        plain_log(finite, "x")
    else:
        finite.set_xticks([])
    finite.set_title(f"{name}: 0 < ε < ∞", loc="left")
    zero.set_title("ε = 0", loc="center")
    infinite.set_title("ε = ∞", loc="center")
    for axes in (zero, infinite):
        axes.set_xlim(-1, 1)
        axes.set_xticks([])
        axes.set_facecolor("#f7f7f7")
    zero.set_ylabel("validation perplexity")
    finite.set_xlabel(f"Bayesian confidentiality ε (log scale)\n{meaning.words}")


def _face(track: Track) -> dict[str, Any]:
    """Marker of a final model: black edge, or no filling where the claim is conditional."""
    if track.hollow:
        return track.series.marks(linestyle="", fillstyle="none", markersize=10, markeredgewidth=1.7)
    return track.series.marks(linestyle="", markersize=10, markeredgecolor="black")


def _aside(axes: Axes, track: Track) -> None:
    axes.plot([0, 0], [track.last.low, track.last.high], color=track.series.look.color, linewidth=1.2)
    axes.plot([0], [track.last.ppl], zorder=4, **_face(track))


def _path(axes: Axes, track: Track) -> None:
    points = [point for point in track.points if 0 < point.epsilon < math.inf]
    small = {"fillstyle": "none"} if track.hollow else {}
    for point in points:
        axes.plot([point.epsilon] * 2, [point.low, point.high], color=track.series.look.color, linewidth=1)
    marks = track.series.marks(markersize=4, markevery=list(range(len(points) - 1)), **small)
    axes.plot([p.epsilon for p in points], [p.ppl for p in points], **marks)
    axes.plot([track.last.epsilon], [track.last.ppl], zorder=4, **_face(track))


def _caption(gamma: float, results: list[Result]) -> str:
    seeds = len({result.run.seed for result in results})
    dagger = "† if the conservative policy catches every miss of the policy. " * any(r.conditional for r in results)
    return (
        f"Lower left is better. Methods that depend on the screening policy: miss rate γ = {gamma:g}. Each point is the model "
        "after one epoch (ε grows with training); large: the final model. Horizontal lines carry models with ε = 0 or ∞ across "
        "the panels. Hollow: trained with a perfect policy (γ = 0), which none is known to be; for a missed secret, ε = ∞. "
        f"{dagger}{'One seed.' if seeds == 1 else f'Mean over {seeds} seeds; whiskers: their range.'}"
    )
