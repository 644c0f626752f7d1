"""One optimizer for exact and one for noisy updates, each with its learning rates."""

from typing import Any

import torch
import torch._dynamo  # every optimizer imports it, and does so slower than a module (cli.stage)
from torch import Tensor, nn

from confide.models import trainable
from confide.models.language_model import LanguageModel
from confide.models.sharding import moved
from confide.specs import RecipeSpec
from confide.train.checkpoint import load_optimizer, optimizer_tensors

KINDS = {"adam": torch.optim.AdamW, "sgd": torch.optim.SGD}
WARM_UP = 0.05  # share of the updates in which the linear schedule rises
LEAST = 0.05  # share of the learning rate that it falls to


class Optimizers:
    """Move the weights along the gradient in .grad. Keys: whether an update is noisy."""

    def __init__(self, recipe: RecipeSpec, model: LanguageModel, updates: dict[bool, int]) -> None:
        """`updates`: how many of each kind there will be."""
        self.weights = trainable(model)
        self.shards = model.shards
        self.linear = recipe.schedule == "linear"
        self.updates = updates
        self.rates = {False: recipe.lr, True: recipe.noisy_lr or recipe.lr}
        self.each: dict[bool, torch.optim.Optimizer] = {
            noisy: KINDS[recipe.optimizer](
                moved(model), lr=rate, weight_decay=recipe.weight_decay, fused=True
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
        """State for a checkpoint, as of a model that no process keeps a part of."""
        state: dict[str, Any] = {"counts": [self.counts[False], self.counts[True]]}
        for noisy, optimizer in self.each.items():
            for name, value in optimizer_tensors(optimizer, _name(noisy)).items():
                state[name] = value
                if self.shards is not None and value.dim():
                    state[name] = self.shards.whole(value, self._weight(name))
        return state

    def restore(self, state: dict[str, Any]) -> None:
        """Continue from a checkpoint's state."""
        if self.shards is not None:
            state = {
                name: self.shards.local(value, self._weight(name))
                if isinstance(value, Tensor) and value.dim()
                else value
                for name, value in state.items()
            }
        for noisy, optimizer in self.each.items():
            load_optimizer(optimizer, _name(noisy), state)
        self.counts = dict(zip((False, True), state["counts"], strict=True))

    def _weight(self, name: str) -> nn.Parameter:
        """The weight that a tensor of an optimizer's state belongs to."""
        return self.weights[int(name.split(".")[1])]

    def _factor(self, noisy: bool) -> float:
        if not self.linear:
            return 1.0
        total = self.updates[noisy]
        done = self.counts[noisy]
        rising = (done + 1) / max(1.0, WARM_UP * total)
        return min(1.0, rising) * max(LEAST, 1 - done / total)


def _name(noisy: bool) -> str:
    return "noisy" if noisy else "exact"
