"""One optimizer update, exact or noisy (DP-SGD, Abadi et al. 2016).

It has the repairs that its guarantee needs.
"""

from collections.abc import Callable, Iterable
from functools import partial

import torch
from torch import Tensor, nn

from confide.dp.mechanism.authors import TOGETHER
from confide.dp.mechanism.clipping import PerExampleClipper
from confide.dp.mechanism.discrete import BITS
from confide.dp.mechanism.randomness import Noise, Stream
from confide.models import trainable
from confide.models.batches import Batch, token_losses
from confide.models.head import IGNORE
from confide.models.language_model import Encoder
from confide.models.sharding import is_divided, moved
from confide.runtime.memory import Budget
from confide.runtime.parallel import ALONE, Group

# of a contribution's length, before it is cut to the grid: more than floats are off
SHORTER = 2.0**-20


def exact_gradient(
    model: Encoder,
    batches: Iterable[Batch],
    max_norm: float | None,
    budget: Budget,
    half: bool = False,
    group: Group = ALONE,
) -> Tensor:
    """Leave the mean token-loss gradient of a batch in .grad.

    Returned is the mean loss () in nats per token, on the device. batches: this process's part,
    which may be nothing.
    """
    parameters = [weight for weight in trainable(model) if not is_divided(weight)]
    of_all = moved(model)
    for parameter in of_all:
        parameter.grad = None
    losses = []
    counts = []
    for batch in batches:
        for loss, count in budget.run(lambda piece: summed(model, parameters, piece, half), batch):
            losses.append(loss)
            counts.append(count)
    if not losses:
        losses = [parameters[0].new_zeros(())]
        counts = [parameters[0].new_zeros((), dtype=torch.int64)]
        no_gradient(of_all)
    grads = [parameter.grad for parameter in parameters if parameter.grad is not None]
    loss = torch.stack(losses).sum()
    tokens = torch.stack(counts).sum()
    group.sum([*grads, loss, tokens])
    tokens.clamp_(min=1)  # none: a batch without a public position
    everywhere = [parameter.grad for parameter in of_all if parameter.grad is not None]
    torch._foreach_div_(everywhere, tokens)
    if max_norm is not None:
        norm = torch.nn.utils.get_total_norm(grads)
        if len(everywhere) > len(grads):
            norm = norm_of_parts(model, norm)
        torch.nn.utils.clip_grads_with_norm_(of_all, max_norm, norm)
    return loss / tokens


def norm_of_parts(model: Encoder, norm: Tensor) -> Tensor:
    """The norm () of a gradient some of whose parts lie in other processes; `norm` is that of what
    every process has.
    """
    if model.shards is None:
        return norm
    parts = [part.grad for part in model.shards.parts.values() if part.grad is not None]
    squared = torch.nn.utils.get_total_norm(parts).square()
    model.shards.group.sum([squared])
    return (squared + norm.square()).sqrt()


def no_gradient(parameters: Iterable[nn.Parameter]) -> None:
    """Zeros into .grad: what a process without a part of a batch adds."""
    for parameter in parameters:
        parameter.grad = torch.zeros_like(parameter)


def summed(
    model: Encoder, parameters: list[nn.Parameter], batch: Batch, half: bool
) -> tuple[Tensor, Tensor]:
    """Summed loss () and number of tokens () of one piece, whose gradients are added to .grad."""
    loss = token_losses(model, batch := batch.to(parameters[0].device), half).sum()
    accumulate(loss, parameters)
    return loss.detach(), (batch.targets != IGNORE).sum()


def accumulate(loss: Tensor, parameters: list[nn.Parameter]) -> None:
    """Add the gradients of a loss () to .grad: all of them, or none if memory runs out."""
    grads = torch.autograd.grad(loss, parameters)
    for parameter, grad in zip(parameters, grads, strict=True):
        parameter.grad = grad if parameter.grad is None else parameter.grad.add_(grad)


def noisy_gradient(
    clipper: PerExampleClipper,
    batches: Iterable[Batch],
    noise_multiplier: float,
    expected_batch_size: float,
    noise: Noise,
    budget: Budget,
    half: bool = False,
    group: Group = ALONE,
) -> None:
    """Leave the clipped, noised gradient of a Poisson batch in .grad.

    An empty batch gives noise alone. batches: this process's part of it.
    Guarantees: the sum over units of gradients of norm at most C, plus N(0, (noise_multiplier *
    C)^2) drawn once, is divided by the public expected batch size, never by the realised one.
    Several processes add up their units first and then add the same noise, drawn from the same
    stream: it is in the sum once.
    """
    sum_clipped(clipper, batches, budget, half, group)
    clipper.finish(noise_multiplier, expected_batch_size, noise)


