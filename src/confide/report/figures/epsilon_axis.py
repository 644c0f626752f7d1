"""A quality of models over epsilon: a logarithmic axis, and panels of their own for 0 and infinity.

Epsilons of different meaning (relation, unit, delta) never share an axis: each meaning has its own
row of panels. So are drawn CRT Figure 2 (perplexity over Bayesian epsilon) and Selective-DP
Figure 5 (over the epsilon of a caught secret).
"""

import math
from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple

from matplotlib.axes import Axes

from confide.certify.facts import SECRET_CAUGHT
from confide.output.rounding import rounded_up
from confide.report.figures.series import Series, Value, each_seed, over_runs, whisker
from confide.report.figures.style import WIDTH, Drawing, panels, plain_log
from confide.report.results import Meaning, Result
from confide.report.seeds import Estimate

APART = (0, math.inf)  # epsilons with no place on the axis
WIDTHS = {0.0: 0.16, None: 1.0, math.inf: 0.2}  # of panels by epsilon, None for finite ones
HOLLOW = (  # of models that rest on it
    "Hollow: trained with a perfect policy (γ = 0), which none is known to be; for a missed "
    "secret ε is larger, or ∞. "
)


class Point(NamedTuple):
    """One model, or one epoch of it, over the seeds."""

    epsilon: float
    ppl: Estimate


class Track(NamedTuple):
    """A series at one gamma, epoch by epoch or the final model alone.

    `hollow`: to be read otherwise, see captions.
    """

    series: Series
    points: tuple[Point, ...]
    hollow: bool = False

    @property
    def last(self) -> Point:
        return self.points[-1]


class Row(NamedTuple):
    """What one row of panels draws; `epsilon` and `quality` are what its axes show, in words.

    `levels`: horizontal lines across all panels, their heights and looks.
    """

    name: str
    tracks: list[Track]
    epsilon: str
    quality: str = "test perplexity"
    levels: Sequence[tuple[float, dict[str, Any]]] = ()


def rows_of(height: float, rows: list[Row]) -> tuple[Drawing, Any]:
    """A figure with the rows, and its axes (rows, up to 3): zero, finite, infinite.

    Where no row has a model with an epsilon of 0, or none of infinity, that panel is left out.
    """
    last = {track.last.epsilon for row in rows for track in row.tracks}
    widths = {
        epsilon: width for epsilon, width in WIDTHS.items() if epsilon is None or epsilon in last
    }
    drawn, grid = panels(
        WIDTH, height, len(rows), len(widths), sharey="row", width_ratios=list(widths.values())
    )
    below = [*rows[1:], None]
    for line, row, next_row in zip(grid, rows, below, strict=True):
        axes = dict(zip(widths, line, strict=True))
        _draw(axes, row)
        if next_row is not None and next_row.epsilon == row.epsilon:
            axes[None].set_xlabel("")  # said once, below the last of them
    return drawn, grid


def any_hollow(rows: Iterable[Row]) -> bool:
    """Whether a model is drawn hollow, so that a legend and a caption must say why."""
    return any(track.hollow for row in rows for track in row.tracks)


def rests_on_no_misses(runs: Iterable[Result]) -> bool:
    """Whether epsilon of one of these runs does, so that they are drawn hollow: see HOLLOW."""
    return any(result.rests_on_no_misses for result in runs)


def finite_meanings(pairs: Iterable[tuple[float | None, Meaning | None]]) -> list[Meaning]:
    """Meanings of the finite, non-zero epsilons among (epsilon, meaning).

    At least one where there is any, else whichever.
    """
    complete = [(epsilon, meaning) for epsilon, meaning in pairs if epsilon is not None and meaning]
    finite = [meaning for epsilon, meaning in complete if 0 < epsilon < math.inf]
    return list(dict.fromkeys(finite or [meaning for _, meaning in complete[:1]]))


def bayesian_meanings(results: Iterable[Result]) -> list[Meaning]:
    """Meanings of the Bayesian epsilons."""
    return finite_meanings((result.bayesian_epsilon, result.meaning) for result in results)


def caught(result: Result) -> float | None:
    """The certified epsilon of a secret that the policy catches."""
    return result.claim(SECRET_CAUGHT)


def caught_meanings(results: Iterable[Result]) -> list[Meaning]:
    """Meanings of the epsilons of a caught secret."""
    return finite_meanings((caught(result), result.meaning_of(SECRET_CAUGHT)) for result in results)


def caught_axis(meaning: Meaning) -> str:
    """What an axis of such epsilons shows."""
    return f"certified ε of a secret that the policy catches\n{meaning.words}"


def belongs(point: Point, result: Result, meaning: Meaning) -> bool:
    """Whether a caught secret's epsilon stands in a row: it is 0 or infinite, or means the same."""
    return point.epsilon in APART or result.meaning_of(SECRET_CAUGHT) == meaning


