"""Members found against false alarms, on log axes: likelihood ratio, and perplexity alone.

As in Carlini et al. 2022, Figure 1: an attacker who names few secrets and is nearly always right
lives at the left edge, which an AUC does not show. The band is where a curve of scores that know
nothing runs, rate by rate, in 95 % of cases at this number of secrets.
"""

from functools import partial
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.ticker import FuncFormatter, NullFormatter

from confide.report.figures import style
from confide.report.figures.frame import Drawn, Shown, figure, has_number
from confide.report.figures.series import Series
from confide.report.figures.style import GUESS, NULL
from confide.report.results import Result

# prefix of the metrics -> what ranks the secrets
PANELS = {"": "likelihood ratio (LiRA)", "plain_": "perplexity alone"}
MARKED = (0.01, 0.03, 0.1, 0.3)  # false positive rates at which a curve has its marker


@figure("Membership at few false alarms", has_number("lira", "roc"))
def roc(shown: Shown) -> Drawn:
    """One row per corpus; a panel for the likelihood ratio, one for the perplexity alone."""
    rows = shown.series
    drawn, grid = style.panels(
        style.WIDTH, 0.3 + 2.9 * len(rows), len(rows), len(PANELS), sharey="row"
    )
    for line, (name, row) in zip(grid, rows.items(), strict=True):
        bottom = 0.5 / max(result.metric("lira", "members") for result in shown.corpora[name])
        for axes, (prefix, title) in zip(line, PANELS.items(), strict=True):
            _panel(axes, row, shown.gamma, prefix, bottom)
            axes.set_title(f"{name}: {title}")
        line[0].set_ylabel("true positive rate")
    guess = style.entry("guessing", **GUESS)
    legend = [*shown.handles(), guess, style.band("guessing, 95 %")]
    return drawn, _caption(shown), legend


def curve(runs: list[Result], prefix: str) -> dict[str, np.ndarray]:
    """Mean curve of some seeds, without its corner at no false positives."""
    curves = [result.metric("lira", f"{prefix}roc") for result in runs]
    return {name: np.mean([points[name] for points in curves], axis=0)[1:] for name in curves[0]}


def _panel(axes: Axes, drawn: list[Series], gamma: float, prefix: str, bottom: float) -> None:
    """Curves over the band; the lowest rate is one false positive.

    What found nobody runs along the lower edge. AUCs stand in the corner below guessing.
    """
    properties: dict[str, Any] = {
        "transform": axes.transAxes,
        "ha": "right",
        "va": "bottom",
        "fontsize": 7.5,
    }
    first = curve(drawn[0].at(gamma), prefix)
    low, high = (np.maximum(first[name], bottom) for name in ("null_low", "null_high"))
    axes.fill_between(first["fpr"], low, high, step="post", color=NULL, linewidth=0, zorder=0)
    axes.plot(first["fpr"], first["fpr"], zorder=1, **GUESS)
    for number, series in enumerate(drawn):
        runs = series.at(gamma)
        rates = curve(runs, prefix)
        places = sorted({int(np.abs(np.log(rates["fpr"] / rate)).argmin()) for rate in MARKED})
        marks = series.marks(markevery=places)
        axes.plot(
            rates["fpr"],
            np.maximum(rates["tpr"], bottom),
            drawstyle="steps-post",
            **marks,
        )
        auc = np.mean([result.metric("lira", f"{prefix}auc") for result in runs])
        height = 0.035 + 0.058 * (len(drawn) - 1 - number)
        axes.text(
            0.985, height, f"AUC {series.label}: {auc:.2f}", color=series.look.color, **properties
        )
    axes.set_xscale("log")
    axes.set_yscale("log")
    for axis in (axes.xaxis, axes.yaxis):
        axis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:g}"))
        axis.set_minor_formatter(NullFormatter())
    axes.set_xlim(first["fpr"][0], 1)
    axes.set_ylim(bottom, 1.15)
    axes.set_xlabel("false positive rate")


def _caption(shown: Shown) -> str:
    each = partial(shown.each, "lira")
    return (
        f"{each('members')} member and {each('non_members')} non-member {each('label')} secrets; "
        "members occur in train only, non-members in held-out text only. LiRA: how much likelier a "
        f"secret's log-probability is among those of the {each('shadow_models')} small shadow "
        "models (half trained on it, half not; original text, no noise) that saw it than among the "
        "others. Perplexity alone needs no shadow models. "
        "Methods that depend on the screening policy: miss rate "
        f"γ = {shown.gamma:g}. Both axes logarithmic, from one false positive on; grey: 95 % of "
        "what scores that know nothing reach, rate by rate. "
        f"{shown.averaged('Mean over {} seeds.')}"
    )
