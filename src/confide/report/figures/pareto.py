"""Which models no other one beats: utility against each thing that is certified or measured, and
the frontier of the best.

A model is beaten where another one is at least as good on both axes, and better on one. What is
measured counts from the upper end of its null band: below that, nothing tells a model from one that
remembers nothing, so that luck is no merit.
"""

import math
from collections.abc import Callable
from typing import NamedTuple

from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.patches import Patch

from confide.report.figures.series import Series, averaged, chosen_gamma, corpora, group
from confide.report.figures.style import FAINT, INK, NULL, figure, legend, plain_log, say, title
from confide.report.results import Result
from confide.specs import ReportSpec

UTILITY = "ppl_public"
STEPS = {"color": INK, "linewidth": 1.1, "alpha": 0.75, "zorder": 1}
BEST = {"markersize": 10, "markeredgecolor": "black", "zorder": 4}


class Side(NamedTuple):
    """What utility is held against: smaller is better; `null`: attack and number whose band of
    chance is drawn.
    """

    title: str
    label: str
    value: Callable[[Result], float | None]
    null: tuple[str, str] | None = None


SIDES = (
    Side("certified, a caught secret", "ε, replace-one", lambda r: r.claim("secret_caught")),
    Side("certified, a missed secret", "ε, replace-one", lambda r: r.claim("secret_missed")),
    Side(
        "measured, canaries",
        "largest exposure (bits)",
        lambda r: r.metric("exposure", "max"),
        ("exposure", "null_max"),
    ),
    Side(
        "measured, membership",
        "AUC",
        lambda r: r.metric("membership", "auc"),
        ("membership", "auc_null"),
    ),
)


class Model(NamedTuple):
    """Final models of a row of the sample sheet: means over the seeds, ranges, and what of `y`
    counts.
    """

    series: Series
    x: float
    y: float
    xs: tuple[float, float]
    ys: tuple[float, float]
    counts: float


def pareto(spec: ReportSpec, results: list[Result]) -> Figure:
    """Two rows of two panels per corpus: certified above, measured below, each over the perplexity
    of public tokens.
    """
    names = corpora(results)
    gamma = chosen_gamma(spec.gamma, results)
    drawn = figure(10.6, 1.9 + 6.4 * len(names))
    grid = drawn.subplots(2 * len(names), 2, squeeze=False)
    for number, name in enumerate(names):
        own = [result for result in results if result.corpus == name]
        for axes, side in zip(grid[2 * number : 2 * number + 2].flat, SIDES, strict=True):
            _panel(axes, side, group(results, name), own, gamma)
            axes.set_title(f"{name}: {side.title}", loc="left")
    seeds = len({result.run.seed for result in results})
    caption = (
        "Final models; to the left and below is better. Horizontally test perplexity of public tokens: what is left for a"
        " user who is to learn no secrets. The line joins the models that no other one beats on both axes of a panel; "
        "they have a black edge. What is certified may hold on a condition (see the table). What is measured counts from "
        "the upper end of the grey band, which holds 95 % of what models score that never saw the secrets: within it all "
        "are alike. A frontier is of these models, attacks and this corpus; a certificate holds for all. "
        f"Methods that depend on the screening policy at simulated miss rate γ = {gamma:g}, or the nearest that was run. "
        f"{averaged(seeds)}"
    )
    title(drawn, f"Pareto frontiers — {spec.title}", caption)
    best = Line2D([], [], label="beaten by no other", marker="o", fillstyle="none", **STEPS | BEST)
    extra = [best, Patch(color=NULL, label="never seen, 95 %")]
    legend(
        drawn,
        [
            *(Line2D([], [], **one.marks(linestyle="", label=one.label)) for one in group(results)),
            *extra,
        ],
    )
    return drawn


def unbeaten(points: list[tuple[float, float]]) -> list[int]:
    """Places of the points (x, y) that no other point beats, smaller being better; by x, then y,
    then place.
    """
    order = sorted(range(len(points)), key=lambda place: (*points[place], place))
    found: list[int] = []
    for place in order:
        if (
            not found
            or points[place][1] < points[found[-1]][1]
            or points[place] == points[found[-1]]
        ):
            found.append(place)
    return found


def _panel(axes: Axes, side: Side, drawn: list[Series], own: list[Result], gamma: float) -> None:
    band = _band(own, side)
    models = [model for series in drawn if (model := _model(series, side, gamma, band)) is not None]
    axes.set_xlabel("test perplexity, public tokens (log scale)")
    axes.set_ylabel(side.label)
    if not models:
        say(axes, "not measured")
        return
    top = _infinity(axes, models)
    if band is not None:
        axes.axhspan(*band, color=NULL, zorder=0, linewidth=0)
    best = unbeaten([(model.x, model.counts) for model in models])
    for place, model in enumerate(models):
        color = model.series.look.color
        axes.plot(model.xs, [min(model.y, top)] * 2, color=color, linewidth=1.2)
        axes.plot([model.x] * 2, [min(end, top) for end in model.ys], color=color, linewidth=1.2)
        face = BEST if place in best else {"markersize": 7, "alpha": 0.75}
        axes.plot([model.x], [min(model.y, top)], **model.series.marks(linestyle="", **face))
    axes.step(
        [models[place].x for place in best],
        [min(models[place].y, top) for place in best],
        where="post",
        **STEPS,
    )
    axes.margins(x=0.16, y=0.12)
    plain_log(axes, "x")
    if side.null is None:
        axes.set_ylim(-0.06 * axes.get_ylim()[1])


def _model(
    series: Series, side: Side, gamma: float, band: tuple[float, float] | None
) -> Model | None:
    """None unless both numbers are known of all seeds."""
    runs = series.at(gamma)
    found = [(result.evaluation[UTILITY], side.value(result)) for result in runs]
    if any(None in pair for pair in found):
        return None
    xs, ys = zip(*found, strict=True)
    x = sum(xs) / len(xs)
    y = sum(ys) / len(ys)
    return Model(
        series, x, y, (min(xs), max(xs)), (min(ys), max(ys)), max(y, band[1]) if band else y
    )


def _band(own: list[Result], side: Side) -> tuple[float, float] | None:
    """The widest of the runs' bands of chance."""
    if side.null is None:
        return None
    kind, name = side.null
    ends = [
        (result.metric(kind, f"{name}_low"), result.metric(kind, f"{name}_high")) for result in own
    ]
    known = [pair for pair in ends if None not in pair]
    return (min(low for low, _ in known), max(high for _, high in known)) if known else None


def _infinity(axes: Axes, models: list[Model]) -> float:
    """Mark where infinity stands, above a gap, and say where; infinity itself where nothing is
    infinite.
    """
    finite = [model.y for model in models if math.isfinite(model.y)]
    if len(finite) == len(models):
        return math.inf
    highest = max(finite, default=0.0) or 1.0
    top = 1.5 * highest
    ticks = sorted({round(value, 1) for value in (0.0, *finite)})
    axes.set_yticks([*ticks, top], [*(f"{tick:g}" for tick in ticks), "∞"])
    axes.axhline(1.25 * highest, color=FAINT, linewidth=0.8, linestyle=(0, (1, 3)))
    return top
