"""Perplexity of each domain over the certified epsilon of a caught secret.

In Domain Private Transformers (Figures 2, 5, 7 and 9) the paper draws the prompt's domain alone,
and gives training on redacted text an epsilon of 0. That, and every finite value, is of what the
policy catches; for the rest nothing is certified. Its gap of 35 % between two methods counts noised
updates.
"""

from functools import partial

from confide.report.figures.domains import ppl, tested
from confide.report.figures.epsilon_axis import (
    Row,
    Track,
    belongs,
    caught,
    caught_axis,
    caught_meanings,
    caught_point,
    rows_of,
)
from confide.report.figures.frame import Drawn, Shown, figure
from confide.report.figures.series import Series, group
from confide.report.results import Meaning


@figure(
    "Perplexity of each domain against ε",
    lambda result: tested([result]) and caught(result) is not None,
)
def domain_epsilon(shown: Shown) -> Drawn:
    """One row per corpus, meaning of epsilon and domain, and one for all domains.

    Panels are for epsilon = 0, finite and infinite.
    """
    rows = [
        Row(
            name=f"{name}, {f'{domain} text' if domain else 'text of all domains'}",
            tracks=_tracks(group(results), shown.gamma, meaning, domain),
            epsilon=caught_axis(meaning),
        )
        for name, results in shown.corpora.items()
        for meaning in caught_meanings(results)
        for domain in (*tested(results), None)
    ]
    drawn, _ = rows_of(0.2 + 2.5 * len(rows), rows)
    return drawn, _caption(shown), shown.handles()


def _tracks(drawn: list[Series], gamma: float, meaning: Meaning, domain: str | None) -> list[Track]:
    """Final models, at the mean of perplexity over the seeds, with its interval."""
    tracks = []
    for series in drawn:
        runs = series.at(gamma)
        point = caught_point(runs, partial(ppl, domain=domain))
        if point and belongs(point, runs[0], meaning):
            tracks.append(Track(series, (point,)))
    return tracks


def _caption(shown: Shown) -> str:
    return (
        "Lower left is better. Test perplexity on the original text of one domain (the paper draws "
        "that of the prompts alone) and of all, over the ε that is certified for a secret that the "
        "policy catches; final models, those of one ε side by side. ε = 0 and finite values hold "
        "for what the policy catches only: for what it misses nothing is certified by training on "
        "redacted text (ε = ∞), and a policy that was fitted to the private text is itself no part "
        "of the ε. Domain privacy is another claim, which none of these ε makes; see the leak "
        "rates. Methods whose noise was made for the same ε differ in perplexity alone: the "
        "paper's gap of 35 % comes of noise that was made for every update, where few were noised. "
        f"Methods that depend on the policy: simulated miss rate γ = {shown.gamma:g}. Horizontal "
        f"lines carry models with ε = 0 or ∞ across the panels. {shown.averaged()}"
    )
