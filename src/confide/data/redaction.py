"""What the two policies of a redaction say of one text (CRT section 3.2).

That is the spans of pi, and whether pi_c fires. Fails closed: a text on which pi raises is one span
and a conservative hit, one on which pi_c raises is a conservative hit.
"""

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np
import orjson
import pyarrow as pa
import pyarrow.compute as pc

from confide.files import arrays
from confide.policies import (
    Batched,
    Matches,
    Policy,
    batched,
    batches,
    detector,
    has_batches,
    policy,
    screen_of,
    together_of,
    with_misses,
)
from confide.policies.at_once import plain
from confide.policies.screen import Screen, Verdict
from confide.specs import RedactSpec
from confide.types import Span

FAILED = "failed"  # label of the span over a text on which the policy raised

# Spans, conservative, and failed where a policy raised; empty if there is nothing to say.
Finding = dict[str, Any]


def finder_of(spec: RedactSpec) -> Callable[[str], Finding]:
    """What the policies of a specification say of one text, as they say it of many.

    A screen costs more than one text: it is asked where a policy failed alone, which may have taken
    too long over what the screen rules out.
    """
    find = finder(*_policies(spec))
    screened = alone(sayer_of(spec))

    def find_in(text: str) -> Finding:
        found = find(text)
        return screened(text) if "failed" in found else found

    return find_in


def finder(approximate: Policy, fires: Callable[[str], bool]) -> Callable[[str], Finding]:
    """What both policies say of one text."""
    return lambda text: finding_in(text, approximate, fires)


def finding_in(text: str, approximate: Policy, fires: Callable[[str], bool]) -> Finding:
    """What both policies say of one text; whatever goes wrong in pi, all of it is masked, and
    whatever goes wrong in either, it is private.

    What pi found stays found where pi_c fails. That may stop at the first thing that it finds; with
    that masked it reads on, perhaps to what it fails on, and what is masked beside it must not come
    back.
    """
    try:
        spans = approximate(text)
    except Exception:
        return failure(text)
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


class Said(NamedTuple):
    """What the policies say of each of many texts, as it is written.

    That is JSON without braces; nothing where there is nothing to say.
    """

    written: pa.StringArray  # (N,)
    failed: np.ndarray  # (N,) bool

    def findings(self) -> list[Finding]:
        """The same, each as an object."""
        return [orjson.loads(f"{{{written}}}") for written in self.written.to_pylist()]


Sayer = Callable[[pa.StringArray], Said]


def alone(say: Sayer) -> Callable[[str], Finding]:
    """What is said of one text, by what says it of many."""
    return lambda text: say(arrays.texts([text])).findings()[0]


def sayer_of(spec: RedactSpec) -> Sayer:
    """What the policies of a specification say of each of many texts.

    Where that is surely what they say of each by itself, all texts are looked at together.
    """
    find = column_finder_of(spec)
    together = together_of(spec.policy) if spec.miss_rate == 0 else None
    may_fire = screen_of(spec.conservative)
    if together is None or may_fire is None or spec.policy.kind != "regex":
        return lambda texts: written_column(find(texts))
    labels = list(spec.policy.patterns)

    def say(texts: pa.StringArray) -> Said:
        firing = may_fire(texts)
        known = (firing.surely | ~firing.may) & plain(texts)
        some = arrays.booleans(known)
        others = written_column(find(texts.filter(arrays.booleans(~known))))
        written = written_of(together(texts.filter(some)), labels, firing.surely[known])
        places = np.empty(len(texts), np.int64)
        places[known] = np.arange(known.sum())
        places[~known] = known.sum() + np.arange((~known).sum())
        both = pa.concat_arrays([written, others.written]).take(arrays.integers(places))
        failed = np.zeros(len(texts), bool)
        failed[~known] = others.failed
        return Said(both, failed)

    return say


def written_column(findings: Sequence[Finding]) -> Said:
    """What was found in each of many texts."""
    written = arrays.texts([orjson.dumps(finding)[1:-1].decode() for finding in findings])
    failed = np.fromiter(("failed" in finding for finding in findings), bool, len(findings))
    return Said(written, failed)


def written_of(matches: Matches, labels: Sequence[str], fires: np.ndarray) -> pa.StringArray:
    """What is written of many texts (N,): what the policy found, and where the other one fires."""
    names = arrays.texts([f",{orjson.dumps(label).decode()},1.0]" for label in labels])
    spans = pc.binary_join_element_wise(
        arrays.text("["),
        arrays.digits(matches.start),
        arrays.text(","),
        arrays.digits(matches.end),
        names.take(arrays.integers(matches.label)),
        arrays.text(""),
    )
    counts = np.bincount(matches.text, minlength=len(fires))
    edges = np.append(0, np.cumsum(counts))
    something = (counts > 0) | fires
    yes_or_no = arrays.texts(["false", "true"]).take(arrays.integers(fires))
    written = pc.binary_join_element_wise(
        arrays.text('"spans":['),
        pc.binary_join(arrays.lists(edges, spans), arrays.text(",")),
        arrays.text('],"conservative":'),
        yes_or_no,
        arrays.text(""),
    )
    return pc.if_else(arrays.booleans(something), written, arrays.text(""))


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
        return finding_in(text, spans_of, fires if known is None else lambda _: known)

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
        both = zip(texts, approximate(texts), conservative(texts), strict=True)
        return [finding_of_batched(text, spans, hits) for text, spans, hits in both]

    return find


def finding_of_batched(text: str, spans: list[Span] | None, hits: list[Span] | None) -> Finding:
    """What is said of a text of many, as of one: None stands where a policy failed on it."""
    if spans is None:
        return failure(text)
    return failed_behind(spans) if hits is None else finding(spans, bool(hits))


def finding(spans: list[Span], fired: bool) -> Finding:
    """What is said of a text on which neither policy failed."""
    return (
        {"spans": [list(span) for span in spans], "conservative": fired} if spans or fired else {}
    )


def failure(text: str) -> Finding:
    """What is said of a text on which the policy failed: any of it may be a secret."""
    return failed_behind([Span(0, len(text), FAILED)])


def failed_behind(spans: list[Span]) -> Finding:
    """What is said of a text in which the policy found these, and the conservative one failed."""
    return {"spans": [list(span) for span in spans], "conservative": True, "failed": True}
