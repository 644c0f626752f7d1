"""Attacks against the miss rate gamma of the policy: exposure (CRT Figure 3), membership (4, 5).

Where all models share one gamma, each has a row instead. Every panel carries the score of a model
that remembers nothing, with its 95 % band at the sizes of the attack.
"""

import math
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import partial
from typing import Any

from matplotlib.artist import Artist
from matplotlib.axes import Axes

from confide.report.figures import style
from confide.report.figures.frame import SEEDS, Drawn, Shown, figure, has_number
from confide.report.figures.series import (
    BUTT,
    Series,
    Value,
    against_gamma,
    mark,
    name_rows,
    shifts,
)
from confide.report.figures.style import DARK, DOTTED, FAINT, INK, NULL
from confide.report.results import Json, Result

BLIND: dict[str, Any] = {"color": DARK, "linewidth": 1.3, "linestyle": DOTTED}
GUESS: dict[str, Any] = {"color": FAINT, "linewidth": 1}
ALL: dict[str, Any] = {"color": INK, "linewidth": 1, "linestyle": ":"}
FAINT_DOTS: dict[str, Any] = {"s": 7, "alpha": 0.3, "linewidths": 0}


@dataclass(frozen=True, kw_only=True)
class Panel:
    """What is measured, and what it would be by chance."""

    title: str
    label: str
    value: Value
    band: tuple[float, float]
    lines: list[tuple[float, dict[str, Any]]]  # level, and how it is drawn
    limits: Callable[[float, float], tuple[float, float]]  # of the axis, from where the data end
    bounds: tuple[Value, Value] | None = None
    dots: Callable[[Result], list[float]] | None = None  # what the value is a mean of


@figure("Canary exposure", has_number("exposure", "mean"))
def exposure(shown: Shown) -> Drawn:
    """Mean (with all canaries) and maximum exposure in bits, over gamma; one row per corpus."""
    drawn = _grid(
        shown, lambda results: [_exposure(results[0], "mean"), _exposure(results[0], "max")]
    )
    caption = (
        "Exposure = log2|R| - log2 rank of a canary's digits among all |R| candidates; "
        f"{_listed(shown, 'exposure', 'count')} canaries per run, each planted "
        f"{_listed(shown, 'exposure', 'copies')} times. Grey: 95 % band of canaries that the model "
        "never saw (their exposure is exponential with mean 1/ln 2 = 1.44 bits); 0 is not what "
        "chance gives: the thin line is. The policy is made to miss a share γ of all secrets, "
        "canaries among them"
        f"{_throughout(shown)}. {shown.averaged()}{shown.estimated()}"
    )
    legend = [
        *_handles(shown),
        style.dot("one canary of one run", 3),
        style.band("never seen, 95 %"),
        style.entry("fully extracted", **ALL),
    ]
    return drawn, caption, legend


@figure("Membership inference", has_number("membership", "auc"))
def membership(shown: Shown) -> Drawn:
    """Balanced accuracy and AUC of single secrets over gamma."""
    return _membership(shown, "")


@figure("Group membership inference", has_number("membership", "group_auc"))
def group_membership(shown: Shown) -> Drawn:
    """Balanced accuracy and AUC of groups of secrets over gamma."""
    return _membership(shown, "group_")


def _membership(shown: Shown, prefix: str) -> Drawn:
    values_of = partial(_listed, shown, "membership")
    whom = f"{values_of('label')} secrets"
    if prefix:
        whom = f"disjoint groups of {values_of('group')} {whom} (scores summed)"
    seeds = shown.averaged(SEEDS, alone="One seed (n = 1); whiskers: 95 % interval.")
    caption = (
        f"{values_of('groups' if prefix else 'members')} member and as many non-member {whom}; "
        f"{sides(result.attacks['membership'] for result in shown.results)}. Balanced accuracy: "
        "the half with the lower perplexity is called member. "
        f"{seeds} Grey band: "
        "where scores that know nothing fall in 95 % of cases at this size. Only what exceeds the "
        "blind baseline, which never sees the model, is evidence of memorisation"
        f"{_throughout(shown)}."
    )
    blind = style.entry("blind baseline\n(character n-grams)", **BLIND)
    legend = [*_handles(shown), blind, style.band("guessing, 95 %")]
    return _grid(shown, partial(_scores, prefix=prefix)), caption, legend


