"""Attacks that flip coins before training, or audits: what they find is held against the
certificate.
"""

from typing import Annotated, Literal

from pydantic import Field

from confide.spec_base import Fraction, Natural, Seed, Spec


class GameSpec(Spec):
    """Guess the coins of the audit canaries; every bound on epsilon holds with probability
    `confidence`.
    """

    kind: Literal["game"]
    guesses: Annotated[list[Fraction], Field(min_length=1)] = [
        1.0,
        0.5,
        0.25,
    ]  # shares of the coins
    confidence: Annotated[float, Field(gt=0, lt=1)] = 0.95
    delta: Annotated[float, Field(gt=0, lt=1)] = (
        8e-5  # of the certificate that the bounds are compared with
    )
    chunk: Natural = 4_096  # prefix-tree states of one depth held at once
    evaluations: Natural | None = None  # as of exposure: beyond, scores are estimated ranks
    seed: Seed = 0  # of the candidates that an estimate is made of


class GradientsSpec(Spec):
    """Guess coins from noised updates: the run's own, made again with gradients that nobody could
    overlook.
    """

    kind: Literal["gradients"]
    coins: Annotated[int, Field(ge=20, le=100_000)] = (
        5000  # of each set: replace-one, and add-or-remove
    )
    guesses: Annotated[list[Fraction], Field(min_length=1)] = [
        0.25
    ]  # shares of the coins, for bounds without a certificate
    confidence: Annotated[float, Field(gt=0, lt=1)] = 0.95
    delta: Annotated[float, Field(gt=0, lt=1)] = 8e-5  # of those bounds
    seed: Seed = 0


AUDITS = ("game", "gradients")  # kinds of attack whose results a certificate is held against
TEXT_AUDIT = "text_audit"  # the same of texts that a model wrote; no attack of its own
