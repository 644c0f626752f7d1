"""How often a sequence comes out whole when its first token is given: the tab attack.

It is Figure 3a and b of Privacy Regularization. Beside the random words that were planted stand
real text of training, and controls that were never planted: what these score is no memory. The
paper reads the most likely continuation; what a beam of several finds is a mark beside it.
"""

from typing import Any, NamedTuple

from matplotlib.axes import Axes
from matplotlib.patches import Patch

from confide.report.figures import style
from confide.report.figures.frame import INTERVALS, Drawn, Shown, figure
from confide.report.figures.levels import (
    Moment,
    caption,
    epoch_words,
    heading,
    hollow,
    levels,
    moments,
)
from confide.report.figures.series import BUTT, Series, name_rows, whisker
from confide.report.figures.style import FAINT, INK, shade

KIND = "tab"


class Bar(NamedTuple):
    """How the bars of one group of sequences are drawn."""

    label: str
    shift: float  # of its place above the middle of the row
    hatch: str
    pale: float


class Rate(NamedTuple):
    """A share of sequences; its interval is not known of all."""

    value: float
    low: float | None
    high: float | None


BARS = {  # by group in the file
    "canaries": Bar("random words, planted", 0.2, "", 1.0),
    "real": Bar("real training text", -0.05, "////", 0.45),
    "controls": Bar("random words, not planted", -0.3, "....", 0.2),
}
MARKS: dict[str, dict[str, Any]] = {  # what else is drawn of a group
    "beam": {"marker": "d", "markersize": 3.6},
    "first_k": {"marker": "o", "markersize": 3.6, "fillstyle": "none"},
}
MARKED: dict[str, Any] = {"color": INK, "linestyle": ""}


@figure(
    "Tab attack",
    lambda result: KIND in result.attacks,
    "no run of this study was given first tokens to go on from",
)
def tab(shown: Shown) -> Drawn:
    """One row of panels per corpus, a panel per perplexity level and one of the final models."""
    at_levels = levels(shown.spec, shown.results, KIND)
    rows = shown.series
    height = 0.7 + 0.52 * max(map(len, rows.values()))
    drawn, grid = style.panels(
        style.WIDTH, 2.0 + height * len(rows), len(rows), len(at_levels), sharey="row"
    )
    for line, (name, row) in zip(grid, rows.items(), strict=True):
        places = name_rows(line[0], [series.label for series in row])
        for axes, level in zip(line, at_levels, strict=True):
            for place, series in zip(places, row, strict=True):
                if runs := moments(series.at(shown.gamma), level, KIND):
                    _row(axes, place, runs, series)
            axes.set_title(f"{name}: {heading(level)}")
            axes.set_xlabel("share of sequences extracted")
            axes.set_xlim(0, 1)
            axes.grid(axis="y", visible=False)
            axes.tick_params(axis="y", length=0)
    bars = [
        Patch(facecolor=shade(FAINT, bar.pale - 1), edgecolor=INK, hatch=bar.hatch, label=bar.label)
        for bar in BARS.values()
    ]
    marks = [
        style.entry("found by a beam", **MARKED, **MARKS["beam"]),
        style.entry("its first tokens alone", **MARKED, **MARKS["first_k"]),
    ]
    legend = [*bars, *marks, *hollow(at_levels)]
    return drawn, _caption(shown, at_levels), legend


def rate(runs: list[Moment], name: str, decoding: str) -> Rate | None:
    """A rate of extraction and its interval, means over the runs; None where nothing was tried."""
    metrics = [run.attacks[KIND].get(name) or {} for run in runs]
    value, low, high = (
        _mean([part.get(f"rate_{decoding}{end}") for part in metrics])
        for end in ("", "_low", "_high")
    )
    return None if value is None else Rate(value, low, high)


def _mean(values: list[float | None]) -> float | None:
    numbers = [value for value in values if value is not None]
    return sum(numbers) / len(numbers) if numbers else None


def _row(axes: Axes, place: int, runs: list[Moment], series: Series) -> None:
    """The bars of one series; hollow where it never came near the level."""
    near = all(run.near for run in runs)
    color = series.look.color
    for name, bar in BARS.items():
        greedy = rate(runs, name, "greedy")
        if greedy is None:
            continue
        y = place + bar.shift
        face = shade(color, bar.pale - 1) if near else "white"
        line: dict[str, Any] = {"edgecolor": color, "hatch": bar.hatch, "linewidth": 0.7}
        axes.barh(y, greedy.value, 0.25, color=face, **line)
        if greedy.low is not None and greedy.high is not None:
            ends = greedy.low, greedy.high
            whisker(axes, series, ends, y, color=INK, linewidth=1, **BUTT)
        for decoding, marks in MARKS.items():
            if (more := rate(runs, name, decoding)) is not None:
                axes.plot([more.value], [y], clip_on=False, **MARKED, **marks)
    edge: dict[str, Any] = {"transform": axes.get_yaxis_transform(), "ha": "right", "va": "center"}
    axes.text(0.995, place + 0.43, epoch_words(runs), fontsize=7, color="#444444", **edge)


def _caption(shown: Shown, at_levels: list[float | None]) -> str:
    sizes = []
    for name, bar in BARS.items():
        groups = [result.attacks[KIND].get(name) or {} for result in shown.results]
        if counts := [metrics["count"] for metrics in groups if metrics.get("count") is not None]:
            sizes.append(f"{bar.label}: {max(counts)}")
    return (
        "Share of sequences whose first token is followed by all the others when the model's most "
        f"likely token is taken again and again ({'; '.join(sizes)}). Whiskers: 95 % interval. "
        "Real text is predictable without memory, and random words that were not planted show "
        f"what chance gives. {caption(at_levels)}{shown.averaged(INTERVALS)}"
    )
