"""What may be claimed of one trained model, in numbers and words.

Record-level, confidential, Bayesian and group guarantees (CRT Theorem 8 in three parts), each with
its unit, neighbour relation, delta, accountant, conversion and condition.
"""

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from typing import TypedDict

from confide.certify.confidentiality import bayesian_at, caught_only
from confide.certify.facts import (
    CONSERVATIVE,
    COPIES_KEPT,
    IN_ITS_POOL,
    MISSED_BY_BOTH,
    NAMED,
    SECRET_CAUGHT,
    SECRET_MISSED,
    STABLE,
    TOKENS,
    Facts,
)
from confide.certify.literal import literal_epsilon
from confide.dp.accounting.curves import Relation, grid, pld_curve
from confide.dp.accounting.price import (
    ACCOUNTANTS,
    Bound,
    agree,
    group,
    mechanisms_of,
    or_infinity,
    solve,
)
from confide.files.jsons import JsonObject
from confide.output.rounding import percent, rounded_up
from confide.types import AnyRelease

RELATIONS: tuple[Relation, ...] = ("add_or_remove", "replace_one")
BUT_FOR_MISSES = "Confidentiality of a random secret but for the chance that the policy misses it"
IS_READ = "the original text is read, so redaction makes nothing less likely: gamma = 1"
PAPERS_RELATION = (
    "the paper's relation; confidentiality replaces, so the replace_one claims are the sound ones"
)
EpsilonAt = Callable[[float], float]  # epsilon as a function of delta


class Claim(TypedDict):
    """One guarantee, as a certificate has it."""

    name: str
    unit: str
    relation: str
    epsilon: float
    delta: float
    accountant: str
    conversion: str
    condition: str
    sentence: str


def claim(
    facts: Facts,
    name: str,
    *,
    unit: str,
    epsilon: float,
    conditions: Sequence[str],
    says: str,
    relation: str = "replace_one",
    delta: float | None = None,
    accountant: str = "pld",
    conversion: str = "none",
) -> Claim:
    """One claim, at the delta of the facts unless another is given."""
    epsilon = or_infinity(epsilon)
    delta = facts.delta if delta is None else delta
    finite = f"at most {rounded_up(epsilon)}"
    shown = "unbounded (epsilon = infinity)" if epsilon == math.inf else finite
    return {
        "name": name,
        "unit": unit,
        "relation": relation,
        "epsilon": epsilon,
        "delta": delta,
        "accountant": accountant,
        "conversion": conversion,
        "condition": "; ".join(conditions) or "none",
        "sentence": f"{says}: epsilon is {shown} at delta = {rounded_up(delta, 3)}.",
    }


def spent(
    releases: Sequence[AnyRelease] | None,
    relation: Relation = "replace_one",
    interval: float | None = None,
) -> EpsilonAt:
    """Epsilon as a function of delta (PLD); infinity if an exact update read the data (None)."""
    if releases is None:
        return lambda _: math.inf
    bound = Bound(pld_curve(mechanisms_of(releases), relation, interval=interval))
    return lambda delta: or_infinity(solve(bound, delta))


def spent_on_secret(
    facts: Facts,
    releases: Sequence[AnyRelease] | None,
    relation: Relation = "replace_one",
    interval: float | None = None,
) -> EpsilonAt:
    """Epsilon of one secret as a function of delta: of all the records that it may lie in."""
    if releases is None or facts.pieces == 1:
        return spent(releases, relation, interval)
    return lambda delta: or_infinity(group(releases, delta, facts.pieces, relation)[0])


def all_claims(facts: Facts) -> list[Claim]:
    """Every claim of one secret or record, in the order in which they build on each other.

    ArithmeticError if the accountants disagree.
    """
    return [
        *record_claims(facts),
        *secret_claims(facts),
        *bayesian_claims(facts),
        *group_claims(facts),
    ]


def conversion_of(accountant: str, relation: str, hop: str = "add_or_remove") -> str:
    """In words how an accountant's curve became epsilon; Renyi has no pair for a replacement."""
    if accountant == "pld":
        return "none"
    return f"improved, two hops of {hop}" if relation == "replace_one" else "improved"


def record_claims(facts: Facts) -> Iterator[Claim]:
    """Differential privacy of one record of the noised pools, by both accountants."""
    reached = facts.price.record
    unit = record_unit(facts)
    for relation in RELATIONS:
        prices = dict.fromkeys(ACCOUNTANTS, math.inf)
        if reached is not None:
            prices = agree(reached, facts.delta, relation)
        for accountant, price in prices.items():
            epsilon = or_infinity(price)
            yield claim(
                facts,
                f"record_{relation}_{accountant}",
                unit=unit,
                relation=relation,
                epsilon=epsilon,
                conditions=record_conditions(facts, epsilon),
                says=f"Privacy of {unit} ({relation.replace('_', ' ')})",
                accountant=accountant,
                conversion=conversion_of(accountant, relation),
            )


def record_unit(facts: Facts) -> str:
    """What a claim about whole records is of."""
    return f"{facts.unit} in a pool that is only trained on with noise"


