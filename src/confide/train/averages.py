"""The mean of the weights over the last updates, in place of the last ones (Polyak and Juditsky
1992; with noised updates De et al. 2022, section 3).

Guarantees: it is computed from weights that the updates leave, and from nothing else, so it costs
no epsilon; its place in the ledger is the digest of the weights that the run ends with.
"""

from typing import Any

import torch

from confide.models import trainable
from confide.models.language_model import LanguageModel


class Averages:
    """Adds up the trained weights after each update of a job's last part."""

    def __init__(self, model: LanguageModel, *, updates: int, share: float | None) -> None:
        """`updates`: of the whole job. `share`: of these, the last ones; None: no mean."""
        self.weights = trainable(model)
        self.updates = updates
        self.first = updates if share is None else updates - max(1, round(share * updates))
        self.sums = [torch.zeros_like(weight, dtype=torch.float64) for weight in self._averaged()]

    def add(self, done: int) -> None:
        """Count the weights after update `done`, and put the mean in place after the last one."""
        if not self.sums or done <= self.first:
            return
        for total, weight in zip(self.sums, self.weights, strict=True):
            total.add_(weight.detach())
        if done == self.updates:
            for total, weight in zip(self.sums, self.weights, strict=True):
                weight.data.copy_(total / (self.updates - self.first))

    def state(self) -> dict[str, Any]:
        """State for a checkpoint."""
        return {str(place): total for place, total in enumerate(self.sums)}

    def restore(self, state: dict[str, Any]) -> None:
        """Continue from a checkpoint's state."""
        for place, total in enumerate(self.sums):
            total.copy_(state[str(place)])

    def _averaged(self) -> list[torch.nn.Parameter]:
        """The weights that a mean is taken of: all of them, or none."""
        return self.weights if self.first < self.updates else []
