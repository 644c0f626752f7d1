"""K LSTM language models trained as one: every weight has a leading axis of models, every product is a batch of K products.

The models read the same batches; a mask says which points each one learns from, so that models of different training sets
(the shadow models of Carlini et al. 2022) share all of Python's and the kernels' overhead. Gradients are written out, those
of ordinary LSTMModels up to rounding. The output layer goes model by model: one model's logits fit into the cache, where
they become probabilities and gradient before the next model's are made, so nothing of size K x tokens x V ever exists.
Shapes: K models, B points, L positions, n scored positions, E embedding, H hidden, V vocabulary.
"""

import multiprocessing
from collections.abc import Sequence
from concurrent.futures import ProcessPoolExecutor
from itertools import repeat
from typing import NamedTuple

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor
from tqdm import tqdm

from confide.batches import Batch, padded
from confide.dp.sampling import shuffled
from confide.memory import keep_pages
from confide.models.head import IGNORE
from confide.models.lstm import LSTMModel
from confide.types import View

PART = 8  # models that one process trains at a time
TILE = 128  # rows of logits made at once: they and their probabilities stay in the second-level cache


class Trace(NamedTuple):
    """What reading a batch leaves behind for the way back; time comes first, so that a step's slice is contiguous."""

    rows: Tensor  # (L, K, B) int64: row of each token in the K embeddings, one below the other
    states: Tensor  # (L + 1, K, B, E + H): what each step reads: its token's embedding and the hidden state before it
    gates: Tensor  # (L, K, B, 4H): input, forget, candidate, output after their nonlinearities
    cells: Tensor  # (L, K, B, H)
    squashed: Tensor  # (L, K, B, H): tanh of the cells


