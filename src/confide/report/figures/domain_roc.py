"""Likelihood ratios of what models write when prompted with another domain, and C of domain privacy
(Definition 4.1).

Domain Private Transformers ranks texts by such a ratio and prints the highest (Tables 2 and 3); how
well the ratio tells leaked text from other text is the curve and the precision here. C = Pr[target
writes of d_j] / Pr[a model without d_j does].
"""

import math
from typing import Any

from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D

from confide.output.escaping import figure as shown_words
from confide.report.figures.domains import judges
from confide.report.figures.series import Series, averaged, chosen_gamma, corpora, group
from confide.report.figures.style import BOX, FAINT, INK, blank, figure, legend, plain_log, title
from confide.report.results import Json, Result
from confide.specs import ReportSpec

KIND = "domain_lira"
GUESS = (0, (4, 3))


def domain_roc(spec: ReportSpec, results: list[Result]) -> Figure:
    """For each corpus and attack three rows: ROC, precision at k, C of each pair of domains; a
    column per judge.
    """
    known = [
        result for result in results if any(metrics["pairs"] for metrics in result.all_of(KIND))
    ]
    gamma = chosen_gamma(spec.gamma, known)
    asked = judges(known, KIND)
    who = [
        judge
        for judge in asked
        if any(_finds(metrics, judge) for result in known for metrics in result.all_of(KIND))
    ]
    blocks = [
        (name, key)
        for name in corpora(known)
        for key in _keys([r for r in known if r.corpus == name])
    ]
    if not blocks:
        return blank("no run of this study has these measurements")
    if not who:
        return blank(
            f"no text that a model wrote is of another domain, as {', '.join(asked)} judge it"
        )
    drawn = figure(4.4 + 3.2 * max(2, len(who)), 2.0 + 9.2 * len(blocks))
    grid = drawn.subplots(3 * len(blocks), len(who), squeeze=False)
    for number, (name, key) in enumerate(blocks):
        shown = [result for result in known if result.corpus == name and key in result.attacks]
        for column, judge in enumerate(who):
            for axes, draw in zip(
                grid[3 * number : 3 * number + 3, column],
                (_roc, _precision, _constants),
                strict=True,
            ):
                draw(axes, group(shown), key, judge, gamma)
                axes.set_title(
                    f"{key.removeprefix(KIND).strip()} prompts, judge: {judge}", loc="left"
                )
        for axes, words in zip(
            grid[3 * number : 3 * number + 3, 0], ("true positive rate", "precision"), strict=False
        ):
            axes.set_ylabel(f"{name}: {words}")
    silent = [judge for judge in asked if judge not in who]
    title(
        drawn,
        f"Likelihood ratios and domain privacy — {spec.title}",
        _caption(known, gamma, silent),
    )
    extra = [
        Line2D([], [], color=FAINT, linestyle=GUESS, linewidth=1.2, label="guessing (ROC)"),
        Line2D(
            [],
            [],
            color=INK,
            linewidth=1,
            label="C = 1: no more than a model\nwithout the target's text",
        ),
    ]
    legend(drawn, [*(series.handle() for series in group(known)), *extra])
    return drawn


def _keys(own: list[Result]) -> list[str]:
    attacks = (item for result in own for item in result.attacks.items())
    return list(
        dict.fromkeys(
            key for key, metrics in attacks if metrics["attack"] == KIND and metrics["pairs"]
        )
    )


def _finds(metrics: Json, judge: str) -> bool:
    """Whether a judge flags any text, of the model or of its reference."""
    return any(pair["judge"] == judge and pair["c"] is not None for pair in metrics["pairs"])


def _ranked(series: Series, key: str, judge: str, gamma: float) -> list[Json]:
    """What each seed's ratio is worth, where the judge flags some of the texts and not all."""
    found = [result.attacks[key].get("ranked", {}).get(judge, {}) for result in series.at(gamma)]
    return [one for one in found if one.get("auc") is not None]


