"""What may be claimed of one trained model: record-level, confidential, Bayesian and group guarantees, in numbers and words.

CRT Theorem 8 in three parts, each claim with its unit, neighbour relation, delta, accountant, conversion and condition.
"""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

from confide.dp.accounting import ACCOUNTANTS, Bound, Price, agree, group, mechanisms_of, price, solve
from confide.dp.confidentiality import bayesian_at, caught_only
from confide.dp.curves import Relation, grid, pld_curve
from confide.types import Release

Claim = dict[str, Any]

UNITS = {
    "turn": "one turn of a dialogue",
    "dialogue": "one whole dialogue",
    "sentence": "one sentence",
    "window": "one window of consecutive words",
}
CONSERVATIVE = "conditional on pi_c catching every miss of pi"
CONTEXT_FREE = "pi finds a secret without regard to the text around it (no other finding changes when it is masked)"
POISSON = "Poisson batches normalised by their public expected size; sizes of the pools are public"
MARKS_KEPT = "the marks of later copies stay as they are when the secret is masked"
TOKENS = "one secret's tokens, their number public"
NEIGHBOURS = "neighbours differ only in tokens that the policy marks in both, not in marks, other tokens or the cut into points"


@dataclass(frozen=True, slots=True)
class Facts:
    """Everything that claims rest on. gamma: share of secrets that pi misses; delta2: that pi and pi_c both miss."""

    releases: Sequence[Release]
    delta: float
    point: str = "turn"
    gamma: float | None = None  # None: the corpus has no gold secrets
    gamma_upper: float | None = None
    delta2_upper: float | None = None
    confidence: float = 0.95
    points_after: int | None = None  # points that hold the most frequent secret, copies masked
    points_before: int | None = None  # copies counted
    everything_private: bool = False
    unaccounted: Sequence[str] = ()  # reasons why the ledger does not bound what the model has seen: nothing finite holds

    @property
    def price(self) -> Price:
        found = price(self.releases)
        return replace(found, record=None, missed=None, caught=None) if self.unaccounted else found

    @property
    def hopeless(self) -> list[str]:
        """Condition of a claim that nothing can make finite."""
        return [f"none can help: {why}" for why in self.unaccounted or [self.price.reason or "exact updates read it"]]

    @property
    def unit(self) -> str:
        return UNITS.get(self.point, f"one {self.point}")

    @property
    def secret(self) -> str:
        """What is protected of a secret that the policy catches or misses."""
        return TOKENS if self.price.by_token else f"one secret within {self.unit}"

    @property
    def conditional(self) -> bool:
        return self.price.conditional and not self.everything_private


def spent(
    releases: Sequence[Release] | None, relation: Relation = "replace_one", interval: float | None = None
) -> Callable[[float], float]:
    """Epsilon as a function of delta (PLD); infinity if an exact update read the data (None)."""
    if releases is None:
        return lambda _: math.inf
    bound = Bound(pld_curve(mechanisms_of(releases), relation, interval=interval))
    return lambda delta: solve(bound, delta)


def all_claims(facts: Facts) -> list[Claim]:
    """Every claim, in the order in which they build on each other; ArithmeticError if the accountants disagree."""
    return [*record_claims(facts), *secret_claims(facts), *bayesian_claims(facts), *group_claims(facts)]


def claim(
    name: str, unit: str, relation: str, epsilon: float, delta: float, conditions: Sequence[str], says: str, **how: str
) -> Claim:
    """One claim; `how` gives accountant and conversion where a number was computed."""
    shown = "unbounded (epsilon = infinity)" if epsilon == math.inf else f"at most {epsilon:.4g}"
    sentence = f"{says}: epsilon is {shown} at delta = {delta:.3g}."
    return {
        "name": name,
        "unit": unit,
        "relation": relation,
        "epsilon": epsilon,
        "delta": delta,
        "accountant": how.get("accountant", "pld"),
        "conversion": how.get("conversion", "none"),
        "condition": "; ".join(conditions) or "none",
        "sentence": sentence,
    }


