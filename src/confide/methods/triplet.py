"""Triplet regularisation (Mireshghallah et al. 2021, section 2.2): ordinary training on all points,
original text.

Beside the token loss, last states of different authors' texts come together and those of one
author's move apart.

Guarantees: none (epsilon = infinity).
"""

from collections.abc import Iterator
from dataclasses import replace

from confide.methods.plan import Plan
from confide.types import Step


def triplet(plan: Plan) -> Iterator[list[Step]]:
    """Every epoch: exact updates on all points, original view, with the triplet regulariser."""
    for _ in range(plan.epochs):
        yield [replace(step, regulariser="triplet") for step in plan.exact("original", "all")]
