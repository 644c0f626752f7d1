"""Just Fine-tune Twice (Shi et al. 2022b; Domain Private Transformers,
section 5.2): first on redacted text as it is, then on the original
text with noise.

The first stage learns nothing of what masks stand for and is not taught to put them (a mask is
read, never predicted); the second one is DP-SGD on everything. In the paper both are on GPT-2,
masks one next to the other are one, as they are here, and the policy is taken to be perfect; a
share of missed secrets (recall below 100 %) is the row's gamma.

Guarantees: for a secret that the policy catches the noisy updates alone; epsilon = infinity for one
that it misses.
"""

from collections.abc import Iterator

from confide.methods.plan import Plan
from confide.types import Step


def jft(plan: Plan) -> Iterator[list[Step]]:
    """`epochs` of ordinary training on the redacted text, then `noisy_epochs` of DP-SGD on the
    original text.
    """
    for _ in range(plan.epochs):
        yield plan.exact("redacted", "all", tokens="unmasked")
    for epoch in range(plan.noisy_epochs):
        yield plan.noisy("original", "all", part=epoch, parts=plan.noisy_epochs)
