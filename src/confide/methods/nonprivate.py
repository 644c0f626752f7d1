"""Ordinary training on the original text: no guarantee (epsilon = infinity)."""

from collections.abc import Iterator

from confide.methods.plan import Plan
from confide.types import Step


def nonprivate(plan: Plan) -> Iterator[list[Step]]:
    """Every epoch: exact updates on all points (of the row's domains, if it names some)."""
    for _ in range(plan.epochs):
        yield plan.exact("original", "all")
