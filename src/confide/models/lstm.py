"""LSTM language model: embedding, layers, untied output (CRT A.3: 200, 200, one layer)."""

from typing import cast

from torch import Tensor, nn

from confide.errors import InputError
from confide.models.batches import repeated
from confide.models.head import Head
from confide.models.language_model import LanguageModel
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

    @property
    def lstm_layers(self) -> list[LSTMLayer]:
        """The layers, from the embedding on; torch's list does not say their type."""
        return cast(list[LSTMLayer], list(self.layers))

    def hidden(self, ids: Tensor, keep: Tensor | None = None, ends: Tensor | None = None) -> Tensor:
        ids = ids if ends is None else repeated(ids, ends)
        x = self.dropout(self.embedding(ids))
        for layer in self.lstm_layers:
            x = self.dropout(layer(x, keep))
        return x

    def resume(self, ids: Tensor, lengths: Tensor, state: State) -> tuple[Tensor, State]:
        """Read on from a state: ids (n, L), of which lengths (n,) are real.

        Returns hidden states (n, L, H) and the state after the real tokens.
        """
        x = self.dropout(self.embedding(ids))
        after = []
        for layer, (hidden, cell) in zip(self.lstm_layers, state, strict=True):
            x, hidden, cell = layer.resume(x, lengths, hidden, cell)
            x = self.dropout(x)
            after.append((hidden, cell))
        return x, after

    def start(self, count: int) -> State:
        zero = self.head.weight.new_zeros(count, self.spec.hidden)
        return [(zero, zero) for _ in range(self.spec.layers)]

    def advance(self, contexts: State, tokens: Tensor) -> tuple[Tensor, State]:
        # Attacks feed few distinct tokens to many contexts: each is projected once.
        distinct, place = tokens.unique(return_inverse=True)
        x = self.embedding(distinct)
        after = []
        for number, (layer, (hidden, cell)) in enumerate(
            zip(self.lstm_layers, contexts, strict=True)
        ):
            projected = layer.inputs(x)
            pre = projected if number else projected[place]
            x, cell = gates(pre.addmm_(hidden, layer.recurrent.weight.t()), cell)
            after.append((x, cell))
        return x, after

    def take(self, contexts: State, index: Tensor) -> State:
        return [(hidden[index], cell[index]) for hidden, cell in contexts]


def recurrent(model: LanguageModel) -> LSTMModel:
    """The model as one with recurrent states; InputError if it has none."""
    if not isinstance(model, LSTMModel):
        raise InputError("has no recurrent states", key="model")
    return model
