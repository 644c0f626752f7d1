"""Adversarial regularisation (Mireshghallah et al. 2021, section 2.1): ordinary training on all
points, original text.

Beside the token loss the model makes a discriminator of authors, which learns along with it, guess
uniformly.

Guarantees: none (epsilon = infinity).
"""

from collections.abc import Iterator

from confide.methods.plan import Plan
from confide.methods.regularised import RegularisedOptions, regularised
from confide.spec_base import Natural, Positive
from confide.types import Step


class AdversarialOptions(RegularisedOptions):
    """The discriminator of authors that the model learns to mislead."""

    discriminator_hidden: Natural = 1000  # units of its hidden layer
    discriminator_lr: Positive = 1e-3  # its learning rate, by Adam


def adversarial(plan: Plan) -> Iterator[list[Step]]:
    """Every epoch: exact updates on all points, original view, with the adversarial regulariser."""
    return regularised(plan, "adversarial")
