"""What a training job takes on this machine: a few of its steps, really run, on text without
meaning.

Nothing of a corpus is read. Where the job's own partition is there already, only its sizes and
lengths count.
"""

import math
import os
import time
from collections import Counter
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from dataclasses import dataclass
from functools import partial
from multiprocessing import get_context
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from confide.errors import InputError, is_lack_of_memory
from confide.specs import TrainSpec
from confide.types import SPLITS, Partition, Step, View

if TYPE_CHECKING:
    from confide.models.language_model import LanguageModel
    from confide.train.job import Job

CHARACTERS = 4.0  # of a token, as far as nothing better is known
WARM = 0.5  # seconds of steps of a kind before time is taken, and of evaluations that are timed
COARSE = 0.2  # seconds below which some systems cannot tell how much of them was work
TIMED = 1.5  # seconds of steps of a kind that are timed
LEAST = 2  # steps, or evaluations, that make either
MOST_POINTS = 20_000  # of the text without meaning
SCORED = 200  # points whose evaluation is timed
AUTHORS = 50
SPREAD = 4.0  # of lengths: the shape of a gamma distribution


class Text(NamedTuple):
    """How much text a job reads."""

    points: dict[str, int]  # by split
    tokens: float  # of a point, on average
    private: float  # share of the points
    # tokens of each point, by split, or of some; None: nobody knows how much they differ
    lengths: dict[str, np.ndarray] | None = None

    @property
    def characters(self) -> float:
        """Of all of it."""
        return sum(self.points.values()) * self.tokens * CHARACTERS


@dataclass(frozen=True, slots=True, kw_only=True)
class Rehearsal:
    """What a rehearsed job would take."""

    seconds: float  # of all its updates and evaluations
    per_token: float  # seconds that a token takes which is only read
    memory_mb: float
    weights_mb: float  # of a file of its trained weights


def rehearse(spec: TrainSpec, text: Text, vocab_size: int, bos: int) -> Rehearsal | None:
    """Rehearse in a process of its own; None where the job cannot run, or not yet."""
    with ProcessPoolExecutor(1, mp_context=get_context("spawn")) as pool:
        try:
            return pool.submit(rehearsed, spec, text, vocab_size, bos).result()
        except BrokenProcessPool:  # killed: it needs more memory than there is
            return None


def rehearsed(spec: TrainSpec, text: Text, vocab_size: int, bos: int) -> Rehearsal | None:
    """The same in this process."""
    try:
        return played(spec, text, vocab_size, bos)
    except InputError:  # of settings that do not fit, or a pretrained model that is not there
        return None
    except RuntimeError as error:
        if not is_lack_of_memory(error):
            raise
        return None


def played(spec: TrainSpec, text: Text, vocab_size: int, bos: int) -> Rehearsal:
    """The same. InputError where the job cannot run."""
    import torch

    from confide.models import build, trainable
    from confide.runtime.devices import device_of
    from confide.runtime.memory import keep_pages, peak_mb
    from confide.train.forecast import forecast
    from confide.train.planning import enumerate_steps
    from confide.train.sizes import sizes_of

    torch.set_num_threads(int(os.environ.get("OMP_NUM_THREADS", 1)))
    keep_pages()
    network = build(spec.model, vocab_size, bos).to(device_of(spec.device)).train()
    partition = meaningless(text, vocab_size, most=network.positions - 1)
    plan = enumerate_steps(spec, sizes_of(spec, partition))
    counts = Counter(step for steps in plan for step in steps)
    job = job_of(spec, partition, network, counts)
    # before any step: the longest texts may be in none of those that are timed
    longest_mb = peak_mb(job.device) + forecast(job, plan).to_come / 1e6
    share = sum(text.points.values()) / len(partition.original)
    seconds = share * math.fsum(
        count * seconds_of(job, step, text.tokens) for step, count in counts.items()
    )
    per_token = seconds_per_token(job)
    held_out = text.points["valid"] * (text.tokens + 1)  # tokens, the ends of texts among them
    return Rehearsal(
        seconds=seconds + len(plan) * held_out * per_token,
        per_token=per_token,
        memory_mb=max(longest_mb, peak_mb(job.device)),
        weights_mb=sum(weight.nbytes for weight in trainable(network)) / 1e6,
    )


def job_of(
    spec: TrainSpec, partition: Partition, network: "LanguageModel", counts: Counter[Step]
) -> "Job":
    """A job as training makes it, but without a ledger's head and the noise that a budget wants.

    counts: how many steps of each kind it would make.
    """
    from confide.models.recompute import recompute
    from confide.runtime.parallel import ALONE
    from confide.train.job import Job
    from confide.train.planning import updates_of_steps
    from confide.train.regularisers import regulariser_of

    if spec.recipe.gradient_checkpointing or spec.recipe.shard:
        recompute(network)
    kinds = {step.regulariser for step in counts}
    device = str(network.device)
    width = network.head.weight.shape[1]
    return Job(
        spec,
        partition,
        network,
        noise_multiplier=1.0,
        updates=updates_of_steps(list(counts.elements())),
        device=device,
        regulariser=regulariser_of(kinds, spec, partition, width, device),
        group=ALONE,
    )


