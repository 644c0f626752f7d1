"""Claims of Privacy Regularization (Mireshghallah et al. 2021).

The corpora are simulated authors and tiny Shakespeare.
"""

import math
from collections.abc import Callable

from confide.report.figures.authors import EXPOSURE, by_copies, mean_over
from confide.report.figures.levels import moments
from confide.report.figures.tab import rate
from confide.report.figures.train_time import ratio
from confide.report.seeds import Estimate
from confide.report.tables.table import show
from confide.report.verdicts.evidence import (
    FAILS,
    FAR,
    HOLDS,
    OPEN,
    PUBLISHED,
    Study,
    Verdict,
    below,
    decide,
    mean,
    ratios,
)

Measure = Callable[[Study, str, float], Estimate]  # of a row, at a validation perplexity
KINDS = ("adversarial", "triplet")
OFTEN = 9  # copies above which the paper has the regularisers ahead of DP


def overlap(one: Estimate, other: Estimate) -> bool:
    """Whether two intervals do."""
    return one.low <= other.high and other.low <= one.high


def words_of(one: Estimate) -> str:
    return f"{show(one.value)} [{show(one.low)}, {show(one.high)}]"


def exposed(study: Study, name: str, level: float, least: int = 1) -> Estimate:
    """Mean exposure of canaries of so many copies at a validation perplexity.

    Whole authors are resampled.
    """
    authors: dict[int, list[float]] = {}
    for one in moments(study.runs(name), level, EXPOSURE):
        for copies, own in by_copies(one.attacks[EXPOSURE]["canaries"]).items():
            for author, values in own.items():
                authors.setdefault(author, []).extend(values if copies >= least else [])
    return mean_over([mean(values, f"{name}: exposures") for values in authors.values()])


def extracted(study: Study, name: str, level: float) -> Estimate:
    """Share of canaries that the tab attack brings back at a validation perplexity, per cent."""
    found = rate(moments(study.runs(name), level, "tab"), "canaries", "greedy")
    if found is None:
        return mean_over([])
    return Estimate(found.value, low=found.low or 0.0, high=found.high or 0.0).times(100)


def less_exposed(study: Study, prefix: str) -> Verdict:
    return protected(study, prefix, measure=exposed, unit="bits")


def less_extracted(study: Study, prefix: str) -> Verdict:
    return protected(study, prefix, measure=extracted, unit="%")


def protected(study: Study, prefix: str, *, measure: Measure, unit: str) -> Verdict:
    """Regularisers against random batches and batches of one author, at equal perplexity.

    Those train without a regulariser.
    """
    level = study.spec.ppl_levels[0]
    plain, alone = (
        measure(study, f"{prefix}_{name}", level) for name in ("nonprivate", "by_author")
    )
    own = {kind: measure(study, f"{prefix}_{kind}", level) for kind in KINDS}
    words = ", ".join(f"{kind} {words_of(one)}" for kind, one in own.items())
    words = (
        f"at validation perplexity {level:g}: {words} {unit}, none {words_of(plain)}, none with "
        "batches of one author "
    )
    words += words_of(alone)
    if not all(one.high < plain.value and one.value < plain.low for one in own.values()):
        return Verdict(
            OPEN if all(one.value < plain.value for one in own.values()) else FAILS, words
        )
    return Verdict(HOLDS if all(one.high < alone.low for one in own.values()) else PUBLISHED, words)


def against_noise(study: Study) -> Verdict:
    """Often repeated canaries against what the paper calls DP.

    That is clipping, and too little noise to certify anything.
    """
    level = study.spec.ppl_levels[0]
    noise = exposed(study, "writers_clip_noise", level, OFTEN)
    own = {kind: exposed(study, f"writers_{kind}", level, OFTEN) for kind in KINDS}
    words = ", ".join(f"{kind} {words_of(one)}" for kind, one in own.items())
    words = (
        f"at validation perplexity {level:g}, {OFTEN} copies and more: {words} bits, clip + noise "
        f"(ε = ∞) {words_of(noise)}"
    )
    if all(one.high < noise.low for one in own.values()):
        return Verdict(HOLDS, words)
    return Verdict(OPEN if all(overlap(one, noise) for one in own.values()) else FAILS, words)


def fair(study: Study, prefix: str, other: str) -> Verdict:
    """Gap between authors with little and with much text, against another method's.

    It is of the change of perplexity.
    """
    found = {name: study.estimate(f"{prefix}_{name}", "author_gap") for name in (*KINDS, other)}
    words = ", ".join(f"{name.replace('_', ' ')} {words_of(one)}" for name, one in found.items())
    smaller = all(found[kind].high < found[other].low for kind in KINDS)
    larger = any(found[kind].low > found[other].high for kind in KINDS)
    return Verdict(HOLDS if smaller else FAILS if larger else OPEN, f"percentage points: {words}")


def quick(study: Study, prefix: str) -> Verdict:
    """Processor time of an epoch over ordinary training's.

    That has random batches, or batches of one author.
    """
    spent = {
        name: ratio(study.runs(f"{prefix}_{name}"), study.results, "cpu_seconds")
        for name in (*KINDS, "by_author", "dpsgd")
    }
    known = {name: one.value for name, one in spent.items() if one is not None}
    words = ", ".join(f"{name.replace('_', ' ')} {show(value)}" for name, value in known.items())
    same = [known[kind] / known["by_author"] for kind in KINDS]
    words += (
        f"; over the same batches {show(same[0])} and {show(same[1])} (printed 1.06 and 1.80, DP "
        "16.44)"
    )
    return decide(
        same[0] <= 1.15 and same[1] <= 1.8 and known["dpsgd"] > max(known[kind] for kind in KINDS),
        words,
    )


def hidden(study: Study, prefix: str) -> Verdict:
    """Whether a fresh probe of the last hidden state names the author less often.

    It is compared with training without a regulariser.
    """
    names = ("nonprivate", *KINDS)
    found = {name: study.estimate(f"{prefix}_{name}", "author_inference") for name in names}
    words = ", ".join(f"{name} {words_of(one.times(100))}" for name, one in found.items())
    return decide(
        all(found[kind].high < found["nonprivate"].low for kind in KINDS),
        f"per cent of held-out texts: {words}",
    )


def equal_utility(study: Study, prefix: str) -> Verdict:
    """Final test perplexities after equal epochs; a tenth counts as equal."""
    ppl = {name: study.number(f"{prefix}_{name}", "ppl") for name in ("nonprivate", *KINDS)}
    words = "after equal epochs " + ", ".join(
        f"{show(value)} ({name})" for name, value in ppl.items()
    )
    logs = [ratios(study, (f"{prefix}_{kind}", f"{prefix}_nonprivate")) for kind in KINDS]
    return below([[value - math.log(1.1) for value in one] for one in logs], words, far=FAR)
