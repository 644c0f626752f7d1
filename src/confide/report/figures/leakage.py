"""Attacks against the miss rate gamma of the screening policy: exposure (CRT Figure 3), membership
(Figures 4 and 5).

Where all models share one gamma, each has a row instead. Every panel carries the score of a model
that remembers nothing, with its 95 % band at the sizes of the attack.
"""

import math
from collections.abc import Callable, Iterable
from typing import Any, NamedTuple

from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.patches import Patch

from confide.report.figures.series import (
    Series,
    Value,
    against_gamma,
    averaged,
    corpora,
    group,
    shifts,
)
from confide.report.figures.style import FAINT, INK, NULL, blank, figure, legend, title
from confide.report.results import Json, Result
from confide.specs import ReportSpec

BLIND = {"color": "#555555", "linewidth": 1.3, "linestyle": (0, (1, 1.5))}
GUESS = {"color": FAINT, "linewidth": 1}
ALL = {"color": INK, "linewidth": 1, "linestyle": ":"}


class Panel(NamedTuple):
    """What is measured, and what it would be by chance."""

    title: str
    label: str
    value: Value
    band: tuple[float, float]
    lines: list[tuple[float, dict[str, Any]]]  # level, and how it is drawn
    limits: Callable[[float, float], tuple[float, float]]  # of the axis, from where the data end
    bounds: tuple[Value, Value] | None = None
    dots: Callable[[Result], list[float]] | None = None  # what the value is a mean of


Panels = Callable[[list[Result]], list[Panel]]


def exposure(spec: ReportSpec, results: list[Result]) -> Figure:
    """Mean (with all canaries) and maximum exposure in bits, over gamma; one row per corpus."""
    known = [result for result in results if result.metric("exposure", "mean") is not None]
    drawn = _grid(known, lambda own: [_exposure(own, "mean"), _exposure(own, "max")])
    counts = sorted({result.metric("exposure", "count") for result in known})
    copies = sorted({result.metric("exposure", "copies") for result in known})
    caption = (
        f"Exposure = log2|R| - log2 rank of a canary's digits among all |R| candidates; {_listed(counts)} canaries per run, "
        f"each planted {_listed(copies)} times. Grey: 95 % band of canaries that the model never saw (their exposure is "
        "exponential with mean 1/ln 2 = 1.44 bits); 0 is not what chance gives. The policy is made to miss a share γ of all "
        f"secrets, canaries among them{_throughout(known)}. {_seeds(known)}"
    )
    title(drawn, f"Canary exposure — {spec.title}", caption)
    extra = [
        _dot("one canary of one run"),
        _null("never seen, 95 %"),
        Line2D([], [], label="fully extracted", **ALL),
    ]
    legend(drawn, [*_handles(known), *extra])
    return drawn


def membership(spec: ReportSpec, results: list[Result]) -> Figure:
    """Balanced accuracy and AUC of single secrets over gamma."""
    return _membership(spec, results, "", "Membership inference")


def group_membership(spec: ReportSpec, results: list[Result]) -> Figure:
    """Balanced accuracy and AUC of groups of secrets over gamma."""
    return _membership(spec, results, "group_", "Group membership inference")


def _membership(spec: ReportSpec, results: list[Result], prefix: str, name: str) -> Figure:
    known = [
        result for result in results if result.metric("membership", f"{prefix}auc") is not None
    ]
    drawn = _grid(known, lambda own: _scores(own, prefix))
    sizes = _listed(
        {result.metric("membership", "groups" if prefix else "members") for result in known}
    )
    size = _listed({result.metric("membership", "group") for result in known})
    of = (
        f"disjoint groups of {size} {_labels(known)} secrets (scores summed)"
        if prefix
        else f"{_labels(known)} secrets"
    )
    caption = (
        f"{sizes} member and as many non-member {of}; {asked(result.attacks['membership'] for result in known)}. "
        "Balanced accuracy: the half with the lower perplexity is called member. "
        f"{_seeds(known, 'whiskers: 95 % bootstrap interval')} Grey band: where scores that know nothing fall in 95 % of cases "
        "at this size. Only what exceeds the blind baseline, which never sees the model, is evidence of memorisation"
        f"{_throughout(known)}."
    )
    title(drawn, f"{name} — {spec.title}", caption)
    blind = Line2D([], [], label="blind baseline\n(character n-grams)", **BLIND)
    legend(drawn, [*_handles(known), blind, _null("guessing, 95 %")])
    return drawn


