"""What metrics.jsonl says of each epoch: losses, validation perplexities, and what they cost."""

import math
import time
from collections import Counter
from collections.abc import Sequence
from typing import Any

from torch import Tensor

from confide.errors import InputError
from confide.runtime.memory import peak_mb
from confide.train.batches import Batches
from confide.types import Step

COSTS = ("seconds", "cpu_seconds", "peak_mb")  # of an epoch: all that differs between equal runs


class Metrics:
    """Rows of the epochs so far, and the losses of the current one."""

    def __init__(self) -> None:
        self.rows: list[dict[str, Any]] = []
        self.losses: list[Tensor | float] = []  # () each, of exact updates

    def add(self, loss: Tensor | None) -> None:
        """Remember the loss of an update, if there is one to look at."""
        if loss is not None:
            self.losses.append(loss)

    def mean_loss(self, *, done: int, lr: float) -> float | None:
        """Mean loss of the epoch's exact updates, which are then forgotten; waits for the device.

        InputError, after `done` updates at the learning rate `lr`, if training has diverged.
        """
        seen = [float(loss) for loss in self.losses]
        self.losses.clear()
        if not all(map(math.isfinite, seen)):
            message = f"diverged before update {done}: the loss is not finite"
            raise InputError(message, key="recipe.lr", value=lr)
        return sum(seen) / len(seen) if seen else None

    def state(self) -> dict[str, Any]:
        """State for a checkpoint."""
        return {"rows": self.rows, "losses": [float(loss) for loss in self.losses]}

    def restore(self, state: dict[str, Any]) -> None:
        """Continue from a checkpoint's state."""
        self.rows = state["rows"]
        self.losses = state["losses"]


class Watch:
    """Measures the COSTS of an epoch from where it is made."""

    def __init__(self, device: str) -> None:
        self.device = device
        self.started = time.monotonic()
        self.worked = time.process_time()

    def costs(self) -> dict[str, float]:
        """What was spent so far."""
        spent = (
            time.monotonic() - self.started,
            time.process_time() - self.worked,
            peak_mb(self.device),
        )
        return dict(zip(COSTS, spent, strict=True))


def passes(batches: Batches, epochs: Sequence[Sequence[Step]]) -> float:
    """How often these steps read a training point, on average and in expectation.

    It is what methods of one budget have in common.
    """
    recipe = batches.spec.recipe
    total = len(batches.pools["all"])
    average = 0.0
    for step, count in Counter(step for steps in epochs for step in steps).items():
        read = len(batches.pools[step.pool])
        if step.unit == "author":
            most = recipe.author_points
            read = sum(
                min(len(points), most or len(points)) for points in batches.authors[step.pool]
            )
        if step.noisy and step.state != "published":
            share = batches.sample_rate(step)
        else:
            size = recipe.noisy_batch_size if step.noisy else recipe.batch_size
            share = 1 / math.ceil(read / size)
        average += count * read / total * share
    return average


def progress(row: dict[str, Any], epochs: int) -> str:
    """A row for the reader of a log, where no bar can move."""
    line = f"epoch {row['epoch']} of {epochs}, {row['step']} updates"
    if row.get("valid_ppl"):
        line += f", valid perplexity {row['valid_ppl']:.2f}"
    line += f", {row['seconds']:.1f} s"
    if count := row.get("nonfinite_gradients"):
        line += f", {count} gradients were not finite and left out"
    return line
