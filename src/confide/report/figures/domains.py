"""What the attacks on domains answered: leak rates, and perplexities of single domains.

They are those of Domain Private Transformers. A leak attack with one domain of prompts answers one
question: how often is there text of any of the target domains? That is the paper's number. An
attack with several says it for each pair of prompt and target domain.
"""

import math
from typing import NamedTuple

from confide.report.results import Json, Result
from confide.report.seeds import Estimate


class Question(NamedTuple):
    """How often does a model that is prompted with one domain write text of any of the others?"""

    prompt: str
    targets: tuple[str, ...]


def questions(results: list[Result]) -> list[Question]:
    """What the leak attacks of some runs answer, in order of first use."""
    by_attack = (_own(metrics) for result in results for metrics in result.all_of("leak"))
    return list(dict.fromkeys(question for of_attack in by_attack for question in of_attack))


def judges(results: list[Result], kind: str = "leak") -> list[str]:
    """Who judged, in order of first use."""
    attacks = (metrics for result in results for metrics in result.all_of(kind))
    return list(dict.fromkeys(pair["judge"] for metrics in attacks for pair in metrics["pairs"]))


def rate(result: Result, question: Question, judge: str) -> Estimate | None:
    """The leak rate by a judge; None where the run was not asked, or answered nothing at all."""
    for metrics in result.all_of("leak"):
        if question in _own(metrics):
            if len(question.targets) > 1:
                return _rate(metrics, f"{judge}_")
            return next((_rate(pair) for pair in _pairs(metrics, question, judge)), None)
    return None


def false_alarms(
    results: list[Result], question: Question, judge: str
) -> tuple[float, float] | None:
    """Between what bounds a judge flags real text of the prompt's domain.

    The bounds have the intervals' confidence. Of several targets: at least the largest share of one
    (its lower end), at most the sum of all (of their upper ends).
    """
    for result in results:
        for metrics in result.all_of("leak"):
            floors = [_rate(pair, "floor_") for pair in _pairs(metrics, question, judge)]
            floor_rates = [floor for floor in floors if floor is not None]
            if question in _own(metrics) and len(floor_rates) == len(question.targets):
                low = max(floor.low for floor in floor_rates)
                return low, min(1.0, sum(floor.high for floor in floor_rates))
    return None


def real_text(results: list[Result], question: Question, judge: str) -> dict[str, float]:
    """Share of real text of each target domain that a judge finds to be of it."""
    shares: dict[str, float] = {}
    for result in results:
        for metrics in result.all_of("leak"):
            for pair in _pairs(metrics, question, judge):
                if (ceiling := _rate(pair, "ceiling_")) is not None:
                    shares.setdefault(pair["target"], ceiling.value)
    return shares


def tested(results: list[Result]) -> list[str]:
    """Domains that have a test perplexity of their own, in order of first use."""
    return list(dict.fromkeys(name for result in results for name in _domains(result)))


def ppl(result: Result, domain: str | None) -> float | None:
    """Test perplexity on the text of a domain, or of all (None).

    None where it is unknown or not finite.
    """
    summary = result.evaluation if domain is None else _domains(result).get(domain, {})
    value = summary.get("ppl")
    return value if value is not None and math.isfinite(value) else None


def _domains(result: Result) -> Json:
    return result.evaluation.get("domains") or {}


def _own(metrics: Json) -> list[Question]:
    """What one attack answers."""
    pairs = list(dict.fromkeys((pair["prompt"], pair["target"]) for pair in metrics["pairs"]))
    if len({prompt for prompt, _ in pairs}) == 1:
        return [Question(pairs[0][0], tuple(target for _, target in pairs))]
    return [Question(prompt, (target,)) for prompt, target in pairs]


def _pairs(metrics: Json, question: Question, judge: str) -> list[Json]:
    """What an attack says of a question's pairs of domains, as a judge has it."""
    return [
        pair
        for pair in metrics["pairs"]
        if (pair["prompt"], pair["judge"]) == (question.prompt, judge)
        and pair["target"] in question.targets
    ]


def _rate(row: Json, prefix: str = "") -> Estimate | None:
    ends = [
        row[key] for name in ("rate", "low", "high") if row.get(key := prefix + name) is not None
    ]
    return Estimate(*ends) if len(ends) == 3 else None
