"""The LSTM recurrence in the open, and torch's own kernel, behind one layer.

The input projection of all time steps is one matrix product outside the recurrence. The gradient of
that projection's output is then the gradient of the gate pre-activations, from which every weight's
per-example gradient follows (dW_in = sum_t G_t x_t^T, dW_rec = sum_t G_t h_{t-1}^T, db = sum_t
G_t), so clipping needs no special case. Gates stand in torch's order: input, forget, candidate,
output.
"""

import warnings
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor, nn

# On a GPU torch's kernel copies them at every call, which is little beside the call itself.
warnings.filterwarnings("ignore", "RNN module weights are not part of single contiguous chunk")


def gates(pre: Tensor, cell: Tensor) -> tuple[Tensor, Tensor]:
    """One time step from pre-activations (n, 4H) and c (n, H) to the new h and c."""
    i, f, g, o = pre.chunk(4, dim=-1)
    cell = torch.addcmul(f.sigmoid() * cell, i.sigmoid(), g.tanh())
    return o.sigmoid() * cell.tanh(), cell


class Recurrence(torch.autograd.Function):
    """h_1..h_L from pre-activations without their recurrent part, from the zero state on.

    Time comes first within. pre (B, L, 4H), weight (4H, H), keep (B, L) bool or None -> (B, L, H);
    the state is zero before a step where keep is False.
    """

    @staticmethod
    def forward(ctx: Any, pre: Tensor, weight: Tensor, keep: Tensor | None) -> Tensor:
        keep = None if keep is None else keep.t().unsqueeze(-1).to(pre.dtype)  # (L, B, 1)
        batch = pre.shape[0]
        length = pre.shape[1]
        width = weight.shape[1]
        activations = pre.transpose(0, 1).clone(memory_format=torch.contiguous_format)
        recurrent = weight.t().contiguous()  # a transposed view would be packed anew every step
        outputs, cells, squashed = (pre.new_empty(length, batch, width) for _ in range(3))
        hidden, cell = pre.new_zeros(2, batch, width)
        for t, row in enumerate(activations):
            if keep is not None:
                hidden = hidden * keep[t]
                cell = cell * keep[t]
            row.addmm_(hidden, recurrent)
            row[:, : 2 * width].sigmoid_()
            row[:, 2 * width : 3 * width].tanh_()
            row[:, 3 * width :].sigmoid_()
            i, f, g, o = row.chunk(4, dim=1)
            cell = torch.mul(f, cell, out=cells[t]).addcmul_(i, g)
            hidden = torch.mul(o, torch.tanh(cell, out=squashed[t]), out=outputs[t])
        ctx.save_for_backward(weight, keep, activations, cells, squashed, outputs)
        return outputs.transpose(0, 1)

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor | None, ...]:
        grad = grad.transpose(0, 1)
        weight, keep, activations, cells, squashed, outputs = ctx.saved_tensors
        i, f, g, o = activations.unflatten(2, (4, -1)).unbind(2)
        # factors of every time step at once; only the two recurrences stay in the loop
        factors = activations.new_empty(*i.shape[:2], 4, i.shape[2])
        torch.mul(g * i, 1 - i, out=factors[:, :, 0])
        torch.mul(before(cells, keep) * f, 1 - f, out=factors[:, :, 1])
        torch.mul(i, 1 - g * g, out=factors[:, :, 2])
        torch.mul(squashed * o, 1 - o, out=factors[:, :, 3])
        through = o * (1 - squashed * squashed)
        decay = f if keep is None else f * keep
        d_hidden = torch.zeros_like(grad[0])
        d_cell = torch.zeros_like(grad[0])
        for t in range(len(grad) - 1, -1, -1):
            d_hidden = d_hidden + grad[t]
            d_cell.addcmul_(d_hidden, through[t])
            factors[t, :, :3] *= d_cell.unsqueeze(1)
            factors[t, :, 3] *= d_hidden
            d_cell.mul_(decay[t])
            d_hidden = factors[t].flatten(1) @ weight
            if keep is not None:
                d_hidden *= keep[t]
        d_pre = factors.flatten(2)
        d_weight = None
        if ctx.needs_input_grad[1]:
            d_weight = d_pre.flatten(0, 1).t() @ before(outputs, keep).flatten(0, 1)
        return d_pre.transpose(0, 1), d_weight, None


def before(states: Tensor, keep: Tensor | None) -> Tensor:
    """The state (L, B, H) that each step met: the one after the step before it.

    It is zero at the start and where it was reset.
    """
    shifted = F.pad(states[:-1], (0, 0, 0, 0, 1, 0))
    return shifted if keep is None else shifted * keep


class Recurrent(nn.Module):
    """The recurrent weight alone, as a module of its own.

    It takes the projected input (B, L, 4H) and gives (B, L, H), in float32 or better.
    """

    def __init__(self, width: int):
        super().__init__()
        self.weight = nn.Parameter(
            torch.empty(4 * width, width).uniform_(-(width**-0.5), width**-0.5)
        )

    def forward(self, pre: Tensor, keep: Tensor | None = None) -> Tensor:
        with torch.autocast(pre.device.type, enabled=False):
            return Recurrence.apply(pre.to(self.weight.dtype), self.weight, keep)


class LSTMLayer(nn.Module):
    """One layer, (B, L, in) -> (B, L, H).

    The state is zero at first, and before every position where keep (B, L) is False. `open` runs
    the recurrence above, whose inner gradients per-example clipping reads; otherwise torch's kernel
    runs, which is faster and cannot reset. Both give the same numbers up to rounding.
    """

    def __init__(self, inputs: int, width: int):
        super().__init__()
        self.inputs = nn.Linear(inputs, 4 * width)
        self.recurrent = Recurrent(width)
        self.open = False

    def forward(self, x: Tensor, keep: Tensor | None = None) -> Tensor:
        if self.open or keep is not None:
            return self.recurrent(self.inputs(x), keep)
        zero = x.new_zeros(1, len(x), self.recurrent.weight.shape[1])
        return torch.lstm(
            x, (zero, zero), self._weights(), True, 1, 0.0, self.training, False, True
        )[0]

    def resume(
        self, x: Tensor, lengths: Tensor, hidden: Tensor, cell: Tensor
    ) -> tuple[Tensor, Tensor, Tensor]:
        """Read on from h and c (n, H): x (n, L, in), of which lengths (n,) are real.

        Returns outputs (n, L, H), and h and c after the real positions.
        """
        packed = nn.utils.rnn.pack_padded_sequence(
            x, lengths, batch_first=True, enforce_sorted=False
        )
        first = tuple(part[packed.sorted_indices].unsqueeze(0) for part in (hidden, cell))
        out, *last = torch.lstm(
            packed.data,
            packed.batch_sizes,
            first,
            self._weights(),
            True,
            1,
            0.0,
            self.training,
            False,
        )
        packed = nn.utils.rnn.PackedSequence(
            out, packed.batch_sizes, packed.sorted_indices, packed.unsorted_indices
        )
        whole, _ = nn.utils.rnn.pad_packed_sequence(
            packed, batch_first=True, total_length=x.shape[1]
        )
        hidden, cell = (part[0][packed.unsorted_indices] for part in last)
        return whole, hidden, cell

    def _weights(self) -> list[Tensor]:
        """As torch's kernel wants them; its second bias is zero."""
        return [
            self.inputs.weight,
            self.recurrent.weight,
            self.inputs.bias,
            torch.zeros_like(self.inputs.bias),
        ]
