"""Claims of Domain Private Transformers (Kabra and Elenberg 2023).

The corpora are MultiDoGO and Schema-Guided Dialogues.
"""

from itertools import product
from typing import NamedTuple

from confide.report.figures.domains import Question, false_alarms, judges, questions, rate
from confide.report.seeds import Estimate
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
    below,
    between,
    decide,
    ratios,
)

JUDGE = "classifier"  # where the paper has RoBERTa
NOISED = ("redacted", "jft", "schedule")
SAVED = 0.35  # of JFT's epsilon, as the paper has it


class Case(NamedTuple):
    """What a leak rate is of."""

    seed: int
    question: Question
    judge: str


def rates(study: Study, name: str) -> dict[Case, Estimate]:
    """Leak rates of a row, by seed, prompts and judge."""
    leaked = {}
    for result in study.runs(name):
        for question, judge in product(questions([result]), judges([result])):
            if (share := rate(result, question, judge)) is not None:
                leaked[Case(result.run.seed, question, judge)] = share
    return leaked


def leaks(study: Study, prefix: str, policy: str) -> Verdict:
    """Leaks of models that were redacted in part against a judge's flags of real text.

    Where not even the model without privacy surely leaks more than a judge errs, its prompts are
    too few to show anything.
    """
    open_ = rates(study, f"{prefix}_nonprivate")
    base = [share.value for share in open_.values()]
    is_telling = any(share.low > _errs(study, case) for case, share in open_.items())
    above = 0
    shares = []
    for method in NOISED:
        for case, share in rates(study, f"{prefix}_{policy}_{method}").items():
            above += share.low > _errs(study, case)
            shares.append(share.value)
    before, after = (between(100 * value for value in values) for values in (base, shares))
    evidence = f"leak rates {before} % without privacy, {after} % with the {policy} policy; "
    evidence += f"{above} of {len(shares)} above the judges' false alarms (intervals)"
    inside = above <= 0.05 * len(shares) and max(shares) < max(base)
    return Verdict(FAILS if not inside else HOLDS if is_telling else OPEN, evidence)


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
    not. An interval must lie on its side of the baseline's; one on the other side is against it.
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
    is_confirmed = all(above[name] == len(sides[name]) for name in open_)
    return Verdict(FAILS if against else HOLDS if is_confirmed else OPEN, evidence)


def saving(study: Study) -> Verdict:
    """What a schedule spends with noise made for every update, and for the noised ones.

    The second is calibrated to the same epsilon.
    """
    names = "dogo_schedule_published", "dogo_keyword_schedule", "dogo_keyword_jft"
    every, drawn, jft = study.numbers(names, "epsilon_secret_caught")
    ppl = study.numbers(names[:2], "ppl")
    evidence = (
        f"JFT {show(jft)}; a schedule with noise for every update {show(every)} (perplexity "
        f"{show(ppl[0])}), with noise for "
    )
    evidence += (
        f"the updates that are noised {show(drawn)} (perplexity {show(ppl[1])}): the saving is "
        "budget that is not used"
    )
    if every > (1 - SAVED / 2) * jft:
        return Verdict(FAILS, evidence)
    return Verdict(PUBLISHED if drawn > 0.95 * jft else HOLDS, evidence)


def without_tokens(plain: Study, tokens: Study) -> Verdict:
    """Leaks of the non-private model with and without tokens that name the domain."""
    without = rates(plain, "plain_nonprivate")
    with_names = rates(tokens, "dogo_nonprivate")
    pairs = [(without[case], share) for case, share in with_names.items() if case in without]
    much = sum(bare.low > 2 * with_tokens.high for bare, with_tokens in pairs)
    before = between(100 * bare.value for bare, _ in pairs)
    after = between(100 * with_tokens.value for _, with_tokens in pairs)
    evidence = f"non-private leak rates {before} % without tokens, {after} % with them; "
    evidence += f"{much} of {len(pairs)} certainly more than doubled"
    return decide(much == 0, evidence)


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
    )
    return decide(sure > len(areas) / 2, evidence + "pairs of prompts and judge (95 %)", OPEN)
