"""The state of one training job and how it moves by one Step; stages/train.py is the story around
it.
"""

import hashlib
import math
from collections.abc import Iterator
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, field, replace

import numpy as np
import torch
from torch import Tensor, nn

from confide.dp.ledger import Ledger
from confide.dp.mechanism import sequential
from confide.dp.mechanism.authors import authors_of, drawn, packed, protects_authors
from confide.dp.mechanism.clipping import PerExampleClipper
from confide.dp.mechanism.randomness import (
    Noise,
    Stream,
    dropout_from,
    fresh_seed,
    generator_of,
    noise_of,
    usual_generator,
)
from confide.dp.mechanism.sampling import by_author, generator, poisson, shuffled
from confide.dp.mechanism.update import discrete_gradient, exact_gradient, noisy_gradient
from confide.errors import InputError
from confide.models.batches import Batch, by_length, padded, public_counts, selected, unmasked
from confide.models.lstm import State
from confide.runtime.memory import Budget
from confide.runtime.parallel import ALONE, Group
from confide.specs import TrainSpec
from confide.train import checkpoint
from confide.train.planning import Sizes, discrete
from confide.train.pools import pool_sizes
from confide.train.regularisers import Regulariser
from confide.train.regularisers.update import Training
from confide.types import POOLS, Partition, Release, StateRelease, Step, View

OPTIMIZERS = {"adam": torch.optim.AdamW, "sgd": torch.optim.SGD}


def device_of(name: str) -> str:
    """auto: cuda where there is one."""
    if name == "auto":
        return "cuda" if torch.cuda.is_available() else "cpu"
    return name


