"""Adaptive Token-Weighted Differential Privacy (Yu et al. 2025, arXiv 2509.23246): a redacted
phase, then updates with noise on the gradients of private tokens alone.

After its abstract: gradients of sensitive and of other tokens are weighted apart, noise falls on
the former and is larger at first, and a redacted phase comes before. What the abstract leaves open
is assumed: both gradients are clipped point by point, their weights are constant
(`sensitive_weight`, and the rest to one), batches are Poisson, and noise is `early_noise` times as
large in the first half of the passes. The redacted phase is that of JFT.

Guarantees: none (epsilon = infinity). Gradients of other tokens have no noise, and they read the
secrets that stand before them, found or not.
"""

from collections.abc import Iterator
from dataclasses import replace
from typing import Annotated

from pydantic import Field

from confide.methods.plan import Options, Plan
from confide.spec_base import Positive
from confide.types import Step


class ATDPOptions(Options):
    """How private tokens are told from others, after the redacted phase."""

    # of the gradients of private tokens; 1: others are not learned
    sensitive_weight: Annotated[float, Field(gt=0, le=1)] = 0.5
    early_noise: Positive = 2.0  # times noise_multiplier, in the first half of the passes


def atdp(plan: Plan) -> Iterator[list[Step]]:
    """`epochs` of ordinary training on the redacted text, then `noisy_epochs` of weighted updates
    on the original text.
    """
    early = plan.options(ATDPOptions).early_noise
    for _ in range(plan.epochs):
        yield plan.exact("redacted", "all", tokens="unmasked")
    for epoch in range(plan.noisy_epochs):
        scale = early if 2 * epoch < plan.noisy_epochs else 1.0
        steps = plan.noisy("original", "all", part=epoch, parts=plan.noisy_epochs)
        yield [replace(step, weighing="tokens", noise_scale=scale) for step in steps]
