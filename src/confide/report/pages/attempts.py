"""What was tried against a model: a line for each attack of a run, in words.

Nothing here calls a model safe. That an attack found nothing says that this attack found nothing.
"""

import math
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from confide.attacks.statistics.metrics import LEVEL, Z, auc_null
from confide.certify.gate import NOTHING_FINITE, REFUTED, SETS, SKIPPED, Case, cases_of
from confide.dp.accounting.audit_power import base_of
from confide.errors import InputError
from confide.output.rounding import rounded_down, rounded_up
from confide.report.results import Json, Result, largest_exposure
from confide.specs import TEXT_AUDIT
from confide.specs.files import CERTIFICATE

NAMES = {
    "exposure": "guessing planted secrets",
    "extraction": "letting the model write out secrets",
    "context_exposure": "knowing planted secrets again by what stands behind them",
    "sequence_exposure": "guessing planted sentences",
    "membership": "telling secrets of the training text from others",
    "lira": "telling secrets of the training text from others with models of the attacker's own",
    "game": "guessing which secrets and records were planted",
    "gradients": "testing the training program with made-up records",
    "leak": "asking one domain for secrets of another",
    "domain_lira": "picking out texts of another domain by likelihood ratios",
    "tab": "letting the model finish training sentences",
    "author_inference": "naming the author of a text",
    "text_audit": "searching texts that the model wrote",
}
CLAIMED = {
    "game": "claim about a secret",
    "inclusion": "claim about adding a record",
    "replacement": "claim about replacing a record",
    "texts_game": "claim about a secret, by its texts",
    "texts_inclusion": "claim about adding a record, by its texts",
    "probed_game": "claim about a secret, by more texts that the audit asked for",
    "probed_inclusion": "claim about adding a record, by more texts that the audit asked for",
    "canaries": "claim about a secret, by planted numbers in its texts",
}
NO_ATTACK = ("worth",)  # measures what texts are good for
MORE = "more than chance"
NO_MORE = "no more than chance"
PERHAPS = "perhaps more than chance"  # by an estimate whose interval reaches that far


class Attempt(NamedTuple):
    """One attack: its kind, what it tries, and what it found."""

    kind: str
    tries: str
    found: str


def attempts(result: Result) -> list[Attempt]:
    """All attacks of a run, in the order of its settings."""
    all_attempts = []
    for name, metrics in result.attacks.items():
        kind = metrics["attack"]
        if kind in NO_ATTACK:
            continue
        label = NAMES.get(str(kind), str(kind))
        tries = label if name == kind else f"{label} ({name.removeprefix(kind).strip('_ ')})"
        for finding in findings(result, metrics):
            all_attempts.append(Attempt(kind, tries, finding))
    return all_attempts


def findings(result: Result, metrics: Json) -> Iterator[str]:
    """What one attack found; audits have a finding for each claim that they test."""
    kind = metrics["attack"]
    if kind in SETS:
        yield from (audit(case, metrics) for case in audits(result, metrics))
        if kind == TEXT_AUDIT and metrics.get("p_value") is not None:
            yield searched(metrics)
    elif metrics.get("reason"):
        yield f"could not tell: {metrics['reason']}"
    elif kind in ("exposure", "context_exposure"):
        yield exposed(metrics)
    elif kind in ("membership", "lira"):
        yield told_apart(metrics)
    elif kind == "extraction":
        yield from written_out(metrics)
    else:
        yield "was run; its numbers are in the run's folder"


def exposed(metrics: Json) -> str:
    """The largest exposure, and the mean, beside those of secrets which were never seen."""
    is_estimated = metrics.get("max_estimated_high") is not None
    largest = largest_exposure(metrics)
    chance = metrics.get("null_max_high")
    if largest is None:
        return "could not tell"
    words = f"largest exposure {'at most ' * is_estimated}{rounded_up(largest, 4)} bits"
    candidates = metrics.get("candidates")
    if candidates and not is_estimated and largest >= math.log2(candidates):
        words = f"{words} (a planted secret was the first guess among {candidates:,.0f})"
    if chance is None:
        return f"{words}; what chance gives was not measured"
    mean = metrics.get("mean")
    usual = metrics.get("null_mean_high")
    stands_out = mean is not None and usual is not None and mean > usual
    at_least = metrics["max_estimated_low"] if is_estimated else largest
    verdict = PERHAPS if largest > chance else NO_MORE
    if at_least > chance or stands_out:
        verdict = MORE
    words = f"{verdict}: {words}, where chance gives up to {chance:.3g}"
    words += p_words(metrics.get("p_max"))
    if mean is None or usual is None:
        return words
    words += f"; on average {rounded_up(mean, 3)}, where chance gives up to {usual:.3g}"
    return words + p_words(metrics.get("p_mean"))


def told_apart(metrics: Json) -> str:
    """The area under the ROC curve; 0.5 is guessing."""
    area = metrics.get("auc")
    if area is None:
        return "could not tell"
    high = metrics.get("auc_null_high")
    members = metrics.get("members")
    others = metrics.get("non_members")
    if high is None and members and others:
        _, high = auc_null(members, others)
    return beside_chance(area, high, without=blind(metrics))


def beyond_chance(p: float) -> str:
    """Whether so small a p-value is more than chance."""
    return MORE if p <= 1 - LEVEL else NO_MORE