def _roc(axes: Axes, drawn: list[Series], key: str, judge: str, gamma: float) -> None:
    """A curve per run; the areas under them in the corner where only what is worse than guessing
    could run.
    """
    axes.plot([0, 1], [0, 1], color=FAINT, linewidth=1.2, linestyle=GUESS, zorder=1)
    for number, series in enumerate(drawn):
        found = _ranked(series, key, judge, gamma)
        for one in found:
            curve = one["roc"]
            place = [
                min(range(len(curve["fpr"])), key=lambda i: abs(curve["fpr"][i] - at))
                for at in (0.1, 0.3, 0.6)
            ]
            marks = series.marks(markevery=sorted(set(place)), markersize=5)
            axes.plot(curve["fpr"], curve["tpr"], drawstyle="steps-post", **marks)
        words: dict[str, Any] = {
            "transform": axes.transAxes,
            "ha": "right",
            "va": "bottom",
            "fontsize": 6.6,
            "bbox": BOX,
        }
        height = 0.02 + 0.055 * (len(drawn) - 1 - number)
        axes.text(0.99, height, f"{series.label}: {_area(found)}", color=series.look.color, **words)
    axes.set_xlim(-0.01, 1.01)
    axes.set_ylim(-0.01, 1.01)
    axes.set_xlabel("false positive rate")


def _area(found: list[Json]) -> str:
    """Means of the seeds' areas and of their intervals' ends, where there are any."""
    if not found:
        return "no curve"
    mean = sum(one["auc"] for one in found) / len(found)
    ends = [[one[f"auc_{end}"] for one in found] for end in ("low", "high")]
    if any(None in end for end in ends):
        return f"AUC {mean:.2f}"
    low, high = (sum(end) / len(found) for end in ends)
    return f"AUC {mean:.2f} [{low:.2f}, {high:.2f}]"


def _precision(axes: Axes, drawn: list[Series], key: str, judge: str, gamma: float) -> None:
    """Share of flagged texts among the k highest ratios, and among all; means over the seeds that
    have so many texts.
    """
    found = [(series, _ranked(series, key, judge, gamma)) for series in drawn]
    tops = sorted(
        {
            int(top)
            for _, seeds in found
            for one in seeds
            for top, value in one["precision"].items()
            if value is not None
        }
    )
    for series, seeds in found:
        values = [[one["precision"].get(str(top)) for one in seeds] for top in tops]
        values.append([one["flagged"] / one["of"] for one in seeds])
        known = [
            (place, [value for value in each if value is not None])
            for place, each in enumerate(values)
        ]
        points = [(place, sum(each) / len(each)) for place, each in known if each]
        axes.plot([x for x, _ in points], [y for _, y in points], **series.marks())
    axes.set_xticks(range(len(tops) + 1), [*(f"{top:,}" for top in tops), "all"])
    axes.set_xlim(-0.3, len(tops) + 0.3)
    axes.set_ylim(-0.03, 1.04)
    axes.set_xlabel("k texts of the highest ratio")


def _constants(axes: Axes, drawn: list[Series], key: str, judge: str, gamma: float) -> None:
    """C with its interval on a log axis; an end at 0 or infinity is an arrow, a value there hollow
    at the edge.
    """
    runs = [(series, result) for series in drawn for result in series.at(gamma)]
    rows = [
        (series, pair)
        for series, result in runs
        for pair in result.attacks[key]["pairs"]
        if pair["judge"] == judge
    ]
    pairs = list(dict.fromkeys((pair["prompt"], pair["target"]) for _, pair in rows))
    rows = [(series, pair) for series, pair in rows if pair.get("c_low") is not None]
    inner = [value for _, pair in rows for value in _numbers(pair) if 0 < value < math.inf]
    left = min([*inner, 0.5]) / 2
    right = max([*inner, 2]) * 2
    counts = dict.fromkeys(pairs, 0)
    height = 0.8 / max(1, len(runs))
    for series, pair in rows:
        place = (pair["prompt"], pair["target"])
        y = pairs.index(place) - 0.4 + height * (counts[place] + 0.5)
        counts[place] += 1
        _interval(axes, series, pair, y, (left, right))
    axes.axvline(1, color=INK, linewidth=1, zorder=1)
    axes.set_xlim(left, right)
    plain_log(axes, "x")
    axes.set_ylim(len(pairs) - 0.5, -0.5)
    axes.set_yticks(
        range(len(pairs)),
        [shown_words(f"{prompt}\n→ {target}") for prompt, target in pairs],
        fontsize=7.5,
    )
    axes.grid(visible=False, axis="y")
    axes.set_xlabel("C (log scale)")


