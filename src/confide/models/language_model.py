"""What every language model is: hidden states of text, an output layer, and a way to read on.

Whole texts go through `hidden`, and `head` turns its states into logits or losses. Attacks and
generation read token by token: `start`, then `advance`, with `take` to copy or drop contexts.
"""

import math
from abc import ABC, abstractmethod
from typing import Any

import torch
from torch import Tensor, nn

from confide.models.head import Head
from confide.models.recompute import Block
from confide.models.sharding import Shards
from confide.specs import ModelSpec

# What a model has read so far in n contexts. Each kind of model has a form of its own; whoever asks
# a model for it hands it back to the same model and does not look inside.
Contexts = Any


class Encoder(nn.Module, ABC):
    """What can be trained: it turns tokens into hidden states, and its head these into logits.

    `bos` is the token that opens and closes every sequence. A subclass sets all attributes below.
    """

    head: Head
    vocab_size: int
    bos: int
    # whether layers may read (B L, d) instead of (B, L, d): all positions of the first example,
    # then all of the second, and so on
    flattens: bool = False

    def __init__(self) -> None:
        super().__init__()
        self.blocks_recomputed: list[Block] = []
        self.shards: Shards | None = None

    @property
    def device(self) -> torch.device:
        """Where the weights are."""
        return self.head.weight.device

    def stored(self) -> dict[str, Tensor]:
        """Parameters that the file of weights holds, each once, by name."""
        return dict(self.named_parameters())

    @abstractmethod
    def hidden(self, ids: Tensor, keep: Tensor | None = None, ends: Tensor | None = None) -> Tensor:
        """Hidden states (B, L, d) of tokens (B, L); position t has read ids[:, :t + 1].

        keep (B, L) bool: where it is False, a recurrent state is set to zero before the position is
        read; models without such a state ignore it. ends (B,) int64: what stands behind that
        position of an example is padding.
        """

    def forward(self, ids: Tensor) -> Tensor:
        """Logits (B, L, V) of the token after each of ids (B, L)."""
        return self.head(self.hidden(ids))


class LanguageModel(Encoder):
    """Base of all language models: an encoder that attacks and generation can read on with."""

    spec: ModelSpec

    @property
    def positions(self) -> float:
        """The most tokens that a text may have, begin token included; without a limit infinity."""
        return math.inf

    @property
    def cache_bytes(self) -> int:
        """What a context keeps of every token that it has read; 0 where that does not grow."""
        return 0

    def merged(self) -> "LanguageModel":
        """The model as it is used once it is trained: itself, where nothing was added to it."""
        return self

    def as_used(self) -> "LanguageModel":
        """The same, but this model stays as it is trained: a copy, where `merged` would change it.

        Where nothing was added it is this model itself, and follows its weights.
        """
        return self

    @abstractmethod
    def start(self, count: int) -> Contexts:
        """As many empty contexts, in which nothing has been read."""

    @abstractmethod
    def advance(self, contexts: Contexts, tokens: Tensor) -> tuple[Tensor, Contexts]:
        """Read one token (n,) in each context: hidden states (n, d) and the contexts after it."""

    @abstractmethod
    def take(self, contexts: Contexts, index: Tensor) -> Contexts:
        """Those contexts that index (m,) names, which may repeat or reorder them."""
