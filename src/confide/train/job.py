"""One training job: its parts, each with its own state, and how they move by one Step.

stages/train.py is the story around it.
"""

from pathlib import Path
from typing import cast

from torch import nn

from confide.dp.mechanism.randomness import fresh_seed
from confide.models import trainable, weights_of
from confide.models.language_model import LanguageModel
from confide.models.sharding import is_divided
from confide.runtime.parallel import ALONE, Group
from confide.specs import TrainSpec
from confide.train import checkpoint
from confide.train.averages import Averages
from confide.train.batches import Batches
from confide.train.filters import Filters
from confide.train.gradients import Gradients
from confide.train.handed_on import HandedOn
from confide.train.history import History
from confide.train.layers import NoisyLayers
from confide.train.metrics import Metrics
from confide.train.moments import Moments
from confide.train.optimizers import Optimizers
from confide.train.regularisers import Regulariser
from confide.types import Partition, Step


class Job:
    """A model while it trains. `done` counts steps of the enumerated stream.

    All of it is the same in every process of the group. A batch's examples are divided among them,
    but where recurrent states are noised and handed on (private_state: noise, published): of these
    updates each process computes all.
    """

    def __init__(
        self,
        spec: TrainSpec,
        partition: Partition,
        model: LanguageModel,
        *,
        noise_multiplier: float,
        updates: dict[bool, int],
        device: str,
        regulariser: Regulariser | None = None,
        group: Group = ALONE,
    ) -> None:
        """`updates`: how many exact (False) and noisy (True) ones there will be."""
        noise_seed = spec.noise_seed
        if noise_seed is None:
            noise_seed = group.same(fresh_seed())
        self.spec = spec
        self.model = model
        self.device = device
        self.group = group
        self.regulariser = regulariser
        self.done = 0
        self.batches = Batches(
            spec,
            partition,
            bos=model.bos,
            noise_seed=noise_seed,
            halves=model.shards is None,
            group=group,
        )
        self.states = HandedOn(
            spec, noise_seed=noise_seed, noise_multiplier=noise_multiplier, device=device
        )
        self.layers = NoisyLayers(model, spec.recipe.noisy_layers)
        self.gradients = Gradients(
            spec,
            model,
            batches=self.batches,
            states=self.states,
            layers=self.layers,
            regulariser=regulariser,
            noise_seed=noise_seed,
            updates=updates,
            device=device,
        )
        self.moments = Moments(model, wanted=spec.recipe.precondition)
        deviation = 0.0
        if updates[True]:
            of_sum = noise_multiplier * spec.protection.max_grad_norm
            deviation = of_sum / spec.recipe.noisy_batch_size
        self.filters = Filters(spec.recipe, model, deviation=deviation)
        self.optimizers = Optimizers(spec.recipe, model, updates)
        self.averages = Averages(model, updates=updates, share=spec.recipe.average)
        self.history = History(self.batches, self.gradients)
        self.metrics = Metrics()

    def run(self, step: Step) -> None:
        """One step: usually one update, of a batch of training as published several."""
        if step.noisy and self.layers.open:
            self.layers.choose()
            self.gradients.clip_chosen()
        if step.noisy:
            self.gradients.clips().scales = self.moments.scales()
        for update, loss in self.gradients.of(step):
            if not update.noisy:
                self.moments.add()
            self.filters.apply(noisy=update.noisy)
            if step.state == "published":
                self.optimizers.count_batches(self.done)
            self.optimizers.move(noisy=update.noisy)
            self.history.add(update)
            self.metrics.add(loss)
        self.done += 1
        self.averages.add(self.done, noisy=step.noisy)

    def save(self, folder: Path, fingerprint: str) -> None:
        """Write the checkpoint, one for all processes; InputError where these no longer have the
        same weights.
        """
        self.check()
        states = {name: part.state() for name, part in self._parts().items()}
        states["model"] = weights_of(self.model)
        if not self.group.first:
            return
        states["job"] = {
            "done": self.done,
            "noise_multiplier": self.gradients.noise_multiplier,
        }
        checkpoint.write(folder, fingerprint, states)

    def check(self) -> None:
        """InputError where processes no longer have the same trained weights, or another ledger.

        Of what is divided each has its own part.
        """
        weights = [weight for weight in trainable(self.model) if not is_divided(weight)]
        self.group.check(weights, self.history.ledger.head)

    def restore(self, states: dict[str, checkpoint.State]) -> None:
        """Continue where a checkpoint left off."""
        shards = self.model.shards
        for name, weight in self.model.stored().items():
            whole = states["model"][name]
            if shards is None:
                weight.data.copy_(whole)
            else:
                parameter = cast(nn.Parameter, weight)
                shards.part_of(parameter).data.copy_(shards.local(whole, parameter))
        for name, part in self._parts().items():
            part.restore(states[name])
        self.done = states["job"]["done"]

    def _parts(self) -> dict[str, checkpoint.Part]:
        """What a checkpoint holds beside the weights, each before those that compare with it."""
        parts: dict[str, checkpoint.Part] = {
            "batches": self.batches,
            "states": self.states,
            "layers": self.layers,
            "gradients": self.gradients,
            "optimizers": self.optimizers,
            "averages": self.averages,
            "moments": self.moments,
            "filters": self.filters,
            "history": self.history,
            "metrics": self.metrics,
        }
        if self.regulariser is not None:
            parts["regulariser"] = self.regulariser
        return parts
