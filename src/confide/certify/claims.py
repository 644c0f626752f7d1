"""What may be claimed of one trained model: record-level, confidential, Bayesian and group
guarantees, in numbers and words.

CRT Theorem 8 in three parts, each claim with its unit, neighbour relation, delta, accountant,
conversion and condition.
"""

import math
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

from confide.certify.confidentiality import bayesian_at, caught_only
from confide.certify.facts import CONSERVATIVE, CONTEXT_FREE, NAMED, NEIGHBOURS, TOKENS, Facts
from confide.certify.literal import literal_epsilon
from confide.dp.accounting.curves import Relation, grid, pld_curve
from confide.dp.accounting.price import (
    ACCOUNTANTS,
    Bound,
    agree,
    group,
    mechanisms_of,
    rounded_up,
    solve,
)
from confide.types import AnyRelease

Claim = dict[str, Any]


def spent(
    releases: Sequence[AnyRelease] | None,
    relation: Relation = "replace_one",
    interval: float | None = None,
) -> Callable[[float], float]:
    """Epsilon as a function of delta (PLD); infinity if an exact update read the data (None)."""
    if releases is None:
        return lambda _: math.inf
    bound = Bound(pld_curve(mechanisms_of(releases), relation, interval=interval))
    return lambda delta: rounded_up(solve(bound, delta))


def spent_on_secret(
    facts: Facts,
    releases: Sequence[AnyRelease] | None,
    relation: Relation = "replace_one",
    interval: float | None = None,
) -> Callable[[float], float]:
    """The same for one secret: for all the records, chunks of text, that it may lie in."""
    if releases is None or facts.pieces == 1:
        return spent(releases, relation, interval)
    return lambda delta: rounded_up(group(releases, delta, facts.pieces, relation)[0])


def all_claims(facts: Facts) -> list[Claim]:
    """Every claim, in the order in which they build on each other; ArithmeticError if the
    accountants disagree.
    """
    return [
        *record_claims(facts),
        *secret_claims(facts),
        *bayesian_claims(facts),
        *group_claims(facts),
    ]


def claim(
    name: str,
    unit: str,
    relation: str,
    epsilon: float,
    delta: float,
    conditions: Sequence[str],
    says: str,
    **how: str,
) -> Claim:
    """One claim; `how` gives accountant and conversion where a number was computed."""
    epsilon = rounded_up(epsilon)
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
    """Differential privacy of one record of the pools trained on with noise, by both
    accountants.
    """
    reached = facts.price.record
    unit = f"{facts.unit} in a pool that is only trained on with noise"
    found = []
    for relation in ("add_or_remove", "replace_one"):
        prices = (
            dict.fromkeys(ACCOUNTANTS, math.inf)
            if reached is None
            else agree(reached, facts.delta, relation)
        )
        prices = {accountant: rounded_up(epsilon) for accountant, epsilon in prices.items()}
        for accountant, epsilon in prices.items():
            conditions = record_conditions(facts, epsilon)
            conversion = "none" if accountant == "pld" else "improved"
            conversion += (
                ", two hops of add_or_remove"
                if (accountant, relation) == ("rdp", "replace_one")
                else ""
            )
            says = f"Privacy of {unit} ({relation.replace('_', ' ')})"
            name = f"record_{relation}_{accountant}"
            how = {"accountant": accountant, "conversion": conversion}
            found.append(
                claim(
                    name,
                    unit=unit,
                    relation=relation,
                    epsilon=epsilon,
                    delta=facts.delta,
                    conditions=conditions,
                    says=says,
                    **how,
                )
            )
    return found


def record_conditions(facts: Facts, epsilon: float) -> list[str]:
    """On what a claim about whole records depends."""
    stays = ["the record stays in its pool"] if facts.conditional else []
    held = [facts.sampled, *stays, *([NAMED] if facts.price.authors else [])]
    return facts.unless_infinite(epsilon, facts.price.record, held)


