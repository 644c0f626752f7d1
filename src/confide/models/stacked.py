"""K LSTM language models trained as one.

Every weight has a leading axis of models, every product is a batch of K products. The shadow models
of Carlini et al. (2022) differ in what they learn from. Each reads batches of its own points, of
which batch t has about the same length for all models, so that they share Python's and the kernels'
overhead and little is padding. Gradients are written out, those of ordinary LSTMModels up to
rounding. The output layer goes model by model: one model's logits fit into the cache, where they
become probabilities and gradient, and nothing of size K x tokens x V ever exists. Shapes: K models,
B points of each, L positions, E embedding, H hidden, V vocabulary, T steps per epoch. Time comes
first.
"""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor
from tqdm import tqdm

from confide.models.head import IGNORE
from confide.models.lstm import LSTMModel
from confide.types import View

# Candidate, input, forget, output, as places in torch's order. The first three act through the
# cell, the last three are sigmoids.
GATES = [2, 0, 1, 3]


class Trace(NamedTuple):
    """What reading a batch leaves behind for the way back."""

    rows: Tensor  # (K, L * B) int64: row of each token in the K embeddings, one below the other
    words: Tensor  # (K, L * B, E): the tokens' embeddings
    states: Tensor  # (L + 1, K, B, H), from the zero state on
    gates: Tensor  # (L, K, B, 4H): candidate, input, forget, output after their nonlinearities
    cells: Tensor  # (L + 1, K, B, H), from the zero state on
    squashed: Tensor  # (L, K, B, H): tanh of the cells


