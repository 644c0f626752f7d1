"""Noise of which later updates take back a part: Z = C^-1 G for a lower triangular, banded C.

Row by row that is z_t = g_t - c_1 z_(t-1) - ... - c_(bands-1) z_(t-bands+1), with g_t independent.
What is claimed of it is in `dp.accounting.banded`.

Guarantees: as no coefficient is above the one before, what is taken back dies out, and floats stay
as exact as those of g_t.
"""

import torch
from torch import Tensor

from confide.dp.mechanism.randomness import Noise


class Correlated(Noise):
    """One draw of `source` for each update, less what is left of the draws before."""

    def __init__(self, source: Noise, coefficients: tuple[float, ...]) -> None:
        """`coefficients`: of C, the first of them 1."""
        self.source = source
        self.coefficients = coefficients
        self.deviation: float | None = None
        self.earlier: list[Tensor] = []  # what was added before, (d,) float64 each, the last first

    def add(self, values: Tensor, deviation: float) -> Tensor:
        """Add the next row of C^-1 G to values (d,) float64; `deviation` is that of G.

        ValueError where it is another one than before: C would then be another matrix.
        """
        if self.deviation not in (None, deviation):
            raise ValueError(f"noise of {deviation=} cannot go on after {self.deviation}")
        self.deviation = deviation
        added = self.source.add(torch.zeros_like(values), deviation)
        for coefficient, before in zip(self.coefficients[1:], self.earlier, strict=False):
            added.sub_(before, alpha=coefficient)
        self.earlier = [added, *self.earlier][: len(self.coefficients) - 1]
        return values.add_(added)

    def pairs(self, count: int) -> Tensor:
        """The source's next uniform bits (count, 2) int64."""
        return self.source.pairs(count)

    def get_state(self) -> Tensor:
        """That of the source (n,) uint8."""
        return self.source.get_state()

    def set_state(self, state: Tensor) -> None:
        """Continue from a source's state; what was added before is set by itself."""
        self.source.set_state(state)
