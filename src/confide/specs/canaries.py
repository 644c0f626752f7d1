"""Canaries: secrets that are drawn at random and planted in the training text, to see what becomes
of them.

Of digits, in a sentence of their own (Carlini et al. 2019, as CRT and Selective-DP plant them); of
words, assigned to authors (privacy regularisation, appendix A.5); and such as fair coins decide
about, for audits of epsilon.
"""

from typing import Annotated, Any, Literal

from pydantic import BeforeValidator, Field

from confide.spec_base import Count, IfAsked, Natural, Spec


class AuditCanarySpec(Spec):
    """`count` secrets, each in one sentence of its own, and a fair coin for each, flipped before
    anything is trained.
    """

    # as in CanarySpec; or {token} in place of digits: a token that is in no other text, and in no
    # other sentence
    template: str
    count: Natural = 120
    seed: int = 0


class CanarySpec(Spec):
    """`count` secrets drawn from the template's digits, each planted `copies` times in train;
    `controls` are never planted.

    Two more sets for audits. `game`: a coin decides whether the sentence has its secret or <MASK>,
    so that the number of points does not depend on the coins. `inclusion`: a coin decides whether
    the sentence is planted at all.
    """

    kind: Literal["digits"] = "digits"
    template: str = "My ID is: {6}"  # {n}: n random digits (the secret)
    count: Count = 10
    copies: Natural = 20
    controls: Count = 10
    seed: int = 0
    label: str = "canary"
    # the model reads the secret, and only the words behind it are scored: for a dataset with
    # learn: assistant or learn: all_but_read. A second {n} is then a number that each canary has of
    # its own, to answer with
    input_only: IfAsked[bool] = False
    game: AuditCanarySpec | None = None
    inclusion: AuditCanarySpec | None = None


class WordCanarySpec(Spec):
    """Random words, assigned to authors: one canary per author and entry of `copies`, planted so
    many times in train.

    Words are drawn from those that the tokenizer has as one token, at the start of a text as well
    as after a space.
    """

    kind: Literal["words"]
    length: Annotated[int, Field(ge=2)] = 5
    vocabulary: Natural = 400  # how many words of the tokenizer's
    words: Annotated[list[str], Field(min_length=2)] | None = None  # these instead
    authors: Natural | None = 20  # how many of those with training points; None: all
    copies: Annotated[list[Natural], Field(min_length=1)] = [*range(1, 11), 20, 30, 40, 50]
    controls: Count = 50
    seed: int = 0
    label: str = "canary"
    game: AuditCanarySpec | None = None  # of digits, as in CanarySpec
    inclusion: AuditCanarySpec | None = None


def _with_kind(value: Any) -> Any:
    """Canaries whose kind is not given are of digits."""
    return {"kind": "digits", **value} if isinstance(value, dict) else value


AnyCanarySpec = Annotated[
    Annotated[CanarySpec | WordCanarySpec, Field(discriminator="kind")],
    BeforeValidator(_with_kind),
]
