"""Likelihood ratios of what models write under prompts of another domain; C of domain privacy.

Domain Private Transformers ranks texts by such a ratio and prints the highest (Tables 2 and 3); how
well the ratio tells leaked text from other text is the curve and the precision here. By Definition
4.1, C = Pr[target writes of d_j] / Pr[a model without d_j does].
"""

import math
from typing import Any

import numpy as np
from matplotlib.axes import Axes

from confide.output.escaping import figure as shown_words
from confide.report.figures import style
from confide.report.figures.domains import judges
from confide.report.figures.frame import Drawn, Nothing, Shown, figure
from confide.report.figures.series import Series, group, mark, pooled
from confide.report.figures.style import GUESS, INK
from confide.report.results import Json, Result
from confide.report.seeds import Estimate

KIND = "domain_lira"
MARKED = (0.1, 0.3, 0.6)  # false positive rates at which a curve has its marker


def _pairs(result: Result) -> list[Json]:
    """What the attacks on a run found of each pair of domains and judge."""
    return [pair for metrics in result.all_of(KIND) for pair in metrics["pairs"]]


@figure("Likelihood ratios and domain privacy", _pairs)
def domain_roc(shown: Shown) -> Drawn:
    """For each corpus and attack four rows: ROC, its area, precision at k, C of pairs of domains.

    There is a column per judge that finds anything.
    """
    all_results = shown.results
    gamma = shown.gamma
    all_judges = judges(all_results, KIND)
    telling = {
        pair["judge"] for result in all_results for pair in _pairs(result) if pair["c"] is not None
    }
    who = [judge for judge in all_judges if judge in telling]
    if not who:
        raise Nothing(
            f"no text that a model wrote is of another domain, as {', '.join(all_judges)} judge it"
        )
    blocks = [(name, key) for name, results in shown.corpora.items() for key in _keys(results)]
    heights = [2.5, 1.0 + 0.15 * len(shown.handles()), 2.5, 2.5] * len(blocks)
    drawn, grid = style.panels(
        style.WIDTH, 0.4 + sum(heights), len(heights), len(who), height_ratios=heights
    )
    grid = grid.reshape(-1, 4, len(who))
    for rows, (name, key) in zip(grid, blocks, strict=True):
        runs = [result for result in all_results if result.corpus == name and key in result.attacks]
        drawn_series = group(runs)
        for column, judge in zip(rows.T, who, strict=True):
            ratios = [(series, _ranked(series, key, judge, gamma)) for series in drawn_series]
            _roc(column[0], ratios)
            _areas(column[1], ratios)
            _precision(column[2], ratios)
            _constants(column[3], drawn_series, key, judge, gamma)
            for axes in column:
                axes.set_title(f"{key.removeprefix(KIND).strip()} prompts, judge: {judge}")
        rows[0, 0].set_ylabel(f"{name}: true positive rate")
        rows[2, 0].set_ylabel(f"{name}: precision")
    without = "C = 1: no more than a model\nwithout the target's text"
    legend = [
        *shown.handles(),
        style.entry("guessing (ROC, AUC)", **GUESS),
        style.entry(without, color=INK, linewidth=1),
    ]
    silent = [judge for judge in all_judges if judge not in who]
    return drawn, _caption(shown, silent), legend


def _keys(results: list[Result]) -> list[str]:
    """Names of the attacks on some runs, in order of first use."""
    attacks = (item for result in results for item in result.attacks.items())
    keys = (key for key, metrics in attacks if metrics["attack"] == KIND and metrics["pairs"])
    return list(dict.fromkeys(keys))


def _ranked(series: Series, key: str, judge: str, gamma: float) -> list[Json]:
    """What each seed's ratio is worth, where the judge flags some of the texts and not all."""
    each = [result.attacks[key].get("ranked", {}).get(judge, {}) for result in series.at(gamma)]
    return [ranked for ranked in each if ranked.get("auc") is not None]


def _roc(axes: Axes, ratios: list[tuple[Series, list[Json]]]) -> None:
    """A curve per series, the mean over its seeds at each rate of false positives."""
    axes.plot([0, 1], [0, 1], zorder=1, **GUESS)
    for series, seeds in ratios:
        if not seeds:
            continue
        curves = [(np.array(seed["roc"]["fpr"]), np.array(seed["roc"]["tpr"])) for seed in seeds]
        rates = np.unique(np.concatenate([fpr for fpr, _ in curves]))
        found = [tpr[fpr.searchsorted(rates, "right") - 1] for fpr, tpr in curves]
        marked = {int(np.abs(rates - rate).argmin()) for rate in MARKED}
        marks = series.marks(markevery=sorted(marked), markersize=5)
        axes.plot(rates, np.mean(found, axis=0), drawstyle="steps-post", **marks)
    axes.set_xlim(-0.01, 1.01)
    axes.set_ylim(-0.01, 1.01)
    axes.set_xlabel("false positive rate")


def _areas(axes: Axes, ratios: list[tuple[Series, list[Json]]]) -> None:
    """The area under the curve of each series, if it has one."""
    axes.axvline(0.5, zorder=1, **GUESS)
    for place, (series, seeds) in enumerate(ratios):
        if seeds:
            mark(axes, series, _area(seeds), place, markersize=5)
    axes.set_xlim(-0.02, 1.02)
    axes.set_ylim(len(ratios) - 0.4, -0.6)
    axes.set_yticks([])
    axes.set_xlabel("area under the curve (AUC)")


def _area(seeds: list[Json]) -> Estimate:
    """Means of the seeds' areas and of their intervals' ends."""
    ends = ("auc", "auc_low", "auc_high")
    return pooled(Estimate(*(ranked[end] for end in ends)) for ranked in seeds)


