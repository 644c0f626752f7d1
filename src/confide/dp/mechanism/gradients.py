"""Per-example gradients of one parameter: formed, or in factors.

Norms and sums of factors need not write the gradients down. Every use of a weight in a batch
contributes G_b = sum_t left_bt right_bt^T to example b (t runs over its L positions). Its norm
follows from two L x L Grams, <left left^T, right right^T> (Goodfellow 2015; Li et al. 2022, "ghost"
norms), and a weighted sum over examples is one matrix product (Bu et al. 2023, "book-keeping"). A
weight with several uses (a tied embedding and output layer) needs their cross terms, too. Where G_b
is hardly larger than its factors it is cheaper to form it.

All of this is arithmetic of floats. Beside each norm stands a bound on the norm of what is really
added, rounding included.
"""

from dataclasses import dataclass
from typing import NamedTuple, TypeVar

import torch
from torch import Tensor

# a gradient may be this much larger than its factors and still be formed: time for memory
GROWTH = 2
# so many products of a Gram are added up in the parameters' own type, and what they come to in
# float64
BLOCK = 256
LONG = 1024  # the same where squares are added up, which cannot cancel


Count = TypeVar("Count", float, Tensor, float | Tensor)


def rounding(count: Count, dtype: torch.dtype) -> Count:
    """Bound on the relative error of a sum of `count` products, in whatever order it is made.

    (Higham 2002, section 3.1.)
    """
    share = (count + 2) * torch.finfo(dtype).eps / 2
    return share / (1 - share)


class Units(NamedTuple):
    """Which examples belong together: A units of at most k examples."""

    number: Tensor  # (B,) int64: unit of each example
    rows: Tensor  # (A, k) int64: examples of each unit, B where it has fewer than k
    sizes: Tensor  # (A,) int64: how many these are


def units_of(number: Tensor) -> Units:
    """From the unit (B,) of each example, numbered from 0."""
    counts = number.bincount()
    order = number.argsort(stable=True)
    place = (
        torch.arange(len(number), device=number.device) - (counts.cumsum(0) - counts)[number[order]]
    )
    rows = number.new_full((len(counts), int(counts.max())), len(number))
    rows[number[order], place] = order
    return Units(number, rows, counts)


class Scale(NamedTuple):
    """What a weight's gradient is multiplied by: a factor of its row times one of its column."""

    rows: Tensor  # (rows,); of a vector all of it
    columns: Tensor  # (columns,); of a vector (1,)

    def of(self, grad: Tensor) -> Tensor:
        """The scaled gradient of a weight, in its shape."""
        return (grad.reshape(len(grad), -1) * self.rows.unsqueeze(1) * self.columns).view_as(grad)


class Use(NamedTuple):
    """One use of a weight (rows, columns).

    An embedding's left side is one-hot and given by the token ids.
    """

    left: Tensor  # (B, L, rows), or ids (B, L) int64
    right: Tensor  # (B, L, columns)

    @property
    def onehot(self) -> bool:
        return self.left.dim() == 2

    def scaled(self, scale: Scale) -> "Use":
        """The use of which the gradient is the scaled one."""
        right = self.right * scale.columns
        if self.onehot:
            return Use(self.left, right * scale.rows[self.left].unsqueeze(2))
        return Use(self.left * scale.rows, right)

    def grouped(self, units: Units) -> "Use":
        """(A, k L, ...): the examples of each unit one after the other."""
        sides = (
            torch.cat([side, side.new_zeros(1, *side.shape[1:])])
            for side in (self.left, self.right)
        )
        return Use(*(side[units.rows].flatten(1, 2) for side in sides))


@dataclass(frozen=True, slots=True)
class Terms:
    """What each example's gradient is a sum of: how many products, and how long, each (B,)."""

    reach: Tensor  # sum_t |left_t| |right_t| float64, which a gradient's norm cannot exceed
    count: Tensor  # int64: positions that are not zero; padding is
    error: float  # relative to reach^2: what the Grams may be off

    def grouped(self, units: Units) -> "Terms":
        """Of the units, (A,)."""
        reach = self.reach.new_zeros(len(units.rows)).index_add_(0, units.number, self.reach)
        count = self.count.new_zeros(len(units.rows)).index_add_(0, units.number, self.count)
        return Terms(reach, count, self.error)


class Squares(NamedTuple):
    """Squared norms of gradients, one for each example or unit (A,), float64."""

    norms: Tensor  # as computed
    most: Tensor  # what those of the stored contributions cannot exceed, if their weight is 1


def squares_of(squared: Tensor, terms: Terms, members: int | Tensor, kind: torch.dtype) -> Squares:
    """Squared norms from computed squares (A,) and what was summed up.

    That is products, then the gradients of the `members` of a unit. A Gram's rounding moves a
    squared norm by no more than a small multiple of reach^2, that of the sums moves the
    contribution by no more than a small multiple of reach. Where a gradient is far smaller than its
    reach, since its positions cancel, its norm is known that much less. The same bound serves both
    ways to a norm: a batch with a longer companion takes the other way, and must not scale its
    examples by another number because of that.
    """
    squared = squared.clamp(min=0)
    summed = rounding(terms.count, kind) + 2 * rounding(members, kind)
    most = (
        (squared + terms.error * terms.reach.square()).sqrt()
        + summed * terms.reach
        + rounding(LONG, kind) * squared.sqrt()
    )
    return Squares(squared, most.square())


