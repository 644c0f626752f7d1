"""What models know of secrets against what is certified for them (Selective-DP Figure 5).

The measure is perplexity on the policy's tokens. Anonymised training has never seen these tokens,
so that their raw perplexity (what the paper draws, hollow here) is that of text which cannot occur.
The fair score is of <MASK> and a guess among the vocabulary for each token that it stands for.
"""

from typing import Any

from confide.report.figures import style
from confide.report.figures.epsilon_axis import (
    Row,
    Track,
    any_hollow,
    belongs,
    caught,
    caught_axis,
    caught_meanings,
    caught_point,
    rows_of,
)
from confide.report.figures.frame import Drawn, Shown, figure
from confide.report.figures.series import Series
from confide.report.figures.style import DOTTED, INK
from confide.report.results import Meaning, Result

RAW = "ppl_marked"
FAIR = "ppl_marked_backoff"
WORDS = {  # field of an evaluation -> what it is
    "ppl_uniform": "all tokens alike",
    "ppl_unigram_private": "each token as often as in\nthe training text (unigram)",
}
LINES: dict[str, dict[str, Any]] = {
    "ppl_uniform": {"color": INK, "linestyle": DOTTED, "linewidth": 1.2},
    "ppl_unigram_private": {"color": INK, "linestyle": (0, (6, 2)), "linewidth": 1.2},
}


@figure(
    "What is known of secrets",
    lambda result: result.evaluation.get(RAW) is not None and caught(result) is not None,
)
def private_ppl(shown: Shown) -> Drawn:
    """One row per corpus and meaning of epsilon; panels for 0, finite and infinite."""
    panels = [
        (name, meaning)
        for name, results in shown.corpora.items()
        for meaning in caught_meanings(results)
    ]
    rows = [
        Row(
            name=f"{name}, tokens that the policy marks",
            tracks=_tracks(shown.series[name], shown.gamma, meaning),
            epsilon=caught_axis(meaning),
            levels=_references(shown.corpora[name]),
        )
        for name, meaning in panels
    ]
    drawn, _ = rows_of(0.2 + 2.4 * len(rows), rows)
    masked = any_hollow(rows)
    raw = "masked text only, scored\non raw text (as published)"
    legend = [
        *shown.handles(),
        *([style.dot(raw, 9, fillstyle="none", markeredgewidth=1.6)] if masked else []),
        *(style.entry(WORDS[field], **reference) for field, reference in LINES.items()),
    ]
    return drawn, _caption(shown, masked), legend


def _tracks(drawn: list[Series], gamma: float, meaning: Meaning) -> list[Track]:
    """Final models; one that was trained on masked text alone (epsilon = 0) twice.

    That is fair, and hollow as published.
    """
    tracks = []
    for series in drawn:
        runs = series.at(gamma)
        raw = caught_point(runs, lambda result: result.evaluation.get(RAW))
        fair = caught_point(runs, lambda result: result.evaluation.get(FAIR))
        if raw is None:
            continue
        if raw.epsilon == 0:
            tracks.append(Track(series, (raw,), hollow=True))
            tracks += [Track(series, (fair,))] if fair is not None else []
        elif belongs(raw, runs[0], meaning):
            tracks.append(Track(series, (raw,)))
    return tracks


def _references(results: list[Result]) -> list[tuple[float, dict[str, Any]]]:
    """Perplexities of guesses that know no model, behind all else."""
    levels = []
    for field, line in LINES.items():
        values = (result.evaluation.get(field) for result in results)
        value = next((value for value in values if value is not None), None)
        if value is not None:
            levels.append((value, line | {"zorder": 1}))
    return levels


def _caption(shown: Shown, masked: bool) -> str:
    """`masked`: whether a model was trained on masked text alone."""
    of_masked = (
        "ε = 0: trained on masked text, and never shown what is masked. "
        "Hollow: scored on the raw text all the same, as the paper does; filled, with the line: "
        "scored on <MASK> and then a guess among the vocabulary for each token behind it. "
    )
    return (
        "Test perplexity of the tokens that the screening policy marks (log scale, lower is "
        "better) over the ε that is certified for a secret that it catches; final models, "
        f"simulated miss rate γ = {shown.gamma:g} where a method depends on the policy. Dotted: a "
        "guess among all tokens alike. A model above that line has learned nothing of secrets, "
        "whatever its ε. Dashed: guessing each token as often as it stands in the training text, "
        f"scored on gold secrets. {of_masked * masked}Low perplexity can be memorised secrets as "
        f"well as learned formats; read it beside the attacks. {shown.averaged()}"
    )
