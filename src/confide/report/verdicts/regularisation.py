"""Claims of Privacy Regularization (Mireshghallah et al. 2021).

The corpora are simulated authors and tiny Shakespeare. What is compared at equal perplexity is
compared at the first perplexity level of the study, between two epochs (`levels.at_level`).
"""

import math
from collections.abc import Callable
from functools import partial

from confide.output.rounding import rounded_up
from confide.report.figures.authors import EXPOSURE, by_copies
from confide.report.figures.tab import KIND as TAB
from confide.report.figures.train_time import ratio
from confide.report.results import Json
from confide.report.seeds import LEVEL, mean_of
from confide.report.tables.table import show
from confide.report.verdicts.evidence import (
    FAR,
    HOLDS,
    PUBLISHED,
    NotMeasured,
    Study,
    Verdict,
    above_ratio,
    below,
    decide,
    paired,
    ratios,
)

Measure = Callable[[Json], float | None]  # of what an attack wrote
Numbers = dict[str, dict[int, float]]  # of each row, by seed
KINDS = ("adversarial", "triplet")
OFTEN = 9  # copies above which the paper has the regularisers ahead of DP
BITS = 2.0  # of exposure that count as comparable
MANY = 650 / 103.5  # times as much perplexity is "an extremely low utility"
MUCH = 2.0  # times as long is "much longer"; 16.44 / 1.80 are printed


def exposed(attack: Json, least: int = 1, most: float = math.inf) -> float | None:
    """Mean exposure, in bits, of canaries of so many copies."""
    exposures = [
        value
        for copies, by_author in by_copies(attack["canaries"]).items()
        if least <= copies <= most
        for values in by_author.values()
        for value in values
    ]
    return mean_of(exposures) if exposures else None


def extracted(attack: Json, group: str = "canaries") -> float | None:
    """Share of sequences that come back from their first token, per cent.

    `group`: canaries, or real for training text.
    """
    rate = (attack.get(group) or {}).get("rate_greedy")
    return None if rate is None else 100 * rate


def equally_good(
    study: Study, rows: list[str], kind: str, measure: Measure, prefix: str
) -> tuple[Numbers, str]:
    """A number of an attack on rows at the first perplexity level of the study; also in words.

    prefix: of the rows' names, which the words leave out.
    """
    level = study.spec.ppl_levels[0]
    numbers = study.at_perplexity(rows, level, kind, measure)
    return numbers, f"at validation perplexity {level:g}, {listed(numbers, prefix)}"


def listed(numbers: Numbers, prefix: str = "") -> str:
    """How many seeds all rows have, and each row's mean over its own behind its name."""
    seeds = len(set.intersection(*map(set, numbers.values())))
    means = (
        f"{name.removeprefix(f'{prefix}_').replace('_', ' ')} {show(mean_of(list(each.values())))}"
        for name, each in numbers.items()
    )
    return f"{seeds} {'seed' if seeds == 1 else 'seeds'}: {', '.join(means)}"


def less_exposed(study: Study, prefix: str) -> Verdict:
    return protected(study, prefix, EXPOSURE, exposed, "bits")


def less_extracted(study: Study, prefix: str) -> Verdict:
    return protected(study, prefix, TAB, extracted, "% come back")


def protected(study: Study, prefix: str, kind: str, measure: Measure, unit: str) -> Verdict:
    """Regularisers against random batches and batches of one author, at equal perplexity.

    Those train without a regulariser. What batches of one author do as well is no regulariser's
    merit: the claim then holds only as published.
    """
    own = [f"{prefix}_{regulariser}" for regulariser in KINDS]
    plain, alone = f"{prefix}_nonprivate", f"{prefix}_by_author"
    numbers, words = equally_good(study, [*own, plain, alone], kind, measure, prefix)
    evidence = f"{words} {unit}"
    verdict, ahead = (
        below([paired(numbers[row], numbers[other]) for row in own], evidence, far=math.inf)
        for other in (plain, alone)
    )
    is_ahead = ahead.word == HOLDS and ahead.p is not None and ahead.p < LEVEL
    if verdict.word == HOLDS and not is_ahead:
        return verdict._replace(word=PUBLISHED)
    return verdict


def traded(study: Study, little: str, much: str) -> Verdict:
    """A regulariser's large weight against its small one: less exposed, and a higher perplexity.

    `little`, `much`: what the names of the rows of both regularisers end with.
    """
    samples = []
    parts = []
    for kind in KINDS:
        large, small = f"writers_{kind}_{much}", f"writers_{kind}_{little}"
        samples.append(paired(study.each(large, EXPOSURE), study.each(small, EXPOSURE)))
        samples.append(ratios(study, (small, large)))
        bits, small_bits = study.numbers((large, small), EXPOSURE)
        ppl, small_ppl = study.numbers((large, small), "ppl")
        parts.append(
            f"{kind} {show(bits)} bits and perplexity {show(ppl)}, "
            f"with the small weight {show(small_bits)} and {show(small_ppl)}"
        )
    return below(samples, "; ".join(parts), far=math.inf)


def against_noise(study: Study) -> Verdict:
    """Often repeated canaries against what the paper calls DP.

    That is clipping, and too little noise to certify anything.
    """
    measure = partial(exposed, least=OFTEN + 1)
    numbers, evidence = _beside_noise(study, EXPOSURE, measure)
    words = f"{evidence} bits, more than {OFTEN} copies"
    return below(_differences(numbers), words, far=math.inf)


def tab_against_noise(study: Study) -> Verdict:
    """Canaries that come back, against what the paper calls DP."""
    numbers, evidence = _beside_noise(study, TAB, extracted)
    return below(_differences(numbers), f"{evidence} % come back", far=math.inf)


