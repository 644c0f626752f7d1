"""LSTM language model: embedding, layers, untied output (CRT A.3: 200, 200, one layer)."""

import torch
from torch import Tensor, nn

from confide.models.head import Head
from confide.models.language_model import LanguageModel
from confide.models.padding import repeated
from confide.models.recurrence import LSTMLayer, gates
from confide.specs import LSTMSpec

State = list[tuple[Tensor, Tensor]]  # (h, c) per layer, each (n, H)


class LSTMModel(LanguageModel):
    """See the module docstring."""

    spec: LSTMSpec

    def __init__(self, spec: LSTMSpec, vocab_size: int, bos: int):
        super().__init__()
        self.spec = spec
        self.vocab_size = vocab_size
        self.bos = bos
        widths = [spec.embedding] + [spec.hidden] * spec.layers
        self.embedding = nn.Embedding(vocab_size, spec.embedding)
        self.layers = nn.ModuleList(LSTMLayer(width, spec.hidden) for width in widths[:-1])
        output = nn.Linear(spec.hidden, vocab_size)
        self.head = Head(output.weight, output.bias)
        self.dropout = nn.Dropout(spec.dropout)
        nn.init.uniform_(self.embedding.weight, -0.1, 0.1)

    def hidden(self, ids: Tensor, keep: Tensor | None = None, ends: Tensor | None = None) -> Tensor:
        """(B, L) -> (B, L, H); position t has read ids[:, :t + 1], from the last position on where
        keep (B, L) was False.

        What stands behind position ends (B,) of an example is padding.
        """
        ids = ids if ends is None else repeated(ids, ends)
        x = self.dropout(self.embedding(ids))
        for layer in self.layers:
            x = self.dropout(layer(x, keep))
        return x

    def resume(self, ids: Tensor, lengths: Tensor, state: State) -> tuple[Tensor, State]:
        """Read on from a state: ids (n, L), lengths (n,) of them real -> hidden (n, L, H), state
        after the real ones.
        """
        x = self.dropout(self.embedding(ids))
        after = []
        for layer, (hidden, cell) in zip(self.layers, state, strict=True):
            x, *last = layer.resume(x, lengths, hidden, cell)
            x = self.dropout(x)
            after = [*after, tuple(last)]
        return x, after

    def start(self, count: int) -> State:
        """State of empty contexts."""
        zero = self.head.weight.new_zeros(count, self.spec.hidden)
        return [(zero, zero) for _ in range(self.spec.layers)]

    def advance(self, contexts: State, tokens: Tensor) -> tuple[Tensor, State]:
        """Read one token in each of n contexts: tokens (n,) -> hidden (n, H) and the new state."""
        distinct, place = tokens.unique(
            return_inverse=True
        )  # attacks feed few distinct tokens to many contexts
        x = self.embedding(distinct)
        after = []
        for number, (layer, (hidden, cell)) in enumerate(zip(self.layers, contexts, strict=True)):
            projected = layer.inputs(x)
            pre = (projected if number else projected[place]).addmm_(
                hidden, layer.recurrent.weight.t()
            )
            x, cell = gates(pre, cell)
            after.append((x, cell))
        return x, after

    def take(self, contexts: State, index: Tensor) -> State:
        """Rows of a state, repeated or reordered."""
        return [(hidden[index], cell[index]) for hidden, cell in contexts]

    def torch_state(self) -> dict[str, Tensor]:
        """Weights of the layers as nn.LSTM(embedding, hidden, layers) names them; its second bias
        is zero.
        """
        found = {}
        for number, layer in enumerate(self.layers):
            found[f"weight_ih_l{number}"], found[f"weight_hh_l{number}"] = (
                layer.inputs.weight,
                layer.recurrent.weight,
            )
            found[f"bias_ih_l{number}"] = layer.inputs.bias
            found[f"bias_hh_l{number}"] = torch.zeros_like(layer.inputs.bias)
        return {name: value.detach().clone() for name, value in found.items()}

    def load_torch_state(self, state: dict[str, Tensor]) -> None:
        """Take the layers' weights from the state dict of an nn.LSTM; its two biases are added
        up.
        """
        with torch.no_grad():
            for number, layer in enumerate(self.layers):
                layer.inputs.weight.copy_(state[f"weight_ih_l{number}"])
                layer.recurrent.weight.copy_(state[f"weight_hh_l{number}"])
                layer.inputs.bias.copy_(state[f"bias_ih_l{number}"] + state[f"bias_hh_l{number}"])
