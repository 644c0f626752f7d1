"""What models know of secrets against what is certified for them (Selective-DP Figure 5):
perplexity on the policy's tokens.

Anonymised training has never seen these tokens, so that their raw perplexity (what the paper draws,
hollow here) is that of text which cannot occur. The fair score is of <MASK> and a guess among the
vocabulary for each token that it stands for.
"""

from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D

from confide.report.figures.epsilon_axis import APART, Point, Track, finite_meanings, grid, row
from confide.report.figures.series import Series, averaged, chosen_gamma, corpora, group
from confide.report.figures.style import FAINT, INK, blank, figure, legend, title
from confide.report.results import Meaning, Result
from confide.specs import ReportSpec

CLAIM = "secret_caught"
RAW = "ppl_marked"
FAIR = "ppl_marked_backoff"
REFERENCES = {  # field of an evaluation -> its line and what it is
    "ppl_uniform": ((0, (1, 1.5)), "all tokens alike"),
    "ppl_unigram_private": ((0, (6, 2)), "each token as often as in\nthe training text (unigram)"),
}


def private_ppl(spec: ReportSpec, results: list[Result]) -> Figure:
    """One row per corpus and meaning of epsilon; panels for epsilon = 0, finite and infinite; final
    models.
    """
    known = [
        result
        for result in results
        if result.evaluation.get(RAW) is not None and result.claim(CLAIM) is not None
    ]
    gamma = chosen_gamma(spec.gamma, known)
    rows = [(name, meaning) for name in corpora(known) for meaning in _meanings(known, name)]
    if not rows:
        return blank("no run of this study has these measurements")
    drawn = figure(10.6, 1.9 + 3.3 * len(rows))
    for line, (name, meaning) in zip(grid(drawn, len(rows)), rows, strict=True):
        own = [result for result in known if result.corpus == name]
        words = f"certified ε of a secret that the policy catches (log scale)\n{meaning.words}"
        row(
            line,
            _tracks(group(known, name), gamma, meaning),
            f"{name}, tokens that the policy marks",
            words,
            "test perplexity",
        )
        for axes in line:
            _references(axes, own)
    title(drawn, f"What is known of secrets — {spec.title}", _caption(known, gamma))
    extra = [Line2D([], [], color=FAINT, marker="o", markersize=9, linestyle="", fillstyle="none", markeredgewidth=1.6,
                    label="masked text only, scored\non raw text (as published)")]  # fmt: skip
    lines = [
        Line2D([], [], color=INK, linestyle=style, linewidth=1.2, label=words)
        for style, words in REFERENCES.values()
    ]
    legend(
        drawn,
        [
            *(Line2D([], [], **series.marks(label=series.label)) for series in group(known)),
            *extra,
            *lines,
        ],
    )
    return drawn


def _meanings(known: list[Result], name: str) -> list[Meaning]:
    own = (result for result in known if result.corpus == name)
    return finite_meanings((result.claim(CLAIM), result.meaning_of(CLAIM)) for result in own)


def _tracks(drawn: list[Series], gamma: float, meaning: Meaning) -> list[Track]:
    """Final models; one that was trained on masked text alone (epsilon = 0) twice: fair, and hollow
    as published.
    """
    found = []
    for series in drawn:
        runs = series.at(gamma)
        raw = _point(runs, RAW)
        fair = _point(runs, FAIR)
        if raw is None:
            continue
        if raw.epsilon == 0:
            found.append(Track(series, (raw,), hollow=True))
            found += [Track(series, (fair,))] if fair is not None else []
        elif raw.epsilon in APART or runs[0].meaning_of(CLAIM) == meaning:
            found.append(Track(series, (raw,)))
    return found


def _point(runs: list[Result], field: str) -> Point | None:
    """Mean and range over the seeds that have the number."""
    known = [
        (result.claim(CLAIM), value)
        for result in runs
        if (value := result.evaluation.get(field)) is not None
    ]
    if not known:
        return None
    epsilons, values = zip(*known, strict=True)
    return Point(sum(epsilons) / len(known), sum(values) / len(known), min(values), max(values))


def _references(axes: Axes, own: list[Result]) -> None:
    for field, (style, _) in REFERENCES.items():
        value = next(
            (value for result in own if (value := result.evaluation.get(field)) is not None), None
        )
        if value is not None:
            axes.axhline(value, color=INK, linestyle=style, linewidth=1.2, zorder=1)


def _caption(known: list[Result], gamma: float) -> str:
    seeds = len({result.run.seed for result in known})
    return (
        "Test perplexity of the tokens that the screening policy marks (log scale, lower is better) over the ε that is "
        f"certified for a secret that it catches; final models, simulated miss rate γ = {gamma:g} where a method "
        "depends on the policy. "
        "Dotted: a guess among all tokens alike. A model above that line has learned nothing of secrets, whatever its ε. "
        "Dashed: guessing each token as often as it stands in the training text, scored on gold secrets. ε = 0: trained on "
        "masked text, and never shown what is masked. Hollow: scored on the raw text all the same, as the paper does; "
        "filled, with the line: scored on <MASK> and then a guess among the vocabulary for each token behind it. "
        "Low perplexity can be memorised secrets as well as learned formats; read it beside the attacks. "
        f"{averaged(seeds)}"
    )