class Formed(NamedTuple):
    """Gradients (B, size) of a parameter as they are. Without terms each of them is one itself."""

    grads: Tensor
    terms: Terms | None = None

    def squares(self, units: Units | None) -> Squares:
        """Of the examples, or of the units."""
        kind = self.grads.dtype
        norms = lengths(self.grads)
        terms = self.terms or Terms(
            norms, count=torch.ones_like(norms, dtype=torch.int64), error=0.0
        )
        if units is None:
            return squares_of(norms.square(), terms, members=1, kind=kind)
        together = self.grads.new_zeros(len(units.rows), self.grads.shape[1]).index_add_(
            0, units.number, self.grads
        )
        return squares_of(
            lengths(together).square(), terms.grouped(units), members=units.sizes, kind=kind
        )

    def add_weighted(self, total: Tensor, weights: Tensor, clean: bool) -> None:
        """Add sum_b weights_b G_b, for weights (B,), to total.

        Unless clean, gradients of weight 0 may hold anything.
        """
        grads = self.grads if clean else torch.where((weights > 0).unsqueeze(1), self.grads, 0.0)
        total.view(-1).addmv_(grads.t(), weights)


class Factored(NamedTuple):
    """Gradients of a weight as the factors of all its uses; see Formed."""

    uses: list[Use]

    def squares(self, units: Units | None) -> Squares:
        """Of the examples, or of the units."""
        uses = self.uses if units is None else [use.grouped(units) for use in self.uses]
        kind = uses[0].right.dtype
        squared = uses[0].right.new_zeros(len(uses[0].right), dtype=torch.float64)
        reach = torch.zeros_like(squared)
        lost = torch.zeros_like(squared)
        count = torch.zeros_like(squared, dtype=torch.int64)
        for number, use in enumerate(uses):
            left, right = grams(use, use)
            squared = squared + (left * right).sum((1, 2))
            for other in uses[:number]:
                squared = squared + 2 * torch.mul(*grams(use, other)).sum((1, 2))
            left, right = (side.diagonal(dim1=1, dim2=2).sqrt() for side in (left, right))
            reach = reach + (left * right).sum(1)
            count = count + ((left > 0) & (right > 0)).sum(1)
            lost = lost + left.sum(1).square() + right.sum(1).square()
        error = max(error_of(use) for use in uses)
        # products too small for their type
        squared = squared + len(uses) * BLOCK * torch.finfo(kind).tiny * lost
        members = 1 if units is None else units.sizes
        return squares_of(squared, Terms(reach, count, error), members=members, kind=kind)

    def add_weighted(self, total: Tensor, weights: Tensor, clean: bool) -> None:
        """Add the weighted sum over examples to total, as that of Formed does."""
        for use in self.uses:
            left = use.left
            right = use.right
            if not clean:  # 0 * nan is nan
                keep = (weights > 0).view(-1, 1, 1)
                left = left if use.onehot else torch.where(keep, left, 0.0)
                right = torch.where(keep, right, 0.0)
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
    use = uses[0]
    if len(uses) > 1 or use.onehot or shape.numel() > GROWTH * use.right.shape[1] * sum(shape):
        return Factored(uses)
    left, right = (torch.linalg.vector_norm(side, dim=2).double() for side in (use.left, use.right))
    terms = Terms((left * right).sum(1), ((left > 0) & (right > 0)).sum(1), error_of(use))
    return Formed((use.left.mT @ use.right).flatten(1), terms)


def error_of(use: Use) -> float:
    """What the product of two Grams may be off, relative to the lengths of its rows.

    Both have an error, and so do lengths.
    """
    widest = max(side.shape[2] for side in (use.left, use.right) if side.dim() == 3)
    relative = rounding(min(BLOCK, widest), use.right.dtype)
    return 2 * relative * (1 + relative) ** 5


def lengths(vectors: Tensor) -> Tensor:
    """Norms (B,) float64 of vectors (B, size), with a relative error below rounding(LONG)."""
    whole = vectors.shape[1] // LONG * LONG
    parts = torch.linalg.vector_norm(vectors[:, :whole].unflatten(1, (-1, LONG)), dim=2)
    rest = torch.linalg.vector_norm(vectors[:, whole:], dim=1)
    lost = vectors.shape[1] * torch.finfo(vectors.dtype).tiny  # squares too small for their type
    return (parts.double().square().sum(1) + rest.double().square() + lost).sqrt()


def grams(one: Use, other: Use) -> tuple[Tensor, Tensor]:
    """Inner products (B, L one, L other) float64 of two uses' left and right sides."""
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