def sum_clipped(
    clipper: PerExampleClipper, batches: Iterable[Batch], budget: Budget, half: bool, group: Group
) -> None:
    """Leave the sum of the clipped gradients of a batch in `clipper.flat`, in every process."""
    clipper.reset()

    def add(piece: Batch) -> None:
        clipped(clipper, piece, budget.examples(piece.length), half)

    for batch in batches:
        budget.run(add, batch)
    clipper.sum_over(group)


def discrete_gradient(
    clipper: PerExampleClipper,
    batches: Iterable[Batch],
    noise_multiplier: float,
    expected_batch_size: float,
    noise: Stream,
    half: bool = False,
    group: Group = ALONE,
) -> None:
    """Leave the clipped, noised gradient of a Poisson batch in .grad, by arithmetic of integers.

    Each unit's clipped gradient is cut to a grid by itself, and noise is a discrete Gaussian. One
    step of the grid is noise_multiplier * C / 2^BITS. Each of `batches` holds one unit, padded to
    its own length.
    Guarantees: a unit is read alone, so that what it adds does not depend on others; that is a
    vector of integers, no longer than C in steps; integers are added up exactly, in any order; the
    noise is sampled exactly; what is released is a function of the integers that come of it. Each
    unit's own gradient is arithmetic of floats, but of any gradient all of this holds.
    """
    step = noise_multiplier * clipper.max_grad_norm * 2.0**-BITS
    total = torch.zeros_like(clipper.flat, dtype=torch.int64)
    for batch in batches:
        units = Budget(1).run(
            partial(in_steps, clipper, noise_multiplier=noise_multiplier, step=step, half=half),
            batch,
        )
        for steps in units:
            total.add_(steps)
    group.sum([total])
    total.add_(noise.discrete(len(total), BITS).to(total.device))
    clipper.flat.copy_(total).mul_(step)
    clipper.finish(0.0, expected_batch_size, noise)


def in_steps(
    clipper: PerExampleClipper, unit: Batch, *, noise_multiplier: float, step: float, half: bool
) -> Tensor:
    """The clipped gradient (d,) int64 of one unit, in steps of the grid, cut towards zero.

    Cutting makes nothing longer. The length is looked at once more in what is added; were it more
    than C, it would be zero.
    """
    clipper.reset()
    clipper.add_unit(in_passes(clipper.model, unit, TOGETHER, half))
    steps = clipper.flat.mul_((1 - SHORTER) / step).trunc_()
    longest = 2.0**BITS / noise_multiplier  # C in steps
    if torch.linalg.vector_norm(steps) > longest * (1 - SHORTER / 2):
        steps.zero_()
    return steps.long()


def clipped(clipper: PerExampleClipper, batch: Batch, size: int, half: bool) -> None:
    """Add one piece to the clipper: examples, or units of several.

    A unit counts as the mean of its examples' gradients. A unit too large to share a pass is summed
    up as in ordinary training, in passes of at most `size` examples. Which way a unit goes, and
    with it the last digits of what it adds, is its own matter, not that of the units beside it.
    """
    if batch.units is None:
        clipper.add(lambda: per_example(clipper.model, batch, half))
    elif len(batch) <= size and (int(batch.units[-1]) > 0 or len(batch) <= TOGETHER):
        units = batch.units.to(clipper.flat.device)
        sizes = units.bincount()[units]  # whole units: a budget never divides one
        clipper.add(lambda: per_example(clipper.model, batch, half) / sizes, units)
    else:
        clipper.add_unit(in_passes(clipper.model, batch, size, half))


def in_passes(model: Encoder, unit: Batch, size: int, half: bool) -> list[Callable[[], Tensor]]:
    """Passes of at most `size` examples whose losses add up to the mean of a unit's."""

    def losses(piece: Batch) -> Tensor:
        return per_example(model, piece, half) / len(unit)

    return [partial(losses, piece) for piece in unit.split(size, whole=False)]


def per_example(model: Encoder, batch: Batch, half: bool = False) -> Tensor:
    """Mean token loss (B,) of each example, a function of that example alone.

    It is 0 where nothing is scored.
    """
    losses = token_losses(model, batch := batch.to(next(model.parameters()).device), half)
    return losses.sum(1) / (batch.targets != IGNORE).sum(1).clamp(min=1)
