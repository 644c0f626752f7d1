"""Policies: text -> spans.

`POLICIES` maps the kind in a specification to the function that builds the policy. `BATCHED` has
those that are faster over many texts at once; they find the same as one text at a time.
"""

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from confide.policies import batches
from confide.policies.at_once import Matches, at_once
from confide.policies.batches import Batched, alone, one_by_one
from confide.policies.contextual import contextual
from confide.policies.cover import cover
from confide.policies.domain_classifier import classifier
from confide.policies.everything import everything
from confide.policies.keyword import keyword
from confide.policies.misses import with_misses
from confide.policies.ner import ner
from confide.policies.presets import expressions, preset
from confide.policies.presidio import presidio
from confide.policies.regex import SECRET, is_one_scan, regex
from confide.policies.regex import detector as regex_detector
from confide.policies.screen import Screen, screen
from confide.policies.spans import (
    Policy,
    covered,
    hidden,
    is_within,
    merged_masks,
    merged_ranges,
    moved,
    redacted_text,
    runs_of,
    shows,
    union,
)
from confide.policies.words import words
from confide.specs import PolicySpec, UnionPolicySpec

if TYPE_CHECKING:
    import pyarrow as pa


def policy(spec: PolicySpec) -> Policy:
    """The policy that a specification describes."""
    return POLICIES[spec.kind](spec)


def detector(spec: PolicySpec) -> Callable[[str], bool]:
    """Whether the policy finds anything in a text."""
    if spec.kind == "regex":
        return regex_detector(spec)
    find = policy(spec)
    return lambda text: bool(find(text))


def has_batches(spec: PolicySpec) -> bool:
    """Whether the policy is faster over many texts at once."""
    return any(map(has_batches, spec.policies)) if spec.kind == "union" else spec.kind in BATCHED


def batched(spec: PolicySpec) -> Batched:
    """The policy over many texts, whichever kind it is."""
    if spec.kind == "union":
        return batches.union(*map(batched, spec.policies))
    return BATCHED[spec.kind](spec) if spec.kind in BATCHED else one_by_one(policy(spec))


def together_of(spec: PolicySpec) -> Callable[["pa.StringArray"], Matches] | None:
    """What a table of patterns finds in many texts at once, which are `plain`.

    None where that is not known to be what the policy finds in each.
    """
    if spec.kind != "regex" or not is_one_scan(spec):
        return None
    if any(SECRET in pattern for pattern in spec.patterns.values()):
        return None
    return at_once(list(spec.patterns.values()))


def screen_of(spec: PolicySpec) -> Screen | None:
    """In which of many texts the policy may find something; None: perhaps in all of them.

    What a preset's expression matches may fail its check: that is no finding yet.
    """
    patterns = searched(spec)
    return None if patterns is None else screen(patterns, decides=spec.kind == "regex")


def searched(spec: PolicySpec) -> list[str] | None:
    """Regular expressions of which one matches wherever the policy finds something, if it has."""
    if spec.kind == "regex":
        return list(spec.patterns.values())
    if spec.kind == "preset":
        return expressions(spec)
    if spec.kind == "union":
        parts = list(map(searched, spec.policies))
        return None if None in parts else [pattern for part in parts for pattern in part or ()]
    return None


def any_of(spec: UnionPolicySpec) -> Policy:
    """The policy that flags what any of its policies flags."""
    return union(*map(policy, spec.policies))


BATCHED: dict[str, Callable[[Any], Batched]] = {
    "ner": ner,
    "contextual": contextual,
    "classifier": classifier,
    "presidio": presidio,
}
POLICIES: dict[str, Callable[[Any], Policy]] = {
    "everything": everything,
    "regex": regex,
    "preset": preset,
    "words": words,
    "ner": lambda spec: alone(ner(spec)),
    "contextual": lambda spec: alone(contextual(spec)),
    "presidio": lambda spec: alone(presidio(spec)),
    "keyword": keyword,
    "classifier": lambda spec: alone(classifier(spec)),
    "cover": cover,
    "union": any_of,
}

__all__ = [
    "BATCHED",
    "POLICIES",
    "Batched",
    "Matches",
    "Policy",
    "batched",
    "covered",
    "detector",
    "has_batches",
    "hidden",
    "is_within",
    "merged_masks",
    "merged_ranges",
    "moved",
    "policy",
    "redacted_text",
    "runs_of",
    "screen_of",
    "shows",
    "together_of",
    "union",
    "with_misses",
]
