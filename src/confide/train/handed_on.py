"""Recurrent states that public text reads on from after private text, clipped and noised.

Method `selective` with `private_state: noise`, or `published`. What is noised is the state of each
point of a batch, so each process of a group computes all of it.
"""

from typing import Any

from torch import Tensor

from confide.dp.mechanism import sequential
from confide.dp.mechanism.randomness import noise_of
from confide.methods.selective import SelectiveOptions
from confide.models.batches import by_length
from confide.models.language_model import LanguageModel
from confide.models.lstm import State, recurrent
from confide.specs import TrainSpec
from confide.train.batches import Batches
from confide.types import Partition, StateRelease, Step


class HandedOn:
    """The noise of states, and the updates and releases that come of it."""

    def __init__(
        self, spec: TrainSpec, *, noise_seed: int, noise_multiplier: float, device: str
    ) -> None:
        self.spec = spec
        self.noise_multiplier = noise_multiplier
        self.noise = noise_of(noise_seed, name=f"{spec.run}: states", device=device)

    def passed(self, states: State) -> State:
        """States (n, H) as public text reads them."""
        bound = self.spec.protection.max_grad_norm
        return sequential.released(states, bound, self.noise_multiplier, self.noise)

    def gradient(
        self, model: LanguageModel, batches: Batches, step: Step, chosen: Tensor
    ) -> Tensor:
        """Leave the gradient of a batch's public losses in .grad; returns their mean ()."""
        view = batches.view(step)
        pieces = list(by_length(view, batches.points(step, chosen), batches.budget(step).examples))
        runs = [sequential.runs_of(view, piece, batches.bos) for piece in pieces]
        sizes = [len(piece) for piece in pieces]
        clip = self.spec.recipe.exact_clip
        return sequential.noised_gradient(recurrent(model), runs, sizes, clip, self.passed)

    def release(self, partition: Partition) -> StateRelease | None:
        """What a pass shows of every point: as often as of the point with most private runs."""
        count = state_releases(self.spec, partition)
        if not count:
            return None
        return StateRelease(
            noise_multiplier=self.noise_multiplier,
            max_grad_norm=self.spec.protection.max_grad_norm,
            count=count,
        )

    def state(self) -> dict[str, Any]:
        """State for a checkpoint."""
        return {"noise": self.noise.get_state()}

    def restore(self, state: dict[str, Any]) -> None:
        """Continue from a checkpoint's state."""
        self.noise.set_state(state["noise"])


def state_releases(spec: TrainSpec, partition: Partition) -> int:
    """How many clipped and noised states of one point a pass over the public tokens shows at most:
    h and c of every layer.
    """
    options = SelectiveOptions.of(spec.recipe)
    if spec.model.kind != "lstm" or options.private_state != "noise":
        return 0
    passed = sequential.most_handed_on(partition.original, partition.pool("all"))
    return 2 * spec.model.layers * passed
