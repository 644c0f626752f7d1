"""Attacks against the miss rate gamma of the screening policy: exposure (CRT Figure 3), membership (Figures 4 and 5).

Every panel carries the score of a model that remembers nothing, with its 95 % band at the sizes of the attack.
"""

import math
from collections.abc import Callable, Iterable

from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.patches import Patch

from confide.report.results import Json, Result
from confide.report.series import Series, against_gamma, corpora, group, shifts
from confide.report.style import FAINT, INK, NULL, figure, legend, title
from confide.specs import ReportSpec

Panel = Callable[[Axes, list[Series], list[Result]], None]


def exposure(spec: ReportSpec, results: list[Result]) -> Figure:
    """Mean (with all canaries) and maximum exposure in bits, over gamma; one row per corpus."""
    known = [result for result in results if result.metric("exposure", "mean") is not None]
    drawn = _grid(known, [_exposure_panel("mean"), _exposure_panel("max")], "exposure (bits)")
    counts = sorted({result.metric("exposure", "count") for result in known})
    copies = sorted({result.metric("exposure", "copies") for result in known})
    caption = (
        f"Exposure = log2|R| - log2 rank of a canary's digits among all |R| candidates; {_listed(counts)} canaries per run, "
        f"each planted {_listed(copies)} times. Grey: 95 % band of canaries that the model never saw (their exposure is "
        "exponential with mean 1/ln 2 = 1.44 bits); 0 is not what chance gives. The policy is made to miss a share γ of all "
        f"secrets, canaries among them. {_seeds(known)}"
    )
    title(drawn, f"Canary exposure — {spec.title}", caption)
    handles = [series.handle() for series in group(known)]
    legend(drawn, [*handles, _dot("one canary of one run"), _null("never seen, 95 %"), _line("fully extracted", ":")])
    return drawn


def membership(spec: ReportSpec, results: list[Result]) -> Figure:
    """Balanced accuracy and AUC of single secrets over gamma."""
    return _membership(spec, results, "", "Membership inference")


def group_membership(spec: ReportSpec, results: list[Result]) -> Figure:
    """Balanced accuracy and AUC of groups of secrets over gamma."""
    return _membership(spec, results, "group_", "Group membership inference")


def _membership(spec: ReportSpec, results: list[Result], prefix: str, name: str) -> Figure:
    known = [result for result in results if result.metric("membership", f"{prefix}auc") is not None]
    panels = [_membership_panel(f"{prefix}acc_balanced", prefix), _membership_panel(f"{prefix}auc", prefix)]
    drawn = _grid(known, panels, "")
    sizes = _listed({result.metric("membership", "groups" if prefix else "members") for result in known})
    size = _listed({result.metric("membership", "group") for result in known})
    of = f"disjoint groups of {size} {_labels(known)} secrets (scores summed)" if prefix else f"{_labels(known)} secrets"
    caption = (
        f"{sizes} member and as many non-member {of}; {asked(result.attacks['membership'] for result in known)}. "
        "Balanced accuracy: the half with the lower perplexity is called member. "
        f"{_seeds(known, 'whiskers: 95 % bootstrap interval')} Grey band: where scores that know nothing fall in 95 % of cases "
        "at this size. Only what exceeds the blind baseline, which never sees the model, is evidence of memorisation."
    )
    title(drawn, f"{name} — {spec.title}", caption)
    handles = [series.handle() for series in group(known)]
    legend(drawn, [*handles, _line("blind baseline\n(character n-grams)", (0, (1, 1.5))), _null("guessing, 95 %")])
    return drawn


def asked(attacks: Iterable[Json]) -> str:
    """Who is asked about in some membership attacks, for captions."""
    others = {attack.get("non_members_from", "held_out") for attack in attacks}
    words = {
        "held_out": "members occur in train only, non-members in held-out text only",
        "random": "non-members are random strings of spaces and digits, which their form tells apart (as published)",
    }
    return "; or ".join(words[name] for name in sorted(others))


def _grid(results: list[Result], panels: list[Panel], ylabel: str) -> Figure:
    """One row per corpus, one column per panel."""
    names = corpora(results)
    drawn = figure(10.6, 1.9 + 2.75 * max(1, len(names)))
    grid = drawn.subplots(max(1, len(names)), len(panels), squeeze=False)
    if not names:
        drawn.clear()
        drawn.text(0.5, 0.5, "no run of this study has these measurements", ha="center", color=FAINT)
        return drawn
    for row, name in zip(grid, names, strict=True):
        own = [result for result in results if result.corpus == name]
        for axes, panel in zip(row, panels, strict=True):
            panel(axes, group(results, name), own)
            axes.set_title(f"{name}: {axes.get_title(loc='left')}", loc="left")
            axes.set_xlabel("γ, share of secrets that the policy misses")
            axes.set_ylabel(ylabel or axes.get_ylabel())
            _gamma_axis(axes, own)
    return drawn


