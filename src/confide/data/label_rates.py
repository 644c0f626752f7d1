"""Rates of what a policy misses, by label of secrets; the label that fares worst governs."""

from collections.abc import Sequence
from typing import Any

from confide.dp.accounting.bounds import clopper_pearson

Rows = dict[str, dict[str, Any]]  # by label: its rates and bounds, each by name


def upper(tallies: Sequence[Any], events: str, trials: str, confidence: float) -> float:
    """The larger of the bounds on events in trials, over occurrences and over unique strings.

    Occurrences of one string are found or missed together, so they are not independent trials.
    """
    return max(
        clopper_pearson(getattr(tally, events), getattr(tally, trials), confidence)
        for tally in tallies
    )


def value_of(row: dict[str, Any], name: str) -> float:
    """A rate or a bound; 1 for a label of which no secret was tested, for all may be missed."""
    return 1.0 if row[name] is None else row[name]


def worst(labels: Rows, name: str) -> float | None:
    """The largest of the labels' rates or bounds; None where there is no label."""
    return max((value_of(row, name) for row in labels.values()), default=None)


def of_worst_label(labels: Rows, rates: Sequence[str]) -> dict[str, Any]:
    """These rates of the labels with the largest, and the largest bounds.

    The worst label is the one whose first rate is the largest, or whose bound is, of equal ones.
    """
    first = rates[0]
    worst_rates: dict[str, Any] = {
        name: worst(labels, name) for rate in rates for name in (rate, f"{rate}_upper")
    }

    def badness(label: str) -> tuple[float, float]:
        return value_of(labels[label], first), value_of(labels[label], f"{first}_upper")

    return worst_rates | {"worst_label": max(labels, key=badness, default=None), "labels": labels}