@dataclass
class Job:
    """Everything that changes while a model trains. `done` counts updates of the enumerated stream.

    All of it is the same in every process of the group. A batch's examples are divided among them,
    but where recurrent states are noised and handed on (private_state: noise, published): of these
    updates each process computes all.
    """

    spec: TrainSpec
    partition: Partition
    model: nn.Module
    noise_multiplier: float
    updates: dict[bool, int]  # how many exact (False) and noisy (True) updates there will be
    device: str
    regulariser: Regulariser | None = None  # of steps that name one
    group: Group = ALONE
    ledger: Ledger = field(default_factory=Ledger)
    metrics: list[dict] = field(default_factory=list)
    done: int = 0
    counts: dict[bool, int] = field(default_factory=lambda: {False: 0, True: 0})
    losses: list[Tensor | None] = field(default_factory=list)  # of the current epoch
    queue: list[Tensor] = field(default_factory=list)  # batches left of the exact epoch
    lengths: dict[Step, np.ndarray] = field(
        default_factory=dict
    )  # of the points, as each kind of step sees them

    def __post_init__(self) -> None:
        recipe = self.spec.recipe
        seed = self.spec.seed
        noise_seed = (
            self.group.same(fresh_seed()) if self.spec.noise_seed is None else self.spec.noise_seed
        )
        trainable = [parameter for parameter in self.model.parameters() if parameter.requires_grad]
        self.budget = Budget(recipe.physical_batch_size)
        self.half = recipe.precision == "bfloat16"
        self.pools = {name: self.partition.pool(name) for name in POOLS}
        self.authors = authors_of(self.partition) if protects_authors(self.spec) else {}
        self.rates = {
            noisy: (recipe.noisy_lr or recipe.lr) if noisy else recipe.lr for noisy in (False, True)
        }
        self.optimizers = {
            noisy: OPTIMIZERS[recipe.optimizer](
                trainable, lr=rate, weight_decay=recipe.weight_decay, fused=True
            )
            for noisy, rate in self.rates.items()
        }
        self.shuffle = generator(seed, "public batches")
        # the private stream decides what the accountant assumes secret, so it is as fresh as the
        # noise and as no other run's: two models with the same noise would give it away
        self.sampler = Stream(noise_seed, f"{self.spec.run}: private batches")
        self.discrete = discrete(self.spec)
        name = f"{self.spec.run}: noise"
        self.noise = (
            Stream(noise_seed, name) if self.discrete else noise_of(noise_seed, name, self.device)
        )
        self.dropout = generator(noise_seed, f"{self.spec.run}: private dropout", self.device)
        # noise of recurrent states that are handed on, where they are
        self.states = noise_of(name=f"{self.spec.run}: states", seed=noise_seed, device=self.device)
        self.clipper = (
            PerExampleClipper(self.model, self.spec.privacy.max_grad_norm)
            if self.updates[True]
            else None
        )

    def view(self, step: Step) -> View:
        return self.partition.view(step.view if self.spec.redact else "original")

    def units(self, step: Step) -> int:
        """How many units, points or authors, a Poisson batch is drawn from."""
        return len((self.authors if step.unit == "author" else self.pools)[step.pool])

    def sample_rate(self, step: Step) -> float:
        return self.spec.recipe.noisy_batch_size / self.units(step)

    def run(self, step: Step) -> None:
        """One update; `losses` gets that of an exact one (a noisy batch's loss is private and not
        looked at).
        """
        if step.state == "published":
            self._published(step)
            return
        self.losses.append(self._noisy(step) if step.noisy else self._exact(step))
        self._move(step.noisy)
        self.ledger.append(self.release(step), self.random() if step.noisy else None)
        if step.state == "noise" and not step.noisy and not self.queue:  # the end of a pass
            self._charge_states()
        self.done += 1

    def random(self, source: Noise | None = None) -> str:
        """SHA-256 of the state of the noise: who sees it learns nothing, who draws the same noise
        again shows.
        """
        return hashlib.sha256((source or self.noise).get_state().numpy().tobytes()).hexdigest()

    def release(self, step: Step) -> Release:
        """What the ledger says of one such update."""
        step = step if self.spec.redact else replace(step, view="original")
        if not step.noisy:
            return Release(step=step, count=1)
        return Release(
            step=step,
            sample_rate=self.sample_rate(step),
            noise_multiplier=self.noise_multiplier,
            max_grad_norm=self.spec.privacy.max_grad_norm,
            count=1,
            discrete_coordinates=len(self.clipper.flat) if self.discrete else 0,
        )

    def _exact(self, step: Step) -> Tensor:
        recipe = self.spec.recipe
        if not self.queue:
            self.queue = self._shuffled(step)
        if step.state == "noise":
            return self._handed_on(step, self.queue.pop())
        if step.regulariser != "none":
            return self._regularised(step, self.queue.pop())
        batches = self._physical(step, self.queue.pop())
        with self._dropout(noisy=False):
            return exact_gradient(
                self.model,
                batches=batches,
                max_norm=recipe.exact_clip,
                budget=self.budget,
                half=self.half,
                group=self.group,
            )

    def _shuffled(self, step: Step) -> list[Tensor]:
        """Batches of an exact epoch."""
        given = (self.spec.recipe.batch_size, self.shuffle)
        lengths = self._lengths(step)
        if self.spec.recipe.batching == "uniform":
            return shuffled(lengths, *given)
        return by_author(
            lengths, torch.from_numpy(self.partition.owner[self.pools[step.pool]]), *given
        )

    def _regularised(self, step: Step, chosen: Tensor) -> Tensor:
        view = self.view(step)
        recipe = self.spec.recipe
        points = self.pools[step.pool][chosen.numpy()]
        pieces = [
            self.regulariser.rows(view, piece, self.model.bos)
            for piece in by_length(view, points, self.budget.size)
        ]
        training = Training(
            self.model,
            weight=recipe.regulariser_weight,
            max_norm=recipe.exact_clip,
            budget=self.budget,
            half=self.half,
            group=self.group,
        )
        with self._dropout(noisy=False):
            return self.regulariser.gradient(training, pieces)

    def _noisy(self, step: Step) -> None:
        chosen = poisson(self.units(step), self.sample_rate(step), self.sampler)
        expected = self.spec.recipe.noisy_batch_size
        batches = self._physical(step, chosen)
        given = (self.clipper, batches, self.noise_multiplier, expected, self.noise)
        how = (self.half, self.group)
        with self._dropout(noisy=True):
            if self.discrete:
                discrete_gradient(*given, *how)
            else:
                noisy_gradient(*given, self.budget, *how)

    def _dropout(self, noisy: bool) -> AbstractContextManager[None]:
        """Private batches have a generator of their own, and in a group each process has one for
        its part of a batch.
        """
        if self.group.size == 1:
            return dropout_from(self.dropout) if noisy else nullcontext()
        return dropout_from(
            generator_of(self.group.rank, self.dropout if noisy else usual_generator(self.device))
        )

    def _physical(self, step: Step, chosen: Tensor) -> Iterator[Batch]:
        view = self.view(step)
        alone = step.noisy and self.discrete
        size = 1 if alone else self.budget.size
        if step.unit == "author":
            given = drawn(
                self.authors[step.pool], chosen, self.spec.recipe.author_points, self.sampler
            )
            whole = packed(given, self._counts(step), size, self.group.part)
            return (
                replace(self._batch(step, view, points), units=units) for points, units in whole
            )
        points = self.pools[step.pool][chosen.numpy()]
        part = self.group.part
        return (
            self._batch(step, view, piece)
            for piece in by_length(view, points, size, self._counts(step), part)
        )

    def _batch(self, step: Step, view: View, points: np.ndarray) -> Batch:
        if step.tokens == "all":
            return padded(view, points, self.model.bos)
        if step.tokens == "unmasked":
            return unmasked(view, points, self.model.bos)
        return selected(view, points, self.model.bos, step.tokens, step.state)

    def _counts(self, step: Step) -> np.ndarray:
        """(N,) what decides, beside chance, which points meet in a batch: of positions that a
        public step scores, no others.
        """
        if step not in self.lengths:
            view = self.view(step)
            self.lengths[step] = (
                public_counts(view) if step.tokens == "public" else np.diff(view.starts)
            )
        return self.lengths[step]

    def _lengths(self, step: Step) -> Tensor:
        return torch.from_numpy(self._counts(step)[self.pools[step.pool]])

    def _hand_on(self, state: State) -> State:
        return sequential.released(
            state, self.spec.privacy.max_grad_norm, self.noise_multiplier, self.states
        )

    def _handed_on(self, step: Step, chosen: Tensor) -> Tensor:
        view = self.view(step)
        bos = self.model.bos
        pieces = list(by_length(view, self.pools[step.pool][chosen.numpy()], self.budget.size))
        batches = [sequential.runs_of(view, piece, bos) for piece in pieces]
        sizes = [len(piece) for piece in pieces]
        return sequential.noised_gradient(
            self.model, batches, sizes, self.spec.recipe.exact_clip, self._hand_on
        )

    def _charge_states(self) -> None:
        """Into the ledger: every point's states of this pass, in the open (rate 1), as often as for
        the point with most.
        """
        count = state_releases(self.spec, self.partition)
        if count:
            release = StateRelease(
                noise_multiplier=self.noise_multiplier,
                max_grad_norm=self.spec.privacy.max_grad_norm,
                count=count,
            )
            self.ledger.append(release, self.random(self.states))

    def _published(self, step: Step) -> None:
        """All updates of one batch by the paper's Algorithm 1; the rate in the ledger is the one
        that it accounts for.
        """
        recipe = self.spec.recipe
        points = self.pools[step.pool]
        if not self.queue:
            self.queue = shuffled(self._lengths(step), recipe.noisy_batch_size, self.shuffle)
        chosen = points[self.queue.pop().numpy()]
        runs = sequential.runs_of(self.view(step), chosen, self.model.bos)
        made = {False: "public", True: "private"}
        given = (recipe.exact_clip, self.noise_multiplier, self.noise, self._hand_on)
        for noisy, loss in sequential.published_updates(
            self.model, self.clipper, runs, len(chosen), *given
        ):
            self.losses.append(loss)
            self.counts = dict.fromkeys(
                (False, True), self.done
            )  # learning rates move with the batches
            self._move(noisy)
            ran = replace(step, noisy=noisy, tokens=made[noisy])
            self.ledger.append(self.release(ran), self.random() if noisy else None)
        self.done += 1

    def _move(self, noisy: bool) -> None:
        optimizer = self.optimizers[noisy]
        total = self.updates[noisy]
        count = self.counts[noisy]
        factor = 1.0
        if self.spec.recipe.schedule == "linear":
            factor = min(1.0, (count + 1) / max(1.0, 0.05 * total)) * max(0.05, 1 - count / total)
        for group in optimizer.param_groups:
            group["lr"] = self.rates[noisy] * factor
        optimizer.step()
        self.counts[noisy] += 1

    def mean_loss(self) -> float | None:
        """Mean loss of the epoch's exact updates, which are then forgotten; InputError if training
        has diverged.
        """
        seen = [float(loss) for loss in self.losses if loss is not None]
        self.losses.clear()
        if not all(map(math.isfinite, seen)):
            raise InputError(
                f"diverged before update {self.done}: the loss is not finite",
                key="recipe.lr",
                value=self.rates[False],
            )
        return sum(seen) / len(seen) if seen else None

    def nonfinite(self) -> int:
        """How many gradients were not finite so far, in all processes."""
        found = [self.clipper.nonfinite.clone()] if self.clipper else []
        self.group.sum(found)
        return sum(map(int, found))

    def save(self, folder, fingerprint: str) -> None:
        """Write the checkpoint, one for all processes; InputError where these no longer have the
        same weights.
        """
        self.group.check(self.model.parameters(), self.ledger.head)
        nonfinite = self.nonfinite()
        if not self.group.first:
            return
        tensors = {f"model.{name}": value for name, value in self.model.named_parameters()}
        tensors["queue"] = torch.cat([*self.queue, torch.zeros(0, dtype=torch.int64)])
        for noisy, optimizer in self.optimizers.items():
            tensors |= checkpoint.optimizer_tensors(optimizer, f"optimizer{int(noisy)}")
        if self.regulariser is not None:
            tensors |= {
                f"regulariser.{name}": value for name, value in self.regulariser.tensors().items()
            }
        tensors |= {
            f"random.{name}": source.get_state() for name, source in self._sources().items()
        }
        tensors["random.torch"] = torch.get_rng_state()
        if self.device.startswith("cuda"):
            tensors["random.torch_cuda"] = torch.cuda.get_rng_state(self.device)
        values = {
            "fingerprint": fingerprint,
            "done": self.done,
            "exact": self.counts[False],
            "noisy": self.counts[True],
        }
        values |= {
            "ledger": self.ledger.dump(),
            "metrics": self.metrics,
            "noise_multiplier": self.noise_multiplier,
        }
        values |= {
            "queue": [len(batch) for batch in self.queue],
            "losses": [None if loss is None else float(loss) for loss in self.losses],
        }
        values |= {"nonfinite": nonfinite}
        checkpoint.write(folder, tensors, values)

    def restore(self, tensors: dict[str, Tensor], values: dict) -> None:
        """Continue where a checkpoint left off."""
        for name, parameter in self.model.named_parameters():
            parameter.data.copy_(tensors[f"model.{name}"])
        for noisy, optimizer in self.optimizers.items():
            checkpoint.load_optimizer(optimizer, f"optimizer{int(noisy)}", tensors)
        if self.regulariser is not None:
            self.regulariser.restore(checkpoint.under(tensors, "regulariser"))
        for name, source in self._sources().items():
            source.set_state(tensors[f"random.{name}"])
        torch.set_rng_state(tensors["random.torch"])
        if self.device.startswith("cuda"):
            torch.cuda.set_rng_state(tensors["random.torch_cuda"], self.device)
        self.queue = list(tensors["queue"].split(values["queue"]))
        self.done = values["done"]
        self.metrics = values["metrics"]
        self.counts = {False: values["exact"], True: values["noisy"]}
        self.losses = [None if loss is None else torch.tensor(loss) for loss in values["losses"]]
        if self.clipper is not None:
            self.clipper.nonfinite.fill_(values["nonfinite"] if self.group.first else 0)
        self.noise_multiplier = values["noise_multiplier"]
        self.ledger = Ledger.load(values["ledger"])
        if (states := self.ledger.states(updates_only=True)) and states[-1] != self.random():
            raise InputError(
                "the checkpoint's noise does not continue that of its ledger; delete it to start over"
            )

    def _sources(self) -> dict[str, torch.Generator | Noise]:
        sources = {"shuffle": self.shuffle, "sampler": self.sampler, "noise": self.noise}
        return sources | {"states": self.states, "dropout": self.dropout}


def sizes_of(spec: TrainSpec, partition: Partition) -> Sizes:
    """Sizes of what the job draws from, as its plan and its ledger have them."""
    authors = None
    if protects_authors(spec):
        authors = {name: len(points) for name, points in authors_of(partition).items()}
    return Sizes(
        pools=pool_sizes(partition), authors=authors, states=state_releases(spec, partition)
    )


def state_releases(spec: TrainSpec, partition: Partition) -> int:
    """How many clipped and noised states of one point a pass over the public tokens shows at most:
    h and c of every layer.
    """
    if spec.model.kind != "lstm" or spec.recipe.private_state != "noise":
        return 0
    return (
        2 * spec.model.layers * sequential.most_handed_on(partition.original, partition.pool("all"))
    )
