"""LSTM language model: embedding, layers, untied output (CRT A.3: 200, 200, one layer).

The input projection of all time steps is one matrix product outside the recurrence. The gradient of that projection's
output is then the gradient of the gate pre-activations, from which every weight's per-example gradient follows
(dW_in = sum_t G_t x_t^T, dW_rec = sum_t G_t h_{t-1}^T, db = sum_t G_t), so clipping needs no special case.
"""

import torch
from torch import Tensor, nn

from confide.specs import LSTMSpec

State = list[tuple[Tensor, Tensor]]  # (h, c) per layer, each (n, H)


def gates(pre: Tensor, cell: Tensor) -> tuple[Tensor, Tensor, Tensor, Tensor, Tensor, Tensor]:
    """One time step from pre-activations (n, 4H), ordered input, forget, candidate, output, and c (n, H)."""
    i, f, g, o = pre.chunk(4, dim=-1)
    i, f, g, o = i.sigmoid(), f.sigmoid(), g.tanh(), o.sigmoid()
    cell = torch.addcmul(f * cell, i, g)
    return i, f, g, o, cell, cell.tanh()


class Recurrence(torch.autograd.Function):
    """h_1..h_L from pre-activations without their recurrent part, time major; initial state zero."""

    @staticmethod
    def forward(ctx, pre: Tensor, weight: Tensor) -> Tensor:  # pre (L, B, 4H), weight (4H, H) -> (L, B, H)
        length, batch, width = pre.shape[0], pre.shape[1], weight.shape[1]
        hidden, cells = pre.new_zeros(length + 1, batch, width), pre.new_zeros(length + 1, batch, width)
        activations = torch.empty(5, length, batch, width, dtype=pre.dtype, device=pre.device)  # i f g o tanh(c)
        for t in range(length):
            i, f, g, o, cell, squashed = gates(torch.addmm(pre[t], hidden[t], weight.t()), cells[t])
            for row, value in enumerate((i, f, g, o, squashed)):
                activations[row, t] = value
            cells[t + 1] = cell
            torch.mul(o, squashed, out=hidden[t + 1])
        ctx.save_for_backward(weight, activations, cells, hidden)
        return hidden[1:]

    @staticmethod
    def backward(ctx, grad: Tensor) -> tuple[Tensor, Tensor | None]:
        weight, (i, f, g, o, squashed), cells, hidden = ctx.saved_tensors
        # factors of every time step at once; only the two recurrences stay in the loop
        factors = torch.stack([g * i * (1 - i), cells[:-1] * f * (1 - f), i * (1 - g * g), squashed * o * (1 - o)], dim=2)
        through = o * (1 - squashed * squashed)
        d_hidden, d_cell = torch.zeros_like(hidden[0]), torch.zeros_like(hidden[0])
        for t in range(len(i) - 1, -1, -1):
            d_hidden = d_hidden + grad[t]
            d_cell.addcmul_(d_hidden, through[t])
            factors[t, :, :3] *= d_cell.unsqueeze(1)
            factors[t, :, 3] *= d_hidden
            d_hidden = factors[t].flatten(1) @ weight
            d_cell.mul_(f[t])
        d_pre = factors.flatten(2)
        d_weight = d_pre.flatten(0, 1).t() @ hidden[:-1].flatten(0, 1) if ctx.needs_input_grad[1] else None
        return d_pre, d_weight


class RecurrentLayer(nn.Module):
    """The recurrent weight alone; forward takes the projected input (B, L, 4H) and gives (B, L, H)."""

    def __init__(self, width: int):
        super().__init__()
        self.weight = nn.Parameter(torch.empty(4 * width, width).uniform_(-(width**-0.5), width**-0.5))

    def forward(self, pre: Tensor) -> Tensor:
        return Recurrence.apply(pre.transpose(0, 1).contiguous(), self.weight).transpose(0, 1)


class LSTMModel(nn.Module):
    """See the module docstring; `bos` is the id that opens and closes every sequence."""

    def __init__(self, spec: LSTMSpec, vocab_size: int, bos: int):
        super().__init__()
        self.spec, self.vocab_size, self.bos = spec, vocab_size, bos
        widths = [spec.embedding] + [spec.hidden] * spec.layers
        self.embedding = nn.Embedding(vocab_size, spec.embedding)
        self.inputs = nn.ModuleList(nn.Linear(width, 4 * spec.hidden) for width in widths[:-1])
        self.recurrent = nn.ModuleList(RecurrentLayer(spec.hidden) for _ in range(spec.layers))
        self.output = nn.Linear(spec.hidden, vocab_size)
        self.dropout = nn.Dropout(spec.dropout)
        nn.init.uniform_(self.embedding.weight, -0.1, 0.1)

    def hidden(self, ids: Tensor) -> Tensor:
        """(B, L) -> (B, L, H); position t has read ids[:, :t + 1]."""
        x = self.dropout(self.embedding(ids))
        for project, recur in zip(self.inputs, self.recurrent, strict=True):
            x = self.dropout(recur(project(x)))
        return x

    def logits(self, hidden: Tensor) -> Tensor:
        return self.output(hidden)

    def head(self) -> tuple[Tensor, Tensor | None]:
        return self.output.weight, self.output.bias

    def forward(self, ids: Tensor) -> Tensor:
        return self.logits(self.hidden(ids))

    def start(self, n: int) -> State:
        """State of n empty contexts."""
        zero = self.output.weight.new_zeros(n, self.spec.hidden)
        return [(zero, zero) for _ in range(self.spec.layers)]

    def advance(self, state: State, tokens: Tensor) -> tuple[Tensor, State]:
        """Read one token in each of n contexts: tokens (n,) -> hidden (n, H) and the new state."""
        distinct, place = tokens.unique(return_inverse=True)  # attacks feed few distinct tokens to many contexts
        x, after = self.embedding(distinct), []
        for layer, (hidden, cell) in enumerate(state):
            projected = self.inputs[layer](x)
            pre = torch.addmm(projected if layer else projected[place], hidden, self.recurrent[layer].weight.t())
            _, _, _, o, cell, squashed = gates(pre, cell)
            x = o * squashed
            after.append((x, cell))
        return x, after

    def take(self, state: State, index: Tensor) -> State:
        """Rows of a state, repeated or reordered."""
        return [(hidden[index], cell[index]) for hidden, cell in state]
