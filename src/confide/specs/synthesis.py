"""Texts that a model is asked for."""

from pydantic import model_validator

from confide.spec_base import Count, Natural, Positive, Spec
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

    @model_validator(mode="after")
    def _all_shares_or_none(self) -> "SynthesisSpec":
        if len({part.share is None for part in self.mix}) > 1:
            raise ValueError("either every part has a share, or none has")
        return self
