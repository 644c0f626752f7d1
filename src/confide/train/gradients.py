"""How the gradient of a step comes about: as it is, with a regulariser, or clipped and noised."""

from collections.abc import Iterator
from contextlib import AbstractContextManager, nullcontext
from typing import Any

import torch
from torch import Tensor

from confide.dp.accounting.banded import inverse_root
from confide.dp.mechanism.clipping import PerExampleClipper
from confide.dp.mechanism.correlated import Correlated
from confide.dp.mechanism.randomness import (
    Noise,
    Stream,
    digest,
    dropout_from,
    generator_of,
    noise_of,
    usual_generator,
)
from confide.dp.mechanism.sampling import generator
from confide.dp.mechanism.update import discrete_gradient, exact_gradient, noisy_gradient
from confide.dp.mechanism.weighted import by_scores, by_tokens
from confide.methods.atdp import ATDPOptions
from confide.methods.regularised import RegularisedOptions
from confide.models.batches import by_length
from confide.models.language_model import LanguageModel
from confide.runtime.devices import has_bfloat16
from confide.specs import TrainSpec
from confide.train.batches import Batches
from confide.train.handed_on import HandedOn
from confide.train.layers import NoisyLayers
from confide.train.planning import discrete
from confide.train.published import updates_of_batch
from confide.train.regularisers import Regulariser
from confide.train.regularisers.update import Training
from confide.train.scores import scores
from confide.types import Step


