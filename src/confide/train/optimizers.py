"""One optimizer for exact and one for noisy updates, each with its learning rates."""

from collections.abc import Iterable
from typing import Any

import torch
from torch import nn

from confide.specs import RecipeSpec
from confide.train.checkpoint import load_optimizer, optimizer_tensors

KINDS = {"adam": torch.optim.AdamW, "sgd": torch.optim.SGD}
WARM_UP = 0.05  # share of the updates in which the linear schedule rises
LEAST = 0.05  # share of the learning rate that it falls to


class Optimizers:
    """Move the weights along the gradient in .grad. Keys: whether an update is noisy."""

    def __init__(
        self, recipe: RecipeSpec, parameters: Iterable[nn.Parameter], updates: dict[bool, int]
    ) -> None:
        """`updates`: how many of each kind there will be."""
        trainable = [parameter for parameter in parameters if parameter.requires_grad]
        self.linear = recipe.schedule == "linear"
        self.updates = updates
        self.rates = {False: recipe.lr, True: recipe.noisy_lr or recipe.lr}
        self.each: dict[bool, torch.optim.Optimizer] = {
            noisy: KINDS[recipe.optimizer](
                trainable, lr=rate, weight_decay=recipe.weight_decay, fused=True
            )
            for noisy, rate in self.rates.items()
        }
        self.counts = {False: 0, True: 0}  # updates made

    def move(self, *, noisy: bool) -> None:
        """One update."""
        rate = self.rates[noisy] * self._factor(noisy)
        for group in self.each[noisy].param_groups:
            group["lr"] = rate
        self.each[noisy].step()
        self.counts[noisy] += 1

    def count_batches(self, done: int) -> None:
        """Let learning rates follow the batches, of which `done` are over, not the updates."""
        self.counts = {False: done, True: done}

    def state(self) -> dict[str, Any]:
        """State for a checkpoint."""
        found: dict[str, Any] = {"counts": [self.counts[False], self.counts[True]]}
        for noisy, optimizer in self.each.items():
            found |= optimizer_tensors(optimizer, _name(noisy))
        return found

    def restore(self, state: dict[str, Any]) -> None:
        """Continue from a checkpoint's state."""
        for noisy, optimizer in self.each.items():
            load_optimizer(optimizer, _name(noisy), state)
        self.counts = dict(zip((False, True), state["counts"], strict=True))

    def _factor(self, noisy: bool) -> float:
        if not self.linear:
            return 1.0
        total = self.updates[noisy]
        made = self.counts[noisy]
        rising = (made + 1) / max(1.0, WARM_UP * total)
        return min(1.0, rising) * max(LEAST, 1 - made / total)


def _name(noisy: bool) -> str:
    return "noisy" if noisy else "exact"
