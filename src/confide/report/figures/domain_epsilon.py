"""Perplexity of each domain over the certified epsilon of a caught secret.

In Domain Private Transformers (Figures 2, 5, 7 and 9) the paper draws the prompt's domain alone,
and gives training on redacted text an epsilon of 0. That, and every finite value, is of what the
policy catches; for the rest nothing is certified. Its gap of 35 % between two methods counts noised
updates.
"""

import math

from matplotlib.figure import Figure

from confide.report.figures import style
from confide.report.figures.domains import ppl, tested
from confide.report.figures.epsilon_axis import (
    APART,
    CAUGHT,
    CAUGHT_AXIS,
    Track,
    caught_meanings,
    caught_point,
    grid,
    row,
)
from confide.report.figures.series import (
    Series,
    averaged,
    by_corpus,
    chosen_gamma,
    group,
    handles,
)
from confide.report.results import Meaning, Result
from confide.specs import ReportSpec

STEP = 1.045  # between markers that are drawn side by side


def domain_epsilon(spec: ReportSpec, results: list[Result]) -> Figure:
    """One row per corpus, meaning of epsilon and domain, and one for all domains.

    Panels are for epsilon = 0, finite and infinite.
    """
    known = [result for result in results if tested([result]) and result.claim(CAUGHT) is not None]
    if not known:
        return style.blank()
    gamma = chosen_gamma(spec.gamma, known)
    rows = [
        (name, own, meaning, domain)
        for name, own in by_corpus(known).items()
        for meaning in caught_meanings(own)
        for domain in (*tested(own), None)
    ]
    drawn = style.figure(10.6, 1.9 + 2.9 * len(rows))
    for line, (name, own, meaning, domain) in zip(grid(drawn, len(rows)), rows, strict=True):
        row(
            line,
            _tracks(group(own), gamma, meaning, domain),
            name=f"{name}, {f'{domain} text' if domain else 'text of all domains'}",
            epsilon=f"{CAUGHT_AXIS}\n{meaning.words}",
            quality="test perplexity",
        )
    heading = f"Perplexity of each domain against ε — {spec.title}"
    return style.finish(drawn, heading, _caption(known, gamma), handles(known))


def _tracks(drawn: list[Series], gamma: float, meaning: Meaning, domain: str | None) -> list[Track]:
    """Final models, at the mean and range of perplexity over the seeds."""
    found = []
    for series in drawn:
        runs = series.at(gamma)
        point = caught_point(runs, lambda result: ppl(result, domain))
        if point and (point.epsilon in APART or runs[0].meaning_of(CAUGHT) == meaning):
            found.append(Track(series, (point,)))
    return side_by_side(found)


def side_by_side(tracks: list[Track]) -> list[Track]:
    """Move models that were calibrated to one epsilon (to 1 %) around it, next to each other."""
    places: dict[int, list[int]] = {}
    for number, track in enumerate(tracks):
        if track.last.epsilon not in APART:
            places.setdefault(round(math.log(track.last.epsilon, 1.01)), []).append(number)
    moved = list(tracks)
    for numbers in places.values():
        for place, number in enumerate(numbers):
            point = tracks[number].last
            shift = STEP ** (place - (len(numbers) - 1) / 2)
            aside = point._replace(epsilon=point.epsilon * shift)
            moved[number] = tracks[number]._replace(points=(aside,))
    return moved


def _caption(known: list[Result], gamma: float) -> str:
    return (
        "Lower left is better. Test perplexity on the original text of one domain (the paper draws "
        "that of the prompts alone) and of all, over the ε that is certified for a secret that the "
        "policy catches; final models, those of one ε side by side. ε = 0 and finite values hold "
        "for what the policy catches only: for what it misses nothing is certified by training on "
        "redacted text (ε = ∞), and a policy that was fitted to the private text is itself no part "
        "of the ε. Domain privacy is another claim, which none of these ε makes; see the leak "
        "rates. Methods whose noise was made for the same ε differ in perplexity alone: the "
        "paper's gap of 35 % comes of noise that was made for every update, where few were noised. "
        f"Methods that depend on the policy: simulated miss rate γ = {gamma:g}. Horizontal lines "
        f"carry models with ε = 0 or ∞ across the panels. {averaged(known)}"
    )
