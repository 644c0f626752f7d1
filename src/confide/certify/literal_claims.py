"""Claims about masking one occurrence of a secret alone, beside those about masking its text
wherever it stands.

Empty where nothing is deduplicated: then the other claims are about one occurrence already.
"""

import math

from confide.certify.claims import Claim, Facts, claim
from confide.certify.facts import CONSERVATIVE, CONTEXT_FREE, ONE_ALONE
from confide.certify.literal import literal_epsilon, price_of, records_changed
from confide.dp.accounting.price import group


def literal_claims(facts: Facts) -> list[Claim]:
    """Of a caught secret, of a missed one, and of one drawn at random where the shares are
    known.
    """
    if not facts.dedup:
        return []
    given = [CONSERVATIVE] if facts.conditional else []
    unit = f"{facts.secret}, one occurrence alone"
    found = []
    for name, caught in (("caught", True), ("missed", False)):
        records = records_changed(facts, caught=caught)
        epsilon = price_of(facts, records)(facts.delta)
        held = [ONE_ALONE, facts.sampled, *([CONTEXT_FREE] if caught else given)]
        held = held if epsilon < math.inf else reasons(facts)
        way = group(facts.price.record, facts.delta, records)[1] if epsilon < math.inf else "none"
        says = f"Confidentiality of one occurrence of a secret that the policy {'catches' if caught else name}"
        says += f", its later copies left as they are ({records} record{'s' * (records > 1)} may change)"
        found.append(
            claim(
                f"secret_{name}_literal",
                unit=unit,
                relation="replace_one",
                epsilon=epsilon,
                delta=facts.delta,
                conditions=held,
                says=says,
                conversion=way,
            )
        )
    return [*found, *random_claims(facts, unit.replace("one", "one random", 1), given)]


def random_claims(facts: Facts, unit: str, given: list[str]) -> list[Claim]:
    """Theorem 8.3 for the literal neighbour, with shares as measured and at their bounds."""
    rows = [
        ("bayesian_literal", facts.gamma_literal, True, "as measured"),
        ("bayesian_literal_upper", facts.gamma_literal_upper, False, "at its upper bound"),
    ]
    found = []
    for name, gamma, measured, words in rows:
        if gamma is None and facts.needs_gamma:
            continue
        epsilon = literal_epsilon(facts, measured=measured)
        share = (
            f"a share of {gamma:.3g} leaves a trace, {words}"
            if facts.needs_gamma
            else "all may leave a trace"
        )
        held = [
            ONE_ALONE,
            *given,
            CONTEXT_FREE,
            facts.sampled,
            *([] if measured else [facts.bound_words]),
        ]
        held = held if epsilon < math.inf else reasons(facts)
        says = f"Bayesian confidentiality of one occurrence of a secret drawn as in the corpus ({share})"
        found.append(
            claim(
                name,
                unit=unit,
                relation="replace_one",
                epsilon=epsilon,
                delta=facts.delta,
                conditions=held,
                says=says,
            )
        )
    return found


def reasons(facts: Facts) -> list[str]:
    """Why nothing finite holds."""
    if facts.packing is not None and facts.price.record is not None:
        return [
            "none can help: a copy that comes back is not as long as its mask, and shifts every chunk behind it"
        ]
    return facts.unless_infinite(math.inf, facts.price.record, [])
