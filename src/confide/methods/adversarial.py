"""Adversarial regularisation (Mireshghallah et al. 2021, section 2.1): ordinary training on all
points, original text.

Beside the token loss the model makes a discriminator of authors, which learns along with it, guess
uniformly.

Guarantees: none (epsilon = infinity).
"""

from collections.abc import Iterator
from dataclasses import replace

from confide.methods.plan import Plan
from confide.types import Step


def adversarial(plan: Plan) -> Iterator[list[Step]]:
    """Every epoch: exact updates on all points, original view, with the adversarial regulariser."""
    for _ in range(plan.epochs):
        yield [replace(step, regulariser="adversarial") for step in plan.exact("original", "all")]
