"""Selective-DPSGD (Shi et al. 2022, Algorithm 1) for recurrent models: exact updates on public
tokens, noisy ones on private.

The paper's runs of one batch become two kinds of updates on batches of their own: the exact ones
read every point, so their batches hide nothing; the noisy ones draw Poisson batches from the points
that hold a private token, and a point's private losses are one contribution, clipped once. After
private text the recurrent state is zero again (`private_state: reset`; or noise, carry, published:
see `types.Step`).

Guarantees: with reset, exact updates are a function of the public tokens alone, and only noisy ones
read a private token.
"""

import math
from collections.abc import Iterator

from confide.methods.plan import Options, Plan
from confide.types import StateName, Step


class SelectiveOptions(Options):
    """What becomes of the recurrent state after private text, before public text is read on."""

    # reset: set to zero; noise: clipped and noised, which is charged; carry: as it is (epsilon =
    # infinity); published: training and counting as in the paper (epsilon = infinity, its number
    # beside it)
    private_state: StateName = "reset"


def selective(plan: Plan) -> Iterator[list[Step]]:
    """Every epoch: one of SGD on the public tokens of all points, then one of DP-SGD on the private
    tokens.
    """
    state = plan.options(SelectiveOptions).private_state
    for epoch in range(plan.epochs):
        if state == "published":  # one step a batch; how many updates that is, its text decides
            step = Step(view="original", pool="all", noisy=True, tokens="private", state=state)
            yield [step] * math.ceil(plan.sizes["all"] / plan.noisy_batch_size)
            continue
        public = plan.exact("original", "all", tokens="public", state=state)
        yield public + plan.noisy(
            "original", "marked", part=epoch, parts=plan.epochs, tokens="private", state=state
        )
