"""One optimizer update, exact or noisy (DP-SGD, Abadi et al. 2016), with the repairs that its guarantee needs."""

from collections.abc import Iterable

import torch
from torch import Tensor, nn

from confide.batches import IGNORE, token_losses
from confide.dp.clipping import PerExampleClipper

Batches = Iterable[tuple[Tensor, Tensor]]  # inputs and targets (B, L), the physical pieces of one logical batch


def exact_gradient(model: nn.Module, batches: Batches, max_norm: float | None) -> float:
    """Leave the mean token-loss gradient of a batch in .grad; returns the mean loss in nats per token."""
    model.zero_grad(set_to_none=True)
    total, tokens = 0.0, 0
    for inputs, targets in batches:
        loss = token_losses(model, inputs, targets).sum()
        loss.backward()
        total, tokens = total + loss.detach(), tokens + (targets != IGNORE).sum()
    for parameter in model.parameters():
        if parameter.grad is not None:
            parameter.grad.div_(tokens)
    if max_norm is not None:
        torch.nn.utils.clip_grad_norm_(model.parameters(), max_norm)
    return float(total / tokens)


def noisy_gradient(
    clipper: PerExampleClipper,
    batches: Batches,
    noise_multiplier: float,
    expected_batch_size: float,
    noise: torch.Generator,
) -> None:
    """Leave the clipped, noised gradient of a Poisson batch in .grad; an empty batch gives noise alone.

    Guarantees: the sum over examples of gradients of norm at most C, plus N(0, (noise_multiplier * C)^2) drawn once, is
    divided by the public expected batch size, never by the realised one.
    """
    clipper.reset()
    for inputs, targets in batches:
        clipper.add(lambda inputs=inputs, targets=targets: per_example(clipper.model, inputs, targets))
    deviation = noise_multiplier * clipper.max_grad_norm
    for parameter, total in zip(clipper.parameters, clipper.total, strict=True):
        draw = torch.empty(total.shape, device=noise.device).normal_(0.0, deviation, generator=noise)
        parameter.grad = (total + draw.to(total)) / expected_batch_size


def per_example(model: nn.Module, inputs: Tensor, targets: Tensor) -> Tensor:
    """Mean token loss (B,) of each example, a function of that example alone."""
    losses = token_losses(model, inputs, targets)
    return losses.sum(1) / (targets != IGNORE).sum(1)