class Gradients:
    """Leaves the gradients of a step in .grad, and owns the randomness that goes into them."""

    def __init__(
        self,
        spec: TrainSpec,
        model: LanguageModel,
        *,
        batches: Batches,
        states: HandedOn,
        layers: NoisyLayers,
        regulariser: Regulariser | None,
        noise_seed: int,
        updates: dict[bool, int],
        device: str,
    ) -> None:
        """`updates`: how many exact (False) and noisy (True) ones there will be."""
        self.spec = spec
        self.model = model
        self.batches = batches
        self.states = states
        self.regulariser = regulariser
        self.noise_multiplier = states.noise_multiplier
        self.device = device
        self.group = batches.group
        self.half = spec.recipe.precision == "bfloat16" and has_bfloat16(device)
        self.layers = layers
        self.scores: Tensor | None = None  # (N,) of points, where noise goes by them
        self.clipper: PerExampleClipper | None = None
        if updates[True]:
            self.clipper = PerExampleClipper(model, spec.protection.max_grad_norm)
        name = f"{spec.run}: noise"
        self.integers = Stream(noise_seed, name) if discrete(spec) else None  # discrete noise
        self.noise: Noise = self.integers or noise_of(noise_seed, name, device)
        self.sequence = digest(self.noise)
        self.correlated: Correlated | None = None
        if spec.recipe.noise is not None and updates[True]:
            bands = spec.recipe.noise.bands
            self.correlated = Correlated(self.noise, inverse_root(bands))
            self.noise = self.correlated
        self.dropout = generator(noise_seed, f"{spec.run}: private dropout", device)

    @property
    def coordinates(self) -> int:
        """How many numbers get discrete noise, 0 where noise is Gaussian."""
        return 0 if self.integers is None else len(self.clips().flat)

    def clips(self) -> PerExampleClipper:
        """What clips gradients; ValueError in a job that was to make exact updates alone."""
        if self.clipper is None:
            raise ValueError("this job was to make no noisy update")
        return self.clipper

    def clip_chosen(self) -> None:
        """Clip, from now on, gradients of the weights that are still trained, and no others."""
        self.clips().close()
        self.clipper = PerExampleClipper(self.model, self.spec.protection.max_grad_norm)

    def of(self, step: Step) -> Iterator[tuple[Step, Tensor | None]]:
        """Leave each gradient of a step in .grad in turn; yields what it is of, and its loss.

        A noisy batch's loss is private and not looked at. Only training as published makes several
        updates of one step.
        """
        if step.state == "published":
            yield from updates_of_batch(
                step,
                model=self.model,
                batches=self.batches,
                clipper=self.clips(),
                noise=self.noise,
                states=self.states,
            )
        elif step.weighing != "none":
            self.weighed(step)
            yield step, None
        elif step.noisy:
            self.noisy(step)
            yield step, None
        else:
            yield step, self.exact(step)

    def exact(self, step: Step) -> Tensor:
        """Of the next batch of a pass; returns the mean loss ()."""
        recipe = self.spec.recipe
        chosen = self.batches.next_of_pass(step, recipe.batch_size)
        if step.state == "noise":
            return self.states.gradient(self.model, self.batches, step, chosen)
        if step.regulariser != "none":
            return self._regularised(step, chosen)
        pieces = self.batches.pieces(step, chosen)
        with self._dropout(noisy=False):
            return exact_gradient(
                self.model,
                batches=pieces,
                max_norm=recipe.exact_clip,
                budget=self.batches.budget(step),
                half=self.half,
                group=self.group,
            )

    def noisy(self, step: Step) -> None:
        """Of a Poisson batch: clipped unit by unit, noised, divided by a public constant."""
        chosen = self.batches.poisson(step)
        pieces = self.batches.pieces(step, chosen)
        expected = self.spec.recipe.noisy_batch_size
        arguments = (self.clips(), pieces, self.noise_multiplier, expected)
        how = (self.half, self.group)
        with self._dropout(noisy=True):
            if self.integers is not None:
                discrete_gradient(*arguments, self.integers, *how)
            else:
                noisy_gradient(*arguments, self.noise, self.batches.budget(step), *how)

    def weighed(self, step: Step) -> None:
        """Of a Poisson batch: clipped point by point, with noise that goes by the text."""
        chosen = self.batches.poisson(step)
        common: dict[str, Any] = {
            "noise_multiplier": self.noise_multiplier * step.noise_scale,
            "expected_batch_size": self.spec.recipe.noisy_batch_size,
            "noise": self.noise,
            "budget": self.batches.budget(step),
            "half": self.half,
            "group": self.group,
        }
        with self._dropout(noisy=True):
            if step.weighing == "tokens":
                private, other = self.batches.by_tokens(step, chosen)
                weight = ATDPOptions.of(self.spec.recipe).sensitive_weight
                by_tokens(self.clips(), private=private, other=other, weight=weight, **common)
                return
            if self.scores is None:
                found = scores(self.batches.view(step), self.batches.pools[step.pool])
                self.scores = torch.from_numpy(found)
            drawn = self.scores[self.batches.points(step, chosen)]
            pieces = self.batches.pieces(step, chosen)
            by_scores(self.clips(), pieces, scores=drawn, **common)

    def nonfinite(self) -> int:
        """How many gradients were not finite so far, in all processes."""
        counts = [self.clipper.nonfinite.clone()] if self.clipper else []
        self.group.sum(counts)
        return sum(map(int, counts))

    def state(self) -> dict[str, Any]:
        """State for a checkpoint; every process of the group must take part."""
        state = {
            "noise": self.noise.get_state(),
            "dropout": self.dropout.get_state(),
            "torch": torch.get_rng_state(),
            "nonfinite": self.nonfinite(),
        }
        if self.device.startswith("cuda"):
            state["torch_cuda"] = torch.cuda.get_rng_state(self.device)
        if self.correlated is not None:
            state["sequence"] = self.sequence
            state |= {f"noise.{age}": added for age, added in enumerate(self.correlated.earlier)}
        return state

    def restore(self, state: dict[str, Any]) -> None:
        """Continue from a checkpoint's state."""
        self.noise.set_state(state["noise"])
        self.dropout.set_state(state["dropout"])
        torch.set_rng_state(state["torch"])
        if self.device.startswith("cuda"):
            torch.cuda.set_rng_state(state["torch_cuda"], self.device)
        if self.correlated is not None:
            self.sequence = state["sequence"]
            reach = min(self.batches.turns, len(self.correlated.coefficients) - 1)
            ages = [f"noise.{age}" for age in range(reach)]
            self.correlated.earlier = [state[name].to(self.device) for name in ages]
        if self.layers.chosen:
            self.clip_chosen()
        if self.clipper is not None:
            self.clipper.nonfinite.fill_(state["nonfinite"] if self.group.first else 0)

    def _regularised(self, step: Step, chosen: Tensor) -> Tensor:
        weight = RegularisedOptions.of(self.spec.recipe).regulariser_weight
        if self.regulariser is None or weight is None:
            raise ValueError("this job was to make no update with a regulariser")
        view = self.batches.view(step)
        budget = self.batches.budget(step)
        pieces = [
            self.regulariser.rows(view, piece, self.batches.bos)
            for piece in by_length(view, self.batches.points(step, chosen), budget.examples)
        ]
        training = Training(
            self.model,
            weight=weight,
            max_norm=self.spec.recipe.exact_clip,
            budget=budget,
            half=self.half,
            group=self.group,
        )
        with self._dropout(noisy=False):
            return self.regulariser.gradient(training, pieces)

    def _dropout(self, noisy: bool) -> AbstractContextManager[None]:
        """Where dropout draws from meanwhile.

        Private batches have a generator of their own, and in a group each process has one for its
        part of a batch.
        """
        if self.group.size == 1:
            return dropout_from(self.dropout) if noisy else nullcontext()
        source = self.dropout if noisy else usual_generator(torch.device(self.device))
        return dropout_from(generator_of(self.group.rank, source))