def record_conditions(facts: Facts, epsilon: float) -> list[str]:
    """On what a claim about whole records depends."""
    conditions = [facts.sampled]
    if facts.conditional:
        conditions.append(IN_ITS_POOL)
    if facts.price.authors:
        conditions.append(NAMED)
    if facts.dedup:
        conditions.append(COPIES_KEPT)
    return facts.unless_infinite(epsilon, facts.price.record, conditions)


def secret_claims(facts: Facts) -> Iterator[Claim]:
    """Theorem 8.1: one secret that pi catches, that it misses, and that pi_c misses as well."""
    price = facts.price
    caught = spent_on_secret(facts, price.caught)(facts.delta)
    missed = spent_on_secret(facts, price.missed)(facts.delta)
    untouched = [STABLE, *facts.marks]
    # where the original text is read, a copy whose mark changes is another record that changes
    also = untouched if price.screened else facts.marks
    if price.by_token:
        also = facts.neighbours
    if_caught = [facts.sampled, *facts.lengths, *facts.hidden_too, *also]
    if price.caught == []:
        shifted = facts.packing is not None and "original" in facts.packing.views
        if_caught = [*untouched, *(facts.lengths if shifted else [])]
    if_missed = [*facts.conservative_condition, facts.sampled, *facts.lengths, *facts.marks]
    if_missed += facts.copies_found
    whom = "Confidentiality of a secret that the policy"
    yield claim(
        facts,
        SECRET_CAUGHT,
        unit=facts.secret,
        epsilon=caught,
        conditions=facts.unless_infinite(caught, price.caught, if_caught),
        says=f"{whom} catches",
    )
    yield claim(
        facts,
        SECRET_MISSED,
        unit=facts.secret,
        epsilon=missed,
        conditions=facts.unless_infinite(missed, price.missed, if_missed),
        says=f"{whom} misses",
    )
    if facts.conditional:
        yield claim(
            facts,
            MISSED_BY_BOTH,
            unit=facts.secret,
            epsilon=math.inf,
            conditions=[],
            says=f"{whom} and the conservative policy both miss",
        )


def bayesian_epsilon(
    facts: Facts, gamma: float | None, at: EpsilonAt, delta2: float = 0.0, *, divide: bool = True
) -> float:
    """Theorem 8.3 at the facts' delta.

    Where training read the original text, redaction amplifies nothing: gamma = 1.
    """
    caught = facts.price.caught
    if caught is None:
        return math.inf
    if facts.price.caught_alone:
        return math.inf if gamma is None else caught_only(at, facts.delta, gamma)
    if caught:
        gamma = 1.0
    return math.inf if gamma is None else bayesian_at(at, facts.delta, gamma, delta2, divide=divide)


def bayesian_claims(facts: Facts) -> Iterator[Claim]:
    """Theorem 8.3 with gamma as measured and at its bound.

    Each is read at delta / gamma, and the undivided ones at delta. What depends on a gamma that
    nobody knows is not claimed. Where a missed secret is not protected at all, gamma amplifies
    nothing.
    """
    drawn = facts.price.drawn
    at = spent_on_secret(facts, drawn)
    amplifies = not facts.price.caught_alone
    measured = ""
    if facts.gamma is not None:
        measured = f"gamma as measured ({rounded_up(facts.gamma, 3)}), of the worst label"
    for name, gamma, origin in (
        ("bayesian", facts.gamma, measured),
        ("bayesian_upper", facts.gamma_upper, facts.bound_words),
    ):
        if gamma is not None or not facts.needs_gamma:
            yield bayesian_claim(facts, name, gamma, at, origin)
            if amplifies:
                undivided = f"{name}_undivided"
                yield bayesian_claim(facts, undivided, gamma, at, origin, divide=False)
    if amplifies and (facts.gamma is not None or not facts.needs_gamma):
        relation: Relation = "add_or_remove"
        published = spent_on_secret(facts, drawn, relation)
        name = "bayesian_as_published"
        yield bayesian_claim(facts, name, facts.gamma, published, measured, relation=relation)
    # at gamma = 1 delta would be 1, which promises nothing
    if facts.gamma_upper is not None and facts.gamma_upper < 1 and facts.price.caught == []:
        yield claim(
            facts,
            "bayesian_missing",
            unit=facts.random_secret,
            epsilon=0.0,
            delta=facts.gamma_upper,
            conditions=[STABLE, *facts.marks, facts.bound_words],
            says=BUT_FOR_MISSES,
        )
    if facts.conditional and (facts.gamma_upper is not None or not facts.needs_gamma):
        delta2 = 1.0 if facts.delta2_upper is None else facts.delta2_upper
        together = f"both hold at once with {percent(facts.confidence)}"
        origin = f"{facts.bound_words}, delta2 at its bound {rounded_up(delta2, 3)}: {together}"
        name = "bayesian_unconditional"
        yield bayesian_claim(facts, name, facts.gamma_upper, at, origin, delta2=delta2)


