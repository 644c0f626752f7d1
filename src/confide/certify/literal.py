"""What masking one occurrence of a secret alone costs, where training masks later copies of a text.

Deduplication reads the first copy of a text and masks the others. Mask a secret in the first copy,
and the second is no copy any more: it is read in its place. So even a secret that the policy
catches changes one record (a mask becomes the redacted text), and one that it misses changes two.
CRT's Proposition 7 holds for masking all copies at once; this is the rest.
"""

import math
from collections.abc import Callable

from confide.certify.confidentiality import amplified_by_parts
from confide.certify.facts import Facts
from confide.dp.accounting.price import group, or_infinity


def records_changed(facts: Facts, *, caught: bool) -> int:
    """How many records differ at most.

    Of a caught secret's text only the copy that comes back is news to the redacted view.
    """
    return 1 if caught and facts.price.caught == [] else max(2, facts.points_literal)


def price_of(facts: Facts, records: int) -> Callable[[float], float]:
    """Epsilon as a function of delta if so many records change.

    It is infinite in chunks, which would show that a text is not as long as a mask.
    """
    reached = facts.price.record
    if reached is None or facts.packing is not None:
        return lambda _: math.inf
    return lambda delta: or_infinity(group(reached, delta, records)[0])


def literal_epsilon(facts: Facts, *, measured: bool) -> float:
    """Epsilon of a secret drawn at random, one occurrence of which is masked.

    It is infinite where nobody knows how many leave a trace. measured: shares as measured where
    they are told, else at their bounds.
    """
    several = price_of(facts, records_changed(facts, caught=False))
    if facts.price.caught != []:
        return several(facts.delta)
    told = measured and facts.gamma_literal is not None
    gamma = facts.gamma_literal if told else facts.gamma_literal_upper
    doubled = facts.doubled_literal if told else facts.doubled_literal_upper
    if gamma is None:
        return math.inf
    # that it leaves a trace at all is no more likely than delta allows
    if gamma <= facts.delta:
        return 0.0
    doubled = gamma if doubled is None else min(gamma, doubled)
    alone = price_of(facts, records_changed(facts, caught=True))
    shares = ((gamma - doubled, alone), (doubled, several))
    parts = [(share, at(facts.delta / gamma)) for share, at in shares if share > 0]
    return or_infinity(amplified_by_parts(parts))