def record_claims(facts: Facts) -> list[Claim]:
    """Differential privacy of one record of the pools trained on with noise, by both accountants."""
    reached = facts.price.record
    unit = f"{facts.unit} in a pool that is only trained on with noise"
    conditions = [POISSON, *(["the record stays in its pool"] if facts.conditional else [])]
    if reached is None:
        conditions = facts.hopeless
    found = []
    for relation in ("add_or_remove", "replace_one"):
        prices = dict.fromkeys(ACCOUNTANTS, math.inf) if reached is None else agree(reached, facts.delta, relation)
        for accountant, epsilon in prices.items():
            conversion = "none" if accountant == "pld" else "improved"
            conversion += ", two hops of add_or_remove" if (accountant, relation) == ("rdp", "replace_one") else ""
            says, name = f"Privacy of {unit} ({relation.replace('_', ' ')})", f"record_{relation}_{accountant}"
            how = {"accountant": accountant, "conversion": conversion}
            found.append(claim(name, unit, relation, epsilon, facts.delta, conditions, says, **how))
    return found


def secret_claims(facts: Facts) -> list[Claim]:
    """Theorem 8.1: confidentiality of one secret that pi catches, that it misses, and that pi_c misses as well."""
    reached, unit = facts.price, facts.secret
    caught, missed = spent(reached.caught)(facts.delta), spent(reached.missed)(facts.delta)
    given = [CONSERVATIVE] if facts.conditional else []
    kept = [CONTEXT_FREE, MARKS_KEPT]
    sampled = [POISSON, NEIGHBOURS] if reached.by_token else [POISSON, *kept] if reached.screened else [POISSON]
    parts = [
        ("secret_caught", caught, kept if caught == 0 else sampled, "that the policy catches"),
        ("secret_missed", missed, [*given, POISSON, MARKS_KEPT], "that the policy misses"),
    ]
    parts = [(name, value, facts.hopeless if value == math.inf else held, which) for name, value, held, which in parts]
    if facts.conditional:
        parts.append(("secret_missed_by_both", math.inf, [], "that the policy and the conservative policy both miss"))
    return [
        claim(name, unit, "replace_one", epsilon, facts.delta, conditions, f"Confidentiality of a secret {which}")
        for name, epsilon, conditions, which in parts
    ]


def bayesian_epsilon(
    facts: Facts, gamma: float | None, at: Callable[[float], float], delta2: float = 0.0, *, divide: bool = True
) -> float:
    """Theorem 8.3 at the facts' delta. Where training read the original text, redaction amplifies nothing: gamma = 1."""
    caught = facts.price.caught
    if caught is None:
        return math.inf
    if facts.price.caught_alone:
        return math.inf if gamma is None else caught_only(at, facts.delta, gamma)
    if caught:
        gamma = 1.0
    return math.inf if gamma is None else bayesian_at(at, facts.delta, gamma, delta2, divide=divide)


def bayesian_claims(facts: Facts) -> list[Claim]:
    """Theorem 8.3 with gamma as measured and at its bound, with and without reading the mechanism at delta / gamma."""
    drawn = facts.price.drawn
    at, published = spent(drawn), spent(drawn, "add_or_remove")
    given = [CONSERVATIVE] if facts.conditional else []
    bound = f"gamma at its one-sided {facts.confidence:.0%} bound"
    rows = [
        ("bayesian", facts.gamma, at, 0.0, True, "gamma as measured"),
        ("bayesian_undivided", facts.gamma, at, 0.0, False, "gamma as measured"),
        ("bayesian_upper", facts.gamma_upper, at, 0.0, True, bound),
        ("bayesian_upper_undivided", facts.gamma_upper, at, 0.0, False, bound),
        ("bayesian_as_published", facts.gamma, published, 0.0, True, "gamma as measured"),
    ]
    if facts.price.caught_alone:  # where a missed secret is not protected at all, gamma amplifies nothing
        rows = [row for row in rows if row[0] in ("bayesian", "bayesian_upper")]
    found = [_bayesian(facts, *row, given) for row in rows]
    if facts.gamma_upper is not None and facts.price.caught == []:
        conditions, unit = [CONTEXT_FREE, MARKS_KEPT, bound], f"one random secret within {facts.unit}"
        says = "Confidentiality of a random secret but for the chance that the policy misses it"
        found.append(claim("bayesian_missing", unit, "replace_one", 0.0, facts.gamma_upper, conditions, says))
    if facts.conditional:
        delta2 = 1.0 if facts.delta2_upper is None else facts.delta2_upper
        words = f"{bound}, delta2 at its bound {delta2:.3g}"
        found.append(_bayesian(facts, "bayesian_unconditional", facts.gamma_upper, at, delta2, True, words, []))
    return found


