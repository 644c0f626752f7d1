"""Time of an epoch against ordinary training, wall-clock and CPU, as it was measured.

In Privacy Regularization (Figure 4) the paper breaks its bars down into CPU and GPU time of their
own hardware and code; ratios are comparable, seconds are not.
"""

from typing import Any

import numpy as np
from matplotlib.axes import Axes

from confide.report.figures import style
from confide.report.figures.authors import baseline
from confide.report.figures.frame import Drawn, Nothing, Shown, figure
from confide.report.figures.series import Series, mark, name_rows, row_heights, whisker
from confide.report.figures.style import FAINT, INK
from confide.report.results import Result
from confide.report.seeds import Estimate

CPU: dict[str, Any] = {"marker": "|", "markersize": 9, "markeredgewidth": 2, "linestyle": ""}


@figure(
    "Time of an epoch",
    empty="no run of this study has a non-private one to compare its time with",
)
def train_time(shown: Shown) -> Drawn:
    """One panel per corpus, a line per series: wall-clock above, CPU time below."""
    rows: dict[str, list[tuple[Series, Estimate]]] = {}
    for name, row in shown.series.items():
        for series in row:
            if (wall := ratio(series.at(shown.gamma), shown.results, "seconds")) is not None:
                rows.setdefault(name, []).append((series, wall))
    if not rows:
        raise Nothing
    heights = row_heights(rows.values())
    height = 2.1 + sum(0.9 + 0.36 * height for height in heights)
    drawn, grid = style.panels(style.WIDTH, height, len(rows), height_ratios=heights)
    for axes, (name, timed) in zip(grid[:, 0], rows.items(), strict=True):
        places = name_rows(axes, [series.label for series, _ in timed])
        for place, (series, wall) in zip(places, timed, strict=True):
            cpu = ratio(series.at(shown.gamma), shown.results, "cpu_seconds")
            _row(axes, place, series, wall=wall, cpu=cpu)
        axes.axvline(1, color=FAINT, linewidth=1, zorder=1)
        axes.set_title(name)
        axes.margins(x=0.12)
        style.plain_log(axes, "x")
        axes.set_xlabel("time of an epoch, over that of the non-private run (log scale)")
    caption = (
        "Median over epochs; whiskers: quartiles. An epoch is one pass over what a method trains "
        "on, without validation; methods with other batch sizes make another number of updates in "
        "it. Measured on the machine that trained, with whatever else ran there; CPU time is that "
        "of the process, on a GPU of its host alone. The first epoch of a run that was continued "
        "from a checkpoint is short."
    )
    legend = [
        style.dot("wall clock", 7, color=INK),
        style.entry("CPU time", color=INK, **CPU),
    ]
    return drawn, caption, legend


def ratio(runs: list[Result], results: list[Result], clock: str) -> Estimate | None:
    """Time of an epoch over the median of the non-private run: median and quartiles.

    They are over all epochs of the runs (seeds), each compared with its own non-private run.
    `clock`: a field of epochs. None: not measured.
    """
    ratios: list[float] = []
    for result in runs:
        start = baseline(result, results)
        if start is not None and (usual := _measured(start, clock)):
            ratios += [value / float(np.median(usual)) for value in _measured(result, clock)]
    return Estimate(*np.quantile(ratios, [0.5, 0.25, 0.75]).tolist()) if ratios else None


def _measured(result: Result, clock: str) -> list[float]:
    return [seconds for epoch in result.epochs if (seconds := getattr(epoch, clock))]


def _row(axes: Axes, place: int, series: Series, *, wall: Estimate, cpu: Estimate | None) -> None:
    y = place + 0.12
    mark(axes, series, wall, y)
    style.beside(axes, f"{wall.value:.2f}×", wall.high, y, (7, 1.5))
    if cpu is not None:
        whisker(axes, series, cpu.ends, place - 0.18, linewidth=1.3)
        axes.plot([cpu.value], [place - 0.18], color=series.look.color, **CPU)
