"""How large each number of the exact updates' gradients usually is, by which noised updates divide
theirs before they clip them (AdaDPS, Li et al. 2022).

So noise falls where gradients are large. Of a matrix only the mean squares of its rows and of its
columns are kept (Shazeer and Stern 2018): a scale is then a factor of its row times one of its
column, and norms of scaled gradients stay exact without a gradient per example.

Guarantees: scales are functions of exact gradients, whose updates stand in the ledger. It is the
scaled gradient that is clipped to C and noised, so what is claimed of the update stays as it is.
"""

from typing import Any

import torch
from torch import Tensor, nn

from confide.dp.mechanism.gradients import Scale
from confide.models import trainable
from confide.models.language_model import LanguageModel

DECAY = 0.99  # of what earlier gradients count, with each new one
LEAST = 0.01  # mean squares count as so much of the usual one at least: no factor is above 10


class Moments:
    """Mean squares of exact gradients, by rows and columns of each weight."""

    def __init__(self, model: LanguageModel, *, wanted: bool) -> None:
        self.weights = trainable(model) if wanted else []
        self.rows = [zeros(weight, len(weight)) for weight in self.weights]
        self.columns = [zeros(weight, weight[0].numel()) for weight in self.weights]

    def add(self) -> None:
        """Count the exact gradient in .grad."""
        for place, weight in enumerate(self.weights):
            grad = torch.zeros_like(weight) if weight.grad is None else weight.grad
            squares = grad.reshape(len(weight), -1).square()
            self.rows[place].mul_(DECAY).add_(squares.mean(1), alpha=1 - DECAY)
            self.columns[place].mul_(DECAY).add_(squares.mean(0), alpha=1 - DECAY)

    def scales(self) -> dict[nn.Parameter, Scale]:
        """By what gradients are multiplied; nothing as long as there was no exact one."""
        if not any(rows.any() for rows in self.rows):
            return {}
        size = sum(weight.numel() for weight in self.weights)
        sums = [
            rows.mean() * weight.numel()
            for rows, weight in zip(self.rows, self.weights, strict=True)
        ]
        usual = torch.stack(sums).sum() / size
        return {
            weight: Scale(
                rows=(factors(rows, rows.mean()) * factors(rows.mean(), usual)).to(weight.dtype),
                columns=factors(columns, columns.mean()).to(weight.dtype),
            )
            for weight, rows, columns in zip(self.weights, self.rows, self.columns, strict=True)
        }

    def state(self) -> dict[str, Any]:
        """State for a checkpoint."""
        rows = {f"rows.{place}": values for place, values in enumerate(self.rows)}
        return rows | {f"columns.{place}": values for place, values in enumerate(self.columns)}

    def restore(self, state: dict[str, Any]) -> None:
        """Continue from a checkpoint's state."""
        for place in range(len(self.weights)):
            self.rows[place].copy_(state[f"rows.{place}"])
            self.columns[place].copy_(state[f"columns.{place}"])


def zeros(weight: Tensor, size: int) -> Tensor:
    """(size,) float64, where the weight is."""
    return torch.zeros(size, dtype=torch.float64, device=weight.device)


def factors(squares: Tensor, usual: Tensor) -> Tensor:
    """1 / sqrt(squares / usual), at most 10."""
    return (squares / usual.clamp(min=1e-300)).clamp(min=LEAST).rsqrt()