def written_out(metrics: Json) -> Iterator[str]:
    """What came out of a model that was prompted: planted secrets, and those of the text."""
    if metrics["canaries"]:
        p = metrics["p_canaries"]
        yield (
            f"{beyond_chance(p)}: {metrics['canaries_out']} of {metrics['canaries']} planted "
            f"secrets came out in {metrics['samples']:,} texts, where chance gives "
            f"{rounded_up(metrics['canaries_chance'], 2)}{p_words(p)}"
        )
    if metrics["members"]:
        p = metrics["p_members"]
        yield (
            f"{beyond_chance(p)}: the model went on with {metrics['members_out']} of "
            f"{metrics['members']} secrets of its training text, and with "
            f"{metrics['non_members_out']} of {metrics['non_members']} that it never saw"
            f"{p_words(p)}"
        )


def searched(metrics: Json) -> str:
    """Whether texts tell of their training text, by the strongest of several tests."""
    p = metrics["p_value"]
    return (
        f"{beyond_chance(p)}: the strongest of {metrics['tests']} tests of what the texts tell of "
        f"the training text, corrected for their number{p_words(p)}"
    )


def beside_chance(area: float, high: float | None, *, without: float = 0.0) -> str:
    """An area under the ROC curve beside the largest one that chance gives, where that is known.

    without: the area that is reached without the model.
    """
    words = f"AUC {rounded_up(area, 3)}, where 0.5 is guessing and 1 always right"
    if high is None:
        return f"{words}; what chance gives was not measured"
    p = auc_p_value(area, high)
    words += f" and chance gives up to {high:.3g}{p_words(p)}"
    if without > high:
        words += f"; the strings alone, without the model, give {without:.3g}"
    verdict = MORE if area > max(high, without) else NO_MORE
    return f"{verdict}: {words}"


def blind(metrics: Json) -> float:
    """The largest AUC that was reached without the model; 0 where that was not tried."""
    names = [name for name in metrics if name.startswith("blind_") and name.endswith("_auc")]
    areas = [metrics[name] for name in names if metrics[name] is not None]
    return max((max(area, 1 - area) for area in areas), default=0.0)


def auc_p_value(area: float, high: float) -> float | None:
    """How often scores that know nothing have this area or more; `high`: of `auc_null`.

    None where that band was cut off at 1, so that it does not tell how wide it is.
    """
    if not 0.5 < high < 1:
        return None
    return math.erfc((area - 0.5) / (high - 0.5) * Z / math.sqrt(2)) / 2


def p_words(p: float | None) -> str:
    """A p-value behind a number, where it is known."""
    return "" if p is None else f" (p = {p:.2g})"


def compared(result: Result) -> int:
    """How many findings say whether they are more than chance."""
    return sum(attempt.found.startswith((MORE, PERHAPS, NO_MORE)) for attempt in attempts(result))


def audits(result: Result, metrics: Json) -> list[Case]:
    """What the sets of coins of an audit say of the certificate, as the gate has it.

    A certificate or an audit that lacks what the comparison needs says so in its case.
    """
    certificate = Path(CERTIFICATE)
    path = Path(f"{metrics['attack']}.json")
    try:
        return list(cases_of(result.certificate, certificate, measured=metrics, audit=path))
    except InputError as error:
        case = Case(result.run.run, metrics["attack"], "not compared", certified=None)
        return [case._replace(says=str(error))]


def audit(case: Case, metrics: Json) -> str:
    """A case in words; numbers are rounded against the certificate."""
    area = metrics.get(f"{case.audit}_auc")
    if case.outcome == SKIPPED and area is not None:
        outcome = beside_chance(area, metrics.get(f"{case.audit}_auc_null_high"))
        why = "there is none of all that was planted" if case.says == NOTHING_FINITE else case.says
        return f"{outcome}. It was held against no {CLAIMED[case.audit]} ({why})"
    words = f"{CLAIMED.get(case.audit, case.audit)}: {case.outcome}"
    twice = case.rings_2x
    five_times = case.rings_5x
    if case.lower is None or case.certified is None or twice is None or five_times is None:
        return f"{words} ({case.says})" if case.says else words
    base = base_of(case.certified)
    return (
        f"{words}; {case.coins:,} planted tests show that ε is at least "
        f"{rounded_down(case.lower)}, and {rounded_up(case.certified)} is certified. Were ε really "
        f"{rounded_up(2 * base)}, the best attacker would have noticed with a chance of "
        f"{math.floor(100 * twice)} %, were it {rounded_up(5 * base)}, of "
        f"{math.floor(100 * five_times)} %"
    )


def in_short(result: Result) -> str:
    """One line of all that was tried."""
    all_attempts = attempts(result)
    if not all_attempts:
        return "not tried"
    kinds = dict.fromkeys(attempt.tries for attempt in all_attempts)
    more = [attempt.tries for attempt in all_attempts if attempt.found.startswith(MORE)]
    against = [attempt.tries for attempt in all_attempts if f": {REFUTED}" in attempt.found]
    words = f"{len(kinds)} attacks: {', '.join(kinds)}"
    if against:
        words += f". The certificate is REFUTED by {', '.join(dict.fromkeys(against))}"
    if more:
        words = f"{words}. Found more than chance: {', '.join(dict.fromkeys(more))}"
        return f"{words} (of {compared(result)} results that were compared with chance)"
    return f"{words}. What each found is below; finding nothing proves nothing of other attacks"