def _numbers(pair: Json) -> list[float]:
    """C, where it is a number, and the ends of its interval."""
    return [float(pair[name]) for name in ("c", "c_low", "c_high") if pair[name] is not None]


def _interval(axes: Axes, series: Series, pair: Json, y: float, edges: tuple[float, float]) -> None:
    left, right = edges
    low = float(pair["c_low"])
    high = float(pair["c_high"])
    color = series.look.color
    if pair["c"] is not None:
        value = float(pair["c"])
        hollow = {} if 0 < value < math.inf else {"fillstyle": "none"}
        marks = series.marks(linestyle="", markersize=5.5) | hollow
        axes.plot([min(max(value, left), right)], [y], zorder=4, clip_on=False, **marks)
    style = "-" if pair["c"] is not None else (0, (1, 2))
    axes.plot(
        [max(low, left), min(high, right)], [y, y], color=color, linewidth=1.3, linestyle=style
    )
    for end, edge, inside in ((low, left, left * 1.25), (high, right, right / 1.25)):
        if end in (0, math.inf):
            arrow = {
                "arrowstyle": "->",
                "color": color,
                "linewidth": 1.3,
                "shrinkA": 0,
                "shrinkB": 0,
            }
            axes.annotate("", xy=(edge, y), xytext=(inside, y), arrowprops=arrow)


def _caption(known: list[Result], gamma: float, silent: list[str]) -> str:
    seeds = len({result.run.seed for result in known})
    nothing = (
        f"No panels for {', '.join(silent)}: nothing of another domain in any text. "
        if silent
        else ""
    )
    return (
        "ROC and precision: a model's continuations of held-out prompts are ranked by log p(text | prompt) per token under the "
        "model, minus the same under a reference that was trained without the target domains; found should be those in which "
        "the judge finds text of another domain. Precision: the share of these among the k highest ratios; the last point is "
        "their share among all, which a ratio that knows nothing would have everywhere. A curve is missing where the judge "
        "flags all texts or none, or there is no text. AUC with a 95 % interval over draws of dialogues. "
        "C: how many times as often the model "
        "writes text of the target domain as the reference does, with Koopman's 95 % interval; arrows: the interval goes on to "
        "0 or ∞; hollow at an edge: C is 0 or ∞; dotted, no mark: neither model wrote any, so nothing is known of C. "
        "An interval wholly above C = 1 shows that text of the target was learned; one about 1 shows nothing, and none of this "
        f"is certified. {nothing}{_joint(known)}"
        f"Methods that depend on the policy: simulated miss rate γ = {gamma:g}. "
        f"{averaged(seeds, 'ROC and C: one line per seed; precision: means over them.')}"
    )


def _joint(known: list[Result]) -> str:
    """Where one reference lacks several target domains, the definition's own, which lack one each,
    are not what was asked.
    """
    attacks = [metrics for result in known for metrics in result.all_of(KIND)]
    several = any(len({pair["target"] for pair in metrics["pairs"]}) > 1 for metrics in attacks)
    return (
        "One reference lacks all targets at once, as in the paper's code; Definition 4.1 leaves out one at a time. "
        * several
    )
