"""Redaction Schedule (Kabra and Elenberg 2023, section 5.2, Appendix D): one stage, from redacted
to original text.

Every update is, with probability p, an ordinary one on the redacted text, and else one of DP-SGD on
the original text; p falls from 1 to 0. All coins are flipped before training, from a public seed
and no data, so that the number of noised updates is known and the noise is made for exactly these:
methods meet at equal epsilon. (As published, the noise is made for all updates, and what the noised
ones of them spent is counted afterwards: `privacy.calibrate: every_step`.)

Guarantees: for a secret that the policy catches the noisy updates alone; epsilon = infinity for one
that it misses.
"""

import math
from collections.abc import Callable, Iterator
from typing import Literal

import numpy as np

from confide.methods.plan import Options, Plan
from confide.spec_base import Positive
from confide.types import Step

ScheduleName = Literal["linear", "step", "staircase", "exp_convex", "exp_concave"]


class ScheduleOptions(Options):
    """How the probability of an update on redacted text falls from 1 to 0."""

    redaction_schedule: ScheduleName = "exp_concave"
    eta: Positive = 15.0  # temperature of the exp_ schedules


# p after the share x of all updates, with T epochs in all and the temperature eta; the staircase is
# what the authors' code calls step
SCHEDULES: dict[ScheduleName, Callable[[float, int, float], float]] = {
    "linear": lambda x, T, eta: 1 - x,
    "step": lambda x, T, eta: float(x < 0.5),
    "staircase": lambda x, T, eta: math.floor(10 * (1 - x) + 1e-9) / 10,
    "exp_convex": lambda x, T, eta: math.exp(-eta * T * x),
    "exp_concave": lambda x, T, eta: 1 - math.exp(eta * (x - 1)),
}


def schedule(plan: Plan) -> Iterator[list[Step]]:
    """As many updates as `epochs` passes of ordinary training take, each with its coin."""
    options = plan.options(ScheduleOptions)
    ordinary = plan.exact("redacted", "all")
    noisy = Step(view="original", pool="all", noisy=True, unit=plan.unit)
    chance = SCHEDULES[options.redaction_schedule]
    total = len(ordinary) * plan.epochs
    coins = np.random.default_rng([plan.seed, len("redaction schedule")]).random(total)
    steps = [
        ordinary[0] if coin < chance(done / total, plan.epochs, options.eta) else noisy
        for done, coin in enumerate(coins)
    ]
    for start in range(0, total, len(ordinary)):
        yield steps[start : start + len(ordinary)]
