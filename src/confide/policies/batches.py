"""Policies over many texts at once, for those that are faster so.

They make of texts one list of spans per text. None stands where the policy failed on a text. A
failure never spreads to the other texts of a batch, and what is found in a text does not depend on
what stands beside it.
"""

from collections.abc import Callable, Sequence

from confide.policies.misses import missing
from confide.policies.spans import Policy, merge
from confide.types import Span

Found = list[list[Span] | None]
Batched = Callable[[Sequence[str]], Found]


def one_by_one(policy: Policy) -> Batched:
    """The batched form of a policy that has none of its own."""

    def attempt(text: str) -> list[Span] | None:
        try:
            return policy(text)
        except Exception:  # whatever went wrong, it concerns this text alone
            return None

    return lambda texts: [attempt(text) for text in texts]


def alone(batched: Batched) -> Policy:
    """The one-text form of a batched policy.

    Raises RuntimeError, which names no text, where it fails.
    """

    def find(text: str) -> list[Span]:
        (spans,) = batched([text])
        if spans is None:
            raise RuntimeError("the policy failed on a text")
        return spans

    return find


def closed(find: Callable[[Sequence[str]], list[list[Span]]]) -> Batched:
    """A function over many texts that fails on the culprits only, and reads equal ones once.

    A batch that raises is halved until they stand alone. Of a chat, half the lines may be repeated.
    """

    def attempt(texts: Sequence[str]) -> Found:
        try:
            return list(find(texts))
        except Exception:
            if len(texts) == 1:
                return [None]
        half = len(texts) // 2
        return attempt(texts[:half]) + attempt(texts[half:])

    def once(texts: Sequence[str]) -> Found:
        distinct = list(dict.fromkeys(texts))
        spans_of = dict(zip(distinct, attempt(distinct) if distinct else [], strict=True))
        return [spans_of[text] for text in texts]

    return once


def union(*policies: Batched) -> Batched:
    """What any of these flags.

    A text on which one of them fails is one on which the union fails.
    """

    def find(texts: Sequence[str]) -> Found:
        parts = zip(*(policy(texts) for policy in policies), strict=True)
        return [
            None if None in of_text else merge(span for spans in of_text for span in spans or ())
            for of_text in parts
        ]

    return find


def with_misses(batched: Batched, gamma: float, seed: int) -> Batched:
    """The policy without the spans whose string falls into the missed share `gamma` of [0, 1]."""
    if gamma <= 0:
        return batched
    missed = missing(gamma, seed)

    def find(texts: Sequence[str]) -> Found:
        return [
            spans
            if spans is None
            else [span for span in spans if not missed(text[span.start : span.end])]
            for text, spans in zip(texts, batched(texts), strict=True)
        ]

    return find