def secret_claims(facts: Facts) -> list[Claim]:
    """Theorem 8.1: confidentiality of one secret that pi catches, that it misses, and that pi_c
    misses as well.
    """
    reached = facts.price
    unit = facts.secret
    caught, missed = (
        spent_on_secret(facts, some)(facts.delta) for some in (reached.caught, reached.missed)
    )
    given = [CONSERVATIVE] if facts.conditional else []
    kept = [CONTEXT_FREE, *facts.marks]
    untouched = [
        *kept,
        *(facts.lengths if facts.packing and "original" in facts.packing.views else []),
    ]
    # where the original text is read, a copy whose mark changes is another record that changes
    also = [NEIGHBOURS] if reached.by_token else kept if reached.screened else facts.marks
    sampled = [facts.sampled, *facts.lengths, *also]
    if_missed = [*given, facts.sampled, *facts.lengths, *facts.marks]
    parts = [
        (
            "secret_caught",
            caught,
            reached.caught,
            untouched if caught == 0 else sampled,
            "that the policy catches",
        ),
        ("secret_missed", missed, reached.missed, if_missed, "that the policy misses"),
    ]
    parts = [
        (name, value, facts.unless_infinite(value, which, held), words)
        for name, value, which, held, words in parts
    ]
    if facts.conditional:
        parts.append(
            (
                "secret_missed_by_both",
                math.inf,
                [],
                "that the policy and the conservative policy both miss",
            )
        )
    return [
        claim(
            name,
            unit=unit,
            relation="replace_one",
            epsilon=epsilon,
            delta=facts.delta,
            conditions=conditions,
            says=f"Confidentiality of a secret {which}",
        )
        for name, epsilon, conditions, which in parts
    ]


def bayesian_epsilon(
    facts: Facts,
    gamma: float | None,
    at: Callable[[float], float],
    delta2: float = 0.0,
    *,
    divide: bool = True,
) -> float:
    """Theorem 8.3 at the facts' delta. Where training read the original text, redaction amplifies
    nothing: gamma = 1.
    """
    caught = facts.price.caught
    if caught is None:
        return math.inf
    if facts.price.caught_alone:
        return math.inf if gamma is None else caught_only(at, facts.delta, gamma)
    if caught:
        gamma = 1.0
    return math.inf if gamma is None else bayesian_at(at, facts.delta, gamma, delta2, divide=divide)


def bayesian_claims(facts: Facts) -> list[Claim]:
    """Theorem 8.3 with gamma as measured and at its bound, with and without reading the mechanism
    at delta / gamma.

    What depends on a gamma that nobody knows is not claimed.
    """
    drawn = facts.price.drawn
    at = spent_on_secret(facts, drawn)
    published = spent_on_secret(facts, drawn, "add_or_remove")
    given = [CONSERVATIVE] if facts.conditional else []
    measured = (
        f"gamma as measured ({facts.gamma:.3g}), of the worst label"
        if facts.gamma is not None
        else ""
    )
    bound = facts.bound_words
    rows = [
        ("bayesian", facts.gamma, at, 0.0, True, measured),
        ("bayesian_undivided", facts.gamma, at, 0.0, False, measured),
        ("bayesian_upper", facts.gamma_upper, at, 0.0, True, bound),
        ("bayesian_upper_undivided", facts.gamma_upper, at, 0.0, False, bound),
        ("bayesian_as_published", facts.gamma, published, 0.0, True, measured),
    ]
    if (
        facts.price.caught_alone
    ):  # where a missed secret is not protected at all, gamma amplifies nothing
        rows = [row for row in rows if row[0] in ("bayesian", "bayesian_upper")]
    if facts.needs_gamma:
        rows = [row for row in rows if row[1] is not None]
    found = [_bayesian(facts, *row, given) for row in rows]
    if facts.gamma_upper is not None and facts.price.caught == []:
        conditions = [CONTEXT_FREE, *facts.marks, bound]
        unit = facts.secret.replace("one", "one random", 1)
        says = "Confidentiality of a random secret but for the chance that the policy misses it"
        found.append(
            claim(
                "bayesian_missing",
                unit=unit,
                relation="replace_one",
                epsilon=0.0,
                delta=facts.gamma_upper,
                conditions=conditions,
                says=says,
            )
        )
    if facts.conditional and (facts.gamma_upper is not None or not facts.needs_gamma):
        delta2 = 1.0 if facts.delta2_upper is None else facts.delta2_upper
        words = f"{bound}, delta2 at its bound {delta2:.3g}: both hold at once with {facts.confidence:.0%}"
        found.append(
            _bayesian(
                facts,
                name="bayesian_unconditional",
                gamma=facts.gamma_upper,
                at=at,
                delta2=delta2,
                divide=True,
                words=words,
                given=[],
            )
        )
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
    neighbours = [NEIGHBOURS] if facts.price.by_token else [CONTEXT_FREE, *facts.marks]
    conditions = [*given, *neighbours, facts.sampled, *facts.lengths]
    if facts.needs_gamma or name == "bayesian_unconditional":
        conditions.append(words)
    if facts.unaccounted or facts.price.reason:
        conditions = facts.hopeless
    if relation == "add_or_remove":
        conditions.append(
            "the paper's relation; confidentiality replaces, so the replace_one claims are the sound ones"
        )
    how = f"{words}; mechanism read at delta{' / gamma' if divide else ''}"
    how = (
        f"{words}; a share gamma of delta is for what is missed"
        if facts.price.caught_alone
        else how
    )
    how = (
        how
        if facts.needs_gamma
        else "the original text is read, so redaction makes nothing less likely: gamma = 1"
    )
    says = f"Bayesian confidentiality of a secret drawn as in the corpus ({how})"
    unit = facts.secret.replace("one", "one random", 1)
    return claim(
        name,
        unit=unit,
        relation=relation,
        epsilon=epsilon,
        delta=facts.delta,
        conditions=conditions,
        says=says,
    )