def seconds_per_token(job: "Job") -> float:
    """Seconds that a token takes which the model only reads."""
    from confide.train.evaluation import evaluate_points

    partition = job.batches.partition
    view = partition.original
    points = np.flatnonzero(partition.split == SPLITS.index("valid"))[:SCORED]
    evaluate_points(job.model, view, partition.secret, points[:1], job.device)
    clock = Clock(job.device)
    read = partial(evaluate_points, job.model, view, partition.secret, points, job.device)
    count = repeated(read, WARM)
    tokens = len(points) + int(np.diff(view.starts)[points].sum())
    return clock.seconds() / (count * tokens)


def seconds_of(job: "Job", step: Step, tokens: float) -> float:
    """Seconds of one step of a kind, by a few, and by how much more it reads on average.

    tokens: of a point, on average. The few may have met none of the long points, or one.
    """
    take = partial(job.run, step)
    repeated(take, WARM)
    clock = Clock(job.device)
    before = job.batches.tokens
    count = repeated(take, TIMED)
    seconds = clock.seconds() / count
    read = (job.batches.tokens - before) / count
    if read == 0 or step.unit == "author" or step.state == "published":
        return seconds
    recipe = job.spec.recipe
    points = len(job.batches.pools[step.pool])
    size = recipe.noisy_batch_size if step.noisy else min(recipe.batch_size, points)
    return seconds * size * (tokens + 1) / read


def repeated(work: Callable[[], object], seconds: float) -> int:
    """Do some work again and again for so long, and at least a few times; how often that was."""
    began = time.perf_counter()
    count = 0
    while count < LEAST or time.perf_counter() - began < seconds:
        work()
        count += 1
    return count


class Clock:
    """Time that work takes where nothing else is running: on a CPU what other programs take of it
    does not count.
    """

    def __init__(self, device: str) -> None:
        self.device = device
        self.began = self.now()

    def now(self) -> tuple[float, float]:
        """Seconds of the clock, and of work, since some time."""
        if self.device.startswith("cuda"):
            import torch

            torch.cuda.synchronize()
        return time.perf_counter(), time.process_time()

    def seconds(self) -> float:
        """Since it was made."""
        now = self.now()
        passed = now[0] - self.began[0]
        worked = now[1] - self.began[1]
        if self.device.startswith("cuda") or passed < COARSE:
            return passed
        return min(passed, worked)


def meaningless(text: Text, vocab_size: int, most: float = math.inf) -> Partition:
    """Points of random tokens: as many as the text has, up to a bound, and as long.

    Where nobody knows how much their lengths differ, it is as much as those of sentences do. A
    private point has one private token. most: tokens that a model can read, beyond which training
    refuses a text.
    """
    rng = np.random.default_rng(0)
    shrunk = min(1.0, MOST_POINTS / max(1, sum(text.points.values())))
    counts = [max(1, round(text.points[split] * shrunk)) for split in SPLITS]
    total = sum(counts)
    if text.lengths is None:
        lengths = 1 + rng.gamma(SPREAD, max(0.0, text.tokens - 1) / SPREAD, total).astype(np.int64)
    else:
        of_splits = zip((text.lengths[split] for split in SPLITS), counts, strict=True)
        lengths = np.concatenate([some(each, count, rng) for each, count in of_splits])
    lengths = np.minimum(lengths, most).astype(np.int64)
    starts = np.concatenate([[0], np.cumsum(lengths)])
    is_private = rng.random(total) < text.private
    marks = np.zeros(starts[-1], bool)
    marks[starts[:-1][is_private]] = True
    view = View(rng.integers(0, vocab_size, starts[-1], dtype=np.int32), starts, marks)
    return Partition(
        original=view,
        redacted=view,
        secret=marks,
        private=is_private,
        copy=np.zeros(total, bool),
        split=np.repeat(np.arange(len(SPLITS), dtype=np.uint8), counts),
        domain=np.full(total, -1, np.int32),
        owner=rng.integers(0, AUTHORS, total, dtype=np.int32),
    )


def some(lengths: np.ndarray, count: int, rng: np.random.Generator) -> np.ndarray:
    """So many lengths as of a sample of these; the longest is always one of them."""
    if not len(lengths):
        return np.ones(count, np.int64)
    drawn = rng.choice(lengths, count, replace=count > len(lengths))
    if lengths.max() not in drawn:
        drawn[0] = lengths.max()
    return drawn