def sides(attacks: Iterable[Json]) -> str:
    """Who is asked about in some membership attacks, for captions."""
    others = {attack.get("non_members_from", "held_out") for attack in attacks}
    phrases = {
        "held_out": "members occur in train only, non-members in held-out text only",
        "random": (
            "non-members are random strings of spaces and digits, which their form tells apart "
            "(as published)"
        ),
    }
    return "; or ".join(phrases[name] for name in sorted(others))


# What is drawn
# --------------------------------------------------------------------------------------------------


def _exposure(first: Result, statistic: str) -> Panel:
    """A panel at the sizes of a first run's attack."""
    low, high, middle = (
        first.metric("exposure", f"null_{statistic}{end}") for end in ("_low", "_high", "")
    )
    ceiling = math.log2(first.metric("exposure", "candidates"))
    statistic_name = "mean" if statistic == "mean" else "maximum"
    return Panel(
        title=f"{statistic_name} of {first.metric('exposure', 'count')} canaries",
        label="exposure (bits)",
        value=lambda result: result.metric("exposure", statistic),
        band=(low, high),
        lines=[(middle, GUESS), (ceiling, ALL)],
        limits=lambda low, high: (-0.6, ceiling * 1.06),
        bounds=(
            lambda result: result.metric("exposure", f"{statistic}_estimated_low"),
            lambda result: result.metric("exposure", f"{statistic}_estimated_high"),
        ),
        dots=_exposures if statistic == "mean" else None,
    )


def _exposures(result: Result) -> list[float]:
    return result.metric("exposure", "exposures") or []


def _scores(results: list[Result], prefix: str) -> list[Panel]:
    """Balanced accuracy and AUC; of models in rows also the AUC of likelihood ratios, if known."""
    panels = [
        _score(results, "membership", f"{prefix}{name}", blind=f"{prefix}blind_ngram_{name}")
        for name in ("acc_balanced", "auc")
    ]
    with_ratios = [
        result for result in results if result.metric("lira", f"{prefix}auc") is not None
    ]
    if with_ratios and _rows(results):
        panels.append(_score(with_ratios, "lira", f"{prefix}auc"))
    return panels


def _score(results: list[Result], kind: str, metric: str, blind: str = "") -> Panel:
    low, high, baseline = (
        results[0].metric(kind, name)
        for name in (f"{metric}_null_low", f"{metric}_null_high", blind)
    )
    accuracy = metric.endswith("balanced")
    metric_name = "balanced accuracy" if accuracy else "area under the ROC curve"
    return Panel(
        title=metric_name if kind == "membership" else "the same, LiRA",
        label="balanced accuracy" if accuracy else "AUC",
        value=lambda result: result.metric(kind, metric),
        band=(low, high),
        lines=[(0.5, GUESS), *([(baseline, BLIND)] if baseline is not None else [])],
        limits=lambda low, high: (min(low, 0.45), max(min(high, 1.02), 0.6)),
        bounds=(
            lambda result: result.metric(kind, f"{metric}_low"),
            lambda result: result.metric(kind, f"{metric}_high"),
        ),
    )


# How it is drawn
# --------------------------------------------------------------------------------------------------


