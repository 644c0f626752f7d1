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


class Asked(NamedTuple):
    """What a leak rate is of."""

    seed: int
    question: Question
    judge: str


def rates(study: Study, name: str) -> dict[Asked, Estimate]:
    """Leak rates of a row, by seed, prompts and judge."""
    found = {}
    for result in study.runs(name):
        for question, judge in product(questions([result]), judges([result])):
            if (one := rate(result, question, judge)) is not None:
                found[Asked(result.run.seed, question, judge)] = one
    return found


def leaks(study: Study, prefix: str, policy: str) -> Verdict:
    """Leaks of models that were redacted in part against a judge's flags of real text.

    Where not even the model without privacy surely leaks more than a judge errs, its prompts are
    too few to show anything.
    """
    open_ = rates(study, f"{prefix}_nonprivate")
    base = [one.value for one in open_.values()]
    told = any(one.low > _errs(study, asked) for asked, one in open_.items())
    above = 0
    found = []
    for method in NOISED:
        for asked, one in rates(study, f"{prefix}_{policy}_{method}").items():
            above += one.low > _errs(study, asked)
            found.append(one.value)
    before, after = (between(100 * value for value in values) for values in (base, found))
    words = f"leak rates {before} % without privacy, {after} % with the {policy} policy; "
    words += f"{above} of {len(found)} above the judges' false alarms (intervals)"
    inside = above <= 0.05 * len(found) and max(found) < max(base)
    return Verdict(FAILS if not inside else HOLDS if told else OPEN, words)


def _errs(study: Study, asked: Asked) -> float:
    """Upper end of the share of real text that a judge flags falsely."""
    alarms = false_alarms(study.results, asked.question, asked.judge)
    return alarms[1] if alarms else 0.0


def order(study: Study, lower: str, higher: str) -> Verdict:
    """Test perplexities of two rows, whatever epsilon each has: so the paper compares them."""
    own, other = study.numbers((lower, higher), "ppl")
    words = f"test perplexity {show(own)} against {show(other)}"
    return below([ratios(study, (lower, higher))], words, far=FAR)


def baseline(study: Study, prefix: str, policy: str) -> Verdict:
    """Which models leak more than one that was trained on the prompts' domain alone.

    The paper says: Public and Private do, by the classifier, and what was redacted in part does
    not. An interval must lie on its side of the baseline's; one on the other side is against it.
    """
    only = {
        asked: one
        for name in {name for name, _ in study.table if name.endswith("_only")}
        for asked, one in rates(study, name).items()
        if asked.judge == JUDGE
    }
    open_ = [f"{prefix}_nonprivate", f"{prefix}_dpsgd"]
    redacted = [f"{prefix}_{policy}_{method}" for method in NOISED]
    sides = {
        name: [(one, only[asked]) for asked, one in rates(study, name).items() if asked in only]
        for name in (*open_, *redacted)
    }
    if not only or not all(sides.values()):
        raise NotMeasured(f"{study.spec.study}: leaks by the judge {JUDGE} of models of one domain")
    above = {name: sum(one.low > own.high for one, own in pairs) for name, pairs in sides.items()}
    under = {name: sum(one.high < own.low for one, own in pairs) for name, pairs in sides.items()}
    words = f"judge {JUDGE}, leak rates in %, of one domain alone "
    words += between(100 * one.value for one in only.values())
    for name, pairs in sides.items():
        values = between(100 * one.value for one, _ in pairs)
        words += f"; {name} {values}, surely above it {above[name]} times of {len(pairs)}"
    against = any(under[name] for name in open_) or any(above[name] for name in redacted)
    told = all(above[name] == len(sides[name]) for name in open_)
    return Verdict(FAILS if against else HOLDS if told else OPEN, words)


def saving(study: Study) -> Verdict:
    """What a schedule spends with noise made for every update, and for the noised ones.

    The second is calibrated to the same epsilon.
    """
    names = "dogo_schedule_published", "dogo_keyword_schedule", "dogo_keyword_jft"
    every, drawn, jft = study.numbers(names, "epsilon_secret_caught")
    ppl = study.numbers(names[:2], "ppl")
    words = (
        f"JFT {show(jft)}; a schedule with noise for every update {show(every)} (perplexity "
        f"{show(ppl[0])}), with noise for "
    )
    words += (
        f"the updates that are noised {show(drawn)} (perplexity {show(ppl[1])}): the saving is "
        "budget that is not used"
    )
    if every > (1 - SAVED / 2) * jft:
        return Verdict(FAILS, words)
    return Verdict(PUBLISHED if drawn > 0.95 * jft else HOLDS, words)


def without_tokens(plain: Study, tokens: Study) -> Verdict:
    """Leaks of the non-private model with and without tokens that name the domain."""
    without = rates(plain, "plain_nonprivate")
    named = rates(tokens, "dogo_nonprivate")
    pairs = [(without[asked], one) for asked, one in named.items() if asked in without]
    much = sum(one.low > 2 * other.high for one, other in pairs)
    words = (
        f"non-private leak rates {between(100 * one.value for one, _ in pairs)} % without tokens, "
    )
    words += (
        f"{between(100 * other.value for _, other in pairs)} % with them; {much} of {len(pairs)} "
        "certainly more than doubled"
    )
    return decide(much == 0, words)


def ratio(study: Study, prefix: str) -> Verdict:
    """Whether a likelihood ratio finds the leaks of the non-private models.

    That is its AUC with its interval, by prompts and judge.
    """
    found = [
        (value, row[f"{name}_low"])
        for row in study.rows(f"{prefix}_nonprivate")
        for name, value in row.items()
        if name.startswith("domain_lira_auc.")
        and not name.endswith(("_low", "_high"))
        and value is not None
    ]
    sure = sum(low > 0.5 for _, low in found)
    words = (
        f"AUC {between(auc for auc, _ in found)}; surely above guessing for {sure} of {len(found)} "
    )
    return decide(sure > len(found) / 2, words + "pairs of prompts and judge (95 %)", OPEN)
