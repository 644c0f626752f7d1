"""Measurements of a corpus as bounds on a public grid: what a released certificate is made from.

A count that is published exactly tells whoever knows all secrets but one whether that one is among
those counted. A bound that is rounded up to one of a few values tells that only where one secret
moves it across a step. It is no noise: at a step it does tell. What follows from a larger rate or a
larger group is weaker, so nothing that is certified becomes false.
"""

import math

from confide.certify.review import RATES
from confide.files.jsons import JsonObject

STEPS = (1.0, 1.5, 2.0, 3.0, 5.0, 7.0, 10.0)  # of every power of ten
HIGH = (0.8, 0.9, 0.95, 0.99)  # of rates alone: 1 bounds nothing
NOTE = "bounds alone, rounded up to a public grid; exact counts stay where the text is"
OFTEN = (
    "multiplicity",
    "multiplicity_distinct",
    "multiplicity_authors",
    "multiplicity_authors_distinct",
)


def rate_up(value: float | None) -> float | None:
    """The smallest value of the grid that is no smaller, at most 1; None stays None."""
    if value is None or value == 0:
        return value
    power = math.floor(math.log10(value)) - 1
    grid = [float(f"{step:g}e{exponent}") for exponent in (power, power + 1) for step in STEPS]
    return min(1.0, min(rate for rate in (*grid, *HIGH) if rate >= value))


def count_up(value: int | None) -> int | None:
    """The smallest power of two that is no smaller; None and 0 stay as they are."""
    return value if not value else 1 << (value - 1).bit_length()


def released_neighbours(measured: JsonObject) -> JsonObject:
    """neighbours.json without rates as measured, counts and labels."""
    bounds = {f"{rate}_upper": rate_up(measured.get(f"{rate}_upper")) for rate in RATES}
    literal = max(2, (measured.get("literal") or {}).get("points", 2))
    known = measured["gamma_upper"] is not None
    return (
        dict.fromkeys(RATES)
        | bounds
        | {
            "confidence": measured["confidence"],
            "misaligned": count_up(measured["misaligned"]),
            "literal": {"points": count_up(literal)},
            "sampled": None,
            "secrets": None,
            "rounded": True,
            "note": NOTE if known else measured.get("note"),
        }
        | ({"reviewed": measured["reviewed"]} if measured.get("reviewed") else {})
        | measured_on(measured)
    )


def released_recall(measured: JsonObject) -> JsonObject:
    """recall.json with bounds alone.

    They say how often the most frequent secret stands there, and whether any point is public.
    """
    often = {name: count_up(measured.get(name)) for name in OFTEN}
    told = {
        "pools": {"public": count_up(measured["pools"]["public"])},
        "recall": None,
        "rounded": True,
        "note": NOTE,
    }
    return often | told | measured_on(measured)


def measured_on(measured: JsonObject) -> JsonObject:
    """What binds a measurement to a run; the ledger of a release says it anyway."""
    return {"terms": measured["terms"], "reads": measured["reads"]}


ROUNDED = {
    "recall": released_recall,
    "neighbours": released_neighbours,
}  # files of which a release has the bounds alone