def _bayesian(
    facts: Facts,
    name: str,
    gamma: float | None,
    at: Callable[[float], float],
    delta2: float,
    divide: bool,
    words: str,
    given: Sequence[str],
) -> Claim:
    epsilon = bayesian_epsilon(facts, gamma, at, delta2, divide=divide)
    relation = "add_or_remove" if name == "bayesian_as_published" else "replace_one"
    unknown = gamma is None and not (facts.price.caught and facts.price.missed)
    neighbours = [NEIGHBOURS] if facts.price.by_token else [CONTEXT_FREE, MARKS_KEPT]
    conditions = [*given, *neighbours, POISSON, *([words] if not unknown else [])]
    if unknown:
        conditions = ["no gold secrets in the corpus: the share that the policy misses is unknown"]
    if facts.unaccounted or facts.price.reason:
        conditions = facts.hopeless
    if relation == "add_or_remove":
        conditions.append("the paper's relation; confidentiality replaces, so the replace_one claims are the sound ones")
    how = f"{words}; mechanism read at delta{' / gamma' if divide else ''}"
    how = f"{words}; a share gamma of delta is for what is missed" if facts.price.caught_alone else how
    says = f"Bayesian confidentiality of a secret drawn as in the corpus ({how})"
    unit = f"one random secret within {facts.unit}" if not facts.price.by_token else TOKENS.replace("one", "one random")
    return claim(name, unit, relation, epsilon, facts.delta, conditions, says)


def group_claims(facts: Facts) -> list[Claim]:
    """Group confidentiality of the most frequent secret, should the policy miss it everywhere (Proposition 7, Theorem 8.2)."""
    missed, given = facts.price.missed, [CONSERVATIVE] if facts.conditional else []
    rows = [
        ("group_after_dedup", facts.points_after, "distinct texts", [*given, POISSON, MARKS_KEPT]),
        ("group_before_dedup", facts.points_before, "points, copies counted", [*given, POISSON]),
    ]
    found = []
    for name, size, of, conditions in rows:
        if size is None:
            continue
        way = "an exact update read it"
        epsilon = math.inf
        if missed is not None:
            epsilon, way = group(missed, facts.delta, size)
        says = f"Confidentiality of a missed secret that stands in {size} {of}"
        unit = f"all occurrences of one secret ({size} {of})"
        found.append(claim(name, unit, "replace_one", epsilon, facts.delta, conditions, says, conversion=way))
    return found


def headline(facts: Facts) -> dict[str, Any]:
    """The numbers that figures use: replace_one, PLD, conditional on pi_c, gamma as measured and at its bound."""
    reached = facts.price
    at = spent(reached.drawn)
    return {
        "relation": "replace_one",
        "accountant": "pld",
        "unit": TOKENS if reached.by_token else facts.unit,
        "delta": facts.delta,
        "record_epsilon": spent(reached.record)(facts.delta),
        "bayesian_epsilon": bayesian_epsilon(facts, facts.gamma, at),
        "bayesian_epsilon_upper": bayesian_epsilon(facts, facts.gamma_upper, at),
        "gamma": facts.gamma,
        "gamma_upper": facts.gamma_upper,
        "condition": CONSERVATIVE if facts.conditional else "none beyond those of the claims",
    }


def epoch_claims(
    facts: Facts, before: Sequence[Release], epochs: Sequence[tuple[int, Sequence[Release]]]
) -> list[dict[str, Any]]:
    """record_epsilon and bayesian_epsilon after each epoch, on the grid of the whole run so that the last is the headline."""
    whole = mechanisms_of(facts.releases)
    interval = grid(whole, "replace_one") if whole else None
    so_far, found = list(before), []
    for number, releases in epochs:
        so_far += releases
        now = replace(facts, releases=tuple(so_far))
        record, at = (spent(some, interval=interval) for some in (now.price.record, now.price.drawn))
        epsilon = bayesian_epsilon(now, facts.gamma, at)
        found.append({"epoch": number, "record_epsilon": record(facts.delta), "bayesian_epsilon": epsilon})
    return found
