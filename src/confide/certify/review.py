"""What a policy misses, from texts in which a person marked it.

Of a label, F is the number of runs of spans that the policy finds in all texts, each run a secret:
it is counted. In the texts that were drawn a person said which spans are in vain, marked what was
missed, and the neighbour test says which secrets leave a trace. Let E be the number of secrets that
do, and B that of runs that do, are in vain or touch a mark. Then F - B secrets leave none, and
gamma = E / (E + F - B). It is at most U / (U + F - V), with U >= E and V >= B by `total_upper`,
each with its share of what may fail.
"""

import math
from pathlib import Path
from typing import Any

from confide.dp.accounting.bounds import each_of
from confide.dp.accounting.stratified import Stratum, total, total_upper
from confide.errors import InputError
from confide.files.jsons import JsonObject
from confide.specs.files import ANY

RATES = ("gamma", "delta2", "gamma_literal", "doubled_literal")
BOUNDS_OF_A_RATE = 2  # on what leaves a trace, and on what the policy finds in vain
BY_HAND = (
    "what the policy misses is what a person marked in texts drawn by lot, each text once "
    "(later copies that are read count as if all in them were missed); "
    "what it finds side by side counts as one secret"
)


def bounds_in(counts: JsonObject) -> int:
    """How many bounds a review gives: of each rate, for each label that a mark may have, and all.

    These labels were set before the first mark.
    """
    return BOUNDS_OF_A_RATE * len(RATES) * (len(counts["labels"]) + 1)


def rates_of(counts: JsonObject, confidence: float) -> dict[str, JsonObject]:
    """Rates and their bounds by label, of those that the policy or the person used, and of ANY.

    confidence: of each bound.
    """
    labels = [label for label in (*counts["labels"], ANY) if is_used(counts, label)]
    return {label: rates_of_label(counts, label, confidence) for label in labels}


def is_used(counts: JsonObject, label: str) -> bool:
    """Whether the policy finds anything of a label, or the person marked anything."""
    strata = [stratum["labels"][label] for stratum in counts["strata"].values()]
    return label == ANY or any(
        counts_of_label["marked"] or counts_of_label["found"] for counts_of_label in strata
    )


def rates_of_label(counts: JsonObject, label: str, confidence: float) -> JsonObject:
    """The rates of one label, with the texts that they come from."""
    strata = list(counts["strata"].values())
    span_count = sum(total(histogram(stratum["labels"][label]["found"])) for stratum in strata)
    rates: JsonObject = {
        "found": span_count,
        "marked": sum(stratum["labels"][label]["marked"] for stratum in strata),
    }
    for name in RATES:
        traces, lost = (
            [stratum_of(stratum, label, name, part) for stratum in strata]
            for part in ("traces", "lost")
        )
        upper = share(
            total_upper(traces, confidence), max(0.0, span_count - total_upper(lost, confidence))
        )
        estimate = share(estimated(traces), max(0.0, span_count - estimated(lost)))
        rates[name] = min(estimate, upper)
        rates[f"{name}_upper"] = upper
    return rates


def stratum_of(counts: JsonObject, label: str, rate: str, part: str) -> Stratum:
    """One stratum, as a bound takes it; part: secrets that leave traces, or spans that are lost."""
    counts_of_label = counts["labels"][label]
    return Stratum(
        points=counts["texts"],
        drawn=counts["drawn"],
        ranges=histogram(counts_of_label["room" if part == "traces" else "found"]),
        values=histogram(counts_of_label[rate][part]),
    )


def histogram(counts: dict[str, int]) -> dict[int, int]:
    """A histogram as JSON has it, with numbers for keys."""
    return {int(value): count for value, count in counts.items()}


def estimated(strata: list[Stratum]) -> float:
    """A total as the drawn points make it look."""
    return sum(
        total(stratum.values) * stratum.points / stratum.drawn
        for stratum in strata
        if stratum.drawn
    )


def share(part: float, rest: float) -> float:
    """Part of part and rest; 1 where there is neither: then all secrets may be missed."""
    return min(1.0, part / (part + rest)) if part + rest > 0 else 1.0


def check_review(neighbours: JsonObject, path: Path) -> None:
    """InputError where the rates of neighbours.json are better than what its review counted."""
    reviewed = neighbours.get("reviewed")
    counts = neighbours.get("review_counts")
    if counts is None and (reviewed is None or neighbours.get("rounded")):
        return
    if counts is None or reviewed is None:
        key = "reviewed" if reviewed is None else "review_counts"
        message = "is missing: nothing says what the review's rates follow from"
        raise InputError(message, file=path, key=key)
    bounds = len(RATES) * len(neighbours.get("labels") or {}) + bounds_in(counts)
    each = each_of(neighbours["confidence"], bounds)
    for rates in rates_of(counts, each).values():
        for name in (f"{rate}_upper" for rate in RATES):
            stated = neighbours.get(name)
            if stated is None or (stated < rates[name] and not math.isclose(stated, rates[name])):
                message = "is smaller than what follows from the counts of the review"
                raise InputError(message, file=path, key=name, value=stated)


def words_of(neighbours: JsonObject) -> list[str]:
    """Conditions on which rates stand that a person's marks gave."""
    reviewed: Any = neighbours.get("reviewed")
    if reviewed is None:
        return []
    most = reviewed["most"]
    limit = f"no text holds more than {most} secrets that the policy misses"
    return [BY_HAND, *([] if most is None else [limit])]
