"""How often text of other domains comes out, over test perplexity (DPT, Figures 1, 4, 6 and 8).

The paper, Domain Private Transformers, calls the rate the success of a likelihood-ratio attack and
reads it with the policy that redacted the training text. Here every judge has a column, and in each
stands what it flags of real text: its false alarms, and what there is to be found.
"""

from functools import partial
from typing import Any

from matplotlib.axes import Axes

from confide.methods import METHODS
from confide.report.figures import style
from confide.report.figures.domains import (
    Question,
    false_alarms,
    judges,
    ppl,
    questions,
    rate,
    real_text,
)
from confide.report.figures.frame import Drawn, Shown, figure
from confide.report.figures.series import Series, group, mark, pooled
from confide.report.figures.style import INK, NULL
from confide.report.results import Result
from confide.report.seeds import Estimate, over_seeds

REAL = (0, (6, 2))


@figure(
    "Text of other domains",
    lambda result: questions([result]),
    "no run of this study was prompted with one domain for text of another",
)
def leak(shown: Shown) -> Drawn:
    """A row per corpus and question over perplexity of the prompt's domain, a column per judge."""
    gamma = shown.gamma
    who = judges(shown.results)
    rows = [
        (name, results, question)
        for name, results in shown.corpora.items()
        for question in questions(results)
    ]
    drawn, grid = style.panels(
        style.WIDTH, 0.3 + 2.3 * len(rows), len(rows), len(who), sharey="row"
    )
    for line, (name, results, question) in zip(grid, rows, strict=True):
        top = max(0.1, *(_top(results, question, judge, gamma) for judge in who))
        for axes, judge in zip(line, who, strict=True):
            _panel(axes, results=results, question=question, judge=judge, gamma=gamma)
            axes.set_xlabel(f"test perplexity, {question.prompt}")
        line[0].set_ylim(-0.06 * top, top)
        line[0].set_ylabel(f"{name}: leak rate,\n{question.prompt} prompts")
    for axes, judge in zip(grid[0], who, strict=True):
        axes.set_title(f"judge: {judge}")
    false = "real text of the prompt's domain\n(false alarms of the judge), 95 %"
    legend = [
        *shown.handles(),
        style.band(false),
        style.entry("real text of a target domain", color=INK, linestyle=REAL, linewidth=1),
    ]
    return drawn, _caption(shown), legend


def point(
    runs: list[Result], question: Question, judge: str, domain: str | None
) -> tuple[Estimate, Estimate] | None:
    """Perplexity and leak rate over the runs that have both.

    Of the perplexity mean and interval, of the leak rate means of rate and interval's ends.
    """
    both = [
        (x, y)
        for result in runs
        if (x := ppl(result, domain)) is not None and (y := rate(result, question, judge))
    ]
    if not both:
        return None
    return over_seeds([x for x, _ in both]), pooled(y for _, y in both)


def _panel(
    axes: Axes,
    *,
    results: list[Result],
    question: Question,
    judge: str,
    gamma: float,
) -> None:
    real = real_text(results, question, judge)
    if (band := false_alarms(results, question, judge)) is not None:
        axes.axhspan(*band, color=NULL, zorder=0, linewidth=0)
    for level in real.values():
        axes.axhline(level, color=INK, linestyle=REAL, linewidth=1, zorder=1)
    for series in group(results):
        if (place := point(series.at(gamma), question, judge, question.prompt)) is not None:
            _mark(axes, series, *place)
    style.plain_log(axes, "x")
    note = "\n".join(f"real {target} text: {share:.2f}" for target, share in real.items())
    corner: dict[str, Any] = {"transform": axes.transAxes, "ha": "right", "va": "top"}
    axes.text(0.99, 0.985, note, fontsize=7.5, zorder=5, bbox=style.BOX, **corner)


def _mark(axes: Axes, series: Series, x: Estimate, y: Estimate) -> None:
    """A model with its whiskers; a reference that knows no other domain has a line, too."""
    look = series.look
    mark(axes, series, x, y, {"linewidth": 1.2}, zorder=4, markersize=9)
    method = METHODS.get(series.results[0].run.method)
    if method is not None and method.needs_domains:
        axes.axhline(y.value, color=look.color, linestyle=look.line, linewidth=1.1, zorder=1)


def _top(results: list[Result], question: Question, judge: str, gamma: float) -> float:
    """What of a panel must be in sight: models and false alarms.

    A line for real text may lie above.
    """
    runs = [result for series in group(results) for result in series.at(gamma)]
    rates = [share for result in runs if (share := rate(result, question, judge))]
    _, alarms = false_alarms(results, question, judge) or (0.0, 0.0)
    return min(1.03, 1.08 * max([alarms, *(share.high for share in rates)]))


def _each(results: list[Result], name: str) -> str:
    """The values of a number of the leak attacks, each once."""
    attacks = (metrics for result in results for metrics in result.all_of("leak"))
    return ", ".join(dict.fromkeys(str(metrics[name]) for metrics in attacks if metrics["pairs"]))


def _caption(shown: Shown) -> str:
    each = partial(_each, shown.results)
    seeds = "Means over {} seeds (small dots); horizontal whiskers: 95 % interval (Student's t), "
    seeds += "vertical ones: means of the seeds' own."
    return (
        "Lower left is better. Leak rate: share of a model's continuations of held-out prompts of "
        "one domain in which a judge finds text of another, of those that are not empty "
        f"({each('generations')} of {each('prompts')} prompts from {each('dialogues')} dialogues). "
        "The paper calls it the success rate of a likelihood-ratio attack; no ratio is in it. A "
        "judge is a policy that knows the domains; one that redacted the training text is lenient "
        "with what it let through. gold: the text holds a secret that stands in the training text "
        "of the other domain alone, and not in the prompt. Vertical whiskers: 95 % interval, with "
        "dialogues as clusters. Grey: what the judge flags of real text of the prompt's domain (of "
        "several target domains, from the largest share of one to the sum of all): a rate within "
        "it shows no leak. Dashed, and in the corner: what it flags of real text of a target "
        "(the line may lie above the panel). Axes of perplexity are logarithmic. A model that was "
        "trained on one domain alone has a line, too: with prompts of its own domain it has "
        "nothing to leak. Perplexity is of the prompt's domain, as published (of all domains: in "
        "the table). Methods that depend on the policy: simulated miss rate "
        f"γ = {shown.gamma:g}. {shown.averaged(seeds)}"
    )