def _gamma_axis(axes: Axes, results: list[Result]) -> None:
    gammas = sorted({result.run.gamma for result in results})
    width = max(gammas[-1] - gammas[0], 0.05)
    axes.set_xlim(gammas[0] - 0.06 * width, gammas[-1] + 0.06 * width)
    axes.set_xticks(gammas)


def _exposure_panel(statistic: str) -> Panel:
    def panel(axes: Axes, drawn: list[Series], results: list[Result]) -> None:
        first = results[0]
        low, high, middle = (first.metric("exposure", f"null_{statistic}{end}") for end in ("_low", "_high", ""))
        axes.axhspan(low, high, color=NULL, zorder=0, linewidth=0)
        axes.axhline(middle, color=FAINT, linewidth=1, zorder=1)
        ceiling = math.log2(first.metric("exposure", "candidates"))
        axes.axhline(ceiling, color=INK, linewidth=1, linestyle=":", zorder=1)
        _note(axes, ceiling, f"{ceiling:.2f}")
        if statistic == "mean":
            _canaries(axes, drawn)
        against_gamma(axes, drawn, lambda result: result.metric("exposure", statistic))
        axes.set_ylim(-0.6, ceiling * 1.06)
        count = first.metric("exposure", "count")
        words = "mean" if statistic == "mean" else "maximum"
        axes.set_title(f"{words} of {count} canaries (by chance {middle:.2f})", loc="left")

    return panel


def _note(axes: Axes, level: float, words: str) -> None:
    axes.text(0.005, level, words, transform=axes.get_yaxis_transform(), fontsize=6.8, color="#555555", va="bottom")


def _canaries(axes: Axes, drawn: list[Series]) -> None:
    """Every canary of every run as a faint dot; of methods that ignore the policy, at the right edge."""
    offsets = shifts(drawn)
    for series in drawn:
        for result in series.results:
            found = result.metric("exposure", "exposures") or []
            x = 1.0 if series.flat() else result.run.gamma + offsets[series.label]
            place = {"transform": axes.get_yaxis_transform(), "clip_on": False} if series.flat() else {}
            axes.scatter([x] * len(found), found, s=7, color=series.look.color, alpha=0.3, linewidths=0, **place)


def _membership_panel(metric: str, prefix: str) -> Panel:
    def panel(axes: Axes, drawn: list[Series], results: list[Result]) -> None:
        low, high = (results[0].metric("membership", f"{metric}_null_{end}") for end in ("low", "high"))
        axes.axhspan(low, high, color=NULL, zorder=0, linewidth=0)
        axes.axhline(0.5, color=FAINT, linewidth=1, zorder=1)
        blind = results[0].metric("membership", metric.replace(prefix, f"{prefix}blind_ngram_", 1))
        if blind is not None:
            axes.axhline(blind, color="#555555", linewidth=1.3, linestyle=(0, (1, 1.5)), zorder=1)
        ends = tuple(lambda result, end=end: result.metric("membership", f"{metric}_{end}") for end in ("low", "high"))
        against_gamma(axes, drawn, lambda result: result.metric("membership", metric), ends)
        bottom, top = axes.get_ylim()
        axes.set_ylim(min(bottom, 0.45), max(min(top, 1.02), 0.6))
        name = "balanced accuracy" if metric.endswith("balanced") else "area under the ROC curve (AUC)"
        axes.set_title(name, loc="left")
        axes.set_ylabel("balanced accuracy" if metric.endswith("balanced") else "AUC")

    return panel


def _labels(results: list[Result]) -> str:
    return _listed({result.metric("membership", "label") for result in results})


def _listed(values: object) -> str:
    return ", ".join(str(value) for value in sorted(values)) or "no"


def _seeds(results: list[Result], single: str = "") -> str:
    count = len({result.run.seed for result in results})
    if count > 1:
        return f"Markers: mean over {count} seeds; whiskers: their range."
    return f"One seed; {single}." if single else "One seed."


def _null(label: str) -> Patch:
    return Patch(color=NULL, label=label)


def _line(label: str, style: object) -> Line2D:
    return Line2D([], [], color=INK if style == ":" else "#555555", linestyle=style, linewidth=1.2, label=label)


def _dot(label: str) -> Line2D:
    return Line2D([], [], color=FAINT, marker="o", markersize=3, linestyle="", label=label)
