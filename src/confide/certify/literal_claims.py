"""Claims about masking one occurrence of a secret alone.

They stand beside those about masking its text wherever it stands. Where nothing is deduplicated
there are none: then the other claims are about one occurrence already.
"""

import math
from collections.abc import Iterator

from confide.certify.claims import Claim, claim, record_unit
from confide.certify.facts import IN_ITS_POOL, ONE_ALONE, STABLE, Facts
from confide.certify.literal import literal_epsilon, price_of, records_changed
from confide.dp.accounting.price import group
from confide.output.rounding import rounded_up

REPLACED = 3  # records that may change where one is replaced in the raw text
COMES_BACK = (
    "none can help: a copy that comes back is not as long as its mask, "
    "and shifts every chunk behind it"
)


def literal_claims(facts: Facts) -> Iterator[Claim]:
    """Of a caught secret, a missed one, and one drawn at random where the shares are known."""
    if facts.dedup:
        yield record_claim(facts)
        yield secret_claim(facts, "secret_caught_literal", "catches", True, [STABLE])
        yield secret_claim(
            facts, "secret_missed_literal", "missed", False, facts.conservative_condition
        )
        yield from random_claims(facts)


def record_claim(facts: Facts) -> Claim:
    """Of one record that is replaced in the raw text, wherever copies are.

    Beside it the copy of its text that comes back may change, and the copy of what takes its place,
    which is masked then.
    """
    epsilon, way = priced(facts, REPLACED)
    conditions = [facts.sampled, *([IN_ITS_POOL] if facts.conditional else [])]
    return claim(
        facts,
        "record_replace_one_literal",
        unit=record_unit(facts),
        epsilon=epsilon,
        conditions=held(facts, epsilon, conditions),
        says=f"Privacy of {record_unit(facts)}, wherever copies of its text are, and of what takes "
        f"its place ({REPLACED} records may change)",
        conversion=way,
    )


def secret_claim(facts: Facts, name: str, verb: str, caught: bool, conditions: list[str]) -> Claim:
    """Of one secret that the policy catches or misses."""
    records = records_changed(facts, caught=caught)
    epsilon, way = priced(facts, records)
    changed = f"{records} record{'s' * (records > 1)} may change"
    return claim(
        facts,
        name,
        unit=f"{facts.secret}, one occurrence alone",
        epsilon=epsilon,
        conditions=held(facts, epsilon, [ONE_ALONE, *facts.cut, facts.sampled, *conditions]),
        says=f"Confidentiality of one occurrence of a secret that the policy {verb}, "
        f"its later copies left as they are ({changed})",
        conversion=way,
    )


def random_claims(facts: Facts) -> Iterator[Claim]:
    """Theorem 8.3 for the literal neighbour, with shares as measured and at their bounds."""
    rows = (
        ("bayesian_literal", facts.gamma_literal, True, "as measured"),
        ("bayesian_literal_upper", facts.gamma_literal_upper, False, "at its upper bound"),
    )
    for name, gamma, measured, origin in rows:
        share = "all may leave a trace"
        if facts.needs_gamma:
            if gamma is None:
                continue
            share = f"a share of {rounded_up(gamma, 3)} leaves a trace, {origin}"
        epsilon = literal_epsilon(facts, measured=measured)
        conditions = [ONE_ALONE, *facts.cut, *facts.conservative_condition]
        conditions += [STABLE, facts.sampled]
        conditions += [] if measured else [facts.bound_words]
        whose = "one occurrence of a secret drawn as in the corpus"
        yield claim(
            facts,
            name,
            unit=f"{facts.random_secret}, one occurrence alone",
            epsilon=epsilon,
            conditions=held(facts, epsilon, conditions),
            says=f"Bayesian confidentiality of {whose} ({share})",
        )


def priced(facts: Facts, records: int) -> tuple[float, str]:
    """Epsilon if so many records change, and how it came about."""
    epsilon = price_of(facts, records)(facts.delta)
    if facts.price.record is None or epsilon == math.inf:
        return epsilon, "none"
    return epsilon, group(facts.price.record, facts.delta, records)[1]


def held(facts: Facts, epsilon: float, conditions: list[str]) -> list[str]:
    """The conditions of a finite claim, or why nothing finite holds."""
    if epsilon == math.inf and facts.packing is not None and facts.price.record is not None:
        return [COMES_BACK]
    return facts.unless_infinite(epsilon, facts.price.record, conditions)
