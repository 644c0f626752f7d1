"""What the attacks on domains answered (Domain Private Transformers): leak rates, and perplexities
of single domains.

A leak attack with one domain of prompts answers one question: how often is there text of any of the
target domains? That is the paper's number. An attack with several says it for each pair of prompt
and target domain.
"""

import math
from typing import NamedTuple

from confide.report.results import Json, Result


class Question(NamedTuple):
    """How often does a model that is prompted with one domain write text of any of the others?"""

    prompt: str
    targets: tuple[str, ...]


class Rate(NamedTuple):
    """A share of texts with its interval."""

    value: float
    low: float
    high: float


def questions(results: list[Result]) -> list[Question]:
    """What the leak attacks of some runs answer, in order of first use."""
    return list(
        dict.fromkeys(
            question
            for result in results
            for metrics in result.all_of("leak")
            for question in _own(metrics)
        )
    )


def judges(results: list[Result], kind: str = "leak") -> list[str]:
    """Who judged, in order of first use."""
    pairs = (
        pair for result in results for metrics in result.all_of(kind) for pair in metrics["pairs"]
    )
    return list(dict.fromkeys(pair["judge"] for pair in pairs))


def rate(result: Result, question: Question, judge: str) -> Rate | None:
    """The leak rate by a judge; None where the run was not asked, or answered nothing at all."""
    for metrics in result.all_of("leak"):
        if question in _own(metrics):
            if len(question.targets) > 1:
                return _rate(metrics, f"{judge}_")
            return _rate(next(_pairs(metrics, question, judge), {}))
    return None


def false_alarms(
    results: list[Result], question: Question, judge: str
) -> tuple[float, float] | None:
    """Between what bounds a judge flags real text of the prompt's domain, with the intervals'
    confidence.

    Of several targets: at least the largest share of one (its lower end), at most the sum of all
    (of their upper ends).
    """
    for result in results:
        for metrics in result.all_of("leak"):
            found = [_rate(pair, "floor_") for pair in _pairs(metrics, question, judge)]
            known = [one for one in found if one is not None]
            if question in _own(metrics) and len(known) == len(question.targets):
                return max(one.low for one in known), min(1.0, sum(one.high for one in known))
    return None


def real_text(results: list[Result], question: Question, judge: str) -> dict[str, float]:
    """Share of real text of each target domain that a judge finds to be of it."""
    found: dict[str, float] = {}
    for result in results:
        for metrics in result.all_of("leak"):
            for pair in _pairs(metrics, question, judge):
                if (one := _rate(pair, "ceiling_")) is not None:
                    found.setdefault(pair["target"], one.value)
    return found


def tested(results: list[Result]) -> list[str]:
    """Domains that have a test perplexity of their own, in order of first use."""
    return list(
        dict.fromkeys(name for result in results for name in result.evaluation.get("domains") or ())
    )


def ppl(result: Result, domain: str | None) -> float | None:
    """Test perplexity on the text of a domain; None: of all. None where it is unknown or not
    finite.
    """
    own = (
        result.evaluation
        if domain is None
        else (result.evaluation.get("domains") or {}).get(domain, {})
    )
    value = own.get("ppl")
    return value if value is not None and math.isfinite(value) else None


def _own(metrics: Json) -> list[Question]:
    pairs = [(pair["prompt"], pair["target"]) for pair in metrics["pairs"]]
    if len({prompt for prompt, _ in pairs}) == 1:
        return [Question(pairs[0][0], tuple(dict.fromkeys(target for _, target in pairs)))]
    return [Question(prompt, (target,)) for prompt, target in dict.fromkeys(pairs)]


def _pairs(metrics: Json, question: Question, judge: str):
    same = (
        pair
        for pair in metrics["pairs"]
        if (pair["prompt"], pair["judge"]) == (question.prompt, judge)
    )
    return (pair for pair in same if pair["target"] in question.targets)


def _rate(row: Json, prefix: str = "") -> Rate | None:
    ends = [row.get(f"{prefix}{name}") for name in Rate._fields]
    ends[0] = row.get(f"{prefix}rate")
    return None if None in ends else Rate(*ends)