class StackedLSTM:
    """One-layer LSTM models of one shape as five tensors.

    `of` takes ordinary models in, `model` gives one back.
    """

    def __init__(
        self, embedding: Tensor, weight: Tensor, bias: Tensor, head: Tensor, head_bias: Tensor
    ):
        self.embedding = embedding  # (K, V, E)
        # (K, E + H, 4H): of a token's embedding, then of the hidden state. Gates as GATES has them.
        self.weight = weight
        self.bias = bias  # (K, 4H)
        self.head = head  # (K, H, V)
        self.head_bias = head_bias  # (K, V)

    @classmethod
    def of(cls, models: Sequence[LSTMModel]) -> "StackedLSTM":
        """A copy of the weights of models of one specification.

        It must have one layer and no dropout.
        """
        spec = models[0].spec
        alike = all(model.spec == spec for model in models)
        assert alike and spec.layers == 1 and spec.dropout == 0
        weights = [model.state_dict() for model in models]

        def stacked(name: str) -> Tensor:
            return torch.stack([state[name] for state in weights])

        read = [stacked("layers.0.inputs.weight"), stacked("layers.0.recurrent.weight")]
        return cls(
            stacked("embedding.weight"),
            weight=_reordered(torch.cat(read, dim=2), GATES).transpose(1, 2).contiguous(),
            bias=_reordered(stacked("layers.0.inputs.bias"), GATES),
            head=stacked("head.weight").transpose(1, 2).contiguous(),
            head_bias=stacked("head.bias"),
        )

    def __len__(self) -> int:
        return len(self.head)

    def parameters(self) -> list[Tensor]:
        """The five tensors, for an optimizer.

        Adam works number by number, so one Adam is K of them.
        """
        return [self.embedding, self.weight, self.bias, self.head, self.head_bias]

    def model(self, number: int, like: LSTMModel) -> LSTMModel:
        """The weights of one model, written into an ordinary one of the same shape."""
        in_torchs_order = [GATES.index(gate) for gate in range(4)]
        single = slice(number, number + 1)
        weight = _reordered(self.weight[single].transpose(1, 2), in_torchs_order)[0]
        width = like.spec.embedding
        like.load_state_dict(
            {
                "embedding.weight": self.embedding[number],
                "layers.0.inputs.weight": weight[:, :width],
                "layers.0.recurrent.weight": weight[:, width:],
                "layers.0.inputs.bias": _reordered(self.bias[single], in_torchs_order)[0],
                "head.weight": self.head[number].t(),
                "head.bias": self.head_bias[number],
            }
        )
        return like

    @torch.no_grad()
    def gradient(self, inputs: Tensor, targets: Tensor) -> Tensor:
        """Leave the gradient of each model's mean token loss in .grad.

        inputs, targets (L, K, B) int64. Returns these losses (K,) in nats. A model whose targets
        are all IGNORE has loss 0 and gradient 0.
        """
        trace = self._read(inputs)
        losses, d_hidden = self._head(trace.states[1:], targets)
        self._back(trace, d_hidden)
        return losses

    def _read(self, inputs: Tensor) -> Trace:
        """Run the recurrence from the zero state."""
        models, vocabulary, width = self.embedding.shape
        length, _, batch = inputs.shape
        new = self.embedding.new_empty
        size = self.head.shape[1]
        first_rows = vocabulary * torch.arange(models, device=inputs.device).unsqueeze(1)
        rows = (inputs + first_rows).transpose(0, 1).flatten(1)
        words = F.embedding(rows, self.embedding.view(-1, width))
        # what words add to the gates at once; only what states add is left to the loop
        by_words = torch.baddbmm(self.bias.unsqueeze(1), words, self.weight[:, :width])
        gates = by_words.unflatten(1, (length, batch)).transpose(0, 1).contiguous()
        states = new(length + 1, models, batch, size)
        cells = new(length + 1, models, batch, size)
        squashed = new(length, models, batch, size)
        states[0] = 0
        cells[0] = 0
        recurrent = self.weight[:, width:].clone()
        # tanh(x) is 2 sigmoid(2x) - 1, which takes half as long and is the same to a rounding of 1
        gates[..., :size] *= 2
        recurrent[..., :size] *= 2
        minus = new([]).fill_(-1)
        parts = (
            states[:-1],
            gates,
            *gates.split(size, 3),
            cells[:-1],
            cells[1:],
            squashed,
            states[1:],
        )
        for read, row, g, i, f, o, before, cell, tanh, after in _steps(*parts):
            row.baddbmm_(read, recurrent)
            row.sigmoid_()
            torch.add(minus, g, alpha=2, out=g)
            torch.mul(f, before, out=cell).addcmul_(i, g)
            torch.mul(cell, 2, out=tanh).sigmoid_()
            torch.add(minus, tanh, alpha=2, out=tanh)
            torch.mul(o, tanh, out=after)
        return Trace(rows, words, states, gates, cells, squashed)

    def _head(self, hidden: Tensor, targets: Tensor) -> tuple[Tensor, Tensor]:
        """Mean losses (K,) and their gradients by the hidden states (L, K, B, H).

        The gradients of the heads are left in .grad.
        """
        shape = targets.shape[0], targets.shape[2]
        hidden = hidden.transpose(0, 1).flatten(1, 2)  # (K, L * B, H)
        targets = targets.transpose(0, 1).flatten(1)  # (K, L * B)
        scored = (targets != IGNORE).to(hidden.dtype)
        # How much each token counts in the mean of its model.
        share = scored / scored.sum(1, keepdim=True).clamp(min=1)
        weighted = hidden * share.unsqueeze(2)
        labels = targets.clamp(min=0).unsqueeze(2)
        likely = torch.empty_like(share)
        d_hidden = torch.empty_like(hidden)
        d_head = torch.empty_like(self.head)
        d_bias = torch.empty_like(self.head_bias)
        logits, grads = hidden.new_empty(2, hidden.shape[1], self.head.shape[2])
        minus = hidden.new_full(labels.shape[1:], -1.0)
        for k in range(len(self)):
            torch.addmm(self.head_bias[k], hidden[k], self.head[k], out=logits)
            torch.softmax(logits, 1, out=grads)
            likely[k] = grads.gather(1, labels[k]).squeeze(1)
            grads.scatter_add_(1, labels[k], minus)
            torch.mm(weighted[k].t(), grads, out=d_head[k])
            torch.mv(grads.t(), share[k], out=d_bias[k])
            torch.mm(grads, self.head[k].t(), out=d_hidden[k])
        self.head.grad = d_head
        self.head_bias.grad = d_bias
        losses = -(share * likely.clamp_(min=1e-37).log_()).sum(1)
        return losses, d_hidden.mul_(share.unsqueeze(2)).unflatten(1, shape).transpose(0, 1)

    def _back(self, trace: Trace, d_hidden: Tensor) -> None:
        """Leave the gradients of the recurrence and of the embedding in .grad.

        They follow from those of the hidden states.
        """
        width = self.embedding.shape[2]
        size = self.head.shape[1]
        g, i, f, o = trace.gates.split(size, 3)
        # factors of every time step at once; only the two recurrences stay in the loop
        tanh_backward = torch.ops.aten.tanh_backward.grad_input
        sigmoid_backward = torch.ops.aten.sigmoid_backward.grad_input
        d_gates = torch.empty_like(trace.gates)
        by_g, by_i, by_f, by_o = d_gates.split(size, 3)
        tanh_backward(i, g, grad_input=by_g)
        sigmoid_backward(g, i, grad_input=by_i)
        sigmoid_backward(trace.cells[:-1], f, grad_input=by_f)
        sigmoid_backward(trace.squashed, o, grad_input=by_o)
        through = torch.ops.aten.tanh_backward(o, trace.squashed)
        back = self.weight.transpose(1, 2).contiguous()
        d_before = torch.zeros_like(d_hidden[0])
        d_cell = torch.zeros_like(d_hidden[0])
        by_cell = d_gates[..., : 3 * size].unflatten(3, (3, size))
        recurrent = back[..., width:].contiguous()
        parts = d_hidden, through, f, by_cell, by_o, d_gates
        for d_now, inner, forget, three, last, row in reversed(_steps(*parts)):
            d_now = d_before + d_now
            d_cell.addcmul_(d_now, inner)
            three *= d_cell.unsqueeze(2)
            last *= d_now
            d_cell *= forget
            torch.bmm(row, recurrent, out=d_before)
        d_gates = d_gates.transpose(0, 1).flatten(1, 2)  # (K, L * B, 4H)
        states = trace.states[:-1].transpose(0, 1).flatten(1, 2)  # (K, L * B, H)
        by_words = torch.bmm(trace.words.transpose(1, 2), d_gates)
        by_states = torch.bmm(states.transpose(1, 2), d_gates)
        self.weight.grad = torch.cat([by_words, by_states], dim=1)
        self.bias.grad = d_gates.sum(1)
        d_words = torch.bmm(d_gates, back[..., :width])  # (K, L * B, E)
        by_row = torch.zeros_like(self.embedding).flatten(0, 1)
        by_row.index_add_(0, trace.rows.flatten(), d_words.flatten(0, 1))
        self.embedding.grad = by_row.view_as(self.embedding)