class StackedLSTM:
    """One-layer LSTM models of one shape as five tensors; `of` takes ordinary models in, `model` gives one back."""

    def __init__(self, embedding: Tensor, weight: Tensor, bias: Tensor, head: Tensor, head_bias: Tensor):
        self.embedding = embedding  # (K, V, E)
        self.weight = weight  # (K, E + H, 4H): of a token's embedding, then of the hidden state
        self.bias = bias  # (K, 4H)
        self.head, self.head_bias = head, head_bias  # (K, H, V), (K, V)

    @classmethod
    def of(cls, models: Sequence[LSTMModel]) -> "StackedLSTM":
        """A copy of the weights of models of one specification, which must have one layer and no dropout."""
        spec = models[0].spec
        assert all(model.spec == spec for model in models) and spec.layers == 1 and spec.dropout == 0
        both = [torch.cat([m.layers[0].inputs.weight, m.layers[0].recurrent.weight], dim=1).t() for m in models]
        parts = (
            [model.embedding.weight for model in models],
            both,
            [model.layers[0].inputs.bias for model in models],
            [model.head.weight.t() for model in models],
            [model.head.bias for model in models],
        )
        return cls(*(torch.stack(part).detach() for part in parts))

    def __len__(self) -> int:
        return len(self.head)

    def split(self, size: int) -> "list[StackedLSTM]":
        """Stacks of at most `size` models each, which share the weights with this one."""
        return [StackedLSTM(*parts) for parts in zip(*(tensor.split(size) for tensor in self.parameters()), strict=True)]

    def parameters(self) -> list[Tensor]:
        """The five tensors, for an optimizer: Adam works number by number, so one Adam is K of them."""
        return [self.embedding, self.weight, self.bias, self.head, self.head_bias]

    @torch.no_grad()
    def model(self, number: int, like: LSTMModel) -> LSTMModel:
        """The weights of one model, written into an ordinary one of the same shape."""
        layer, width = like.layers[0], like.spec.embedding
        like.embedding.weight.copy_(self.embedding[number])
        layer.inputs.weight.copy_(self.weight[number, :width].t())
        layer.recurrent.weight.copy_(self.weight[number, width:].t())
        layer.inputs.bias.copy_(self.bias[number])
        like.head.weight.copy_(self.head[number].t())
        like.head.bias.copy_(self.head_bias[number])
        return like

    @torch.no_grad()
    def gradient(self, batch: Batch, learns: Tensor) -> Tensor:
        """Leave the gradient of each model's mean token loss in .grad; returns these losses (K,) in nats.

        learns (K, B) bool: the points each model learns from. One that learns from none has loss 0 and gradient 0.
        """
        trace = self._read(batch.inputs)
        losses, d_hidden, self.head.grad, self.head_bias.grad = self._head(trace, batch.targets, learns)
        self._back(trace, d_hidden)
        return losses

    def _read(self, inputs: Tensor) -> Trace:
        """Run the recurrence over inputs (B, L) from the zero state."""
        (models, vocabulary, width), (batch, length) = self.embedding.shape, inputs.shape
        new, hidden = self.embedding.new_empty, self.head.shape[1]
        offsets = vocabulary * torch.arange(models, device=inputs.device)
        rows = inputs.t().unsqueeze(1) + offsets.view(-1, 1)
        states, gates = new(length + 1, models, batch, width + hidden), new(length, models, batch, 4 * hidden)
        cells, squashed = new(2, length, models, batch, hidden)
        states[:-1, ..., :width] = F.embedding(rows, self.embedding.view(-1, width))
        states[0, ..., width:] = 0
        cell, bias = torch.zeros_like(cells[0]), self.bias.unsqueeze(1)
        for t, row in enumerate(gates):
            torch.baddbmm(bias, states[t], self.weight, out=row)
            row[..., : 2 * hidden].sigmoid_()
            row[..., 2 * hidden : 3 * hidden].tanh_()
            row[..., 3 * hidden :].sigmoid_()
            i, f, g, o = row.chunk(4, dim=-1)
            cell = torch.mul(f, cell, out=cells[t]).addcmul_(i, g)
            torch.mul(o, torch.tanh(cell, out=squashed[t]), out=states[t + 1, ..., width:])
        return Trace(rows, states, gates, cells, squashed)

    def _head(self, trace: Trace, targets: Tensor, learns: Tensor) -> tuple[Tensor, Tensor, Tensor, Tensor]:
        """Mean losses (K,) and their gradients by the hidden states (L, K, B, H), the weights and the biases of the heads."""
        width, wanted = self.embedding.shape[2], targets.t()  # (L, B)
        hidden = trace.states[1:, ..., width:].transpose(0, 1).flatten(1, 2)  # (K, L * B, H)
        scored, labels = ((wanted != IGNORE) & learns.unsqueeze(1)).flatten(1), wanted.flatten()
        losses, d_hidden = hidden.new_zeros(len(self)), torch.zeros_like(hidden)
        d_head, d_bias = torch.zeros_like(self.head), torch.zeros_like(self.head_bias)
        tiles = hidden.new_empty(2, TILE, self.head.shape[2])
        minus = hidden.new_full((TILE, 1), -1.0)
        for k in range(len(self)):
            places = scored[k].nonzero().squeeze(1)
            if not len(places):
                continue
            for rows in places.tensor_split(-(-len(places) // TILE)):
                logits, grads = tiles[:, : len(rows)]
                read, label = hidden[k].index_select(0, rows), labels[rows].unsqueeze(1)
                torch.addmm(self.head_bias[k], read, self.head[k], out=logits)
                torch.softmax(logits, 1, out=grads)
                losses[k] -= grads.gather(1, label).clamp_(min=1e-37).log_().sum()
                grads.scatter_add_(1, label, minus[: len(rows)])
                d_head[k].addmm_(read.t(), grads)
                d_bias[k] += grads.sum(0)
                d_hidden[k].index_copy_(0, rows, grads @ self.head[k].t())
        scale = 1 / scored.sum(1).clamp(min=1).to(hidden.dtype)
        for part in (losses, d_bias, d_head, d_hidden):
            part *= scale.view(-1, *[1] * (part.dim() - 1))
        return losses, d_hidden.unflatten(1, wanted.shape).transpose(0, 1), d_head, d_bias

    def _back(self, trace: Trace, d_hidden: Tensor) -> None:
        """Gradients of the recurrence and the embedding from those of the hidden states (L, K, B, H)."""
        width, length = self.embedding.shape[2], len(trace.cells)
        i, f, g, o = trace.gates.unflatten(3, (4, -1)).unbind(3)
        # factors of every time step at once; only the two recurrences stay in the loop
        factors = torch.empty_like(trace.gates).unflatten(3, (4, -1))
        torch.mul(g * i, 1 - i, out=factors[..., 0, :])
        torch.mul(F.pad(trace.cells[:-1], (0,) * 6 + (1, 0)) * f, 1 - f, out=factors[..., 1, :])
        torch.mul(i, 1 - g * g, out=factors[..., 2, :])
        torch.mul(trace.squashed * o, 1 - o, out=factors[..., 3, :])
        through, back = o * (1 - trace.squashed.square()), self.weight.transpose(1, 2).contiguous()
        d_states = torch.empty_like(trace.states[:-1])
        d_before, d_cell = torch.zeros_like(d_hidden[0]), torch.zeros_like(d_hidden[0])
        for t in range(length - 1, -1, -1):
            d_now = d_before + d_hidden[t]
            d_cell.addcmul_(d_now, through[t])
            factors[t, ..., :3, :] *= d_cell.unsqueeze(2)
            factors[t, ..., 3, :] *= d_now
            d_cell.mul_(f[t])
            d_before = torch.bmm(factors[t].flatten(2), back, out=d_states[t])[..., width:]
        d_gates = factors.flatten(3).transpose(0, 1).flatten(1, 2)  # (K, L * B, 4H)
        read = trace.states[:-1].transpose(0, 1).flatten(1, 2)  # (K, L * B, E + H)
        self.weight.grad, self.bias.grad = torch.bmm(read.transpose(1, 2), d_gates), d_gates.sum(1)
        rows, count = d_states[..., :width].contiguous(), self.embedding.shape[0] * self.embedding.shape[1]
        # what autograd calls for an embedding; index_add_ would go row by row
        flat = torch.ops.aten.embedding_dense_backward(rows, trace.rows, count, -1, False)
        self.embedding.grad = flat.view_as(self.embedding)


def fit(
    stack: StackedLSTM,
    view: View,
    learns: np.ndarray,
    *,
    epochs: int,
    lr: float,
    batch_size: int,
    bos: int,
    source: torch.Generator,
    processes: int = 1,
) -> np.ndarray:
    """Train on the view's points, learns (K, N) bool saying which model on which; returns mean losses (epochs, K) in nats.

    Adam, whose rate falls linearly to 0; batches of similar lengths in random order, the same ones for all models. Eight
    models at a time, with one thread in each of `processes` (operations this small wait for the interpreter, so that threads
    would gain nothing); the numbers do not depend on how many there are. On a GPU all models at once.
    """
    lengths = torch.from_numpy(np.diff(view.starts))
    plan = [shuffled(lengths, batch_size, source) for _ in range(epochs)]
    return train(stack, view, torch.from_numpy(learns), plan, lr, bos, processes)


def train(
    stack: StackedLSTM, view: View, learns: Tensor, plan: list[list[Tensor]], lr: float, bos: int, processes: int = 1
) -> np.ndarray:
    """The same with learns (K, N) and the batches of each epoch given."""
    if stack.head.is_cuda:
        return _train(stack, view, learns, plan, lr, bos)
    parts, masks = stack.split(PART), [mask.numpy() for mask in learns.split(PART)]
    weights = [[tensor.numpy() for tensor in part.parameters()] for part in parts]
    fixed = view, [[points.numpy() for points in batches] for batches in plan], lr, bos
    with ProcessPoolExecutor(min(processes, len(parts)), multiprocessing.get_context("spawn")) as pool:
        trained = pool.map(_in_a_process, weights, masks, range(len(parts)), *map(repeat, fixed))
        losses = []
        for part, (found, loss) in zip(parts, trained, strict=True):
            for tensor, numbers in zip(part.parameters(), found, strict=True):
                tensor.copy_(torch.from_numpy(numbers))
            losses.append(loss)
    return np.concatenate(losses, axis=1)


def _in_a_process(
    weights: list[np.ndarray], learns: np.ndarray, number: int, view: View, plan: list[list[np.ndarray]], lr: float, bos: int
) -> tuple[list[np.ndarray], np.ndarray]:
    """Train the part of this number; returns its weights and losses. Arrays are sent, since a tensor would be shared memory."""
    keep_pages()
    torch.set_num_threads(1)
    stack = StackedLSTM(*map(torch.from_numpy, weights))
    batches = [[torch.from_numpy(points) for points in epoch] for epoch in plan]
    losses = _train(stack, view, torch.from_numpy(learns), batches, lr, bos, number)
    return weights, losses


def _train(
    stack: StackedLSTM, view: View, learns: Tensor, plan: list[list[Tensor]], lr: float, bos: int, number: int = 0
) -> np.ndarray:
    optimizer = torch.optim.AdamW(stack.parameters(), lr=lr, weight_decay=0.0, fused=True)
    total, device, means = sum(map(len, plan)), stack.head.device, []
    with tqdm(total=total, desc=f"shadows, part {number + 1}", unit="step", position=number, disable=None) as bar:
        for batches in plan:
            losses = []
            for points in batches:
                optimizer.param_groups[0]["lr"] = lr * (1 - (len(means) * len(batches) + len(losses)) / total)
                losses.append(stack.gradient(padded(view, points.numpy(), bos).to(device), learns[:, points].to(device)))
                optimizer.step()
                bar.update()
            means.append(torch.stack(losses).mean(0))
    return torch.stack(means).cpu().numpy()