def _grid(shown: Shown, panels_of: Callable[[list[Result]], list[Panel]]) -> style.Drawing:
    """One row of panels per corpus: over gamma, or in rows of models where there is one gamma."""
    rows = _rows(shown.results)
    panels = {name: panels_of(results) for name, results in shown.corpora.items()}
    heights = [
        0.27 * max(3, len(series)) + 0.6 if rows else 2.9 for series in shown.series.values()
    ]
    most = max(map(len, panels.values()))
    drawn, grid = style.panels(
        style.WIDTH, 0.2 + sum(heights), len(panels), most, height_ratios=heights
    )
    draw = _in_rows if rows else _over_gamma
    for line, (name, panels_of_corpus) in zip(grid, panels.items(), strict=True):
        for axes, panel in zip(line, panels_of_corpus, strict=False):
            is_first = axes is line[0] or not rows
            draw(axes, panel, shown.series[name])
            axes.set_title(f"{name}: {panel.title}" if is_first else panel.title)
            axes.tick_params(axis="y", labelleft=is_first)
        for axes in line[len(panels_of_corpus) :]:
            axes.set_visible(False)
    return drawn


def _rows(results: list[Result]) -> bool:
    """Whether all models share one gamma."""
    return len({result.run.gamma for result in results}) == 1


def _over_gamma(axes: Axes, panel: Panel, drawn: list[Series]) -> None:
    edge: dict[str, Any] = {"transform": axes.get_yaxis_transform()}
    axes.axhspan(*panel.band, color=NULL, zorder=0, linewidth=0)
    for level, line in panel.lines:
        axes.axhline(level, zorder=1, **line)
        if line is ALL:
            font: dict[str, Any] = {"fontsize": 6.8, "color": DARK, "va": "bottom"}
            axes.text(0.005, level, f"{level:.2f}", **edge | font)
    if panel.dots is not None:
        offsets = shifts(drawn)
        for series in drawn:
            place = edge | {"clip_on": False} if series.flat() else {}
            for result in series.results:
                each = panel.dots(result)
                x = 1.0 if series.flat() else result.run.gamma + offsets[series.label]
                properties = FAINT_DOTS | {"color": series.look.color} | place
                axes.scatter([x] * len(each), each, **properties)
    against_gamma(axes, drawn, panel.value, panel.bounds)
    axes.set_ylim(*panel.limits(*axes.get_ylim()))
    axes.set_ylabel(panel.label)
    gammas = sorted({gamma for series in drawn for gamma in series.gammas})
    margin = 0.06 * max(gammas[-1] - gammas[0], 0.05)
    axes.set_xlim(gammas[0] - margin, gammas[-1] + margin)
    axes.set_xticks(gammas)
    axes.set_xlabel("γ, share of secrets that the policy misses")


def _in_rows(axes: Axes, panel: Panel, drawn: list[Series]) -> None:
    axes.axvspan(*panel.band, color=NULL, zorder=0, linewidth=0)
    for level, line in panel.lines:
        axes.axvline(level, zorder=1, **line)
    places = name_rows(axes, [series.label for series in drawn])
    for place, series in zip(places, drawn, strict=True):
        for point in series.spread(panel.value, panel.bounds).values():
            if panel.dots is not None:
                each = [value for result in series.results for value in panel.dots(result)]
                properties = FAINT_DOTS | {"color": series.look.color}
                axes.scatter(each, [place] * len(each), **properties)
            mark(axes, series, point, place, {"linewidth": 1.2} | BUTT)
    axes.set_xlim(*panel.limits(*axes.get_xlim()))
    axes.tick_params(axis="y", length=0)
    axes.grid(axis="y", color="#f3f3f3")
    axes.set_xlabel(panel.label)


def _handles(shown: Shown) -> list[Artist]:
    """Entries of the legend for the models, which in rows stand at their names."""
    return [] if _rows(shown.results) else [*shown.handles()]


# Words
# --------------------------------------------------------------------------------------------------


def _throughout(shown: Shown) -> str:
    runs = shown.results
    return f"; here γ = {runs[0].run.gamma:g} throughout" if _rows(runs) else ""


def _listed(shown: Shown, kind: str, name: str) -> str:
    """The values of a metric, each once; one may be a list of values."""
    values: set[Any] = set()
    for result in shown.results:
        value = result.metric(kind, name)
        values.update(value if isinstance(value, list) else [value])
    return ", ".join(map(str, sorted(values)))
