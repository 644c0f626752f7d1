"""Selective-DPSGD run by run, as published: public and private text in turn.

That is Algorithm 1 of Shi et al. 2022, lines 5 to 24. The recurrent state passes from each run to
the next, without gradient; after a private run, h and c of every layer are clipped to norm C and
get noise N(0, (sigma C)^2). Each such state is a release of its own about that point (the paper
counts none). Points are read in a loop over runs, and private gradients in a loop over points:
slow, and as the paper has it.
"""

from collections.abc import Callable, Iterator
from functools import partial
from itertools import groupby
from typing import NamedTuple

import numpy as np
import torch
from torch import Tensor, nn

from confide.dp.mechanism.clipping import PerExampleClipper
from confide.dp.mechanism.gradients import rounding
from confide.dp.mechanism.randomness import Noise
from confide.models import trainable
from confide.models.batches import padded, private_positions
from confide.models.lstm import LSTMModel, State
from confide.types import View


class Run(NamedTuple):
    """The i-th run of those points of a batch that have one; lists have one entry per point.

    Even runs are public.
    """

    private: bool
    rows: Tensor  # (n,) int64: which points of the batch
    inputs: list[Tensor]  # (length,) int64 each
    targets: list[Tensor]


def pieces(private: Tensor, length: int) -> Iterator[tuple[int, int, int]]:
    """(number, start, end) of the runs of one point; the first is public.

    private: which of its positions (length,) are.
    """
    start = 0
    for number, (_, group) in enumerate(groupby(private[:length].tolist()), int(private[0])):
        end = start + len(list(group))
        yield number, start, end
        start = end


def runs_of(view: View, points: np.ndarray, bos: int) -> list[Run]:
    """Runs of a batch in the order in which they are read.

    Positions are private as for `batches.selected`.
    """
    batch = padded(view, points, bos)
    count, longest = batch.targets.shape
    private = private_positions(view, points, (count, longest))
    lengths = np.diff(view.starts)[points] + 1
    pieces_by_number: dict[int, list[tuple[int, int, int]]] = {}
    for row, length in enumerate(lengths.tolist()):
        for number, start, end in pieces(private[row], length):
            pieces_by_number.setdefault(number, []).append((row, start, end))
    return [
        Run(
            number % 2 == 1,
            torch.tensor([row for row, _, _ in pieces_by_number[number]]),
            [batch.inputs[row, start:end] for row, start, end in pieces_by_number[number]],
            [batch.targets[row, start:end] for row, start, end in pieces_by_number[number]],
        )
        for number in sorted(pieces_by_number)
    ]


