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
    """Adds up the trained weights after each update of a job's last part.

    That part is reckoned in noised updates where there are any: of a job whose exact updates all
    come first, a share of all would be mostly exact ones, which need no mean.
    """

    def __init__(
        self, model: LanguageModel, *, updates: dict[bool, int], share: float | None
    ) -> None:
        """`updates`: exact (False) and noised (True) ones of the whole job. `share`: of the noised
        ones (of all, where none is noised), the last that count; None: no mean.
        """
        self.weights = trainable(model)
        self.updates = sum(updates.values())
        self.any_noisy = updates[True] > 0
        reckoned = updates[True] or updates[False]
        self.left_out = reckoned
        if share is not None:
            self.left_out -= max(1, round(share * reckoned))
        wanted = self.left_out < reckoned
        averaged = self.weights if wanted else []
        self.sums = [torch.zeros_like(weight, dtype=torch.float64) for weight in averaged]
        self.reckoned = torch.zeros((), dtype=torch.int64)
        self.counted = torch.zeros((), dtype=torch.int64)

    def add(self, done: int, *, noisy: bool) -> None:
        """Count the weights after update `done`, and put the mean in place after the last one."""
        if not self.sums:
            return
        self.reckoned += noisy or not self.any_noisy
        if self.reckoned <= self.left_out:
            return
        self.counted += 1
        for total, weight in zip(self.sums, self.weights, strict=True):
            total.add_(weight.detach())
        if done == self.updates:
            for total, weight in zip(self.sums, self.weights, strict=True):
                weight.data.copy_(total / int(self.counted))

    def state(self) -> dict[str, Any]:
        """State for a checkpoint."""
        sums = {str(place): total for place, total in enumerate(self.sums)}
        return sums and {**sums, "reckoned": self.reckoned, "counted": self.counted}

    def restore(self, state: dict[str, Any]) -> None:
        """Continue from a checkpoint's state."""
        if self.sums:
            self.reckoned.copy_(state["reckoned"])
            self.counted.copy_(state["counted"])
        for place, total in enumerate(self.sums):
            total.copy_(state[str(place)])
