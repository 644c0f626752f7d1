"""Claims of Domain Private Transformers (Kabra and Elenberg 2023).

The corpora are MultiDoGO and Schema-Guided Dialogues.
"""

import math
from itertools import product
from typing import NamedTuple

from confide.attacks.domains.judges import GOLD
from confide.report.figures.domains import Question, false_alarms, judges, questions, rate
from confide.report.seeds import Estimate, mean_of
from confide.report.tables.table import show
from confide.report.verdicts.evidence import (
    FAILS,
    FAR,
    HOLDS,
    OPEN,
    PUBLISHED,
    NotMeasured,
    Study,
    Verdict,
    above_ratio,
    below,
    between,
    decide,
    logarithms,
    paired,
    ratios,
)

JUDGE = "classifier"  # where the paper has RoBERTa
NOISED = ("redacted", "jft", "schedule")
SAVED = 0.35  # of JFT's epsilon, as the paper has it
RARELY = 0.05  # of intervals that may lie on the other side
NO_MORE = 0.1  # of the leaks without privacy: more than this much more is more


class Case(NamedTuple):
    """What a leak rate is of."""

    seed: int
    question: Question
    judge: str


def rates(study: Study, name: str) -> dict[Case, Estimate]:
    """Leak rates of a row, by seed, prompts and judge of domains.

    The one that looks for secrets is no judge of the paper's, and never errs.
    """
    leaked = {}
    for result in study.runs(name):
        for question, judge in product(questions([result]), judges([result])):
            if judge != GOLD and (share := rate(result, question, judge)) is not None:
                leaked[Case(result.run.seed, question, judge)] = share
    return leaked


def leaks(study: Study, prefix: str, policy: str) -> Verdict:
    """Leaks of models that were redacted in part against a judge's flags of real text.

    They leak no more than it errs where nearly all intervals end within its errors; that few begin
    beyond them shows nothing. Where not even the model without privacy surely leaks more than a
    judge errs, its prompts are too few to show anything.
    """
    open_ = rates(study, f"{prefix}_nonprivate")
    base = [share.value for share in open_.values()]
    is_telling = any(share.low > _errs(study, case) for case, share in open_.items())
    above = within = 0
    shares = []
    for method in NOISED:
        for case, share in rates(study, f"{prefix}_{policy}_{method}").items():
            above += share.low > _errs(study, case)
            within += share.high <= _errs(study, case)
            shares.append(share.value)
    before, after = (between(100 * value for value in values) for values in (base, shares))
    evidence = (
        f"leak rates {before} % without privacy, {after} % with the {policy} policy; "
        f"of {len(shares)} intervals {above} above the judges' false alarms, {within} within them"
    )
    if above > RARELY * len(shares) or (is_telling and max(shares) >= max(base)):
        return Verdict(FAILS, evidence)
    is_shown = is_telling and within >= (1 - RARELY) * len(shares)
    return Verdict(HOLDS if is_shown else OPEN, evidence)


def _errs(study: Study, case: Case) -> float:
    """Upper end of the share of real text that a judge flags falsely."""
    alarms = false_alarms(study.results, case.question, case.judge)
    return alarms[1] if alarms else 0.0


def order(study: Study, lower: str, higher: str) -> Verdict:
    """Test perplexities of two rows, whatever epsilon each has: so the paper compares them."""
    first, second = study.numbers((lower, higher), "ppl")
    evidence = f"test perplexity {show(first)} against {show(second)}"
    return below([ratios(study, (lower, higher))], evidence, far=FAR)


