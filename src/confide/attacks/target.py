"""What an attack may look at: the trained model, its tokenizer, and the files that say which secrets were in training."""

from dataclasses import dataclass
from pathlib import Path

from torch import nn

from confide.tokenizer import Tokenizer


@dataclass(frozen=True, slots=True)
class Target:
    """`model` is in evaluation mode and on its device; `canaries` None: the corpus has none planted.

    `shadows`: scores of shadow models on the same candidates, for the attack that needs them.
    """

    model: nn.Module
    tokenizer: Tokenizer
    points: Path
    canaries: Path | None = None
    shadows: Path | None = None
