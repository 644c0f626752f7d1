"""The state of one training job and how it moves by one Step; stages/train.py is the story around it."""

import hashlib
import math
from collections.abc import Iterator
from dataclasses import dataclass, field

import numpy as np
import torch
from torch import Tensor, nn

from confide import checkpoint
from confide.batches import Batch, by_length, padded
from confide.dp.clipping import PerExampleClipper
from confide.dp.ledger import Ledger
from confide.dp.randomness import Noise, Stream, fresh_seed, noise_of
from confide.dp.sampling import generator, poisson, shuffled
from confide.dp.update import exact_gradient, noisy_gradient
from confide.errors import InputError
from confide.memory import Budget
from confide.specs import TrainSpec
from confide.types import Partition, PoolName, Release, Step, View

OPTIMIZERS = {"adam": torch.optim.AdamW, "sgd": torch.optim.SGD}


def device_of(name: str) -> str:
    """auto: cuda where there is one."""
    if name == "auto":
        return "cuda" if torch.cuda.is_available() else "cpu"
    return name


@dataclass
class Job:
    """Everything that changes while a model trains. `done` counts updates of the enumerated stream."""

    spec: TrainSpec
    partition: Partition
    model: nn.Module
    noise_multiplier: float
    updates: dict[bool, int]  # how many exact (False) and noisy (True) updates there will be
    device: str
    ledger: Ledger = field(default_factory=Ledger)
    metrics: list[dict] = field(default_factory=list)
    done: int = 0
    counts: dict[bool, int] = field(default_factory=lambda: {False: 0, True: 0})
    losses: list[Tensor | None] = field(default_factory=list)  # of the current epoch
    queue: list[Tensor] = field(default_factory=list)  # batches left of the exact epoch

    def __post_init__(self) -> None:
        recipe, seed = self.spec.recipe, self.spec.seed
        noise_seed = fresh_seed() if self.spec.noise_seed is None else self.spec.noise_seed
        trainable = [parameter for parameter in self.model.parameters() if parameter.requires_grad]
        self.budget, self.half = Budget(recipe.physical_batch_size), recipe.precision == "bfloat16"
        self.pools = {name: self.partition.pool(name) for name in ("all", "public", "private")}
        self.rates = {noisy: (recipe.noisy_lr or recipe.lr) if noisy else recipe.lr for noisy in (False, True)}
        self.optimizers = {
            noisy: OPTIMIZERS[recipe.optimizer](trainable, lr=rate, weight_decay=recipe.weight_decay, fused=True)
            for noisy, rate in self.rates.items()
        }
        self.shuffle = generator(seed, "public batches")
        # the private stream decides what the accountant assumes secret, so it is as fresh as the noise
        # and as no other run's: two models with the same noise would give it away
        self.sampler = Stream(noise_seed, f"{self.spec.run}: private batches")
        self.noise = noise_of(noise_seed, f"{self.spec.run}: noise", self.device)
        self.clipper = PerExampleClipper(self.model, self.spec.privacy.max_grad_norm) if self.updates[True] else None

    def view(self, step: Step) -> View:
        return self.partition.view(step.view if self.spec.redact else "original")

    def sample_rate(self, pool: PoolName) -> float:
        return self.spec.recipe.noisy_batch_size / len(self.pools[pool])

    def run(self, step: Step) -> None:
        """One update; `losses` gets that of an exact one (a noisy batch's loss is private and not looked at)."""
        self.losses.append(self._noisy(step) if step.noisy else self._exact(step))
        self._move(step.noisy)
        self.ledger.append(self.release(step), self.random() if step.noisy else None)
        self.done += 1

    def random(self) -> str:
        """SHA-256 of the state of the noise: who sees it learns nothing, who draws the same noise again shows."""
        return hashlib.sha256(self.noise.get_state().numpy().tobytes()).hexdigest()

    def release(self, step: Step) -> Release:
        """What the ledger says of one such update."""
        step = step if self.spec.redact else Step("original", step.pool, step.noisy)
        if not step.noisy:
            return Release(step, sample_rate=0.0, noise_multiplier=0.0, max_grad_norm=0.0, count=1)
        return Release(step, self.sample_rate(step.pool), self.noise_multiplier, self.spec.privacy.max_grad_norm, 1)

    def _exact(self, step: Step) -> Tensor:
        recipe = self.spec.recipe
        if not self.queue:
            lengths = torch.from_numpy(np.diff(self.view(step).starts)[self.pools[step.pool]])
            self.queue = shuffled(lengths, recipe.batch_size, self.shuffle)
        batches = self._physical(step, self.queue.pop())
        return exact_gradient(self.model, batches, recipe.exact_clip, self.budget, self.half)

    def _noisy(self, step: Step) -> None:
        chosen = poisson(len(self.pools[step.pool]), self.sample_rate(step.pool), self.sampler)
        expected, batches = self.spec.recipe.noisy_batch_size, self._physical(step, chosen)
        noisy_gradient(self.clipper, batches, self.noise_multiplier, expected, self.noise, self.budget, self.half)

    def _physical(self, step: Step, chosen: Tensor) -> Iterator[Batch]:
        view, points = self.view(step), self.pools[step.pool][chosen.numpy()]
        return (padded(view, piece, self.model.bos) for piece in by_length(view, points, self.budget.size))

    def _move(self, noisy: bool) -> None:
        optimizer, total, count = self.optimizers[noisy], self.updates[noisy], self.counts[noisy]
        factor = 1.0
        if self.spec.recipe.schedule == "linear":
            factor = min(1.0, (count + 1) / max(1.0, 0.05 * total)) * max(0.05, 1 - count / total)
        for group in optimizer.param_groups:
            group["lr"] = self.rates[noisy] * factor
        optimizer.step()
        self.counts[noisy] += 1

    def mean_loss(self) -> float | None:
        """Mean loss of the epoch's exact updates, which are then forgotten; InputError if training has diverged."""
        seen = [float(loss) for loss in self.losses if loss is not None]
        self.losses.clear()
        if not all(map(math.isfinite, seen)):
            raise InputError(
                f"diverged before update {self.done}: the loss is not finite", key="recipe.lr", value=self.rates[False]
            )
        return sum(seen) / len(seen) if seen else None

    def save(self, folder, fingerprint: str) -> None:
        """Write the checkpoint."""
        tensors = {f"model.{name}": value for name, value in self.model.named_parameters()}
        tensors["queue"] = torch.cat([*self.queue, torch.zeros(0, dtype=torch.int64)])
        for noisy, optimizer in self.optimizers.items():
            tensors |= checkpoint.optimizer_tensors(optimizer, f"optimizer{int(noisy)}")
        tensors |= {f"random.{name}": source.get_state() for name, source in self._sources().items()}
        tensors["random.dropout"] = torch.get_rng_state()
        if self.device.startswith("cuda"):
            tensors["random.dropout_cuda"] = torch.cuda.get_rng_state(self.device)
        values = {"fingerprint": fingerprint, "done": self.done, "exact": self.counts[False], "noisy": self.counts[True]}
        values |= {"ledger": self.ledger.dump(), "metrics": self.metrics, "noise_multiplier": self.noise_multiplier}
        values |= {
            "queue": [len(batch) for batch in self.queue],
            "losses": [None if loss is None else float(loss) for loss in self.losses],
        }
        values |= {"nonfinite": int(self.clipper.nonfinite) if self.clipper else 0}
        checkpoint.write(folder, tensors, values)

    def restore(self, tensors: dict[str, Tensor], values: dict) -> None:
        """Continue where a checkpoint left off."""
        for name, parameter in self.model.named_parameters():
            parameter.data.copy_(tensors[f"model.{name}"])
        for noisy, optimizer in self.optimizers.items():
            checkpoint.load_optimizer(optimizer, f"optimizer{int(noisy)}", tensors)
        for name, source in self._sources().items():
            source.set_state(tensors[f"random.{name}"])
        torch.set_rng_state(tensors["random.dropout"])
        if self.device.startswith("cuda"):
            torch.cuda.set_rng_state(tensors["random.dropout_cuda"], self.device)
        self.queue, self.done = list(tensors["queue"].split(values["queue"])), values["done"]
        self.metrics = values["metrics"]
        self.counts = {False: values["exact"], True: values["noisy"]}
        self.losses = [None if loss is None else torch.tensor(loss) for loss in values["losses"]]
        if self.clipper is not None:
            self.clipper.nonfinite.fill_(values["nonfinite"])
        self.noise_multiplier, self.ledger = values["noise_multiplier"], Ledger.load(values["ledger"])
        if (states := self.ledger.states()) and states[-1] != self.random():
            raise InputError("the checkpoint's noise does not continue that of its ledger; delete it to start over")

    def _sources(self) -> dict[str, torch.Generator | Noise]:
        return {"shuffle": self.shuffle, "sampler": self.sampler, "noise": self.noise}


def check_pools(steps: set[Step], sizes: dict[PoolName, int], noisy_batch_size: int) -> None:
    """InputError for a pool that a step reads and that is empty, or smaller than the expected Poisson batch."""
    for step in sorted(steps, key=str):
        if sizes[step.pool] == 0:
            raise InputError(f"no training point is in the pool {step.pool!r}", key="pool", value=step.pool)
        if step.noisy and noisy_batch_size > sizes[step.pool]:
            raise InputError(
                f"exceeds the {sizes[step.pool]} points of the pool {step.pool!r}",
                key="recipe.noisy_batch_size",
                value=noisy_batch_size,
            )


def pool_sizes(partition: Partition) -> dict[PoolName, int]:
    """Sizes of the pools, public numbers by assumption (they do not differ between neighbours)."""
    return {name: int(np.size(partition.pool(name))) for name in ("all", "public", "private")}