def baseline(study: Study, prefix: str, policy: str) -> Verdict:
    """Which models leak more than one that was trained on the prompts' domain alone.

    The paper says: Public and Private do, by the classifier, and what was redacted in part does
    not. Intervals of the first must lie above the baseline's, and nearly all of the others must end
    within it. One on the other side is against the claim.
    """
    only = {
        case: share
        for name in {name for name, _ in study.table if name.endswith("_only")}
        for case, share in rates(study, name).items()
        if case.judge == JUDGE
    }
    open_ = [f"{prefix}_nonprivate", f"{prefix}_dpsgd"]
    redacted = [f"{prefix}_{policy}_{method}" for method in NOISED]
    sides = {
        name: [(share, only[case]) for case, share in rates(study, name).items() if case in only]
        for name in (*open_, *redacted)
    }
    if not only or not all(sides.values()):
        raise NotMeasured(f"{study.spec.study}: leaks by the judge {JUDGE} of models of one domain")
    above = {
        name: sum(share.low > alone.high for share, alone in pairs) for name, pairs in sides.items()
    }
    under = {
        name: sum(share.high < alone.low for share, alone in pairs) for name, pairs in sides.items()
    }
    evidence = f"judge {JUDGE}, leak rates in %, of one domain alone "
    evidence += between(100 * share.value for share in only.values())
    for name, pairs in sides.items():
        values = between(100 * share.value for share, _ in pairs)
        evidence += f"; {name} {values}, surely above it {above[name]} times of {len(pairs)}"
    against = any(under[name] for name in open_) or any(above[name] for name in redacted)
    within = [share.high <= alone.high for name in redacted for share, alone in sides[name]]
    most_within = sum(within) >= (1 - RARELY) * len(within)
    is_confirmed = most_within and all(above[name] == len(sides[name]) for name in open_)
    return Verdict(FAILS if against else HOLDS if is_confirmed else OPEN, evidence)


def stricter(study: Study, prefix: str, policy: str, judge: str) -> Verdict:
    """Whether the classifier finds more leaks than another judge, over all models of one policy."""
    rows = [f"{prefix}_{name}" for name in ("nonprivate", "dpsgd")]
    rows += [f"{prefix}_{policy}_{method}" for method in NOISED]
    shares = {case: share.value for row in rows for case, share in _named(study, row).items()}
    differences: dict[int, list[float]] = {}
    for (row, case), value in shares.items():
        other = shares.get((row, case._replace(judge=judge)))
        if case.judge == JUDGE and other is not None:
            differences.setdefault(case.seed, []).append(other - value)
    if not differences:
        raise NotMeasured(f"{study.spec.study}: leaks by the judges {JUDGE} and {judge}")
    means = {
        name: 100 * mean_of([value for (_, case), value in shares.items() if case.judge == name])
        for name in (JUDGE, judge)
    }
    evidence = "leaks in %, mean over models: " + ", ".join(
        f"{name} {show(value)}" for name, value in means.items()
    )
    return below([[mean_of(each) for each in differences.values()]], evidence, far=0.02)


def _named(study: Study, row: str) -> dict[tuple[str, Case], Estimate]:
    """Leak rates of a row, by its name too."""
    return {(row, case): share for case, share in rates(study, row).items()}


def comparable(study: Study, prefix: str, first: str, second: str) -> Verdict:
    """Whether one row leaks no more than another, seed by seed, in the mean of prompts and judges.

    A tenth of what the model without privacy leaks does not count as more. That intervals overlap
    shows nothing: they do where prompts are few. Where that model leaks no more than the second
    row, leaks tell nothing apart.
    """
    open_, own, other = (
        _mean_leaks(study, f"{prefix}_{name}") for name in ("nonprivate", first, second)
    )
    seeds = sorted(open_.keys() & own.keys() & other.keys())
    if not seeds:
        raise NotMeasured(f"{study.spec.study}: leaks of {first}, {second} and without privacy")
    differences = [own[seed] - other[seed] - NO_MORE * open_[seed] for seed in seeds]
    means = [100 * mean_of([each[seed] for seed in seeds]) for each in (own, other, open_)]
    evidence = (
        f"mean leak rates {show(means[0])} % ({first}) and {show(means[1])} % ({second}), "
        f"{show(means[2])} % without privacy, of which a tenth does not count"
    )
    if means[2] <= means[1]:
        return Verdict(OPEN, evidence)
    return below([differences], evidence, far=0.02)


def cheaper(study: Study, first: str, second: str) -> Verdict:
    """Processor time of training of one row against half of another's.

    A tenth more counts as half.
    """
    seconds = study.numbers((first, second), "cpu_seconds")
    evidence = f"training takes {show(seconds[0])} s of a processor against {show(seconds[1])} s"
    logs = ratios(study, (first, second), "cpu_seconds")
    return below([above_ratio(logs, 1.1 / 2)], evidence, far=FAR)


