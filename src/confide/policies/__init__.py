"""Policies: text -> spans. `POLICIES` maps the kind in a specification to the function that builds the policy."""

from collections.abc import Callable
from typing import Any

from confide.policies.everything import everything
from confide.policies.misses import with_misses
from confide.policies.regex import regex
from confide.policies.spans import Policy, covered, masks, merge, redacted_text, union
from confide.specs import PolicySpec

POLICIES: dict[str, Callable[[Any], Policy]] = {
    "everything": everything,
    "regex": regex,
}


def policy(spec: PolicySpec) -> Policy:
    """The policy that a specification describes."""
    return POLICIES[spec.kind](spec)


__all__ = ["POLICIES", "Policy", "covered", "masks", "merge", "policy", "redacted_text", "union", "with_misses"]