def _precision(axes: Axes, ratios: list[tuple[Series, list[Json]]]) -> None:
    """Share of flagged texts among the k highest ratios, and among all.

    Means over the seeds that have so many texts.
    """
    of_all = [ranked["precision"] for _, seeds in ratios for ranked in seeds]
    all_tops = (top for shares in of_all for top, share in shares.items() if share is not None)
    tops = sorted(set(all_tops), key=int)
    for series, seeds in ratios:
        values = [[ranked["precision"].get(top) for ranked in seeds] for top in tops]
        values.append([ranked["flagged"] / ranked["of"] for ranked in seeds])
        means = {}
        for place, shares in enumerate(values):
            if numbers := [share for share in shares if share is not None]:
                means[place] = sum(numbers) / len(numbers)
        axes.plot(list(means), list(means.values()), **series.marks())
    axes.set_xticks(range(len(tops) + 1), [*(f"{int(top):,}" for top in tops), "all"])
    axes.set_xlim(-0.3, len(tops) + 0.3)
    axes.set_ylim(-0.03, 1.04)
    axes.set_xlabel("k texts of the highest ratio")


def _constants(axes: Axes, drawn: list[Series], key: str, judge: str, gamma: float) -> None:
    """C with its interval on a log axis.

    An end at 0 or infinity is an arrow, a value there hollow at the edge.
    """
    runs = [(series, result) for series in drawn for result in series.at(gamma)]
    rows = [
        (series, pair)
        for series, result in runs
        for pair in result.attacks[key]["pairs"]
        if pair["judge"] == judge
    ]
    names = list(dict.fromkeys((pair["prompt"], pair["target"]) for _, pair in rows))
    rows = [(series, pair) for series, pair in rows if pair.get("c_low") is not None]
    constants = [pair[name] for _, pair in rows for name in ("c", "c_low", "c_high")]
    inner = [float(c) for c in constants if c is not None and 0 < float(c) < math.inf]
    edges = min([*inner, 0.5]) / 2, max([*inner, 2]) * 2
    counts = dict.fromkeys(names, 0)
    height = 0.8 / max(1, len(runs))
    for series, pair in rows:
        name = (pair["prompt"], pair["target"])
        y = names.index(name) - 0.4 + height * (counts[name] + 0.5)
        counts[name] += 1
        _interval(axes, series, pair, y, edges)
    axes.axvline(1, color=INK, linewidth=1, zorder=1)
    axes.set_xlim(*edges)
    style.plain_log(axes, "x")
    axes.set_ylim(len(names) - 0.5, -0.5)
    labels = [shown_words(f"{prompt}\n→ {target}") for prompt, target in names]
    axes.set_yticks(range(len(names)), labels, fontsize=7.5)
    axes.grid(visible=False, axis="y")
    axes.set_xlabel("C (log scale)")


def _interval(axes: Axes, series: Series, pair: Json, y: float, edges: tuple[float, float]) -> None:
    left, right = edges
    low = float(pair["c_low"])
    high = float(pair["c_high"])
    line: dict[str, Any] = {"color": series.look.color, "linewidth": 1.3}
    dashes: Any = (0, (1, 2))
    if pair["c"] is not None:
        dashes = "-"
        value = float(pair["c"])
        hollow = {} if 0 < value < math.inf else {"fillstyle": "none"}
        marks = series.marks(linestyle="", markersize=5.5) | hollow
        axes.plot([min(max(value, left), right)], [y], zorder=4, clip_on=False, **marks)
    axes.plot([max(low, left), min(high, right)], [y, y], linestyle=dashes, **line)
    arrow = {"arrowstyle": "->", "shrinkA": 0, "shrinkB": 0} | line
    for end, edge, inside in ((low, left, left * 1.25), (high, right, right / 1.25)):
        if end in (0, math.inf):
            axes.annotate("", xy=(edge, y), xytext=(inside, y), arrowprops=arrow)


def _caption(shown: Shown, silent: list[str]) -> str:
    nothing = ""
    if silent:
        nothing = f"No panels for {', '.join(silent)}: nothing of another domain in any text. "
    return (
        "ROC and precision: a model's continuations of held-out prompts are ranked by log p(text | "
        "prompt) per token under the model, minus the same under a reference that was trained "
        "without the target domains; found should be those in which the judge finds text of "
        "another domain. Precision: the share of these among the k highest ratios; the last point "
        "is their share among all, which a ratio that knows nothing would have everywhere. A curve "
        "is missing where the judge flags all texts or none, or there is no text. AUC with a 95 % "
        "interval over draws of dialogues, no narrower than so few of them can tell. C: how many "
        "times as often the model writes text of the target domain as the reference does, with "
        "Koopman's 95 % interval; arrows: the interval "
        "goes on to 0 or ∞; hollow at an edge: C is 0 or ∞; dotted, no mark: neither model wrote "
        "any, so nothing is known of C. An interval wholly above C = 1 shows that text of the "
        "target was learned; one about 1 shows nothing, and none of this is certified. "
        f"{nothing}{_joint(shown.results)}Methods that depend on the policy: simulated miss rate "
        f"γ = {shown.gamma:g}. "
        f"{shown.averaged('C: one line per seed; all else: means over them.')}"
    )


def _joint(results: list[Result]) -> str:
    """A warning where one reference lacks several target domains.

    The definition's own references lack one each; theirs are not what was asked.
    """
    for result in results:
        for metrics in result.all_of(KIND):
            if len({pair["target"] for pair in metrics["pairs"]}) > 1:
                return (
                    "One reference lacks all targets at once, as in the paper's code; Definition "
                    "4.1 leaves out one at a time. "
                )
    return ""
