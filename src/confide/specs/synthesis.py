"""Texts that a model is asked for, what they are worth, and what they give away."""

from typing import Annotated

from pydantic import Field, model_validator

from confide.spec_base import Count, Natural, Positive, Spec
from confide.specs.audits import GameSpec
from confide.specs.policies import PolicySpec
from confide.specs.training import SamplingSpec


class MixSpec(Spec):
    """A part of the texts that a model is asked for, and how large it is."""

    code: str = ""  # read before the text, and not a part of it, such as <AIRLINE>
    prompt: str = ""  # how the text begins
    domain: str | None = None  # written beside the text
    share: Positive | None = None  # of all texts, relative to the other parts; None: all are equal
    min_tokens: Natural = 1  # of what the model writes
    max_tokens: Natural | None = None


class SynthesisSpec(Spec):
    """How many texts a model is asked for, of which kinds, and how they are drawn."""

    count: Natural
    seed: Count = 0
    sampling: SamplingSpec = SamplingSpec(top_k=None)
    mix: list[MixSpec] = []  # empty: the model decides by itself
    public_mix: bool = False  # the mix was made from no protected text
    duplicates: bool = False  # keep a text that was there already
    unfinished: bool = False  # keep a text that the model did not end
    fill: bool = False  # let the model write masks, and put made-up values in their place

    @model_validator(mode="after")
    def _all_shares_or_none(self) -> "SynthesisSpec":
        if len({part.share is None for part in self.mix}) > 1:
            raise ValueError("either every part has a share, or none has")
        return self


class WorthSpec(Spec):
    """The small model that is trained on each text, with one budget, and what texts are compared
    by.
    """

    # tokens of a tokenizer that is trained on the real text; null: the run's own, which may have
    # more than a small model learns
    vocab_size: Natural | None = None
    updates: Natural = 600
    batch_size: Natural = 32
    embedding: Natural = 64
    hidden: Natural = 128
    lr: Positive = 0.005
    limit: Natural = 2000  # held-out points, and texts of each kind, that are compared
    clusters: Natural = 50  # of likeness
    examples: Count = 0  # texts that are shown, with all that is or may be secret masked
    seed: Count = 0
    device: str = "auto"


class TextAuditSpec(Spec):
    """How texts are searched for what they give away of the corpus."""

    probes: Natural = 500  # texts that are drawn for each prompt of the audit, and hot
    temperature: Positive = 1.5  # of the hot ones
    max_new_tokens: Natural = 64  # of either
    limit: Natural = 2000  # documents of each side
    texts: Natural = 5000  # of the texts, those that a model of characters is fitted to
    order: Annotated[int, Field(ge=2, le=20)] = 8  # characters of a context of the n-gram model
    kernel: Positive = 0.02  # temperature of similarities in a density of embeddings
    permutations: Natural = 2000
    # how coins are guessed. None: they are not, where too few were flipped to tell anything
    game: GameSpec | None = GameSpec(kind="game")
    seed: Count = 0
    device: str = "auto"


class TextsSpec(Spec):
    """What a run's model writes, and what is measured of it."""

    texts: SynthesisSpec
    # a public dataset: its points with other values in their slots are what costs nothing, to
    # compare with
    templates: str | None = None
    worth: WorthSpec = WorthSpec()
    audit: TextAuditSpec = TextAuditSpec()


class SyntheticSpec(Spec):
    """The texts of one run."""

    run: str
    texts: SynthesisSpec
    device: str = "auto"


class WorthJobSpec(Spec):
    """What texts of one run are worth; `policy` finds their slots."""

    run: str
    worth: WorthSpec
    policy: PolicySpec


class TextAuditJobSpec(Spec):
    """What texts of one run give away."""

    run: str
    audit: TextAuditSpec