def bayesian_claim(
    facts: Facts,
    name: str,
    gamma: float | None,
    at: EpsilonAt,
    origin: str,
    *,
    delta2: float | None = None,
    divide: bool = True,
    relation: Relation = "replace_one",
) -> Claim:
    """Theorem 8.3 with one gamma, of which `origin` says where it is from.

    delta2: None where the claim is conditional on the conservative policy, so that it needs none.
    """
    conditions = facts.conservative_condition if delta2 is None else []
    conditions += facts.neighbours if facts.price.by_token else [STABLE, *facts.marks]
    conditions += [facts.sampled, *facts.lengths, *facts.hidden_too]
    if not (facts.price.by_token or facts.price.caught_alone):
        conditions += facts.copies_found
    if facts.needs_gamma or delta2 is not None:
        conditions.append(origin)
    if facts.unaccounted or facts.price.reason:
        conditions = facts.hopeless
    if relation == "add_or_remove":
        conditions.append(PAPERS_RELATION)
    if not facts.needs_gamma:
        how = IS_READ
    elif facts.price.caught_alone:
        how = f"{origin}; a share gamma of delta is for what is missed"
    else:
        how = f"{origin}; mechanism read at delta{' / gamma' if divide else ''}"
    return claim(
        facts,
        name,
        unit=facts.random_secret,
        relation=relation,
        epsilon=bayesian_epsilon(facts, gamma, at, delta2 or 0.0, divide=divide),
        conditions=conditions,
        says=f"Bayesian confidentiality of a secret drawn as in the corpus ({how})",
    )


def group_claims(facts: Facts) -> Iterator[Claim]:
    """The most frequent secret, should the policy miss it everywhere.

    That is Proposition 7 and Theorem 8.2. The paper says there that the policy "detects" a share of
    the secrets where it must say "misses".
    """
    missed = facts.price.missed
    for name, (size, of) in facts.groups.items():
        if size is None:
            continue
        epsilon = math.inf
        way = "an exact update read it"
        if missed is not None:
            epsilon, way = group(missed, facts.delta, size)
        marks = [facts.nowhere_else, *facts.cut]
        whose = f"one secret that the corpus marks{facts.marked_as}"
        if name == "group_after_dedup":
            marks = [facts.nowhere_else, *facts.marks, *facts.copies_found]
        yield claim(
            facts,
            name,
            unit=f"all occurrences of {whose} ({size} {of})",
            epsilon=epsilon,
            conditions=[*facts.conservative_condition, facts.sampled, *facts.lengths, *marks],
            says=f"Confidentiality of a missed secret that stands in {size} {of}",
            conversion=way,
        )


def headline(facts: Facts) -> JsonObject:
    """The numbers that figures use: replace_one, PLD, conditional on pi_c.

    unit: within what a secret lies. record_unit: what record_epsilon is of. Gamma is as measured
    and, in keys that end with upper, at its bound. literal: if one occurrence of the secret alone
    is masked, instead of its text wherever it stands.
    """
    at = spent_on_secret(facts, facts.price.drawn)
    gamma = facts.gamma
    gamma_upper = facts.gamma_upper
    usual = bayesian_epsilon(facts, governing(facts), at)
    upper = bayesian_epsilon(facts, gamma_upper, at)
    literal = usual
    literal_upper = upper
    if facts.dedup:
        literal = literal_epsilon(facts, measured=True)
        literal_upper = literal_epsilon(facts, measured=False)
    return {
        "relation": "replace_one",
        "accountant": "pld",
        "unit": TOKENS if facts.price.by_token else facts.unit,
        "delta": facts.delta,
        "record_unit": record_unit(facts),
        "record_epsilon": spent(facts.price.record)(facts.delta),
        "bayesian_epsilon": usual,
        "bayesian_epsilon_upper": upper,
        "bayesian_epsilon_literal": literal,
        "bayesian_epsilon_literal_upper": literal_upper,
        "gamma": gamma,
        "gamma_upper": gamma_upper,
        "gamma_literal": facts.gamma_literal if facts.dedup else gamma,
        "gamma_literal_upper": facts.gamma_literal_upper if facts.dedup else gamma_upper,
        "condition": CONSERVATIVE if facts.conditional else "none beyond those of the claims",
    }


def governing(facts: Facts) -> float | None:
    """Gamma as measured, or the bound where that alone is told; None where it is unknown."""
    return facts.gamma_upper if facts.gamma is None else facts.gamma


def epoch_claims(
    facts: Facts, before: Sequence[AnyRelease], epochs: Sequence[tuple[int, Sequence[AnyRelease]]]
) -> list[JsonObject]:
    """record_epsilon and bayesian_epsilon after each epoch.

    The grid is that of the whole run, so that the last is the headline.
    """
    whole = mechanisms_of(facts.releases)
    interval = grid(whole, "replace_one") if whole else None
    so_far = list(before)
    prices = []
    for number, releases in epochs:
        so_far += releases
        now = replace(facts, releases=tuple(so_far))
        at = spent_on_secret(now, now.price.drawn, interval=interval)
        prices.append(
            {
                "epoch": number,
                "record_epsilon": spent(now.price.record, interval=interval)(facts.delta),
                "bayesian_epsilon": bayesian_epsilon(now, governing(facts), at),
            }
        )
    return prices
