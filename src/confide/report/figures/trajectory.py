"""Attacks against utility, epoch by epoch (Selective-DP Figures 3b, 3c, 4b, 4c, 6, 8).

A method may look safe for having learned little; at the same validation perplexity the comparison
is fair. Every panel carries what a model that remembers nothing scores, with its 95 % band at the
sizes of the attack.
"""

import math
from typing import Any, NamedTuple

from matplotlib.artist import Artist
from matplotlib.axes import Axes

from confide.report.figures import style
from confide.report.figures.frame import Drawn, Shown, figure
from confide.report.figures.leakage import sides
from confide.report.figures.series import Series, group
from confide.report.figures.style import DARK, DOTTED, FAINT, INK, NULL
from confide.report.results import Json, Result

BLIND: dict[str, Any] = {"color": DARK, "linewidth": 1.3, "linestyle": DOTTED}


class Panel(NamedTuple):
    """A number of an attack, and its words."""

    kind: str
    name: str
    title: str
    axis: str


PANELS = (
    Panel("exposure", "mean", "mean canary exposure", "exposure (bits)"),
    Panel("membership", "acc_balanced", "membership, balanced accuracy", "balanced accuracy"),
    Panel("membership", "auc", "membership, AUC", "area under the ROC curve (AUC)"),
)


def _measured(result: Result, panel: Panel) -> bool:
    return bool(result.along(panel.kind, panel.name))


@figure(
    "Attacks along training",
    lambda result: any(_measured(result, panel) for panel in PANELS),
    "no run of this study was attacked after its epochs",
)
def trajectory(shown: Shown) -> Drawn:
    """One row per corpus; a panel for each number that any run has after its epochs."""
    panels = [
        panel for panel in PANELS if any(_measured(result, panel) for result in shown.results)
    ]
    rows = shown.corpora
    drawn, grid = style.panels(style.WIDTH, 0.3 + 2.8 * len(rows), len(rows), len(panels))
    for line, (name, runs) in zip(grid, rows.items(), strict=True):
        for axes, panel in zip(line, panels, strict=True):
            plottable = [result for result in runs if _measured(result, panel)]
            axes.set_visible(bool(plottable))
            if plottable:
                _panel(axes, shown.series[name], plottable, panel, shown.gamma)
                axes.set_title(f"{name}: {panel.title}")
    kinds = {panel.kind for panel in panels}
    return drawn, _caption(shown, kinds), [*_handles(shown), *_extra(kinds)]


def path(runs: list[Result], panel: Panel) -> list[tuple[float, float]]:
    """Mean validation perplexity and mean of the attack's number over runs, epoch by epoch.

    Epochs that lack either number in any of the runs are left out.
    """
    each = [dict(_points(result, panel.kind, panel.name)) for result in runs]
    epochs = sorted(set.intersection(*map(set, each)))
    columns = [zip(*(points[epoch] for points in each), strict=True) for epoch in epochs]
    return [(sum(ppl) / len(each), sum(values) / len(each)) for ppl, values in columns]


def _points(result: Result, kind: str, name: str) -> list[tuple[int, tuple[float, Any]]]:
    """Epoch, then validation perplexity and a number of an attack, where both are known."""
    ppl = {epoch.epoch: epoch.valid_ppl for epoch in result.epochs}
    along = result.along(kind, name)
    return [
        (epoch, (perplexity, value))
        for epoch, value in along
        if (perplexity := ppl.get(epoch)) is not None
    ]


def _panel(
    axes: Axes, drawn: list[Series], results: list[Result], panel: Panel, gamma: float
) -> None:
    _chance(axes, _numbers(results[0], panel.kind), panel)
    for series in drawn:
        for each in series.gammas:
            points = path(series.at(each), panel)
            if not points:
                continue
            marks = _marks(series, each, gamma)
            last = {"linestyle": "", "markeredgecolor": "black", "zorder": 4}
            x, y = zip(*points, strict=True)
            axes.plot(x, y, **marks | {"markersize": 3.2, "linewidth": 0.9})
            axes.plot(x[-1:], y[-1:], **marks | last)
            if panel.name == "mean":
                _canaries(axes, series.at(each), marks["color"])
    style.plain_log(axes, "x")
    axes.set_xlabel("validation perplexity (log scale)")
    axes.set_ylabel(panel.axis)
    bottom, top = axes.get_ylim()
    if panel.kind == "membership":
        axes.set_ylim(min(bottom, 0.45), max(min(top, 1.02), 0.6))
    else:
        axes.set_ylim(-0.6, top)


