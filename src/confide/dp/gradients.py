"""Per-example gradients of one parameter: formed, or in factors whose norms and sums need not write them down.

Every use of a weight in a batch contributes G_b = sum_t left_bt right_bt^T to example b (t runs over its L positions). Its norm
follows from two L x L Grams, <left left^T, right right^T> (Goodfellow 2015; Li et al. 2022, "ghost" norms), and a weighted sum
over examples is one matrix product (Bu et al. 2023, "book-keeping"). A weight with several uses (a tied embedding and output
layer) needs their cross terms, too. Where G_b is hardly larger than its factors it is cheaper to form it.

All of this is arithmetic of floats. Beside each norm stands a bound on the norm of what is really added, rounding included.
"""

from dataclasses import dataclass
from typing import NamedTuple

import torch
from torch import Tensor

GROWTH = 2  # a gradient may be this much larger than its factors and still be formed: time for memory
BLOCK = 256  # so many products of a Gram are added up in the parameters' own type, and what they come to in float64
LONG = 1024  # the same where squares are added up, which cannot cancel


def rounding(count: int, dtype: torch.dtype) -> float:
    """Bound on the relative error of a sum of `count` products, in whatever order it is made (Higham 2002, section 3.1)."""
    share = (count + 2) * torch.finfo(dtype).eps / 2
    return share / (1 - share)


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


class Squares(NamedTuple):
    """Squared norms of gradients, one for each example or unit (A,), float64."""

    norms: Tensor  # as computed
    most: Tensor  # what those of the stored contributions cannot exceed, if their weight is 1


@dataclass(frozen=True, slots=True)
class Formed:
    """Gradients (B, size) of a parameter as they are."""

    grads: Tensor

    def squares(self, units: Units | None) -> Squares:
        """Of the examples, or of the units."""
        norms = lengths(self.grads)
        if units is None:
            return Squares(norms.square(), (norms * (1 + rounding(LONG, self.grads.dtype))).square())
        apart = norms.new_zeros(len(units.rows)).index_add_(0, units.number, norms)
        together = self.grads.new_zeros(len(units.rows), self.grads.shape[1]).index_add_(0, units.number, self.grads)
        norms = lengths(together)
        error = rounding(LONG, self.grads.dtype) + 2 * rounding(units.rows.shape[1], self.grads.dtype)
        return Squares(norms.square(), (norms + error * apart).square())

    def add_weighted(self, total: Tensor, weights: Tensor, clean: bool) -> None:
        """Add sum_b weights_b G_b, for weights (B,), to total. Unless clean, those of weight 0 may hold anything."""
        grads = self.grads if clean else torch.where((weights > 0).unsqueeze(1), self.grads, 0.0)
        total.view(-1).addmv_(grads.t(), weights)


@dataclass(frozen=True, slots=True)
class Factored:
    """Gradients of a weight as the factors of all its uses; see Formed."""

    uses: list[Use]

    def squares(self, units: Units | None) -> Squares:
        """Of the examples, or of the units.

        With reach = sum_t |left_t| |right_t| over all positions, the Grams' rounding moves a squared norm by no more than a
        small multiple of reach^2, and the sum of the products is off by no more than a small multiple of reach. Where a
        gradient is far smaller than its reach, since its positions cancel, its norm is known that much less.
        """
        uses = self.uses if units is None else [use.grouped(units) for use in self.uses]
        kind = uses[0].right.dtype
        widest = max(side.shape[2] for use in uses for side in (use.left, use.right) if side.dim() == 3)
        error = rounding(min(BLOCK, widest), kind)
        squared, reach, sides, positions = 0.0, 0.0, 0.0, 0
        for number, use in enumerate(uses):
            left, right = grams(use, use)
            squared = squared + (left * right).sum((1, 2))
            for other in uses[:number]:
                squared = squared + 2 * torch.mul(*grams(use, other)).sum((1, 2))
            lost = BLOCK * torch.finfo(kind).tiny  # products too small for their type
            left = (left.diagonal(dim1=1, dim2=2) + lost).sqrt()
            right = (right.diagonal(dim1=1, dim2=2) + lost).sqrt()
            reach = reach + (left * right).sum(1) / (1 - error)
            sides = sides + lost * (left.sum(1).square() + right.sum(1).square())
            positions += use.right.shape[1]
        squared = squared.clamp(min=0)
        grams_off = 2 * error * (1 + error) * reach.square() + len(uses) * sides
        most = (squared + grams_off).sqrt() + rounding(positions, kind) * reach
        return Squares(squared, most.square())

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


def lengths(vectors: Tensor) -> Tensor:
    """Norms (B,) float64 of vectors (B, size), with a relative error below rounding(LONG)."""
    parts = torch.stack([torch.linalg.vector_norm(part, dim=1) for part in vectors.split(LONG, dim=1)])
    lost = vectors.shape[1] * torch.finfo(vectors.dtype).tiny  # squares too small for their type
    return (parts.double().square().sum(0) + lost).sqrt()


def grams(one: Use, other: Use) -> tuple[Tensor, Tensor]:
    """Inner products (B, L one, L other) float64 of the left sides of two uses, and of their right sides."""
    right = gram(one.right, other.right)
    if one.onehot and other.onehot:
        return (one.left.unsqueeze(2) == other.left.unsqueeze(1)).double(), right
    if one.onehot:
        return chosen(other.left, one.left).mT.double(), right
    if other.onehot:
        return chosen(one.left, other.left).double(), right
    return gram(one.left, other.left), right


def gram(one: Tensor, other: Tensor) -> Tensor:
    """Inner products (B, L one, L other) float64 of rows (B, L, size)."""
    parts = zip(one.split(BLOCK, dim=2), other.split(BLOCK, dim=2), strict=True)
    return sum((left @ right.mT).double() for left, right in parts)


def chosen(rows: Tensor, ids: Tensor) -> Tensor:
    """(B, L rows, L ids): the numbers of dense rows (B, L rows, size) at ids (B, L ids)."""
    return rows.gather(2, ids.unsqueeze(1).expand(-1, rows.shape[1], -1))