def few_copies(study: Study) -> Verdict:
    """Seldom repeated canaries against what the paper calls DP: no more exposed, nor less.

    A small difference is one of two bits at most (two one-sided tests).
    """
    numbers, evidence = _beside_noise(study, EXPOSURE, partial(exposed, most=OFTEN))
    sides = [
        [sign * value - BITS for value in differences]
        for differences in _differences(numbers)
        for sign in (1, -1)
    ]
    return below(sides, f"{evidence} bits, up to {OFTEN} copies", far=math.inf)


def _beside_noise(study: Study, kind: str, measure: Measure) -> tuple[Numbers, str]:
    """Numbers of the regularisers, and last those of clipping with a little noise; in words."""
    names = [*(f"writers_{regulariser}" for regulariser in KINDS), "writers_clip_noise"]
    numbers, words = equally_good(study, names, kind, measure, "writers")
    return numbers, f"{words} (ε = ∞)"


def _differences(numbers: Numbers) -> list[list[float]]:
    """By how much each row's numbers are larger than the last one's."""
    *rows, last = numbers.values()
    return [paired(row, last) for row in rows]


def useless(study: Study, prefix: str) -> Verdict:
    """Test perplexity with noise for a finite epsilon against training without protection.

    The paper prints 650 where the others have 97 to 104.
    """
    ppl = study.numbers((f"{prefix}_dpsgd", f"{prefix}_nonprivate"), "ppl")
    epsilon = study.number(f"{prefix}_dpsgd", "epsilon_replace_one")
    evidence = f"{show(ppl[0])} at ε = {rounded_up(epsilon, 3)} against {show(ppl[1])}"
    logs = ratios(study, (f"{prefix}_dpsgd", f"{prefix}_nonprivate"))
    return below([[math.log(MANY) - value for value in logs]], evidence, far=FAR)


def real(study: Study, prefix: str) -> Verdict:
    """What comes back of real text against canaries, without a regulariser, at high perplexity."""
    name = f"{prefix}_nonprivate"
    level = study.spec.ppl_levels[0]
    text, canaries = (
        study.at_perplexity([name], level, TAB, partial(extracted, group=group))[name]
        for group in ("real", "canaries")
    )
    words = listed({"real text": text, "canaries": canaries})
    evidence = f"at validation perplexity {level:g}, {words} % come back"
    return below([paired(canaries, text)], evidence, far=math.inf)


def batches(study: Study, prefix: str) -> Verdict:
    """Regularisers with batches of one author against the same with random ones."""
    pairs = {f"{prefix}_{kind}": f"{prefix}_{kind}_random" for kind in KINDS}
    numbers, words = equally_good(study, [*pairs, *pairs.values()], EXPOSURE, exposed, prefix)
    samples = [paired(numbers[own], numbers[random]) for own, random in pairs.items()]
    return below(samples, f"{words} bits", far=math.inf)


def fair(study: Study, prefix: str, other: str) -> Verdict:
    """Gap between authors with little and with much text, against another method's.

    It is of the change of perplexity, in percentage points.
    """
    return _lower(study, prefix, other, "author_gap", "percentage points")


def hidden(study: Study, prefix: str) -> Verdict:
    """Whether a fresh probe of the last hidden state names the author less often.

    It is compared with training without a regulariser.
    """
    return _lower(study, prefix, "nonprivate", "author_inference", "share of held-out texts")


def _lower(study: Study, prefix: str, other: str, column: str, words: str) -> Verdict:
    """Whether a column of table.csv is lower for both regularisers than for another row."""
    names = [f"{prefix}_{name}" for name in (*KINDS, other)]
    numbers = {name: study.each(name, column) for name in names}
    return below(_differences(numbers), f"{words}, {listed(numbers, prefix)}", far=math.inf)


def quick(study: Study, prefix: str) -> Verdict:
    """Processor time of an epoch over ordinary training's.

    That has random batches, or batches of one author. Much longer is at least twice as long.
    """
    estimates = {
        name: ratio(study.runs(f"{prefix}_{name}"), study.results, "cpu_seconds")
        for name in (*KINDS, "by_author", "dpsgd")
    }
    ratio_by_name = {
        name: estimate.value for name, estimate in estimates.items() if estimate is not None
    }
    if len(ratio_by_name) < len(estimates):
        raise NotMeasured("processor time of some runs")
    evidence = ", ".join(
        f"{name.replace('_', ' ')} {show(value)}" for name, value in ratio_by_name.items()
    )
    same = [ratio_by_name[kind] / ratio_by_name["by_author"] for kind in KINDS]
    evidence += (
        f"; over the same batches {show(same[0])} and {show(same[1])} (printed 1.06 and 1.80, DP "
        "16.44)"
    )
    slowest = max(ratio_by_name[kind] for kind in KINDS)
    as_printed = same[0] <= 1.15 and same[1] <= 1.8 and ratio_by_name["dpsgd"] >= MUCH * slowest
    return decide(as_printed, evidence)


def equal_utility(study: Study, prefix: str) -> Verdict:
    """Final test perplexities after equal epochs; a tenth counts as equal."""
    ppl = {name: study.number(f"{prefix}_{name}", "ppl") for name in ("nonprivate", *KINDS)}
    evidence = "after equal epochs " + ", ".join(
        f"{show(value)} ({name})" for name, value in ppl.items()
    )
    logs = [ratios(study, (f"{prefix}_{kind}", f"{prefix}_nonprivate")) for kind in KINDS]
    return below([above_ratio(values, 1.1) for values in logs], evidence, far=FAR)
