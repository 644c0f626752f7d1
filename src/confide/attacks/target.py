"""What an attack may look at: the trained model, its tokenizer, and files of the corpus."""

from dataclasses import dataclass
from pathlib import Path

from confide import models
from confide.errors import InputError
from confide.models import LanguageModel
from confide.text.tokenizer import Tokenizer, load


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


def opened(
    model: Path,
    tokenizer: Path,
    device: str,
    points: Path,
    canaries: Path | None,
    shadows: Path | None = None,
    reference: Path | None = None,
    ledger: Path | None = None,
) -> Target:
    """The target with the models of these weights on a device.

    InputError unless both models have the tokenizer's tokens.
    """
    vocabulary = load(tokenizer)

    def fitting(weights: Path) -> LanguageModel:
        network = models.load(weights.parent)
        if network.vocab_size != vocabulary.vocab_size:
            sizes = f"{vocabulary.vocab_size} tokens, the model in {weights.parent}"
            raise InputError(f"has {sizes} {network.vocab_size}", file=tokenizer)
        return network.to(device)

    return Target(
        fitting(model),
        tokenizer=vocabulary,
        points=points,
        canaries=canaries,
        shadows=shadows,
        reference=None if reference is None else fitting(reference),
        ledger=ledger,
    )
