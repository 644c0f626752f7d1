"""Which layers noised updates train: those that the exact phase before them moved most.

The others stay as the exact phase left them: they are in no clip norm and get no noise.

Guarantees: the choice is a function of weights before and after exact updates, which stand in the
ledger, and of no noised one. So it costs no epsilon beyond theirs.
"""

from typing import Any

import torch
from torch import Tensor, nn

from confide.errors import InputError
from confide.models import trainable
from confide.models.language_model import LanguageModel


class NoisyLayers:
    """The trained weights by layers, and the choice once it is made."""

    def __init__(self, model: LanguageModel, wanted: int | None) -> None:
        """`wanted`: how many layers; None: all, and nothing is chosen.

        InputError where the model has fewer.
        """
        self.wanted = wanted
        self.layers = layers_of(model) if wanted else {}
        if wanted and wanted > len(self.layers):
            message = f"is more than the {len(self.layers)} layers that are trained"
            raise InputError(message, key="recipe.noisy_layers", value=wanted)
        weights = [weight for layer in self.layers.values() for weight in layer]
        self.before: list[Tensor] = [weight.detach().clone() for weight in weights]
        self.chosen: list[str] = []

    @property
    def open(self) -> bool:
        """Whether a choice is still to be made."""
        return self.wanted is not None and not self.chosen

    def choose(self) -> None:
        """Choose by what exact updates changed, and freeze the others."""
        before = iter(self.before)
        changes = {
            name: relative_change([next(before) for _ in layer], layer)
            for name, layer in self.layers.items()
        }
        self.chosen = sorted(changes, key=lambda name: -changes[name])[: self.wanted]
        self._freeze()

    def state(self) -> dict[str, Any]:
        """State for a checkpoint: where weights began, or what was chosen."""
        return {"chosen": self.chosen} | {
            str(place): weight for place, weight in enumerate(self.before)
        }

    def restore(self, state: dict[str, Any]) -> None:
        """Continue from a checkpoint's state."""
        self.chosen = state["chosen"]
        if self.chosen:
            self._freeze()
        for place, weight in enumerate(self.before):
            weight.copy_(state[str(place)])

    def _freeze(self) -> None:
        self.before = []
        for name, layer in self.layers.items():
            for weight in layer:
                weight.requires_grad_(name in self.chosen)
                weight.grad = None


def layers_of(model: LanguageModel) -> dict[str, list[nn.Parameter]]:
    """The trained weights of each layer, by its name; an adapter's are one layer's."""
    weights = set(trainable(model))
    layers: dict[str, list[nn.Parameter]] = {}
    for name, weight in model.named_parameters():
        if weight in weights:
            layer = name.partition(".lora_")[0] if ".lora_" in name else name.rpartition(".")[0]
            layers.setdefault(layer, []).append(weight)
    return layers


def relative_change(before: list[Tensor], after: list[nn.Parameter]) -> float:
    """Norm of what was added to a layer's weights, over their norm before; infinity where that is
    zero and this is not.
    """
    added = [
        (new.detach().double() - old.double()).square().sum()
        for old, new in zip(before, after, strict=True)
    ]
    norm = float(torch.stack([old.double().square().sum() for old in before]).sum().sqrt())
    change = float(torch.stack(added).sum().sqrt())
    if norm == 0:
        return float("inf") if change else 0.0
    return change / norm
