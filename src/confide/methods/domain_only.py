"""Ordinary training on the domains that the row names (`domains`) and on no others: the reference
of domain privacy (Kabra and Elenberg 2023, section 5.2).

Guarantees: none for these domains (epsilon = infinity); nothing of the others is read.
"""

from collections.abc import Iterator

from confide.methods.plan import Plan
from confide.types import Step


def domain_only(plan: Plan) -> Iterator[list[Step]]:
    """Every epoch: exact updates on all points of the row's domains, original view."""
    for _ in range(plan.epochs):
        yield plan.exact("original", "all")
