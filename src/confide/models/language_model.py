"""What every language model is: hidden states of text, an output layer, and a way to read on.

Whole texts go through `hidden`, and `head` turns its states into logits or losses. Attacks and
generation read token by token: `start`, then `advance`, with `take` to copy or drop contexts.
"""

from typing import Any

import torch
from torch import Tensor, nn

from confide.models.head import Head
from confide.specs import GPT2Spec, LSTMSpec

# What a model has read so far in n contexts. Each kind of model has a form of its own; whoever asks
# a model for it hands it back to the same model and does not look inside.
Contexts = Any


class LanguageModel(nn.Module):
    """Base of all language models. `bos` is the token that opens and closes every sequence.

    A subclass sets all attributes below; one that only trains may leave out `start`, `advance` and
    `take`.
    """

    spec: LSTMSpec | GPT2Spec
    head: Head
    vocab_size: int
    bos: int

    @property
    def device(self) -> torch.device:
        """Where the weights are."""
        return self.head.weight.device

    def hidden(self, ids: Tensor, keep: Tensor | None = None, ends: Tensor | None = None) -> Tensor:
        """Hidden states (B, L, d) of tokens (B, L); position t has read ids[:, :t + 1].

        keep (B, L) bool: where it is False, a recurrent state is set to zero before the position is
        read; models without such a state ignore it. ends (B,) int64: what stands behind that
        position of an example is padding.
        """
        raise NotImplementedError

    def forward(self, ids: Tensor) -> Tensor:
        """Logits (B, L, V) of the token after each of ids (B, L)."""
        return self.head(self.hidden(ids))

    def start(self, count: int) -> Contexts:
        """As many empty contexts, in which nothing has been read."""
        raise NotImplementedError

    def advance(self, contexts: Contexts, tokens: Tensor) -> tuple[Tensor, Contexts]:
        """Read one token (n,) in each context: hidden states (n, d) and the contexts after it."""
        raise NotImplementedError

    def take(self, contexts: Contexts, index: Tensor) -> Contexts:
        """Those contexts that index (m,) names, which may repeat or reorder them."""
        raise NotImplementedError
