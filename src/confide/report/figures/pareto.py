"""Which models no other one beats: utility against each thing that is certified or measured.

A model is beaten where another one is at least as good on both axes, and better on one; the rest
are the frontier. What is measured counts from the upper end of its null band: below that, nothing
tells a model from one that remembers nothing, so that luck is no merit.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from matplotlib.axes import Axes

from confide.certify.facts import SECRET_CAUGHT, SECRET_MISSED
from confide.report.figures import style
from confide.report.figures.frame import Drawn, Shown, figure
from confide.report.figures.series import Series, Value, each_seed, whisker
from confide.report.figures.style import FAINT, INK, NULL
from confide.report.results import Result
from confide.report.seeds import Estimate, over_seeds

UTILITY = "ppl_public"
STEPS: dict[str, Any] = {"color": INK, "linewidth": 1.1, "alpha": 0.75, "zorder": 1}
BEATEN: dict[str, Any] = {"markersize": 6, "alpha": 0.85}
NEAR = 1.035  # ratio of perplexities below which markers would touch
BEST: dict[str, Any] = {"markersize": 9, "markeredgecolor": "black", "zorder": 4}


@dataclass(frozen=True, kw_only=True)
class Side:
    """What utility is held against: smaller is better.

    `null`: attack and number whose band of chance is drawn.
    """

    title: str
    label: str
    value: Value
    null: tuple[str, str] | None = None


SIDES = (
    Side(
        title="certified, a caught secret",
        label="ε, replace-one",
        value=lambda result: result.claim(SECRET_CAUGHT),
    ),
    Side(
        title="certified, a missed secret",
        label="ε, replace-one",
        value=lambda result: result.claim(SECRET_MISSED),
    ),
    Side(
        title="measured, canaries",
        label="largest exposure (bits)",
        value=lambda result: result.metric("exposure", "max"),
        null=("exposure", "null_max"),
    ),
    Side(
        title="measured, membership",
        label="AUC",
        value=lambda result: result.metric("membership", "auc"),
        null=("membership", "auc_null"),
    ),
)


@dataclass(frozen=True, kw_only=True)
class Model:
    """Final models of a row of the sample sheet, over the seeds; `counts`: what of y does."""

    series: Series
    x: Estimate
    y: Estimate
    counts: float


@figure("Pareto frontiers")
def pareto(shown: Shown) -> Drawn:
    """Two rows of panels per corpus: certified and measured, over perplexity of public tokens."""
    rows = shown.series
    drawn, grid = style.panels(style.WIDTH, 0.3 + 6.0 * len(rows), 2 * len(rows), 2)
    for line, (name, row) in zip(grid.reshape(-1, len(SIDES)), rows.items(), strict=True):
        for axes, side in zip(line, SIDES, strict=True):
            _panel(axes, side, row, shown.corpora[name], shown.gamma)
            axes.set_title(f"{name}: {side.title}")
    caption = (
        "Final models; to the left and below is better. Horizontally test perplexity of public "
        "tokens: what is left for a user who is to learn no secrets. The line joins the models "
        "that no other one beats on both axes of a panel; they have a black edge. What is "
        "certified may hold on a condition (see the table); markers of one level that would touch "
        "are lifted. What is measured counts from the upper "
        "end of the grey band, which holds 95 % of what models score that never saw the secrets: "
        "within it all are alike. A frontier is of these models, attacks and this corpus; a "
        "certificate holds for all. Methods that depend on the screening policy at simulated miss "
        f"rate γ = {shown.gamma:g}, or the nearest that was run. {shown.averaged()}"
        f"{shown.estimated()}"
    )
    best = style.entry("beaten by no other", marker="o", fillstyle="none", **STEPS | BEST)
    legend = [*shown.handles(linestyle=""), best, style.band("never seen, 95 %")]
    return drawn, caption, legend


def unbeaten(points: Sequence[tuple[float, float]]) -> list[int]:
    """Places of the points (x, y) that no other beats, smaller being better; by x, y, place."""
    best: list[int] = []
    for place in sorted(range(len(points)), key=lambda place: (*points[place], place)):
        last = points[best[-1]] if best else None
        if last is None or points[place][1] < last[1] or points[place] == last:
            best.append(place)
    return best


def _panel(
    axes: Axes, side: Side, drawn: list[Series], results: list[Result], gamma: float
) -> None:
    band = _band(results, side)
    floor = band[1] if band else -math.inf
    models = [model for series in drawn if (model := _model(series, side, gamma, floor))]
    axes.set_xlabel("test perplexity, public tokens")
    axes.set_ylabel(side.label)
    if not models:
        style.say(axes, "not measured")
        return
    top = _infinity(axes, models)
    if band is not None:
        axes.axhspan(*band, color=NULL, zorder=0, linewidth=0)
    # what is certified alike lies on one level: there alone a marker may hide another
    level = side.null is None
    lifted = lifts(models, top) if level else [0.0] * len(models)
    best = unbeaten([(model.x.value, model.counts) for model in models])
    for place, model in enumerate(models):
        y, low, high = (min(end, top) for end in model.y.numbers)
        whisker(axes, model.series, model.x.ends, y + lifted[place], linewidth=1.2)
        whisker(axes, model.series, model.x.value, (low, high), linewidth=1.2)
        capped = tuple(min(value, top) for value in model.y.each)
        each_seed(axes, model.series, model.x, model.y._replace(each=capped))
        face = BEST if place in best else BEATEN
        axes.plot([model.x.value], [y + lifted[place]], **model.series.marks(linestyle="", **face))
    corners = [models[place] for place in best]
    heights = [min(model.y.value, top) for model in corners]
    axes.step([model.x.value for model in corners], heights, where="post", **STEPS)
    axes.margins(x=0.16, y=0.12)
    style.plain_log(axes, "x")
    if side.null is None:
        axes.set_ylim(-0.06 * axes.get_ylim()[1])


def lifts(models: Sequence[Model], top: float) -> list[float]:
    """How far to lift each marker of one level, so that none lies on one of nearly the same x.

    A marker that is near others to its left goes above them, in steps of a thirtieth of the axis.
    """
    highest = max(min(model.y.value, top) for model in models) or 1.0
    lifted = [0.0] * len(models)
    placed: dict[float, list[tuple[float, int]]] = {}  # by level: x, and steps lifted
    for place in sorted(range(len(models)), key=lambda place: (models[place].x.value, place)):
        x = models[place].x.value
        others = placed.setdefault(round(models[place].y.value, 2), [])
        near = {steps for other, steps in others if x < NEAR * other}
        steps = next(steps for steps in range(len(models) + 1) if steps not in near)
        others.append((x, steps))
        lifted[place] = steps * highest / 30
    return lifted


def _model(series: Series, side: Side, gamma: float, floor: float) -> Model | None:
    """None unless both numbers are known of all seeds; `floor`: what y counts as at least."""
    runs = series.at(gamma)
    xs = [result.evaluation[UTILITY] for result in runs]
    ys = [value for result in runs if (value := side.value(result)) is not None]
    if None in xs or len(ys) < len(runs):
        return None
    y = over_seeds(ys)
    return Model(series=series, x=over_seeds(xs), y=y, counts=max(y.value, floor))


def _band(results: list[Result], side: Side) -> tuple[float, float] | None:
    """The widest of the runs' bands of chance."""
    if side.null is None:
        return None
    kind, name = side.null
    lows, highs = (
        [end for result in results if (end := result.metric(kind, f"{name}_{which}")) is not None]
        for which in ("low", "high")
    )
    return (min(lows), max(highs)) if lows and highs else None


def _infinity(axes: Axes, models: list[Model]) -> float:
    """Mark where infinity stands, above a gap, and say where.

    Infinity itself where nothing is infinite.
    """
    finite = [model.y.value for model in models if math.isfinite(model.y.value)]
    if len(finite) == len(models):
        return math.inf
    highest = max(finite, default=0.0) or 1.0
    top = 1.5 * highest
    ticks = sorted({round(value, 1) for value in (0.0, *finite)})
    axes.set_yticks([*ticks, top], [*(f"{tick:g}" for tick in ticks), "∞"])
    axes.axhline(1.25 * highest, color=FAINT, linewidth=0.8, linestyle=(0, (1, 3)))
    return top
