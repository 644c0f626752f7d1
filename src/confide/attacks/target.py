"""What an attack may look at: the trained model, its tokenizer, and files of the corpus."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from confide import models
from confide.errors import InputError
from confide.files.io import sha256
from confide.models import LanguageModel
from confide.text import tokenizer as tokenizers
from confide.text.tokenizer import Tokenizer


@dataclass(frozen=True, slots=True)
class Target:
    """A model in evaluation mode on its device, and what is known of its training."""

    model: LanguageModel
    tokenizer: Tokenizer
    points: Path
    canaries: Path | None = None  # None: the corpus has none planted
    shadows: Path | None = None  # scores of shadow models on the same candidates
    # A model with the same tokenizer that never saw the corpus, for scores that compare with it.
    reference: LanguageModel | None = None
    ledger: Path | None = None  # what training recorded, for the attack that repeats its updates
    marked: Path | None = None  # what a person marked in a review, as points
    counts: Sequence[Path] = ()  # of several jobs that have ranked canaries
    weights: str = ""  # SHA-256 of the model's file

    @property
    def with_secrets(self) -> list[Path]:
        """Points whose gold spans are all that is known to be a secret."""
        return [self.points] if self.marked is None else [self.points, self.marked]


def opened(
    model: Path,
    tokenizer: Path,
    device: str,
    points: Path,
    canaries: Path | None,
    shadows: Path | None = None,
    reference: Path | None = None,
    ledger: Path | None = None,
    marked: Path | None = None,
    *,
    as_trained: bool = False,
) -> Target:
    """The target with the models of these weights on a device.

    Where it is to be `as_trained`, its adapters stay beside its weights: no attack can read such a
    model. InputError unless both models have the tokenizer's tokens.
    """
    vocabulary = tokenizers.load(tokenizer)

    def fitting(weights: Path, load: Callable[[Path], LanguageModel]) -> LanguageModel:
        network = load(weights.parent)
        if network.vocab_size != vocabulary.vocab_size:
            sizes = f"{vocabulary.vocab_size} tokens, the model in {weights.parent}"
            raise InputError(f"has {sizes} {network.vocab_size}", file=tokenizer)
        return network.to(device)

    return Target(
        fitting(model, models.load_as_trained if as_trained else models.load),
        tokenizer=vocabulary,
        points=points,
        canaries=canaries,
        shadows=shadows,
        reference=None if reference is None else fitting(reference, models.load),
        ledger=ledger,
        marked=marked,
        weights=sha256(model),
    )
