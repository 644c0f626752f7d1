"""Per-example gradients of a matrix in factored form, and their norms and sums without writing them down.

Every use of a weight in a batch contributes G_b = sum_t left_bt right_bt^T to example b (t runs over its L positions). Its norm
follows from two L x L Grams, <left left^T, right right^T> (Goodfellow 2015; Li et al. 2022, "ghost" norms), or from G_b itself
where that is cheaper, and a weighted sum over examples is one matrix product (Bu et al. 2023, "book-keeping"). A weight with
several uses (a tied embedding and output layer) needs their cross terms, too.
"""

from dataclasses import dataclass

import torch
from torch import Tensor

CACHE = 1 << 20  # numbers of directly formed gradients held at once: they should stay in the processor's cache


@dataclass(frozen=True, slots=True)
class Use:
    """One use of a weight (rows, columns); an embedding's left side is one-hot and given by the token ids."""

    left: Tensor  # (B, L, rows), or ids (B, L) int64
    right: Tensor  # (B, L, columns)

    @property
    def onehot(self) -> bool:
        return self.left.dim() == 2


def squared_norms(shape: torch.Size, uses: list[Use]) -> Tensor:
    """Squared norm (B,) of each example's gradient of one weight of this shape, summed over all its uses."""
    if len(uses) == 1 and not uses[0].onehot and 2 * uses[0].right.shape[1] * sum(shape) >= shape.numel():
        return direct(shape, uses[0])
    total = sum(inner(use, use) for use in uses)
    return total + 2 * sum(inner(uses[j], use) for i, use in enumerate(uses) for j in range(i))


def direct(shape: torch.Size, use: Use) -> Tensor:
    """The same for a single use, by forming the gradients of a few examples at a time: cheaper for long sequences."""
    size = max(1, CACHE // shape.numel())
    pieces = zip(use.left.split(size), use.right.split(size), strict=True)
    return torch.cat([torch.linalg.vector_norm((left.mT @ right).flatten(1), dim=1).square() for left, right in pieces])


def inner(one: Use, other: Use) -> Tensor:
    """Inner product (B,) of the gradients that two uses contribute to the same weight, example by example."""
    if one.onehot and other.onehot:
        left = one.left.unsqueeze(2) == other.left.unsqueeze(1)
    elif one.onehot or other.onehot:
        ids, dense = (one, other) if one.onehot else (other, one)
        left = dense.left.gather(2, ids.left.unsqueeze(1).expand(-1, dense.left.shape[1], -1))  # (B, L dense, L ids)
        one, other = dense, ids
    else:
        left = one.left @ other.left.mT
    return (left * (one.right @ other.right.mT)).sum((1, 2))


def add_weighted(total: Tensor, use: Use, weights: Tensor) -> None:
    """Add sum_b weights_b G_b, for weights (B,), to total (rows, columns)."""
    left, right = use.left, use.right
    if not use.onehot and left.shape[2] < right.shape[2]:  # scale the narrower side
        left = left * weights.view(-1, 1, 1)
    else:
        right = right * weights.view(-1, 1, 1)
    if use.onehot:
        total.index_add_(0, left.flatten(), right.flatten(0, 1))
    else:
        total.addmm_(left.flatten(0, 1).t(), right.flatten(0, 1))


def silenced(use: Use, keep: Tensor) -> Use:
    """The use with zeros for the examples where keep (B,) is False, whatever stood there (0 * nan is nan)."""
    keep = keep.view(-1, 1, 1)
    left = use.left if use.onehot else torch.where(keep, use.left, 0.0)
    return Use(left, torch.where(keep, use.right, 0.0))


def grouped(use: Use, rows: Tensor) -> Use:
    """Examples of one unit one after the other: rows (A, k) holds their numbers, B where a unit has fewer than k."""
    left, right = (torch.cat([side, side.new_zeros(1, *side.shape[1:])])[rows].flatten(1, 2) for side in (use.left, use.right))
    return Use(left, right)