def _reordered(weights: Tensor, order: list[int]) -> Tensor:
    """Weights (K, 4H, ...) with their four blocks of rows in another order."""
    return weights.unflatten(1, (4, -1))[:, order].flatten(1, 2)


def _steps(*tensors: Tensor) -> list[tuple[Tensor, ...]]:
    """Views of all tensors (L, ...) time step by time step.

    Slices made in the loop would cost as much as the arithmetic.
    """
    return list(zip(*(tensor.unbind() for tensor in tensors), strict=True))


def batches(
    lengths: np.ndarray,
    learns: np.ndarray,
    *,
    epochs: int,
    batch_size: int,
    source: torch.Generator,
) -> np.ndarray:
    """What K models read in all epochs, (epochs, T, K, B) int64: points, -1 where there is none.

    lengths (N,): of the points; learns (K, N) bool says which model learns which.
    """
    return np.stack([own_batches(lengths, learns, batch_size, source) for _ in range(epochs)])


def own_batches(
    lengths: np.ndarray, learns: np.ndarray, batch_size: int, source: torch.Generator
) -> np.ndarray:
    """One epoch (T, K, B) int64: each model's own points in T batches, -1 where there is none.

    T is the same for all models. Points in the order of their lengths, at random where these are
    equal, are cut into batches, which come in random order.
    """
    steps = -(-int(learns.sum(1).max()) // batch_size)
    order = torch.randperm(len(lengths), generator=source).numpy()
    order = order[lengths[order].argsort(kind="stable")]
    plan = np.full((steps, len(learns), batch_size), -1)
    for k, mask in enumerate(learns):
        for t, points in enumerate(np.array_split(order[mask[order]], steps)):
            plan[t, k, : len(points)] = points
    return plan[torch.randperm(steps, generator=source).numpy()]


def stacked_batch(view: View, points: np.ndarray, bos: int) -> tuple[Tensor, Tensor]:
    """Inputs and targets (L, K, B) of points (K, B) as confide.models.batches.padded gives them.

    Of point -1 all is padding.
    """
    lengths = np.where(points < 0, -1, view.starts[points + 1] - view.starts[points])
    places = np.arange(lengths.max() + 1)[:, None, None]
    tokens = view.ids.take(view.starts[points] + places, mode="clip")
    targets = np.where(places < lengths, tokens, np.where(places == lengths, bos, IGNORE))
    inputs = np.full_like(targets, bos)
    inputs[1:] = np.where(places < lengths, tokens, bos)[:-1]
    return torch.from_numpy(inputs), torch.from_numpy(targets)


@torch.inference_mode()
def train(
    stack: StackedLSTM, view: View, plan: np.ndarray, *, lr: float, bos: int, number: int = 0
) -> np.ndarray:
    """Train on the batches (epochs, T, K, B) of all epochs.

    Returns mean losses (epochs, K) in nats. Adam, whose rate falls linearly to 0. `number`: of the
    stack among those that are trained at once, for what is shown of its progress.
    """
    weights = stack.parameters()
    device = stack.head.device
    steps = plan.reshape(-1, *plan.shape[2:])
    means = [torch.zeros_like(tensor) for tensor in weights]
    squares = [torch.zeros_like(tensor) for tensor in weights]
    losses: list[Tensor] = []
    title = f"shadows, part {number + 1}"
    for points in tqdm(steps, desc=title, unit="step", position=number, disable=None):
        rate = lr * (1 - len(losses) / len(steps))
        inputs, targets = stacked_batch(view, points, bos)
        losses.append(stack.gradient(inputs.to(device), targets.to(device)))
        # What torch.optim.Adam(fused=True) calls. To make one imports torch's compiler, which takes
        # every process over a second.
        torch._fused_adam_(
            weights,
            [tensor.grad for tensor in weights if tensor.grad is not None],
            means,
            squares,
            max_exp_avg_sqs=[],
            state_steps=[weights[0].new_tensor(len(losses))] * len(weights),
            lr=rate,
            beta1=0.9,
            beta2=0.999,
            weight_decay=0.0,
            eps=1e-8,
            amsgrad=False,
            maximize=False,
        )
    return torch.stack(losses).unflatten(0, plan.shape[:2]).mean(1).cpu().numpy()
