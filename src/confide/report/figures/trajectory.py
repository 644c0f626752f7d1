"""Attacks against utility, epoch by epoch (Selective-DP Figures 3b, 3c, 4b, 4c, 6, 8): what is
remembered at which perplexity.

A method may look safe for having learned little; at the same validation perplexity the comparison
is fair. Every panel carries what a model that remembers nothing scores, with its 95 % band at the
sizes of the attack.
"""

import math
from typing import Any, NamedTuple

from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.patches import Patch

from confide.report.figures.leakage import asked
from confide.report.figures.series import Series, averaged, chosen_gamma, corpora, group
from confide.report.figures.style import (
    FAINT,
    INK,
    NULL,
    blank,
    figure,
    legend,
    plain_log,
    shade,
    title,
)
from confide.report.results import Json, Result
from confide.specs import ReportSpec

BLIND = (0, (1, 1.5))


class Panel(NamedTuple):
    """A number of an attack, and its words."""

    kind: str
    name: str
    words: str
    axis: str


PANELS = (
    Panel("exposure", "mean", "mean canary exposure", "exposure (bits)"),
    Panel("membership", "acc_balanced", "membership, balanced accuracy", "balanced accuracy"),
    Panel("membership", "auc", "membership, AUC", "area under the ROC curve (AUC)"),
)


def trajectory(spec: ReportSpec, results: list[Result]) -> Figure:
    """One row per corpus; a panel for each number that any run of the study has after its
    epochs.
    """
    panels = [
        panel for panel in PANELS if any(result.along(panel.kind, panel.name) for result in results)
    ]
    known = [
        result
        for result in results
        if any(result.along(panel.kind, panel.name) for panel in panels)
    ]
    names = corpora(known)
    gamma = chosen_gamma(spec.gamma, known)
    if not names:
        return blank("no run of this study was attacked after its epochs")
    drawn = figure(3.0 + 3.6 * max(2, len(panels)), 1.9 + 3.4 * len(names))
    for line, name in zip(
        drawn.subplots(len(names), len(panels), squeeze=False), names, strict=True
    ):
        for axes, panel in zip(line, panels, strict=True):
            own = [
                result
                for result in known
                if result.corpus == name and result.along(panel.kind, panel.name)
            ]
            axes.set_visible(bool(own))
            if own:
                _panel(axes, group(known, name), own, panel, gamma)
                axes.set_title(f"{name}: {panel.words}", loc="left")
    title(drawn, f"Attacks along training — {spec.title}", _caption(known, panels, gamma))
    legend(drawn, [*_handles(known, gamma), *_extra(panels)])
    return drawn


def path(runs: list[Result], panel: Panel) -> list[tuple[float, float]]:
    """Mean validation perplexity and mean of the attack's number over the runs, for each epoch
    where all have both.
    """
    found: list[dict[int, tuple[float, float]]] = []
    for result in runs:
        ppl = {
            epoch.epoch: epoch.valid_ppl for epoch in result.epochs if epoch.valid_ppl is not None
        }
        values = result.along(panel.kind, panel.name)
        found.append({epoch: (ppl[epoch], value) for epoch, value in values if epoch in ppl})
    epochs = sorted(set.intersection(*(set(one) for one in found)))
    return [
        tuple(sum(one[epoch][side] for one in found) / len(found) for side in (0, 1))
        for epoch in epochs
    ]


def _panel(axes: Axes, drawn: list[Series], own: list[Result], panel: Panel, gamma: float) -> None:
    _chance(axes, own[0], panel)
    for series in drawn:
        for each in series.gammas:
            points = path(series.at(each), panel)
            if not points:
                continue
            marks = _marks(series, each, gamma)
            x, y = zip(*points, strict=True)
            axes.plot(x, y, **marks | {"markersize": 3.2, "linewidth": 0.9})
            axes.plot(
                x[-1:], y[-1:], **marks | {"linestyle": "", "markeredgecolor": "black", "zorder": 4}
            )
            if panel.name == "mean":
                _canaries(axes, series.at(each), marks["color"])
    plain_log(axes, "x")
    axes.set_xlabel("validation perplexity (log scale)")
    axes.set_ylabel(panel.axis)
    bottom, top = axes.get_ylim()
    if panel.kind == "membership":
        axes.set_ylim(min(bottom, 0.45), max(min(top, 1.02), 0.6))
    else:
        axes.set_ylim(-0.6, top)


def _marks(series: Series, each: float, gamma: float) -> dict[str, Any]:
    """Line2D properties of a series at one gamma: the lower the miss rate, the paler, and the
    smaller the final model.
    """
    place = series.gammas.index(each) - series.gammas.index(series.at(gamma)[0].run.gamma)
    if place == 0:
        return series.marks(markersize=10)
    return series.marks(
        markersize=max(5.0, 10 + 1.5 * place),
        color=shade(series.look.color, 0.7 * place / len(series.gammas)),
    )


