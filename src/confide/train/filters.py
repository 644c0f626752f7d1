"""Noised gradients of matrices, without what is noise rather than gradient.

`spectral`: the singular values of noise alone lie below a known edge. What lies below it is
dropped, and of what lies above it so much is left as the gradient is likely to have without the
noise (Gavish and Donoho 2017, the shrinkage that is best in the Frobenius norm). `subspace`: of a
gradient only that part is left which lies in the span of the exact updates' gradients, in their
leading directions (as Yu et al. 2021 do with public data).

Guarantees: what comes out is a function of the noised gradient, of the public size of its noise and
of the exact updates' gradients, whose updates stand in the ledger, so it costs no epsilon.
"""

from typing import Any

import torch
from torch import Tensor, nn

from confide.models import trainable
from confide.models.language_model import LanguageModel
from confide.specs import RecipeSpec

DECAY = 0.99  # of what earlier exact gradients count, with each new one


class Filters:
    """Changes noised gradients in .grad, and remembers exact ones as far as that needs them."""

    def __init__(self, recipe: RecipeSpec, model: LanguageModel, *, deviation: float) -> None:
        """`deviation`: of the noise in each number of a noised gradient."""
        self.kind = recipe.noisy_filter
        self.rank = recipe.noisy_rank
        self.deviation = deviation
        self.matrices: list[nn.Parameter] = []
        self.spans: list[Tensor] = []  # (k, k) float64 each: of exact gradients, shorter side
        self.projections: dict[int, Tensor] = {}  # on spans, until there is another exact gradient
        if self.kind is not None:
            self.matrices = [weight for weight in trainable(model) if is_matrix(weight)]
        if self.kind == "subspace":
            self.spans = [square_of(weight) for weight in self.matrices]

    def apply(self, *, noisy: bool) -> None:
        """After an update's gradient is in .grad: remember an exact one, change a noised one."""
        for place, weight in enumerate(self.matrices):
            if weight.grad is None:
                continue
            if self.kind == "spectral" and noisy:
                shrink(weight.grad, self.deviation)
            elif self.kind == "subspace" and not noisy:
                self.spans[place].mul_(DECAY).add_(gram(weight.grad), alpha=1 - DECAY)
                self.projections.pop(place, None)
            elif self.kind == "subspace" and self.spans[place].any():
                if place not in self.projections:
                    self.projections[place] = leading(self.spans[place], self.rank)
                project(weight.grad, self.projections[place])

    def state(self) -> dict[str, Any]:
        """State for a checkpoint."""
        return {str(place): span for place, span in enumerate(self.spans)}

    def restore(self, state: dict[str, Any]) -> None:
        """Continue from a checkpoint's state."""
        self.projections.clear()
        for place, span in enumerate(self.spans):
            span.copy_(state[str(place)])


def is_matrix(weight: Tensor) -> bool:
    """Whether there is more than one direction on either side."""
    return weight.dim() == 2 and min(weight.shape) > 1


def square_of(weight: Tensor) -> Tensor:
    """Zeros (k, k) float64, of the shorter side of a matrix."""
    size = min(weight.shape)
    return torch.zeros(size, size, dtype=torch.float64, device=weight.device)


def gram(matrix: Tensor) -> Tensor:
    """Inner products (k, k) float64 along the longer side of a matrix (m, n), k = min(m, n)."""
    wide = matrix if matrix.shape[0] <= matrix.shape[1] else matrix.mT
    return (wide @ wide.mT).double()


def leading(span: Tensor, rank: int) -> Tensor:
    """The projection (k, k) on the leading `rank` directions of a gram (k, k)."""
    directions = torch.linalg.eigh(span).eigenvectors[:, -rank:]
    return directions @ directions.mT


def project(matrix: Tensor, projection: Tensor) -> None:
    """Keep of a matrix (m, n), in place, what a map (k, k) of its shorter side leaves."""
    mapping = projection.to(matrix.dtype)
    wide = matrix.shape[0] <= matrix.shape[1]
    matrix.copy_(mapping @ matrix if wide else matrix @ mapping)


def shrink(matrix: Tensor, deviation: float) -> None:
    """Shrink the singular values of a matrix (m, n) with noise of N(0, deviation^2) in each number,
    in place.

    In units of deviation * sqrt(max(m, n)), y becomes sqrt((y^2 - b - 1)^2 - 4 b) / y above
    1 + sqrt(b), and 0 below, for b = min(m, n) / max(m, n).
    """
    if deviation == 0:
        return
    shorter = min(matrix.shape)
    longer = max(matrix.shape)
    ratio = shorter / longer
    values, directions = torch.linalg.eigh(gram(matrix))
    squares = values.clamp(min=0) / (deviation**2 * longer)
    left = ((squares - ratio - 1).square() - 4 * ratio).clamp(min=0).sqrt()
    is_above = squares > (1 + ratio**0.5) ** 2
    kept = torch.where(is_above, left / squares.clamp(min=1e-300), 0.0)
    project(matrix, (directions * kept) @ directions.mT)
