"""Ordinary training on the original text with a term against telling authors apart in its loss.

What its methods (Mireshghallah et al. 2021) have in common. Guarantees: none (epsilon = infinity).
"""

from collections.abc import Iterator
from dataclasses import replace
from typing import Annotated

from pydantic import Field

from confide.methods.plan import Options, Plan
from confide.types import RegulariserName, Step


class RegularisedOptions(Options):
    """What every privacy regulariser needs."""

    # lambda, the weight of the privacy loss beside the mean token loss; there is no default
    regulariser_weight: Annotated[float, Field(ge=0)] | None = None


def regularised(plan: Plan, regulariser: RegulariserName) -> Iterator[list[Step]]:
    """Every epoch: exact updates on all points, original view, with the regulariser."""
    for _ in range(plan.epochs):
        steps = plan.exact("original", "all")
        yield [replace(step, regulariser=regulariser) for step in steps]
