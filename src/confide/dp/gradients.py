"""Per-example gradients of one parameter: formed, or in factors whose norms and sums need not write them down.

Every use of a weight in a batch contributes G_b = sum_t left_bt right_bt^T to example b (t runs over its L positions). Its norm
follows from two L x L Grams, <left left^T, right right^T> (Goodfellow 2015; Li et al. 2022, "ghost" norms), and a weighted sum
over examples is one matrix product (Bu et al. 2023, "book-keeping"). A weight with several uses (a tied embedding and output
layer) needs their cross terms, too. Where G_b is hardly larger than its factors it is cheaper to form it.
"""

from dataclasses import dataclass

import torch
from torch import Tensor

GROWTH = 2  # a gradient may be this much larger than its factors and still be formed: time for memory


@dataclass(frozen=True, slots=True)
class Units:
    """Which examples belong together: A units of at most k examples."""

    number: Tensor  # (B,) int64: unit of each example
    rows: Tensor  # (A, k) int64: examples of each unit, B where it has fewer than k


def units_of(number: Tensor) -> Units:
    """From the unit (B,) of each example, numbered from 0."""
    counts, order = number.bincount(), number.argsort(stable=True)
    place = torch.arange(len(number), device=number.device) - (counts.cumsum(0) - counts)[number[order]]
    rows = number.new_full((len(counts), int(counts.max())), len(number))
    rows[number[order], place] = order
    return Units(number, rows)


@dataclass(frozen=True, slots=True)
class Use:
    """One use of a weight (rows, columns); an embedding's left side is one-hot and given by the token ids."""

    left: Tensor  # (B, L, rows), or ids (B, L) int64
    right: Tensor  # (B, L, columns)

    @property
    def onehot(self) -> bool:
        return self.left.dim() == 2

    def grouped(self, units: Units) -> "Use":
        """(A, k L, ...): the examples of each unit one after the other."""
        sides = (torch.cat([side, side.new_zeros(1, *side.shape[1:])]) for side in (self.left, self.right))
        return Use(*(side[units.rows].flatten(1, 2) for side in sides))


@dataclass(frozen=True, slots=True)
class Formed:
    """Gradients (B, size) of a parameter as they are."""

    grads: Tensor

    def squared_norms(self, units: Units | None) -> Tensor:
        """(B,), or (A,) of the units."""
        grads = self.grads
        if units is not None:
            grads = grads.new_zeros(len(units.rows), grads.shape[1]).index_add_(0, units.number, grads)
        return torch.linalg.vector_norm(grads, dim=1).square()

    def add_weighted(self, total: Tensor, weights: Tensor, clean: bool) -> None:
        """Add sum_b weights_b G_b, for weights (B,), to total. Unless clean, those of weight 0 may hold anything."""
        grads = self.grads if clean else torch.where((weights > 0).unsqueeze(1), self.grads, 0.0)
        total.view(-1).addmv_(grads.t(), weights)


@dataclass(frozen=True, slots=True)
class Factored:
    """Gradients of a weight as the factors of all its uses; see Formed."""

    uses: list[Use]

    def squared_norms(self, units: Units | None) -> Tensor:
        uses = self.uses if units is None else [use.grouped(units) for use in self.uses]
        total = sum(inner(use, use) for use in uses)
        return total + 2 * sum(inner(uses[j], use) for i, use in enumerate(uses) for j in range(i))

    def add_weighted(self, total: Tensor, weights: Tensor, clean: bool) -> None:
        for use in self.uses:
            left, right = use.left, use.right
            if not clean:  # 0 * nan is nan
                keep = (weights > 0).view(-1, 1, 1)
                left, right = left if use.onehot else torch.where(keep, left, 0.0), torch.where(keep, right, 0.0)
            if use.onehot:
                total.index_add_(0, left.flatten(), (right * weights.view(-1, 1, 1)).flatten(0, 1))
                continue
            if left.shape[2] < right.shape[2]:  # scale the narrower side
                left = left * weights.view(-1, 1, 1)
            else:
                right = right * weights.view(-1, 1, 1)
            total.addmm_(left.flatten(0, 1).t(), right.flatten(0, 1))


def gradients_of(shape: torch.Size, uses: list[Use]) -> Formed | Factored:
    """The cheaper of both for a weight of this shape."""
    if len(uses) == 1 and not uses[0].onehot and shape.numel() <= GROWTH * uses[0].right.shape[1] * sum(shape):
        return Formed((uses[0].left.mT @ uses[0].right).flatten(1))
    return Factored(uses)


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
