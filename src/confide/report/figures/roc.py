"""Members found against false alarms, on log axes (Carlini et al. 2022, Figure 1): likelihood
ratio, and perplexity alone.

An attacker who names few secrets and is nearly always right lives at the left edge, which an AUC
does not show. The band is where a curve of scores that know nothing runs, rate by rate, in 95 % of
cases at this number of secrets.
"""

from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.patches import Patch
from matplotlib.ticker import FuncFormatter, NullFormatter

from confide.report.figures.series import Series, averaged, chosen_gamma, corpora, group
from confide.report.figures.style import FAINT, NULL, blank, figure, legend, title
from confide.report.results import Result
from confide.specs import ReportSpec

PANELS = {
    "": "likelihood ratio (LiRA)",
    "plain_": "perplexity alone",
}  # prefix of the metrics -> what ranks the secrets
MARKED = (0.01, 0.03, 0.1, 0.3)  # false positive rates at which a curve has its marker


def roc(spec: ReportSpec, results: list[Result]) -> Figure:
    """One row per corpus; a panel for the likelihood ratio, one for the perplexity alone; a curve
    per method.
    """
    known = [result for result in results if result.metric("lira", "roc") is not None]
    names = corpora(known)
    gamma = chosen_gamma(spec.gamma, known)
    if not names:
        return blank("no run of this study has these measurements")
    drawn = figure(10.6, 1.8 + 3.5 * len(names))
    grid = drawn.subplots(len(names), len(PANELS), squeeze=False, sharey="row")
    for row, name in zip(grid, names, strict=True):
        for axes, (prefix, words) in zip(row, PANELS.items(), strict=True):
            _panel(axes, group(known, name), gamma, prefix)
            axes.set_title(f"{name}: {words}", loc="left")
        row[0].set_ylabel("true positive rate (members found)")
    title(drawn, f"Membership at few false alarms — {spec.title}", _caption(known, gamma))
    lines = [
        Line2D([], [], color=FAINT, linewidth=1.2, linestyle=(0, (4, 3)), label="guessing"),
        Patch(color=NULL, label="guessing, 95 %"),
    ]
    legend(drawn, [*(series.handle() for series in group(known)), *lines])
    return drawn


def curve(series: Series, gamma: float, prefix: str) -> dict[str, np.ndarray]:
    """The series' curve at a gamma, without its corner at no false positives; true positive rates
    are means over seeds.
    """
    found = [result.metric("lira", f"{prefix}roc") for result in series.at(gamma)]
    return {name: np.mean([one[name] for one in found], axis=0)[1:] for name in found[0]}


def _panel(axes: Axes, drawn: list[Series], gamma: float, prefix: str) -> None:
    """Curves over the band; the lowest rate is one false positive, and what found nobody runs along
    the lower edge.
    """
    bottom = 0.5 / max(
        result.metric("lira", "members") for series in drawn for result in series.results
    )
    first = curve(drawn[0], gamma, prefix)
    low, high = (np.maximum(first[name], bottom) for name in ("null_low", "null_high"))
    axes.fill_between(first["fpr"], low, high, step="post", color=NULL, linewidth=0, zorder=0)
    axes.plot(
        first["fpr"], first["fpr"], color=FAINT, linewidth=1.2, linestyle=(0, (4, 3)), zorder=1
    )
    for number, series in enumerate(drawn):
        own = curve(series, gamma, prefix)
        places = sorted({int(np.abs(np.log(own["fpr"] / rate)).argmin()) for rate in MARKED})
        axes.plot(
            own["fpr"],
            np.maximum(own["tpr"], bottom),
            drawstyle="steps-post",
            **series.marks(markevery=places),
        )
        _auc(axes, series, gamma, prefix, 0.035 + 0.058 * (len(drawn) - 1 - number))
    axes.set_xscale("log")
    axes.set_yscale("log")
    for axis in (axes.xaxis, axes.yaxis):
        axis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:g}"))
        axis.set_minor_formatter(NullFormatter())
    axes.set_xlim(first["fpr"][0], 1)
    axes.set_ylim(bottom, 1.15)
    axes.set_xlabel("false positive rate (non-members called members)")


def _auc(axes: Axes, series: Series, gamma: float, prefix: str, height: float) -> None:
    """The series' AUC in the corner where only what is worse than guessing could run."""
    values = [result.metric("lira", f"{prefix}auc") for result in series.at(gamma)]
    words: dict[str, Any] = {
        "transform": axes.transAxes,
        "ha": "right",
        "va": "bottom",
        "fontsize": 7.5,
    }
    axes.text(
        0.985,
        height,
        f"AUC {series.label}: {np.mean(values):.2f}",
        color=series.look.color,
        **words,
    )


def _caption(known: list[Result], gamma: float) -> str:
    def each(name: str) -> str:
        return ", ".join(dict.fromkeys(str(result.metric("lira", name)) for result in known))

    seeds = len({result.run.seed for result in known})
    return (
        f"{each('members')} member and {each('non_members')} non-member {each('label')} secrets; members occur in train only, "
        f"non-members in held-out text only. LiRA: how much likelier a secret's log-probability is among those of the "
        f"{each('shadow_models')} small shadow models (half trained on it, half not; original text, no noise) that saw it than "
        "among the others. Perplexity alone needs no shadow models. Methods that depend on the screening policy: miss rate "
        f"γ = {gamma:g}. Both axes logarithmic, from one false positive on; grey: 95 % of what scores that know nothing reach, "
        f"rate by rate. {averaged(seeds, 'Mean over {} seeds.')}"
    )
