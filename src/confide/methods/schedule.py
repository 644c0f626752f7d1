"""Redaction Schedule (Kabra and Elenberg 2023, section 4 and Appendix D): one stage, from redacted
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

import numpy as np

from confide.methods.plan import Plan
from confide.types import Step

# p after the share x of all updates, with T epochs in all and the temperature eta
SCHEDULES: dict[str, Callable[[float, int, float], float]] = {
    "linear": lambda x, T, eta: 1 - x,
    "step": lambda x, T, eta: float(x < 0.5),
    "staircase": lambda x, T, eta: (
        math.floor(10 * (1 - x) + 1e-9) / 10
    ),  # what the authors' code calls step
    "exp_convex": lambda x, T, eta: math.exp(-eta * T * x),
    "exp_concave": lambda x, T, eta: 1 - math.exp(eta * (x - 1)),
}


def schedule(plan: Plan) -> Iterator[list[Step]]:
    """As many updates as `epochs` passes of ordinary training take, each with its coin."""
    (exact, *_), size = plan.exact("redacted", "all"), len(plan.exact("redacted", "all"))
    noisy = Step(view="original", pool="all", noisy=True, unit=plan.unit)
    chance = SCHEDULES[plan.redaction_schedule]
    total = size * plan.epochs
    coins = np.random.default_rng([plan.seed, len("redaction schedule")]).random(total)
    steps = [
        exact if coin < chance(s / total, plan.epochs, plan.eta) else noisy
        for s, coin in enumerate(coins)
    ]
    for start in range(0, total, size):
        yield steps[start : start + size]
