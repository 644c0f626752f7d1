"""How much memory a training job will take, measured before it starts, and how it could take less.

What stays is counted: weights, sums of gradients, states of optimizers. What a pass takes besides
is measured on two and on three examples of the greatest length, without data, and the rest of the
piece adds as much as the third one. (With one example the most is held elsewhere in the pass.)
"""

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from math import ceil, sqrt

import numpy as np
import torch

from confide.dp.mechanism.update import per_example, summed
from confide.errors import is_lack_of_memory
from confide.models import trainable
from confide.models.batches import Batch
from confide.models.sharding import in_memory, is_divided, moved
from confide.output.escaping import warn
from confide.runtime.devices import device_of, has_bfloat16
from confide.runtime.memory import free, taken
from confide.specs import TrainSpec
from confide.train.averages import Averages
from confide.train.evaluation import at_once, read
from confide.train.filters import Filters
from confide.train.job import Job
from confide.train.moments import Moments
from confide.train.planning import Epochs, discrete
from confide.types import SPLITS, Step

STATES = {"adam": 2, "sgd": 0}  # numbers that an optimizer keeps of each weight
# How much more a pass holds than its tensors: allocators leave gaps. Of glibc's 1.0 to 1.6 were
# measured; of torch's on a GPU nothing was yet.
GAPS = {"cpu": 1.4, "cuda": 1.1}
DEVIATIONS = 5  # of a Poisson batch's size beyond the expected one


@dataclass(frozen=True, slots=True, kw_only=True)
class Forecast:
    """Bytes that a job takes at most, beside what the libraries do."""

    weights: int
    sums: int  # of clipped gradients, of weights and of what noised updates go by
    states: int  # of optimizers, and gradients that wait for them
    piece: int  # one forward and backward pass
    evaluation: int  # one pass over held-out text

    @property
    def most(self) -> int:
        """All of it."""
        return self.weights + self.sums + self.states + max(self.piece, self.evaluation)

    @property
    def to_come(self) -> int:
        """What is not there yet when a job starts."""
        return self.most - self.weights - self.sums

    def line(self, available: int | None) -> str:
        """One line for the reader, which does not say how long a text is."""
        parts = {
            "weights": self.weights,
            "gradients and optimizer": self.sums + self.states,
            "a pass": self.piece,
            "an evaluation": self.evaluation,
        }
        shown = ", ".join(f"{name} {amount(size)}" for name, size in parts.items())
        known = "" if available is None else f"; {amount(available)} are free"
        return f"needs about {amount(self.most)} of memory ({shown}){known}"


def announce(job: Job, epochs: Epochs) -> None:
    """Say in one line what a job will take, and in a second one if there is less.

    Every process of the group must come here.
    """
    try:
        expected = forecast(job, epochs)
    except RuntimeError as error:
        if not is_lack_of_memory(error):
            raise
        warn(f"{job.spec.run}: one to three examples of the greatest length do not fit into memory")
        return
    if not job.group.first:
        return
    available = free(job.device)
    warn(f"{job.spec.run}: {expected.line(available)}")
    if available is not None and expected.to_come > available:
        ways = ", ".join(savings(job.spec))
        warn(f"{job.spec.run}: that is more than there is; what helps: {ways}")


def forecast(job: Job, epochs: Epochs) -> Forecast:
    """What the steps of a job, which is at its start, will take."""
    model = job.model
    # in this order, which every process has
    steps = list(dict.fromkeys(step for steps in epochs for step in steps))
    pieces = [(largest(job, step), step) for step in steps]
    devices = [torch.device(job.device)] if job.device.startswith("cuda") else []
    with torch.random.fork_rng(devices):
        piece = max((passed(job, step, *shape) for shape, step in pieces), default=0)
        evaluation = evaluated(job)
    of_weights = sum(part.nbytes for part in moved(model))
    blocks = [block.module for block in model.blocks_recomputed] if model.shards else []
    whole = [sum(weight.nbytes for weight in block.parameters()) for block in blocks]
    kinds = {step.noisy for step in steps}
    states = of_weights * len(kinds) * STATES[job.spec.recipe.optimizer]
    if False in kinds:
        states += of_weights
    clipper = job.gradients.clipper
    sums = 0 if clipper is None else clipper.flat.nbytes + clipper.spare.nbytes
    if clipper is not None and job.gradients.correlated is not None:
        sums += clipper.flat.nbytes * len(job.gradients.correlated.coefficients)
    sums += sum(tensor.nbytes for part in refinements(job) for tensor in part.state().values())
    states += sum(span.nbytes for span in job.filters.spans)  # projections on them
    return Forecast(
        weights=sum(map(in_memory, (*model.parameters(), *model.buffers())))
        + max(whole, default=0),
        sums=sums,
        states=states,
        piece=piece,
        evaluation=evaluation,
    )


