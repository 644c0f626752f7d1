"""Perplexity of each domain over the certified epsilon of a caught secret (Domain Private
Transformers, Figures 2, 5, 7, 9).

The paper draws the prompt's domain alone, and gives training on redacted text an epsilon of 0.
That, and every finite value, is of what the policy catches; for the rest nothing is certified. Its
gap of 35 % between two methods counts noised updates.
"""

import math

from matplotlib.figure import Figure
from matplotlib.lines import Line2D

from confide.report.figures.domains import ppl, tested
from confide.report.figures.epsilon_axis import APART, Point, Track, finite_meanings, grid, row
from confide.report.figures.series import Series, averaged, chosen_gamma, corpora, group
from confide.report.figures.style import blank, figure, legend, title
from confide.report.results import Meaning, Result
from confide.specs import ReportSpec

CLAIM = "secret_caught"
STEP = 1.045  # between markers that are drawn side by side


def domain_epsilon(spec: ReportSpec, results: list[Result]) -> Figure:
    """One row per corpus, meaning of epsilon and domain, and one for all domains; panels for 0,
    finite and infinite.
    """
    known = [result for result in results if tested([result]) and result.claim(CLAIM) is not None]
    gamma = chosen_gamma(spec.gamma, known)
    rows = [
        (own, meaning, domain)
        for own in (
            [result for result in known if result.corpus == name] for name in corpora(known)
        )
        for meaning in finite_meanings(
            (result.claim(CLAIM), result.meaning_of(CLAIM)) for result in own
        )
        for domain in (*tested(own), None)
    ]
    if not rows:
        return blank("no run of this study has these measurements")
    drawn = figure(10.6, 1.9 + 2.9 * len(rows))
    for line, (own, meaning, domain) in zip(grid(drawn, len(rows)), rows, strict=True):
        name = f"{own[0].corpus}, {f'{domain} text' if domain else 'text of all domains'}"
        words = f"certified ε of a secret that the policy catches (log scale)\n{meaning.words}"
        row(line, _tracks(group(own), gamma, meaning, domain), name, words, "test perplexity")
    title(drawn, f"Perplexity of each domain against ε — {spec.title}", _caption(known, gamma))
    legend(drawn, [Line2D([], [], **series.marks(label=series.label)) for series in group(known)])
    return drawn


def _tracks(drawn: list[Series], gamma: float, meaning: Meaning, domain: str | None) -> list[Track]:
    """Final models, at the mean and range of perplexity over the seeds."""
    found = []
    for series in drawn:
        runs = series.at(gamma)
        pairs = [
            (result.claim(CLAIM), value)
            for result in runs
            if (value := ppl(result, domain)) is not None
        ]
        if pairs:
            epsilons, values = zip(*pairs, strict=True)
            mean = Point(
                sum(epsilons) / len(pairs), sum(values) / len(pairs), min(values), max(values)
            )
            if mean.epsilon in APART or runs[0].meaning_of(CLAIM) == meaning:
                found.append(Track(series, (mean,)))
    return side_by_side(found)


def side_by_side(tracks: list[Track]) -> list[Track]:
    """Models that were calibrated to one epsilon (to 1 %) are drawn around it, next to each other,
    for all to be seen.
    """
    places: dict[int, list[int]] = {}
    for number, track in enumerate(tracks):
        if track.last.epsilon not in APART:
            places.setdefault(round(math.log(track.last.epsilon, 1.01)), []).append(number)
    moved = list(tracks)
    for numbers in places.values():
        for place, number in enumerate(numbers):
            point = tracks[number].last
            shift = STEP ** (place - (len(numbers) - 1) / 2)
            moved[number] = tracks[number]._replace(
                points=(point._replace(epsilon=point.epsilon * shift),)
            )
    return moved


def _caption(known: list[Result], gamma: float) -> str:
    seeds = len({result.run.seed for result in known})
    return (
        "Lower left is better. Test perplexity on the original text of one domain (the paper draws that of the prompts alone) "
        "and of all, over the ε that is certified for a secret that the policy catches; final models, those of one ε side by "
        "side. ε = 0 and finite values "
        "hold for what the policy catches only: for what it misses nothing is certified by training on redacted text (ε = ∞), "
        "and a policy that was fitted to the private text is itself no part of the ε. Domain privacy is another claim, "
        "which none of these ε makes; see the leak rates. Methods whose noise was made for the same ε differ in perplexity "
        "alone: the paper's gap of 35 % comes of noise that was made for every update, where few were noised. "
        f"Methods that depend on the policy: simulated miss rate γ = {gamma:g}. Horizontal lines carry models with ε = 0 or "
        f"∞ across the panels. {averaged(seeds)}"
    )