def group_claims(facts: Facts) -> list[Claim]:
    """Group confidentiality of the most frequent secret, should the policy miss it everywhere
    (Proposition 7, Theorem 8.2).
    """
    missed = facts.price.missed
    given = [CONSERVATIVE] if facts.conditional else []
    kept = {"group_after_dedup": facts.marks}
    found = []
    for name, (size, of) in facts.groups.items():
        if size is None:
            continue
        conditions = [*given, facts.sampled, *facts.lengths, *kept.get(name, [])]
        way = "an exact update read it"
        epsilon = math.inf
        if missed is not None:
            epsilon, way = group(missed, facts.delta, size)
        says = f"Confidentiality of a missed secret that stands in {size} {of}"
        unit = f"all occurrences of one secret ({size} {of})"
        found.append(
            claim(
                name,
                unit=unit,
                relation="replace_one",
                epsilon=epsilon,
                delta=facts.delta,
                conditions=conditions,
                says=says,
                conversion=way,
            )
        )
    return found


def headline(facts: Facts) -> dict[str, Any]:
    """The numbers that figures use: replace_one, PLD, conditional on pi_c, gamma as measured and at
    its bound.

    `literal`: if one occurrence of the secret alone is masked, instead of its text wherever it
    stands.
    """
    reached = facts.price
    at = spent_on_secret(facts, reached.drawn)
    usual = bayesian_epsilon(facts, governing(facts), at)
    upper = bayesian_epsilon(facts, facts.gamma_upper, at)
    return {
        "relation": "replace_one",
        "accountant": "pld",
        "unit": TOKENS if reached.by_token else facts.unit,
        "delta": facts.delta,
        "record_epsilon": spent(reached.record)(facts.delta),
        "bayesian_epsilon": usual,
        "bayesian_epsilon_upper": upper,
        "bayesian_epsilon_literal": literal_epsilon(facts, measured=True) if facts.dedup else usual,
        "bayesian_epsilon_literal_upper": literal_epsilon(facts, measured=False)
        if facts.dedup
        else upper,
        "gamma": facts.gamma,
        "gamma_upper": facts.gamma_upper,
        "gamma_literal": facts.gamma_literal if facts.dedup else facts.gamma,
        "gamma_literal_upper": facts.gamma_literal_upper if facts.dedup else facts.gamma_upper,
        "condition": CONSERVATIVE if facts.conditional else "none beyond those of the claims",
    }


def governing(facts: Facts) -> float | None:
    """Gamma as measured, or the bound where that alone is told; None where it is unknown."""
    return facts.gamma_upper if facts.gamma is None else facts.gamma


def epoch_claims(
    facts: Facts, before: Sequence[AnyRelease], epochs: Sequence[tuple[int, Sequence[AnyRelease]]]
) -> list[dict[str, Any]]:
    """record_epsilon and bayesian_epsilon after each epoch, on the grid of the whole run so that
    the last is the headline.
    """
    whole = mechanisms_of(facts.releases)
    interval = grid(whole, "replace_one") if whole else None
    so_far = list(before)
    found = []
    for number, releases in epochs:
        so_far += releases
        now = replace(facts, releases=tuple(so_far))
        record = spent(now.price.record, interval=interval)
        at = spent_on_secret(now, now.price.drawn, interval=interval)
        epsilon = bayesian_epsilon(now, governing(facts), at)
        found.append(
            {"epoch": number, "record_epsilon": record(facts.delta), "bayesian_epsilon": epsilon}
        )
    return found