def refinements(job: Job) -> tuple[Averages, Moments, Filters]:
    """What a job may add up beside gradients."""
    return job.averages, job.moments, job.filters


def largest(job: Job, step: Step) -> tuple[int, int]:
    """Examples and tokens of the largest piece that a step of that kind can read in one pass."""
    batches = job.batches
    recipe = job.spec.recipe
    points = batches.pools[step.pool]
    lengths = np.diff(batches.view(step).starts)[points]
    length = int(lengths.max(initial=0)) + 1
    if step.noisy and discrete(job.spec):
        return 1, length
    expected = recipe.noisy_batch_size
    most = ceil(expected + DEVIATIONS * sqrt(expected)) if step.noisy else recipe.batch_size
    if step.unit == "author":
        most *= recipe.author_points or len(points)
    part = ceil(min(most, len(points)) / job.group.size)
    return max(1, min(part, batches.budget(step).examples(length))), length


def passed(job: Job, step: Step, count: int, length: int) -> int:
    """Bytes of a forward and backward pass over so many examples."""
    half = job.gradients.half
    model = job.model
    if not step.noisy:
        weights = [weight for weight in trainable(model) if not is_divided(weight)]
        needed = scaled(partial(summed, model, weights, half=half), job, count, length)
        for part in moved(model):
            part.grad = None
        return needed
    clipper = job.gradients.clips()
    refused = clipper.nonfinite.clone()
    needed = scaled(
        lambda batch: clipper.add(lambda: per_example(model, batch, half)), job, count, length
    )
    clipper.reset()
    clipper.nonfinite.copy_(refused)
    return needed


def evaluated(job: Job) -> int:
    """Bytes of a pass of the evaluation after an epoch."""
    partition = job.batches.partition
    valid = (partition.split == SPLITS.index("valid")).nonzero()[0]
    if not len(valid):
        return 0
    lengths = np.diff(partition.original.starts)[valid]
    length = int(lengths.max()) + 1
    count = min(len(valid), at_once(job.model, length))
    job.model.eval()
    device = torch.device(job.device)
    needed = scaled(lambda batch: read(job.model, batch.to(device)), job, count, length)
    job.model.train()
    return needed


def scaled(function: Callable[[Batch], object], job: Job, count: int, length: int) -> int:
    """Bytes that a function of a batch takes, from two and three of its examples."""

    def of(examples: int) -> int:
        ids = torch.full((examples, length), job.model.bos)
        batch = Batch(ids, ids)  # on the CPU, where a batch comes from
        return taken(lambda: function(batch), job.device)

    few = min(count, 2)
    of(1)  # takes what libraries keep from their first call on
    whole = of(few)
    if count > few:
        whole += (count - few) * max(0, of(few + 1) - whole)
    return round(GAPS[torch.device(job.device).type] * whole)


def savings(spec: TrainSpec) -> list[str]:
    """What to change in the parameters of a job to take less memory, what costs nothing first."""
    recipe = spec.recipe
    model = spec.model
    if recipe.physical_tokens is not None:
        ways = [f"a smaller recipe.physical_tokens (now {recipe.physical_tokens})"]
    else:
        ways = [f"a smaller recipe.physical_batch_size (now {recipe.physical_batch_size})"]
    if model.kind != "lstm" and not (recipe.gradient_checkpointing or recipe.shard):
        ways.append("recipe.gradient_checkpointing: true")
    if model.kind == "causal_lm":
        if model.adapter is None:
            ways.append("model.adapter")
        else:
            if model.frozen_dtype == "float32" and has_bfloat16(device_of(spec.device)):
                ways.append("model.frozen_dtype: bfloat16")
            if model.adapter.rank > 1:
                ways.append(f"a smaller model.adapter.rank (now {model.adapter.rank})")
        if not recipe.shard:
            ways.append("recipe.shard: true, in several processes")
    return ways


def amount(size: int) -> str:
    """Bytes with two digits and their unit."""
    unit, name = (1e9, "GB") if size >= 1e9 else (1e6, "MB")
    return f"{size / unit:.1f} {name}" if size < 10 * unit else f"{size / unit:.0f} {name}"
