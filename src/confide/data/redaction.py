"""What the two policies of a redaction say of one text (CRT section 3.2).

That is the spans of pi, and whether pi_c fires. Fails closed: a text on which a policy raises
counts as a conservative hit.
"""

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import pyarrow as pa

from confide.files import arrays
from confide.policies import (
    Batched,
    Policy,
    batched,
    batches,
    detector,
    has_batches,
    policy,
    screen_of,
    with_misses,
)
from confide.policies.screen import Screen, Verdict
from confide.specs import RedactSpec
from confide.types import Span

# Spans, conservative, and failed where a policy raised; empty if there is nothing to say.
Finding = dict[str, Any]


def finder_of(spec: RedactSpec) -> Callable[[str], Finding]:
    """What the policies of a specification say of one text, as they say it of many.

    A screen costs more than one text: it is asked where a policy failed alone, which may have taken
    too long over what the screen rules out.
    """
    find = finder(*_policies(spec))
    screened = alone(column_finder_of(spec))

    def find_in(text: str) -> Finding:
        found = find(text)
        return screened(text) if "failed" in found else found

    return find_in


def finder(approximate: Policy, fires: Callable[[str], bool]) -> Callable[[str], Finding]:
    """What both policies say of one text."""
    return lambda text: said(text, approximate, fires)


def said(text: str, approximate: Policy, fires: Callable[[str], bool]) -> Finding:
    """What both policies say of one text; whatever goes wrong in one of them, it is private.

    What pi found stays found where pi_c fails. That may stop at the first thing that it finds; with
    that masked it reads on, perhaps to what it fails on, and what is masked beside it must not come
    back.
    """
    try:
        spans = approximate(text)
    except Exception:
        return failure()
    try:
        return finding(spans, fires(text))
    except Exception:
        return failed_behind(spans)


def _policies(spec: RedactSpec) -> tuple[Policy, Callable[[str], bool]]:
    """The policy, which is made to miss the chosen share of secrets, and the conservative one."""
    return (
        with_misses(policy(spec.policy), spec.miss_rate, spec.miss_seed),
        detector(spec.conservative),
    )


def alone(find: Callable[[pa.StringArray], list[Finding]]) -> Callable[[str], Finding]:
    """What is said of one text, by what says it of many."""
    return lambda text: find(arrays.texts([text]))[0]


def column_finder_of(spec: RedactSpec) -> Callable[[pa.StringArray], list[Finding]]:
    """What the policies of a specification say of each of many texts.

    Texts in which a policy surely finds nothing are not given to it.
    """
    return column_finder(*_policies(spec), screen_of(spec.policy), screen_of(spec.conservative))


def column_finder(
    approximate: Policy,
    fires: Callable[[str], bool],
    may_match: Screen | None = None,
    may_fire: Screen | None = None,
) -> Callable[[pa.StringArray], list[Finding]]:
    """What both policies say of each of many texts, with their screens."""

    def find_in(text: str, may: bool, known: bool | None) -> Finding:
        spans_of = approximate if may else nothing
        return said(text, spans_of, fires if known is None else lambda _: known)

    def find(texts: pa.StringArray) -> list[Finding]:
        matching = of_all(texts) if may_match is None else may_match(texts)
        firing = of_all(texts) if may_fire is None else may_fire(texts)
        places = np.flatnonzero(matching.may | firing.may)
        some = texts.take(arrays.integers(places)).to_pylist()
        may = matching.may[places].tolist()
        # whether the conservative policy fires, where that is known
        fires_here = firing.surely[places].tolist()
        open_ = (firing.may & ~firing.surely)[places].tolist()
        known = [None if ask else yes for ask, yes in zip(open_, fires_here, strict=True)]
        found: list[Finding] = [{}] * len(texts)
        for place, finding_ in zip(places.tolist(), map(find_in, some, may, known), strict=True):
            found[place] = finding_
        return found

    return find


def nothing(text: str) -> list[Span]:
    """What a policy finds in a text that its screen rules out."""
    return []


def of_all(texts: pa.StringArray) -> Verdict:
    """What is known without a screen: nothing."""
    return Verdict(np.ones(len(texts), bool), np.zeros(len(texts), bool))


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
        return [said_at_once(spans, hits) for spans, hits in both]

    return find


def said_at_once(spans: list[Span] | None, hits: list[Span] | None) -> Finding:
    """What is said of a text of many, as of one: None stands where a policy failed on it."""
    if spans is None:
        return failure()
    return failed_behind(spans) if hits is None else finding(spans, bool(hits))


def finding(spans: list[Span], fired: bool) -> Finding:
    """What is said of a text on which neither policy failed."""
    return (
        {"spans": [list(span) for span in spans], "conservative": fired} if spans or fired else {}
    )


def failure() -> Finding:
    """What is said of a text on which the policy failed."""
    return {"spans": [], "conservative": True, "failed": True}


def failed_behind(spans: list[Span]) -> Finding:
    """What is said of a text in which the policy found these, and the conservative one failed."""
    return failure() | {"spans": [list(span) for span in spans]}
