"""How often text of other domains comes out, over test perplexity (Domain Private Transformers,
Figures 1, 4, 6 and 8).

The paper calls the rate the success of a likelihood-ratio attack and reads it with the policy that
redacted the training text. Here every judge has a column, and in each stands what it flags of real
text: its false alarms, and what there is to be found.
"""

from typing import Any

from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.patches import Patch

from confide.report.figures.domains import (
    Question,
    Rate,
    false_alarms,
    judges,
    ppl,
    questions,
    rate,
    real_text,
)
from confide.report.figures.series import Series, averaged, chosen_gamma, corpora, group
from confide.report.figures.style import INK, NULL, blank, figure, legend, plain_log, title
from confide.report.results import Result
from confide.specs import ReportSpec

REAL = (0, (6, 2))


def leak(spec: ReportSpec, results: list[Result]) -> Figure:
    """Two rows per corpus and question, over the perplexity of the prompt's domain and of all; a
    column per judge.
    """
    known = [result for result in results if questions([result])]
    gamma = chosen_gamma(spec.gamma, known)
    who = judges(known)
    asked = [
        (name, one)
        for name in corpora(known)
        for one in questions([r for r in known if r.corpus == name])
    ]
    if not asked:
        return blank("no run of this study was prompted with one domain for text of another")
    drawn = figure(4.4 + 3.1 * max(2, len(who)), 2.0 + 5.4 * len(asked))
    grid = drawn.subplots(2 * len(asked), len(who), squeeze=False, sharey="row")
    for number, (name, question) in enumerate(asked):
        own = [result for result in known if result.corpus == name]
        for line, domain in zip(
            grid[2 * number : 2 * number + 2], (question.prompt, None), strict=True
        ):
            for axes, judge in zip(line, who, strict=True):
                _panel(axes, own=own, question=question, judge=judge, domain=domain, gamma=gamma)
                axes.set_title(f"judge: {judge}", loc="left")
                shown = real_text(own, question, judge).items()
                axes.set_title(
                    "\n".join(f"real {one} text: {x:.2f}" for one, x in shown),
                    loc="right",
                    fontsize=6.8,
                )
            top = max(0.1, *(_top(own, question, judge, gamma) for judge in who))
            line[0].set_ylim(-0.06 * top, top)
            line[0].set_ylabel(f"{name}: leak rate,\n{question.prompt} prompts")
    title(drawn, f"Text of other domains — {spec.title}", _caption(known, gamma))
    extra: list[Any] = [
        Patch(
            color=NULL, label="real text of the prompt's domain\n(false alarms of the judge), 95 %"
        ),
        Line2D(
            [], [], color=INK, linestyle=REAL, linewidth=1, label="real text of a target domain"
        ),
    ]
    legend(drawn, [*(series.handle() for series in group(known)), *extra])
    return drawn


def point(
    runs: list[Result], question: Question, judge: str, domain: str | None
) -> tuple[Rate, Rate] | None:
    """Perplexity (mean and range) and leak rate (means of rate and interval's ends) over the runs
    that have both.
    """
    pairs = [(ppl(result, domain), rate(result, question, judge)) for result in runs]
    both = [(x, y) for x, y in pairs if x is not None and y is not None]
    if not both:
        return None
    x, y = zip(*both, strict=True)
    return Rate(sum(x) / len(x), min(x), max(x)), Rate(
        *(sum(ends) / len(ends) for ends in zip(*y, strict=True))
    )


def _panel(
    axes: Axes, own: list[Result], question: Question, judge: str, domain: str | None, gamma: float
) -> None:
    _real(axes, own, question, judge)
    for series in group(own):
        if (found := point(series.at(gamma), question, judge, domain)) is not None:
            _mark(axes, series, *found)
    plain_log(axes, "x")
    words = f"{domain} (as published)" if domain else "all domains"
    axes.set_xlabel(f"test perplexity, {words}")


def _mark(axes: Axes, series: Series, x: Rate, y: Rate) -> None:
    """A model with its whiskers; a reference that knows no other domain has a line, too."""
    own = series.look
    axes.plot([x.value] * 2, [y.low, y.high], color=own.color, linewidth=1.2)
    axes.plot([x.low, x.high], [y.value] * 2, color=own.color, linewidth=1.2)
    axes.plot([x.value], [y.value], zorder=4, **series.marks(linestyle="", markersize=9))
    if series.results[0].run.method == "domain_only":
        axes.axhline(y.value, color=own.color, linestyle=own.line, linewidth=1.1, zorder=1)


def _real(axes: Axes, own: list[Result], question: Question, judge: str) -> None:
    """What the judge flags of real text: a band for the prompt's domain, a line for each target's
    own.
    """
    if (band := false_alarms(own, question, judge)) is not None:
        axes.axhspan(*band, color=NULL, zorder=0, linewidth=0)
    for level in real_text(own, question, judge).values():
        axes.axhline(level, color=INK, linestyle=REAL, linewidth=1, zorder=1)


def _top(own: list[Result], question: Question, judge: str, gamma: float) -> float:
    """What of a panel must be in sight: models and false alarms; a line for real text may lie
    above.
    """
    found = [rate(result, question, judge) for series in group(own) for result in series.at(gamma)]
    band = false_alarms(own, question, judge)
    return min(
        1.03,
        1.08 * max([one.high for one in found if one is not None] + ([band[1]] if band else [0.0])),
    )


def _caption(known: list[Result], gamma: float) -> str:
    def each(name: str) -> str:
        attacks = (
            metrics for result in known for metrics in result.all_of("leak") if metrics["pairs"]
        )
        return ", ".join(dict.fromkeys(str(metrics[name]) for metrics in attacks))

    seeds = len({result.run.seed for result in known})
    return (
        "Lower left is better. Leak rate: share of a model's continuations of held-out prompts of one domain in which a judge "
        f"finds text of another, of those that are not empty ({each('generations')} of {each('prompts')} prompts from "
        f"{each('dialogues')} dialogues). The paper calls it the success rate of a likelihood-ratio attack; no ratio is in it. "
        "A judge is a policy that knows the domains; one that redacted the training text is lenient with what it let through. "
        "gold: the text holds a secret that stands in the training text of the other domain alone, and not in the prompt. "
        "Vertical whiskers: 95 % interval, with dialogues as clusters. Grey: what the judge flags of real text of the prompt's "
        "domain (of several target domains, from the largest share of one to the sum of all): a rate within it shows no leak. "
        "Dashed, and above each panel: what it flags of real text of a target (the line may lie above the panel). Axes of "
        "perplexity are logarithmic. A model that "
        "was trained on one domain alone has a line, too: with prompts of its own domain it has nothing to leak. Rows in turn: "
        "over the test perplexity of the prompt's domain, as published, and of all domains. Methods that depend on the policy: "
        f"simulated miss rate γ = {gamma:g}. "
        f"{averaged(seeds, 'Means over {} seeds, of the intervals too; horizontal whiskers: their range.')}"
    )