def asked(attacks: Iterable[Json]) -> str:
    """Who is asked about in some membership attacks, for captions."""
    others = {attack.get("non_members_from", "held_out") for attack in attacks}
    words = {
        "held_out": "members occur in train only, non-members in held-out text only",
        "random": "non-members are random strings of spaces and digits, which their form tells apart (as published)",
    }
    return "; or ".join(words[name] for name in sorted(others))


# What is drawn
# -----------------------------------------------------------------------------------------------------


def _exposure(own: list[Result], statistic: str) -> Panel:
    first = own[0]
    low, high, middle = (
        first.metric("exposure", f"null_{statistic}{end}") for end in ("_low", "_high", "")
    )
    ceiling = math.log2(first.metric("exposure", "candidates"))
    words = "mean" if statistic == "mean" else "maximum"
    return Panel(
        title=f"{words} of {first.metric('exposure', 'count')} canaries (by chance {middle:.2f})",
        label="exposure (bits)",
        value=lambda result: result.metric("exposure", statistic),
        band=(low, high),
        lines=[(middle, GUESS), (ceiling, ALL)],
        limits=lambda low, high: (-0.6, ceiling * 1.06),
        dots=(lambda result: result.metric("exposure", "exposures") or [])
        if statistic == "mean"
        else None,
    )


def _scores(own: list[Result], prefix: str) -> list[Panel]:
    """Balanced accuracy and AUC; of models in rows also that of likelihood ratios, where one was
    attacked so.
    """
    names = ["acc_balanced", "auc"]
    found = [
        _score(own, "membership", f"{prefix}{name}", f"{prefix}blind_ngram_{name}")
        for name in names
    ]
    with_ratios = [result for result in own if result.metric("lira", f"{prefix}auc") is not None]
    return (
        [*found, _score(with_ratios, "lira", f"{prefix}auc", None)]
        if with_ratios and _rows(own)
        else found
    )