def _canaries(axes: Axes, runs: list[Result], color: str) -> None:
    """Every canary of every run after every epoch, as a faint dot."""
    points: list[tuple[float, float]] = []
    for result in runs:
        ppl = {
            epoch.epoch: epoch.valid_ppl for epoch in result.epochs if epoch.valid_ppl is not None
        }
        points += [
            (ppl[epoch], one)
            for epoch, found in result.along("exposure", "exposures")
            if epoch in ppl
            for one in found
        ]
    if points:
        axes.scatter(
            *zip(*points, strict=True), s=5, color=color, alpha=0.25, linewidths=0, zorder=1
        )


def _chance(axes: Axes, result: Result, panel: Panel) -> None:
    """What is scored without memory: the mean, its band, and the baseline that never sees the
    model; above, the ceiling.
    """
    found = _numbers(result, panel.kind)
    axes.axhspan(
        found[_null(panel, "_low")], found[_null(panel, "_high")], color=NULL, zorder=0, linewidth=0
    )
    axes.axhline(
        found["null_mean"] if panel.kind == "exposure" else 0.5, color=FAINT, linewidth=1, zorder=1
    )
    if panel.kind == "exposure":
        axes.axhline(
            math.log2(found["candidates"]), color=INK, linewidth=1, linestyle=":", zorder=1
        )
    elif (blind := found.get(f"blind_ngram_{panel.name}")) is not None:
        axes.axhline(blind, color="#555555", linewidth=1.3, linestyle=BLIND, zorder=1)


def _numbers(result: Result, kind: str) -> Json:
    """What an attack says of itself: the same after every epoch, but for epochs that it could not
    tell.
    """
    found: Json = {}
    for attacks in result.trajectory.values():
        found |= attacks.get(kind, {})
    return found


def _null(panel: Panel, end: str) -> str:
    return f"null_{panel.name}{end}" if panel.kind == "exposure" else f"{panel.name}_null{end}"


def _handles(known: list[Result], gamma: float) -> list[Line2D]:
    found = []
    for series in group(known):
        several = len(series.gammas) > 1
        for each in series.gammas:
            label = f"{series.label}, γ = {each:g}" if several else series.label
            found.append(
                Line2D([], [], **_marks(series, each, gamma) | {"markersize": 6, "label": label})
            )
    return found


def _extra(panels: list[Panel]) -> list[Any]:
    """Legend of what is no series."""
    found: list[Any] = [
        Line2D(
            [], [], color=FAINT, marker="o", markersize=3.2, linewidth=0.9, label="after each epoch"
        ),
        Line2D(
            [],
            [],
            color=FAINT,
            marker="o",
            markersize=9,
            linestyle="",
            markeredgecolor="black",
            label="final model",
        ),
    ]
    kinds = {panel.kind for panel in panels}
    if "exposure" in kinds:
        found.append(
            Line2D(
                [],
                [],
                color=FAINT,
                marker="o",
                markersize=2.4,
                linestyle="",
                alpha=0.5,
                label="one canary",
            )
        )
        found.append(
            Line2D([], [], color=INK, linestyle=":", linewidth=1.2, label="fully extracted")
        )
    if "membership" in kinds:
        found.append(
            Line2D(
                [],
                [],
                color="#555555",
                linestyle=BLIND,
                linewidth=1.3,
                label="blind baseline\n(character n-grams)",
            )
        )
    return [*found, Patch(color=NULL, label="chance, 95 %")]


def _caption(known: list[Result], panels: list[Panel], gamma: float) -> str:
    def each(kind: str, name: str) -> str:
        return ", ".join(
            dict.fromkeys(
                str(attack[name]) for result in known if name in (attack := _numbers(result, kind))
            )
        )

    words = [
        "One point per epoch, joined in the order of training; large: the final model, darker and larger where its policy "
        "misses a larger share γ of the secrets. Lower and further left is better. "
    ]
    kinds = {panel.kind for panel in panels}
    if "exposure" in kinds:
        words.append(
            f"Exposure = log2|R| - log2 rank of a canary's digits among all |R| candidates: mean of "
            f"{each('exposure', 'count')} canaries planted {each('exposure', 'copies')} times each, by chance 1.44 bits; the "
            "policy misses a share γ of them. "
        )
    if "membership" in kinds:
        attacks = [attack for result in known if (attack := _numbers(result, "membership"))]
        words.append(
            f"Membership: {each('membership', 'members')} member and as many non-member {each('membership', 'label')} secrets "
            f"by perplexity; {asked(attacks)}. Only what exceeds the blind baseline, which never sees the model, is memory. "
        )
    seeds = len({result.run.seed for result in known})
    words.append("Grey: 95 % of what models that know nothing score. ")
    words.append(averaged(seeds, "Perplexity and score are means over {} seeds."))
    return "".join(words)