def caught_point(runs: list[Result], ppl: Value) -> Point | None:
    """A final model over the epsilon of a caught secret, of the seeds whose perplexity is known."""
    complete = [result for result in runs if caught(result) is not None and ppl(result) is not None]
    epsilon = over_runs(complete, caught)
    value = over_runs(complete, ppl)
    return Point(epsilon.value, value) if epsilon and value else None


def _draw(line: dict[float | None, Axes], row: Row) -> None:
    """`line`: panels by epsilon, None for finite ones."""
    tracks = row.tracks
    finite = line[None]
    inside = [track for track in tracks if track.last.epsilon not in APART]
    final = all(len(track.points) == 1 for track in inside)
    for track in tracks:
        if track.last.epsilon not in APART:
            if not final:
                _path(finite, track)
        elif not track.hollow:
            look = track.series.look
            across = {"color": look.color, "linestyle": look.line, "linewidth": 0.9, "alpha": 0.7}
            for axes in line.values():
                axes.axhline(track.last.ppl.value, **across)
    for epsilon, axes in line.items():
        if epsilon is not None:
            _aside(axes, [track for track in tracks if track.last.epsilon == epsilon])
            axes.set_title(f"ε = {'∞' if epsilon else '0'}", loc="center")
            axes.set_xlim(-1, 1)
            axes.set_xticks([])
            axes.set_facecolor("#f7f7f7")
    if inside and final:
        _by_value(finite, inside)
    elif inside:
        _apart(finite)
        plain_log(finite, "x")
    else:
        finite.set_xticks([])
    finite.set_title(f"{row.name}: 0 < ε < ∞")
    for axes in line.values():
        for height, properties in row.levels:
            axes.axhline(height, **properties)
    first = next(iter(line.values()))
    plain_log(first, "y")  # last: its ticks go by all that is drawn
    first.set_ylabel(row.quality)
    finite.set_xlabel(row.epsilon)


def _final(axes: Axes, track: Track, x: float) -> None:
    """Marker of a final model: black edge, or no filling."""
    face: dict[str, Any] = {"markeredgecolor": "black"}
    if track.hollow:
        face = {"fillstyle": "none", "markeredgewidth": 1.7}
    marks = track.series.marks(linestyle="", markersize=10, **face)
    axes.plot([x], [track.last.ppl.value], zorder=4, **marks)


def _by_value(axes: Axes, tracks: list[Track]) -> None:
    """Final models alone: a place on the axis for each epsilon, equal ones (to 1 %) side by side.

    A logarithmic axis would draw what was calibrated to one epsilon at several.
    """
    by_epsilon: dict[int, list[Track]] = {}
    for track in tracks:
        by_epsilon.setdefault(round(math.log(track.last.epsilon, 1.01)), []).append(track)
    groups = [group for _, group in sorted(by_epsilon.items())]
    for place, group in enumerate(groups):
        _aside(axes, group, middle=2.0 * place)
    names = [rounded_up(max(track.last.epsilon for track in group), 3) for group in groups]
    axes.set_xticks([2.0 * place for place in range(len(names))], names)
    axes.set_xlim(-1, 2 * len(names) - 1)


def _aside(axes: Axes, tracks: list[Track], middle: float = 0.0) -> None:
    """Series side by side, since what is certified alike may be worth alike."""
    labels = list(dict.fromkeys(track.series.label for track in tracks))
    step = min(0.45, 1.6 / max(1, len(labels)))
    for track in tracks:
        x = middle + (labels.index(track.series.label) - (len(labels) - 1) / 2) * step
        whisker(axes, track.series, x, track.last.ppl.ends, linewidth=1.2)
        each_seed(axes, track.series, x, track.last.ppl)
        _final(axes, track, x)


def _path(axes: Axes, track: Track) -> None:
    points = [point for point in track.points if 0 < point.epsilon < math.inf]
    small: dict[str, Any] = {"fillstyle": "none"} if track.hollow else {}
    for point in points:
        whisker(axes, track.series, point.epsilon, point.ppl.ends, linewidth=1)
    marks = track.series.marks(markersize=4, markevery=list(range(len(points) - 1)), **small)
    axes.plot([p.epsilon for p in points], [p.ppl.value for p in points], **marks)
    each_seed(axes, track.series, track.last.epsilon, track.last.ppl)
    _final(axes, track, track.last.epsilon)


def _apart(axes: Axes) -> None:
    """At least a factor of two from end to end.

    Methods that were calibrated to one epsilon differ in its fourth digit.
    """
    axes.set_xscale("log")
    low, high = axes.get_xlim()
    if high < 2 * low:
        middle = math.sqrt(low * high)
        axes.set_xlim(middle / math.sqrt(2), middle * math.sqrt(2))