def _score(own: list[Result], kind: str, metric: str, blind: str | None) -> Panel:
    low, high, baseline = (
        own[0].metric(kind, name) for name in (f"{metric}_null_low", f"{metric}_null_high", blind)
    )
    accuracy = metric.endswith("balanced")
    words = "balanced accuracy" if accuracy else "area under the ROC curve"
    return Panel(
        title=words if kind == "membership" else "the same, LiRA",
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
# ---------------------------------------------------------------------------------------------------


def _grid(results: list[Result], panels: Panels) -> Figure:
    """One row of panels per corpus: over gamma, or with a row per model where there is one
    gamma.
    """
    names = corpora(results)
    if not names:
        return blank("no run of this study has these measurements")
    rows = _rows(results)
    of = {name: [result for result in results if result.corpus == name] for name in names}
    shown = [panels(own) for own in of.values()]
    heights = [0.27 * max(3, len(group(results, name))) + 0.75 if rows else 2.75 for name in names]
    drawn = figure(10.6, 1.9 + sum(heights))
    columns = max(map(len, shown))
    grid = drawn.subplots(
        len(names), columns, squeeze=False, gridspec_kw={"height_ratios": heights}
    )
    for line, (name, own), each in zip(grid, of.items(), shown, strict=True):
        for axes, panel in zip(line, each, strict=False):
            (_in_rows if rows else _over_gamma)(axes, panel, group(results, name), own)
            axes.set_title(
                f"{name}: {panel.title}" if axes is line[0] or not rows else panel.title, loc="left"
            )
            axes.tick_params(axis="y", labelleft=axes is line[0] or not rows)
        for axes in line[len(each) :]:
            axes.set_visible(False)
    return drawn


def _rows(results: list[Result]) -> bool:
    return len({result.run.gamma for result in results}) == 1


def _over_gamma(axes: Axes, panel: Panel, drawn: list[Series], own: list[Result]) -> None:
    axes.axhspan(*panel.band, color=NULL, zorder=0, linewidth=0)
    for level, properties in panel.lines:
        axes.axhline(level, zorder=1, **properties)
        if properties is ALL:
            place = axes.get_yaxis_transform()
            axes.text(
                0.005,
                level,
                f"{level:.2f}",
                transform=place,
                fontsize=6.8,
                color="#555555",
                va="bottom",
            )
    if panel.dots is not None:
        _dots(axes, drawn, panel.dots)
    against_gamma(axes, drawn, panel.value, panel.bounds)
    axes.set_ylim(*panel.limits(*axes.get_ylim()))
    axes.set_ylabel(panel.label)
    gammas = sorted({result.run.gamma for result in own})
    width = max(gammas[-1] - gammas[0], 0.05)
    axes.set_xlim(gammas[0] - 0.06 * width, gammas[-1] + 0.06 * width)
    axes.set_xticks(gammas)
    axes.set_xlabel("γ, share of secrets that the policy misses")


def _dots(axes: Axes, drawn: list[Series], dots: Callable[[Result], list[float]]) -> None:
    """Every canary of every run as a faint dot; of methods that ignore the policy, at the right
    edge.
    """
    offsets = shifts(drawn)
    for series in drawn:
        for result in series.results:
            found = dots(result)
            x = 1.0 if series.flat() else result.run.gamma + offsets[series.label]
            place = (
                {"transform": axes.get_yaxis_transform(), "clip_on": False} if series.flat() else {}
            )
            axes.scatter(
                [x] * len(found),
                found,
                s=7,
                color=series.look.color,
                alpha=0.3,
                linewidths=0,
                **place,
            )


def _in_rows(axes: Axes, panel: Panel, drawn: list[Series], own: list[Result]) -> None:
    axes.axvspan(*panel.band, color=NULL, zorder=0, linewidth=0)
    for level, properties in panel.lines:
        axes.axvline(level, zorder=1, **properties)
    places = range(len(drawn), 0, -1)
    for place, series in zip(places, drawn, strict=True):
        for point in series.spread(panel.value):
            ends = [point.low, point.high]
            if panel.bounds and len(point.values) == 1:
                ends = [series.spread(bound)[0].mean for bound in panel.bounds]
            if panel.dots is not None:
                each = [value for result in series.results for value in panel.dots(result)]
                axes.scatter(
                    each, [place] * len(each), s=7, color=series.look.color, alpha=0.3, linewidths=0
                )
            axes.plot(
                ends, [place] * 2, color=series.look.color, linewidth=1.2, solid_capstyle="butt"
            )
            axes.plot([point.mean], [place], **series.marks(linestyle="", markersize=7))
    axes.set_xlim(*panel.limits(*axes.get_xlim()))
    axes.set_ylim(0.4, len(drawn) + 0.6)
    axes.set_yticks(list(places), [series.label for series in drawn])
    axes.tick_params(axis="y", length=0)
    axes.grid(axis="y", color="#f3f3f3")
    axes.set_xlabel(panel.label)


def _handles(results: list[Result]) -> list[Line2D]:
    """Entries of the legend for the models, which in rows stand at their names."""
    return [] if results and _rows(results) else [series.handle() for series in group(results)]


# Words
# -------------------------------------------------------------------------------------------------------------


def _throughout(results: list[Result]) -> str:
    return f"; here γ = {results[0].run.gamma:g} throughout" if results and _rows(results) else ""


def _labels(results: list[Result]) -> str:
    return _listed({result.metric("membership", "label") for result in results})


def _listed(values: object) -> str:
    return ", ".join(str(value) for value in sorted(values)) or "no"


def _seeds(results: list[Result], single: str = "") -> str:
    count = len({result.run.seed for result in results})
    if single and count == 1:
        return f"One seed; {single}."
    return averaged(count, "Markers: mean over {} seeds; whiskers: their range.")


def _null(label: str) -> Patch:
    return Patch(color=NULL, label=label)


def _dot(label: str) -> Line2D:
    return Line2D([], [], color=FAINT, marker="o", markersize=3, linestyle="", label=label)