def most_handed_on(view: View, points: np.ndarray) -> int:
    """The most private runs of one point that public text follows.

    That often its state is released in one pass.
    """
    most = 0
    for point in points:
        marks = np.concatenate([view.private[view.starts[point] : view.starts[point + 1]], [False]])
        private = torch.from_numpy(marks | np.concatenate([[False], marks[:-1]]))
        most = max(most, *(number // 2 for number, _, _ in pieces(private, len(private))))
    return most


def released(state: State, bound: float, noise_multiplier: float, noise: Noise) -> State:
    """States (n, H) clipped row by row to norm `bound`, with noise.

    Guarantees: each row is one Gaussian release of what its point says, of sensitivity `bound`
    where that is left out: a clipped row is no longer than that in float64, where the noise is
    added, and one that is not finite counts as zero.
    """

    def noised(part: Tensor) -> Tensor:
        exact = part.double()
        norms = exact.norm(dim=1, keepdim=True)
        slack = 1 + rounding(part.shape[1], torch.float64)
        scale = (bound / (slack * norms).clamp(min=1e-300)).clamp(max=1.0)
        clipped = torch.where(norms.isfinite(), exact * scale, 0.0)
        return noise.add(clipped.flatten(), noise_multiplier * bound).view_as(part).to(part.dtype)

    return [(noised(hidden), noised(cell)) for hidden, cell in state]


def put(state: State, rows: Tensor, new: State) -> None:
    """Overwrite rows of a state."""
    for target, source in zip(state, new, strict=True):
        for part, value in zip(target, source, strict=True):
            part[rows] = value


def start(model: LSTMModel, count: int) -> State:
    """The empty state of `count` points, to be overwritten."""
    return [(hidden.clone(), cell.clone()) for hidden, cell in model.start(count)]


def read(model: LSTMModel, run: Run, state: State) -> tuple[Tensor, State]:
    """Summed losses (n,) of a run's points, and their states after it, without gradient.

    state: of the whole batch; it is not changed.
    """
    device = model.head.weight.device
    lengths = torch.tensor([len(ids) for ids in run.inputs])
    ids, targets = (
        nn.utils.rnn.pad_sequence(side, True).to(device) for side in (run.inputs, run.targets)
    )
    hidden, after = model.resume(ids, lengths, model.take(state, run.rows.to(device)))
    real = torch.arange(ids.shape[1], device=device) < lengths.to(device).unsqueeze(1)
    losses = torch.where(real, model.head(hidden, targets), 0.0)
    return losses.sum(1), [(hidden.detach(), cell.detach()) for hidden, cell in after]


def mean_loss(model: LSTMModel, run: Run, state: State) -> Tensor:
    """Mean loss (1,) of a run of one point."""
    return read(model, run, state)[0] / len(run.targets[0])


def noised_gradient(
    model: LSTMModel,
    batches: list[list[Run]],
    sizes: list[int],
    max_norm: float | None,
    hand_on: Callable[[State], State],
) -> Tensor:
    """Leave the mean gradient of all public losses in .grad, and return the mean loss ().

    States after private runs are passed on by `hand_on`.
    """
    parameters = trainable(model)
    grads = [torch.zeros_like(parameter) for parameter in parameters]
    loss = torch.zeros(())
    tokens = 0
    for runs, size in zip(batches, sizes, strict=True):
        state = start(model, size)
        for i, run in enumerate(runs):
            with torch.set_grad_enabled(not run.private):
                losses, after = read(model, run, state)
            if not run.private:
                for total, grad in zip(
                    grads, torch.autograd.grad(losses.sum(), parameters), strict=True
                ):
                    total.add_(grad)
                loss = loss + losses.detach().sum().cpu()
                tokens = tokens + sum(map(len, run.targets))
            elif i + 1 < len(runs):  # what nothing follows is not released
                on = torch.isin(run.rows, runs[i + 1].rows)
                rows = on.nonzero().flatten().to(losses.device)
                if len(rows):
                    put(state, run.rows[on].to(losses.device), hand_on(model.take(after, rows)))
                continue
            put(state, run.rows.to(losses.device), after)
    for parameter, grad in zip(parameters, grads, strict=True):
        parameter.grad = grad.div_(max(1, tokens))
    if max_norm is not None:
        nn.utils.clip_grad_norm_(parameters, max_norm)
    return loss / max(1, tokens)


def published_updates(
    model: LSTMModel,
    clipper: PerExampleClipper,
    runs: list[Run],
    size: int,
    max_norm: float | None,
    noise_multiplier: float,
    noise: Noise,
    hand_on: Callable[[State], State],
) -> Iterator[tuple[bool, Tensor | None]]:
    """One batch of `size` points by Algorithm 1.

    It leaves a gradient in .grad and yields (noisy, mean public loss), run by run.
    Guarantees: none. Exact and noisy updates share the batch, and sums are divided by how many of
    its points have the run.
    """
    parameters = trainable(model)
    state = start(model, size)
    for run in runs:
        rows = run.rows.to(model.head.weight.device)
        before = model.take(state, rows)
        if not run.private:
            losses, after = read(model, run, state)
            mean = losses.sum() / sum(map(len, run.targets))
            for parameter, grad in zip(
                parameters, torch.autograd.grad(mean, parameters), strict=True
            ):
                parameter.grad = grad
            if max_norm is not None:
                nn.utils.clip_grad_norm_(parameters, max_norm)
            put(state, rows, after)
            yield False, mean.detach()
            continue
        clipper.reset()
        for i, (inputs, targets) in enumerate(zip(run.inputs, run.targets, strict=True)):
            alone = Run(True, torch.tensor([i]), [inputs], [targets])
            clipper.add_unit([partial(mean_loss, model, alone, before)])
        with torch.no_grad():
            _, after = read(model, run, state)  # before the update, as it was read for the gradient
        clipper.finish(noise_multiplier, len(run.rows), noise)
        put(state, rows, hand_on(after))
        yield True, None
