"""DP-SGD (Abadi et al. 2016) on all points, original text.

Guarantees: record-level differential privacy of every training point at the priced epsilon.
"""

from collections.abc import Iterator

from confide.methods.plan import Plan
from confide.types import Step


def dpsgd(plan: Plan) -> Iterator[list[Step]]:
    """Every epoch: noisy updates on all points."""
    for epoch in range(plan.epochs):
        yield plan.noisy("original", "all", part=epoch, parts=plan.epochs)
