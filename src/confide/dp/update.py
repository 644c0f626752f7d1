"""One optimizer update, exact or noisy (DP-SGD, Abadi et al. 2016), with the repairs that its guarantee needs."""

from collections.abc import Iterable

import torch
from torch import Tensor, nn

from confide.batches import Batch, token_losses
from confide.dp.clipping import PerExampleClipper
from confide.dp.randomness import Noise
from confide.memory import Budget
from confide.models.head import IGNORE


def exact_gradient(
    model: nn.Module, batches: Iterable[Batch], max_norm: float | None, budget: Budget, half: bool = False
) -> Tensor:
    """Leave the mean token-loss gradient of a batch in .grad; returns the mean loss () in nats per token, on the device."""
    parameters = [parameter for parameter in model.parameters() if parameter.requires_grad]
    model.zero_grad(set_to_none=True)
    losses, counts = [], []
    for batch in batches:
        for loss, count, grads in budget.run(lambda piece: summed(model, parameters, piece, half), batch):
            losses.append(loss)
            counts.append(count)
            for parameter, grad in zip(parameters, grads, strict=True):
                parameter.grad = grad if parameter.grad is None else parameter.grad.add_(grad)
    tokens = torch.stack(counts).sum().clamp(min=1)  # none: a batch without a public position
    torch._foreach_div_([parameter.grad for parameter in parameters], tokens)
    if max_norm is not None:
        torch.nn.utils.clip_grad_norm_(parameters, max_norm)
    return torch.stack(losses).sum() / tokens


def summed(
    model: nn.Module, parameters: list[nn.Parameter], batch: Batch, half: bool
) -> tuple[Tensor, Tensor, tuple[Tensor, ...]]:
    """Summed loss (), number of tokens () and gradients of one piece."""
    loss = token_losses(model, batch := batch.to(parameters[0].device), half).sum()
    return loss.detach(), (batch.targets != IGNORE).sum(), torch.autograd.grad(loss, parameters)


def noisy_gradient(
    clipper: PerExampleClipper,
    batches: Iterable[Batch],
    noise_multiplier: float,
    expected_batch_size: float,
    noise: Noise,
    budget: Budget,
    half: bool = False,
) -> None:
    """Leave the clipped, noised gradient of a Poisson batch in .grad; an empty batch gives noise alone.

    Guarantees: the sum over units of gradients of norm at most C, plus N(0, (noise_multiplier * C)^2) drawn once, is divided
    by the public expected batch size, never by the realised one.
    """
    clipper.reset()
    for batch in batches:
        budget.run(lambda piece: clipped(clipper, piece, budget.size, half), batch)
    clipper.finish(noise_multiplier, expected_batch_size, noise)


def clipped(clipper: PerExampleClipper, batch: Batch, size: int, half: bool) -> None:
    """Add one piece to the clipper: examples, or units of several, of which each counts as the mean of its examples' gradients.

    A unit that comes alone is summed up as in ordinary training, in passes of at most `size` examples.
    """
    if batch.units is None:
        clipper.add(lambda: per_example(clipper.model, batch, half))
    elif len(batch) <= size and int(batch.units[-1]) > 0:
        units = batch.units.to(clipper.flat.device)
        sizes = units.bincount()[units]  # whole units: a budget never divides one
        clipper.add(lambda: per_example(clipper.model, batch, half) / sizes, units)
    else:
        pieces = batch.split(size, whole=False)
        clipper.add_unit([lambda piece=piece: per_example(clipper.model, piece, half) / len(batch) for piece in pieces])


def per_example(model: nn.Module, batch: Batch, half: bool = False) -> Tensor:
    """Mean token loss (B,) of each example, a function of that example alone; 0 where nothing is scored."""
    losses = token_losses(model, batch := batch.to(next(model.parameters()).device), half)
    return losses.sum(1) / (batch.targets != IGNORE).sum(1).clamp(min=1)
