"""Padded batches of points: input [bos, t1..tn], target [t1..tn, bos], and the per-token losses they give.

Shapes: B points, L = longest of them + 1.
"""

from collections.abc import Iterator

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor, nn

from confide.types import View

IGNORE = -100  # target of padding


def padded(view: View, points: np.ndarray, bos: int) -> tuple[Tensor, Tensor]:
    """Inputs and targets (B, L) int64 of the given points; padding reads bos and targets IGNORE."""
    lengths = view.starts[points + 1] - view.starts[points]
    inputs = np.full((len(points), int(lengths.max()) + 1), bos, dtype=np.int64)
    targets = np.full_like(inputs, IGNORE)
    for row, (point, length) in enumerate(zip(points, lengths, strict=True)):
        inputs[row, 1 : length + 1] = targets[row, :length] = view[point]
        targets[row, length] = bos
    return torch.from_numpy(inputs), torch.from_numpy(targets)


def by_length(view: View, points: np.ndarray, size: int) -> Iterator[np.ndarray]:
    """The points in pieces of at most `size`, similar lengths together, so that little is padding."""
    lengths = view.starts[points + 1] - view.starts[points]
    points = points[np.argsort(lengths, kind="stable")]
    for start in range(0, len(points), size):
        yield points[start : start + size]


def token_losses(model: nn.Module, inputs: Tensor, targets: Tensor) -> Tensor:
    """Negative log-likelihood (B, L) in nats, 0 at padding."""
    return losses_of(model(inputs), targets)


def losses_of(logits: Tensor, targets: Tensor) -> Tensor:
    """The same from logits (B, L, V)."""
    flat = F.cross_entropy(logits.flatten(0, 1), targets.flatten(), ignore_index=IGNORE, reduction="none")
    return flat.view_as(targets)
