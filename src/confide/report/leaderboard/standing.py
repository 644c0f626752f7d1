"""Whether a model may stand in a cell of a leaderboard, and on what its claim rests.

The certificate decides, and no epsilon that was asked for: its claim about what the cell is of must
be finite, about a replaced secret or record, and at no larger a delta. Where the policy is a cover,
a secret that some other policy finds or misses is one that the cover hides or does not.
"""

import math
from pathlib import Path
from typing import NamedTuple

from confide.certify.facts import (
    CONSERVATIVE,
    DEALT,
    MISSED_BY_BOTH,
    POISSON,
    POISSON_AUTHORS,
    SECRET_CAUGHT,
    SECRET_MISSED,
    STABLE,
    TOKENS,
    UNITS,
    UNITS_OF_ANY,
)
from confide.certify.gate import (
    BY_TEXTS,
    INCONCLUSIVE,
    NOT_AUDITED,
    OTHER_WEIGHTS,
    REFUTED,
    SETS,
    STANDS,
    cases_of,
    settled,
)
from confide.output.rounding import rounded_up
from confide.report.results import Json, Result
from confide.specs.files import CERTIFICATE

CAUGHT = "caught"
MISSED = "missed"
RECORD = "record"
CELLS = {  # what is protected, in a word: a secret that the policy finds or misses, any record
    CAUGHT: "found",
    MISSED: "missed",
    RECORD: "record",
}
RELATION = "replace_one"
OUT = (REFUTED, OTHER_WEIGHTS)  # outcomes of an audit after which a run stands nowhere
NOTHING = "nothing is claimed"
BATCHES = {part for words in (POISSON, DEALT, POISSON_AUTHORS) for part in words.split("; ")}
POINTS = {*UNITS_OF_ANY.values(), *(unit for units in UNITS.values() for unit in units.values())}
# conditions of certificates that are said in other words, or of batches and sizes of pools
REWORDED = {CONSERVATIVE, STABLE, *BATCHES}
NOTHING_TO_AUDIT = "nothing finite to audit"
# of several outcomes of a run the first that it has says most
OUTCOMES = (REFUTED, OTHER_WEIGHTS, INCONCLUSIVE, NOT_AUDITED, STANDS)


class Claimed(NamedTuple):
    """What a certificate claims of a cell: infinity where that is nothing, and on what it rests."""

    epsilon: float
    unit: str
    rests: str


def claimed(result: Result, cell: str, *, covered: bool, delta: float) -> Claimed:
    """The claim of a run that counts in a cell; `delta`: at most that of the claim."""
    name = {
        CAUGHT: SECRET_CAUGHT,
        MISSED: SECRET_CAUGHT if covered else SECRET_MISSED,
        RECORD: "record_replace_one_pld",
    }[cell]
    claim = result.stated(name)
    epsilon = _comparable(claim, delta)
    by_both = result.stated(MISSED_BY_BOTH)
    if cell == RECORD and by_both:
        # exact updates read a public pool, whose records the claim about noised pools leaves out
        epsilon = max(epsilon, float(by_both["epsilon"]))
    rests = NOTHING if epsilon == math.inf else _rests(result, cell, claim, covered)
    return Claimed(epsilon, claim.get("unit") or "", rests)


def audited(result: Result) -> str:
    """What the audits of a run say of its certificate: the worst of their outcomes.

    An audit of its texts may speak against the certificate, and never for it: a model tells more.
    """
    certificate = Path(result.run.run, CERTIFICATE)
    all_cases = [
        case
        for metrics in result.attacks.values()
        if metrics["attack"] in SETS
        for case in cases_of(
            result.certificate,
            certificate,
            measured=metrics,
            audit=certificate.with_name(f"{metrics['attack']}.json"),
        )
        if case.audit not in BY_TEXTS or case.failed
    ]
    found = [case.outcome for case in settled(all_cases)]
    if not found:
        return NOT_AUDITED
    return next((outcome for outcome in OUTCOMES if outcome in found), NOTHING_TO_AUDIT)


def _comparable(claim: Json, delta: float) -> float:
    """Epsilon of a claim; infinity of none, of another relation, or at a larger delta."""
    if not claim or claim.get("relation") != RELATION or float(claim["delta"]) > delta:
        return math.inf
    return float(claim["epsilon"])


def _at_most(claim: Json, other: Json) -> bool:
    """Whether a claim says all that another says, in epsilon and delta, of the same unit."""
    same = all(claim.get(key) == other.get(key) for key in ("relation", "unit"))
    return same and all(float(claim[key]) <= float(other[key]) for key in ("epsilon", "delta"))


def _rests(result: Result, cell: str, claim: Json, covered: bool) -> str:
    """In words, what a claim takes for granted beyond random batches and sizes of pools.

    All that its certificate names is there: in other words, or as it stands.

    How often a policy fails is of all secrets: of those alone that another policy misses it may
    be far more.
    """
    policy = result.certificate.get("policy", {})
    conditions = claim.get("condition", "").split("; ")
    named = [words for words in conditions if words and words not in REWORDED]
    grounds = []
    if cell == RECORD:
        record, _, _ = claim["unit"].partition(" in a pool ")
        if record not in POINTS:
            grounds.append(f"a record is {record}")
        grounds += named
    else:
        if covered:
            failing = _failing(policy, "gamma", "not so for")
            grounds.append(f"the cover hides it whole{failing}")
        elif cell == CAUGHT:
            missed = result.stated(SECRET_MISSED)
            if missed and not result.stated(MISSED_BY_BOTH) and _at_most(missed, claim):
                return _rests(result, MISSED, missed, covered)
            grounds.append("the policy finds it, and the same around it when it is masked")
        elif result.stated(MISSED_BY_BOTH):
            failing = _failing(policy, "delta2", "both miss")
            grounds.append(f"the second policy notices it{failing}")
        grounds += named
        if claim.get("unit") == TOKENS:
            grounds.append("its number of tokens is public")
        alone = result.stated(f"{claim.get('name')}_literal")
        if alone and alone["epsilon"] != claim["epsilon"]:
            of_one = rounded_up(alone["epsilon"], 3)
            grounds.append(f"all copies of its text are meant (of one alone: ε {of_one})")
    return "; ".join(grounds) or "nothing more"


def _failing(policy: Json, rate: str, words: str) -> str:
    """How often that was measured not to hold, and at most: of the kind that fares worst."""
    value = policy.get(rate)
    upper = policy.get(f"{rate}_upper")
    if upper is None:
        return " (how often is unknown)"
    measured = "" if value is None else f"{100 * value:.2g} %, "
    bound = f"at most {rounded_up(100 * upper, 3)} %"
    return f" ({words} {measured}{bound}, of all secrets of the worst kind)"
