"""Triplet regularisation (Mireshghallah et al. 2021, section 2.2): ordinary training on all points,
original text.

Beside the token loss, last states of different authors' texts come together and those of one
author's move apart.

Guarantees: none (epsilon = infinity).
"""

from collections.abc import Iterator

from confide.methods.plan import Plan
from confide.methods.regularised import RegularisedOptions, regularised
from confide.spec_base import Fraction
from confide.types import Step


class TripletOptions(RegularisedOptions):
    """Which texts are compared with which."""

    same_author: Fraction = 0.5  # probability that a point is compared with one of its own author


def triplet(plan: Plan) -> Iterator[list[Step]]:
    """Every epoch: exact updates on all points, original view, with the triplet regulariser."""
    return regularised(plan, "triplet")
