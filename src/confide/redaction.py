"""What the two policies of a redaction say of one text: the spans of pi, and whether pi_c fires (CRT section 3.2).

Fails closed: a text on which a policy raises counts as a conservative hit.
"""

from collections.abc import Callable
from typing import Any

from confide.policies import Policy, policy, with_misses
from confide.specs import RedactSpec

Finding = dict[str, Any]  # spans, conservative, and failed where a policy raised; empty if there is nothing to say


def finder_of(spec: RedactSpec) -> Callable[[str], Finding]:
    """What the policies of a specification say, the first one made to miss the chosen share of secrets."""
    return finder(with_misses(policy(spec.policy), spec.miss_rate, spec.miss_seed), policy(spec.conservative))


def finder(approximate: Policy, conservative: Policy) -> Callable[[str], Finding]:
    """What both policies say of one text."""

    def find(text: str) -> Finding:
        try:
            spans = [list(span) for span in approximate(text)]
            fired = bool(conservative(text))
        except Exception:  # whatever went wrong in a policy, the text is private
            return {"spans": [], "conservative": True, "failed": True}
        return {"spans": spans, "conservative": fired} if spans or fired else {}

    return find