def best(study: Study, first: str, others: str) -> Verdict:
    """Test perplexity of one row against several others, with commas between their names."""
    rows = [first, *others.split(",")]
    evidence = "test perplexity " + ", ".join(
        f"{row} {show(study.number(row, 'ppl'))}" for row in rows
    )
    return below([ratios(study, (first, other)) for other in rows[1:]], evidence, far=FAR)


def sensitive(study: Study, jft: str, schedule: str) -> Verdict:
    """How far learning rates move leaks and perplexity of JFT and of a schedule, seed by seed.

    `jft`, `schedule`: their rows, one for each learning rate, with commas between them. JFT's leaks
    must move further, and the schedule's perplexity.
    """
    rows = {"JFT": jft.split(","), "schedule": schedule.split(",")}
    ppl = {
        name: _spread([logarithms(study.each(row, "ppl")) for row in each])
        for name, each in rows.items()
    }
    leaked = {
        name: _spread([_mean_leaks(study, row) for row in each]) for name, each in rows.items()
    }
    evidence = "; ".join(
        f"{name}: perplexity by a factor of {show(math.exp(mean_of(list(ppl[name].values()))))}, "
        f"leaks by {show(100 * mean_of(list(leaked[name].values())))} percentage points"
        for name in rows
    )
    samples = [paired(ppl["JFT"], ppl["schedule"]), paired(leaked["schedule"], leaked["JFT"])]
    return below(samples, evidence, far=math.inf)


def _spread(rows: list[dict[int, float]]) -> dict[int, float]:
    """By seed, from the least to the most of several rows' numbers."""
    seeds = set.intersection(*(set(row) for row in rows))
    return {
        seed: max(row[seed] for row in rows) - min(row[seed] for row in rows)
        for seed in sorted(seeds)
    }


def _mean_leaks(study: Study, row: str) -> dict[int, float]:
    """Mean leak rate of a row over prompts and judges, by seed."""
    by_seed: dict[int, list[float]] = {}
    for case, share in rates(study, row).items():
        by_seed.setdefault(case.seed, []).append(share.value)
    return {seed: mean_of(values) for seed, values in by_seed.items()}


def saving(study: Study) -> Verdict:
    """What a schedule spends with noise made for every update, and for the noised ones.

    The second is calibrated to the same epsilon.
    """
    names = "dogo_schedule_published", "dogo_keyword_schedule", "dogo_keyword_jft"
    every, drawn, jft = study.numbers(names, "epsilon_secret_caught")
    ppl = study.numbers(names[:2], "ppl")
    evidence = (
        f"JFT {show(jft)}; a schedule with noise for every update {show(every)} (perplexity "
        f"{show(ppl[0])}), with noise for the updates that are noised {show(drawn)} (perplexity "
        f"{show(ppl[1])}): the saving is budget that is not used"
    )
    if every > (1 - SAVED / 2) * jft:
        return Verdict(FAILS, evidence)
    return Verdict(PUBLISHED if drawn > 0.95 * jft else HOLDS, evidence)


def without_tokens(plain: Study, tokens: Study) -> Verdict:
    """Leaks of the non-private model with and without tokens that name the domain, seed by seed.

    "Slightly higher" is less than twice as many, in the mean over prompts and judges.
    """
    bare = _mean_leaks(plain, "plain_nonprivate")
    named = _mean_leaks(tokens, "dogo_nonprivate")
    over_twice = paired(bare, {seed: 2 * share for seed, share in named.items()})
    means = [100 * mean_of(list(each.values())) for each in (bare, named)]
    evidence = (
        f"non-private leak rates {show(means[0])} % without tokens, {show(means[1])} % with them"
    )
    return below([over_twice], evidence, far=0.02)


def ratio(study: Study, prefix: str) -> Verdict:
    """Whether a likelihood ratio finds the leaks of the non-private models.

    That is its AUC with its interval, by prompts and judge.
    """
    areas = [
        (value, row[f"{name}_low"])
        for row in study.rows(f"{prefix}_nonprivate")
        for name, value in row.items()
        if name.startswith("domain_lira_auc.")
        and not name.endswith(("_low", "_high"))
        and value is not None
    ]
    sure = sum(low > 0.5 for _, low in areas)
    evidence = (
        f"AUC {between(auc for auc, _ in areas)}; surely above guessing for {sure} of {len(areas)} "
        "pairs of prompts and judge (95 %)"
    )
    return decide(sure > len(areas) / 2, evidence, OPEN)
