"""Sensitivity-Aware Adaptive Differential Privacy (Etuk and Matrawy 2025, arXiv 2512.01748): DP-SGD
whose noise is as large as what a detector found is sensitive.

After its abstract and what is told of it: personal data are detected and scored in [0, 1], noise is
scaled by the score, and Renyi accounting follows. What that leaves open is assumed: it is the
clipped gradient of a point that gets noise, times the mean score of its private tokens
(`train/scores.py`), and none where there is no such token; the printed epsilon is that of
noise_multiplier, which a score of 1 gets.

Guarantees: none (epsilon = infinity). A point without a found token has no noise of its own, and
how much there is in a batch tells what is in it.
"""

from collections.abc import Iterator
from dataclasses import replace

from confide.methods.plan import Plan
from confide.types import Step


def sa_adp(plan: Plan) -> Iterator[list[Step]]:
    """As DP-SGD: `noisy_epochs` passes over all points, original text."""
    for epoch in range(plan.epochs):
        steps = plan.noisy("original", "all", part=epoch, parts=plan.epochs)
        yield [replace(step, weighing="scores") for step in steps]
