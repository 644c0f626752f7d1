"""Confidentially Redacted Training (CRT Algorithm 1), after deduplication, redaction and partition.

Guarantees: Theorem 8. Only updates on the private pool read points that differ between D and D',
and those are noised.
"""

from collections.abc import Iterator

from confide.methods.plan import Plan
from confide.types import Step


def crt(plan: Plan) -> Iterator[list[Step]]:
    """Every epoch: one of SGD on the public points, then one of DP-SGD on the private points, both
    redacted.
    """
    for epoch in range(plan.epochs):
        public = plan.exact("redacted", "public")
        yield public + plan.noisy("redacted", "private", part=epoch, parts=plan.epochs)