def _marks(series: Series, each: float, gamma: float) -> dict[str, Any]:
    """Line2D properties of a series at one gamma.

    The lower the miss rate, the paler, and the smaller the final model.
    """
    place = series.gammas.index(each) - series.gammas.index(series.nearest(gamma))
    if place == 0:
        return series.marks(markersize=10)
    color = style.shade(series.look.color, 0.7 * place / len(series.gammas))
    return series.marks(markersize=max(5.0, 10 + 1.5 * place), color=color)


def _canaries(axes: Axes, runs: list[Result], color: str) -> None:
    """Every canary of every run after every epoch, as a faint dot."""
    dots = [
        (ppl, bits)
        for result in runs
        for _, (ppl, exposures) in _points(result, "exposure", "exposures")
        for bits in exposures
    ]
    if dots:
        x, y = zip(*dots, strict=True)
        axes.scatter(x, y, s=5, color=color, alpha=0.25, linewidths=0, zorder=1)


def _chance(axes: Axes, attack: Json, panel: Panel) -> None:
    """What is scored without memory: the mean, its band, the baseline; above, the ceiling."""
    if panel.kind == "exposure":
        middle = attack["null_mean"]
        band = f"null_{panel.name}"
    else:
        middle = 0.5
        band = f"{panel.name}_null"
    axes.axhspan(attack[f"{band}_low"], attack[f"{band}_high"], color=NULL, zorder=0, linewidth=0)
    axes.axhline(middle, color=FAINT, linewidth=1, zorder=1)
    if panel.kind == "exposure":
        ceiling = math.log2(attack["candidates"])
        axes.axhline(ceiling, color=INK, linewidth=1, linestyle=":", zorder=1)
    elif (blind := attack.get(f"blind_ngram_{panel.name}")) is not None:
        axes.axhline(blind, zorder=1, **BLIND)


def _numbers(result: Result, kind: str) -> Json:
    """What an attack says of itself: the same after every epoch that it could tell."""
    numbers: Json = {}
    for attacks in result.trajectory.values():
        numbers |= attacks.get(kind, {})
    return numbers


def _handles(shown: Shown) -> list[Artist]:
    handles: list[Artist] = []
    for series in group(shown.results):
        several = len(series.gammas) > 1
        for each in series.gammas:
            label = f"{series.label}, γ = {each:g}" if several else series.label
            marks = _marks(series, each, shown.gamma) | {"markersize": 6}
            handles.append(style.entry(label, **marks))
    return handles


def _extra(kinds: set[str]) -> list[Artist]:
    """Legend of what is no series."""
    entries: list[Artist] = [
        style.dot("after each epoch", 3.2, linestyle="-", linewidth=0.9),
        style.dot("final model", 9, markeredgecolor="black"),
    ]
    if "exposure" in kinds:
        entries.append(style.dot("one canary", 2.4, alpha=0.5))
        entries.append(style.entry("fully extracted", color=INK, linestyle=":", linewidth=1.2))
    if "membership" in kinds:
        entries.append(style.entry("blind baseline\n(character n-grams)", **BLIND))
    return [*entries, style.band("chance, 95 %")]


def _caption(shown: Shown, kinds: set[str]) -> str:
    def each(kind: str, name: str) -> str:
        attacks = (_numbers(result, kind) for result in shown.results)
        return ", ".join(
            dict.fromkeys(str(numbers[name]) for numbers in attacks if name in numbers)
        )

    text = (
        "One point per epoch, joined in the order of training; large: the final model, darker and "
        "larger where its policy misses a larger share γ of the secrets. Lower and further left is "
        "better. "
    )
    if "exposure" in kinds:
        text += (
            "Exposure = log2|R| - log2 rank of a canary's digits among all |R| candidates: mean of "
            f"{each('exposure', 'count')} canaries planted {each('exposure', 'copies')} times "
            "each, by chance 1.44 bits; the policy misses a share γ of them."
            f"{shown.estimated()} "
        )
    if "membership" in kinds:
        attacks = [attack for result in shown.results if (attack := _numbers(result, "membership"))]
        text += (
            f"Membership: {each('membership', 'members')} member and as many non-member "
            f"{each('membership', 'label')} secrets by perplexity; {sides(attacks)}. Only what "
            "exceeds the blind baseline, which never sees the model, is memory. "
        )
    return (
        f"{text}Grey: 95 % of what models that know nothing score. "
        f"{shown.averaged('Perplexity and score are means over {} seeds.')}"
    )
