"""A quality of models over epsilon: a logarithmic axis where that is finite, and panels of their
own for 0 and infinity.

Epsilons of different meaning (relation, unit, delta) never share an axis: each meaning has its own
row of three panels. So are drawn CRT Figure 2 (perplexity over Bayesian epsilon) and Selective-DP
Figure 5 (over the epsilon of a caught secret).
"""

import math
from collections.abc import Iterable
from typing import Any, NamedTuple

from matplotlib.axes import Axes
from matplotlib.figure import Figure

from confide.report.figures.series import Series
from confide.report.figures.style import plain_log
from confide.report.results import Meaning

APART = (0, math.inf)  # epsilons with no place on the axis


class Point(NamedTuple):
    """One model, or one epoch of it, over the seeds."""

    epsilon: float
    ppl: float
    low: float
    high: float


class Track(NamedTuple):
    """A series at one gamma, epoch by epoch or the final model alone; `hollow`: to be read
    otherwise, see captions.
    """

    series: Series
    points: tuple[Point, ...]
    hollow: bool = False

    @property
    def last(self) -> Point:
        return self.points[-1]


def grid(drawn: Figure, rows: int) -> Any:
    """Axes (rows, 3): zero, finite, infinite."""
    return drawn.subplots(
        rows, 3, squeeze=False, sharey="row", gridspec_kw={"width_ratios": (0.16, 1, 0.2)}
    )


def finite_meanings(found: Iterable[tuple[float | None, Meaning | None]]) -> list[Meaning]:
    """Meanings of the finite, non-zero epsilons among (epsilon, meaning); at least one where there
    is any, else whichever.
    """
    known = [
        (epsilon, meaning)
        for epsilon, meaning in found
        if epsilon is not None and meaning is not None
    ]
    kept = [meaning for epsilon, meaning in known if 0 < epsilon < math.inf]
    return list(dict.fromkeys(kept or [meaning for _, meaning in known[:1]]))


def row(line: Any, tracks: list[Track], name: str, epsilon: str, quality: str) -> None:
    """Draw one row of panels; `epsilon` and `quality` are what the axes show, in words."""
    zero, finite, infinite = line
    for axes, place in ((zero, 0), (infinite, math.inf)):
        _aside(axes, [track for track in tracks if track.last.epsilon == place])
    for track in tracks:
        if track.last.epsilon not in APART:
            _path(finite, track)
        elif not track.hollow:
            own = track.series.look
            for axes in line:
                axes.axhline(
                    track.last.ppl, color=own.color, linestyle=own.line, linewidth=0.9, alpha=0.7
                )
    plain_log(zero, "y")
    if finite.lines and any(track.last.epsilon not in APART for track in tracks):
        _apart(finite)
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
    zero.set_ylabel(quality)
    finite.set_xlabel(epsilon)


def _face(track: Track) -> dict[str, Any]:
    """Marker of a final model: black edge, or no filling."""
    if track.hollow:
        return track.series.marks(
            linestyle="", fillstyle="none", markersize=10, markeredgewidth=1.7
        )
    return track.series.marks(linestyle="", markersize=10, markeredgecolor="black")


def _aside(axes: Axes, tracks: list[Track]) -> None:
    """Series side by side, since what is certified alike may be worth alike."""
    labels = list(dict.fromkeys(track.series.label for track in tracks))
    for track in tracks:
        x = (labels.index(track.series.label) - (len(labels) - 1) / 2) * min(
            0.45, 1.6 / len(labels)
        )
        axes.plot(
            [x, x], [track.last.low, track.last.high], color=track.series.look.color, linewidth=1.2
        )
        axes.plot([x], [track.last.ppl], zorder=4, **_face(track))


def _path(axes: Axes, track: Track) -> None:
    points = [point for point in track.points if 0 < point.epsilon < math.inf]
    small = {"fillstyle": "none"} if track.hollow else {}
    for point in points:
        axes.plot(
            [point.epsilon] * 2, [point.low, point.high], color=track.series.look.color, linewidth=1
        )
    marks = track.series.marks(markersize=4, markevery=list(range(len(points) - 1)), **small)
    axes.plot([p.epsilon for p in points], [p.ppl for p in points], **marks)
    axes.plot([track.last.epsilon], [track.last.ppl], zorder=4, **_face(track))


def _apart(axes: Axes) -> None:
    """At least a factor of two from end to end: methods that were calibrated to one epsilon differ
    in its fourth digit.
    """
    axes.set_xscale("log")
    low, high = axes.get_xlim()
    if high < 2 * low:
        middle = math.sqrt(low * high)
        axes.set_xlim(middle / math.sqrt(2), middle * math.sqrt(2))
