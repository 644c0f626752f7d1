"""Time of an epoch against ordinary training (Privacy Regularization, Figure 4): as it was
measured, wall-clock and CPU.

The paper breaks its bars down into CPU and GPU time of their own hardware and code; ratios are
comparable, seconds are not.
"""

from collections.abc import Callable
from typing import NamedTuple

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D

from confide.report.figures.authors import baseline
from confide.report.figures.series import chosen_gamma, corpora, group
from confide.report.figures.style import FAINT, INK, blank, figure, legend, plain_log, title
from confide.report.results import Epoch, Result
from confide.specs import ReportSpec

CLOCKS: dict[str, Callable[[Epoch], float | None]] = {
    "seconds": lambda epoch: epoch.seconds,
    "cpu_seconds": lambda epoch: epoch.cpu_seconds,
}


class Ratio(NamedTuple):
    """Time of an epoch over the median epoch of the non-private run: median and quartiles over the
    epochs.
    """

    median: float
    low: float
    high: float


def train_time(spec: ReportSpec, results: list[Result]) -> Figure:
    """One panel per corpus, a line per row of the sample sheet: wall-clock above, CPU time
    below.
    """
    gamma = chosen_gamma(spec.gamma, results)
    rows = {}
    for name in corpora(results):
        series = [
            one
            for one in group(results, name)
            if ratio(one.at(gamma), results, "seconds") is not None
        ]
        rows |= {name: series} if series else {}
    if not rows:
        return blank("no run of this study has a non-private one to compare its time with")
    drawn = figure(10.8, 2.1 + sum(0.9 + 0.36 * max(2, len(series)) for series in rows.values()))
    heights = [max(2, len(series)) for series in rows.values()]
    grid = drawn.subplots(len(rows), 1, squeeze=False, gridspec_kw={"height_ratios": heights})
    for (axes,), (name, series) in zip(grid, rows.items(), strict=True):
        places = range(len(series), 0, -1)
        for place, own in zip(places, series, strict=True):
            _row(
                axes, place, [ratio(own.at(gamma), results, clock) for clock in CLOCKS], own.marks()
            )
        axes.axvline(1, color=FAINT, linewidth=1, zorder=1)
        axes.set_yticks(list(places), [own.label for own in series])
        axes.set_ylim(0.4, len(series) + 0.6)
        axes.set_title(name, loc="left")
        axes.margins(x=0.12)
        plain_log(axes, "x")
        axes.set_xlabel("time of an epoch, over that of the non-private run (log scale)")
    words = (
        "Median over epochs; whiskers: quartiles. An epoch is one pass over what a method trains on, without validation; "
        "methods with other batch sizes make another number of updates in it. Measured on the machine that trained, with "
        "whatever else ran there; CPU time is that of the process, on a GPU of its host alone. The first epoch of a run that "
        "was continued from a checkpoint is short."
    )
    title(drawn, f"Time of an epoch — {spec.title}", words)
    wall = Line2D([], [], color=INK, marker="o", markersize=7, linestyle="", label="wall clock")
    legend(
        drawn,
        [
            wall,
            Line2D(
                [],
                [],
                color=INK,
                marker="|",
                markersize=9,
                markeredgewidth=2,
                linestyle="",
                label="CPU time",
            ),
        ],
    )
    return drawn


def ratio(runs: list[Result], results: list[Result], clock: str) -> Ratio | None:
    """Time of the epochs of some runs (seeds), each over the median of its non-private run; None:
    not measured.
    """
    found: list[float] = []
    for result in runs:
        start = baseline(result, results)
        spent, usual = (_measured(one, clock) for one in (result, start))
        found += [value / float(np.median(usual)) for value in spent] if usual else []
    return Ratio(*np.quantile(found, [0.5, 0.25, 0.75]).tolist()) if found else None


def _measured(result: Result | None, clock: str) -> list[float]:
    values = [CLOCKS[clock](epoch) for epoch in (result.epochs if result is not None else ())]
    return [value for value in values if value]


def _row(axes: Axes, place: int, ratios: list[Ratio | None], marks: dict) -> None:
    wall, cpu = ratios
    color = marks["color"]
    axes.plot([wall.low, wall.high], [place + 0.12] * 2, color=color, linewidth=1.3)
    axes.plot([wall.median], [place + 0.12], **marks | {"linestyle": "", "markersize": 7})
    words = (7, 1.5)
    axes.annotate(
        f"{wall.median:.2f}×",
        (wall.high, place + 0.12),
        words,
        textcoords="offset points",
        fontsize=7.8,
        color=INK,
    )
    if cpu is not None:
        axes.plot([cpu.low, cpu.high], [place - 0.18] * 2, color=color, linewidth=1.3)
        axes.plot(
            [cpu.median],
            [place - 0.18],
            color=color,
            marker="|",
            markersize=9,
            markeredgewidth=2,
            linestyle="",
        )
