"""What the two policies of a redaction say of one text (CRT section 3.2).

That is the spans of pi, and whether pi_c fires. Fails closed: a text on which a policy raises
counts as a conservative hit.
"""

from collections.abc import Callable, Sequence
from typing import Any

from confide.policies import (
    Batched,
    Policy,
    batched,
    batches,
    detector,
    has_batches,
    policy,
    with_misses,
)
from confide.specs import RedactSpec
from confide.types import Span

# Spans, conservative, and failed where a policy raised; empty if there is nothing to say.
Finding = dict[str, Any]


def finder_of(spec: RedactSpec) -> Callable[[str], Finding]:
    """What the policies of a specification say.

    The first one is made to miss the chosen share of secrets.
    """
    return finder(
        with_misses(policy(spec.policy), spec.miss_rate, spec.miss_seed),
        detector(spec.conservative),
    )


def finder(approximate: Policy, fires: Callable[[str], bool]) -> Callable[[str], Finding]:
    """What both policies say of one text."""

    def find(text: str) -> Finding:
        try:
            return finding(approximate(text), fires(text))
        except Exception:  # whatever went wrong in a policy, the text is private
            return failure()

    return find


def batch_finder_of(spec: RedactSpec) -> Callable[[Sequence[str]], list[Finding]] | None:
    """What the policies say of many texts at once; None where neither policy is faster so."""
    if not (has_batches(spec.policy) or has_batches(spec.conservative)):
        return None
    return batch_finder(
        batches.with_misses(batched(spec.policy), spec.miss_rate, spec.miss_seed),
        batched(spec.conservative),
    )


def batch_finder(
    approximate: Batched, conservative: Batched
) -> Callable[[Sequence[str]], list[Finding]]:
    """What both policies say of each of many texts."""

    def find(texts: Sequence[str]) -> list[Finding]:
        both = zip(approximate(texts), conservative(texts), strict=True)
        return [
            failure() if spans is None or hits is None else finding(spans, bool(hits))
            for spans, hits in both
        ]

    return find


def finding(spans: list[Span], fired: bool) -> Finding:
    """What is said of a text on which neither policy failed."""
    return (
        {"spans": [list(span) for span in spans], "conservative": fired} if spans or fired else {}
    )


def failure() -> Finding:
    """What is said of a text on which a policy failed."""
    return {"spans": [], "conservative": True, "failed": True}
