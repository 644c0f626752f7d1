"""What an attack may look at: the trained model, its tokenizer, and the files that say which
secrets were in training.
"""

from dataclasses import dataclass
from pathlib import Path

from torch import nn

from confide import models
from confide.errors import InputError
from confide.text.tokenizer import Tokenizer, load


@dataclass(frozen=True, slots=True)
class Target:
    """`model` is in evaluation mode and on its device; `canaries` None: the corpus has none
    planted.

    `shadows`: scores of shadow models on the same candidates, for the attack that needs them;
    `reference`: a model with the same tokenizer that never saw the corpus, for the score that
    compares with it; `ledger`: what the run's training recorded, for the attack that makes its
    updates again.
    """

    model: nn.Module
    tokenizer: Tokenizer
    points: Path
    canaries: Path | None = None
    shadows: Path | None = None
    reference: nn.Module | None = None
    ledger: Path | None = None


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
    """The target with the models of these weights on a device; InputError unless both have the
    tokenizer's tokens.
    """
    words = load(tokenizer)
    network, other = (
        None if path is None else _fitting(path, words, tokenizer).to(device)
        for path in (model, reference)
    )
    return Target(
        network,
        tokenizer=words,
        points=points,
        canaries=canaries,
        shadows=shadows,
        reference=other,
        ledger=ledger,
    )


def _fitting(weights: Path, words: Tokenizer, tokenizer: Path) -> nn.Module:
    network = models.load(weights.parent)
    if network.vocab_size != words.vocab_size:
        raise InputError(
            f"has {words.vocab_size} tokens, the model in {weights.parent} {network.vocab_size}",
            file=tokenizer,
        )
    return network
