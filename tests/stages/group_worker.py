"""What test_train_processes.py has torchrun run in two processes: python -m torch.distributed.run
... FOLDER.

`updates` makes the same updates in the group and, in every process, alone, and keeps how far apart
they are; `jobs` runs whole training jobs in the group, for the test to compare with jobs of one
process.
"""

import json
import sys
from collections import Counter
from collections.abc import Iterator
from contextlib import nullcontext
from itertools import chain
from pathlib import Path
from typing import Any

import torch
from torch import nn

from confide import models
from confide.dp.mechanism import update
from confide.models.batches import Batch
from confide.runtime.parallel import ALONE, Group, joined
from confide.specs import GPT2Spec, TrainSpec
from confide.stages import train as stage
from confide.train.job import Job
from confide.train.planning import enumerate_steps
from confide.train.regularisers import regulariser_of
from confide.train.sizes import sizes_of
from confide.types import Partition, Step
from tests.stages import test_train, test_train_authors, test_train_selective
from tests.stages.killing import killed

Case = tuple[TrainSpec, Partition]
GPT2 = GPT2Spec(kind="gpt2", layers=1, width=8, heads=2, positions=64)
STATES = ["reset", "noise", "carry", "published"]
REPEATS = 4  # of each kind of update, at most


def still(spec: TrainSpec, **recipe: Any) -> TrainSpec:
    """Without dropout, on the CPU, other settings of the recipe as given."""
    model = spec.model.model_copy(update={"dropout": 0.0})
    return spec.model_copy(
        update={"model": model, "device": "cpu", "recipe": spec.recipe.model_copy(update=recipe)}
    )


def cases() -> dict[str, Case]:
    """Every method, and what else decides how a batch is divided."""
    plain = test_train.partition()
    marked = test_train_selective.partition()
    owned = test_train_authors.written()
    found = {
        method: (still(test_train.spec(method), physical_batch_size=3), plain)
        for method in test_train.TRAINED
    }
    found |= {
        f"selective {state}": (still(test_train_selective.spec(state)), marked) for state in STATES
    }
    for size in (2, 100):
        found[f"crt, pieces of {size}"] = (
            still(test_train.spec("crt"), physical_batch_size=size),
            plain,
        )
        found[f"authors, pieces of {size}"] = (
            still(test_train_authors.asked(most=2), physical_batch_size=size),
            owned,
        )
    found["all of an author"] = still(test_train_authors.asked("crt", expected=3, most=None)), owned
    found["batches of an author"] = still(test_train.spec("nonprivate"), batching="author"), owned
    found["less than an example each"] = (
        still(test_train.spec("crt"), noisy_batch_size=1, batch_size=1, epochs=2),
        plain,
    )
    found["gpt2"] = still(test_train.spec("crt").model_copy(update={"model": GPT2})), plain
    found["not finite"] = still(test_train.spec("dpsgd")), plain
    discrete = test_train.PRIVACY.model_copy(update={"noise": "discrete_gaussian"})
    found["discrete noise"] = still(test_train.spec("dpsgd", privacy=discrete)), plain
    found["bfloat16"] = still(test_train.spec("crt"), precision="bfloat16"), plain
    return found


def job_of(case: Case, steps: list[Step], group: Group, dtype: torch.dtype) -> Job:
    """A job at its start, whose gradients differ between points."""
    spec, data = case
    torch.manual_seed(0)
    model = models.build(spec.model, 270, 1).train()
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.add_(0.3 * torch.randn_like(parameter))
    regulariser = regulariser_of(
        {step.regulariser for step in steps}, spec, data, model.head.weight.shape[1], "cpu"
    )
    if dtype == torch.float64 and regulariser is not None and hasattr(regulariser, "discriminator"):
        regulariser.discriminator.double()
    return Job(
        spec,
        data,
        model.to(dtype),
        noise_multiplier=0.8,
        updates={True: len(steps), False: len(steps)},
        device="cpu",
        regulariser=regulariser,
        group=group,
    )


def largest(job: Job, other: Job) -> float:
    """How far apart the gradients of two jobs are, over the largest of them."""
    pairs = [
        (one.grad, two.grad)
        for one, two in zip(job.model.parameters(), other.model.parameters(), strict=True)
    ]
    return float(
        max((one - two).abs().max() for one, two in pairs)
        / max(two.abs().max() for _, two in pairs)
    )


def compared(case: Case, group: Group, dtype: torch.dtype) -> dict[str, Any]:
    """The same updates together and alone, each from the same weights; alone in one piece, if none
    draws noise or pairs.
    """
    spec, data = case
    kinds = Counter(chain.from_iterable(enumerate_steps(spec, sizes_of(spec, data))))
    steps = [step for step, count in kinds.items() for _ in range(min(count, REPEATS))]
    together, alone = (job_of(case, steps, one, dtype) for one in (group, ALONE))
    apart = 0.0
    sizes = []
    divided = together.batches.pieces
    if alone.regulariser is None and spec.recipe.private_state != "noise":
        for step in kinds:
            alone.batches.budget(step).size = 1000

    def counted(step: Step, chosen: torch.Tensor) -> Iterator[Any]:
        pieces = list(divided(step, chosen))
        sizes.append(sum(map(len, pieces)))
        return iter(pieces)

    def scaled(norms: torch.Tensor) -> torch.Tensor:
        clipper = together.gradients.clipper
        assert (
            norms.dtype == clipper.flat.dtype == torch.float64 and clipper.spare.dtype == dtype
        )  # in bfloat16, too
        return scale(norms)

    together.batches.pieces = counted
    if (clipper := together.gradients.clipper) is not None:
        scale, clipper._scale = clipper._scale, scaled
    for step in steps:
        together.run(step)
        alone.run(step)
        apart = max(apart, largest(together, alone))
        for one, two in zip(together.model.parameters(), alone.model.parameters(), strict=True):
            one.data.copy_(two.data)  # or Adam would make much of what rounding left
    same = together.history.ledger.dump() == alone.history.ledger.dump()
    losses = [
        abs(float(a) - float(b))
        for a, b in zip(together.metrics.losses, alone.metrics.losses, strict=True)
    ]
    counts = [job.gradients.nonfinite() for job in (together, alone)]
    return {
        "apart": apart,
        "ledger": same,
        "losses": max(losses, default=0.0),
        "sizes": sizes,
        "nonfinite": counts,
    }


def updates(folder: Path, group: Group) -> None:
    """FOLDER/updates-RANK.json: of each case in both precisions."""
    found = {}
    honest = update.token_losses

    def poisoned(model: nn.Module, batch: Batch, half: bool) -> torch.Tensor:
        return honest(model, batch, half) * torch.where(
            (batch.inputs % 16 == 7).any(1, keepdim=True), torch.nan, 1.0
        )

    for name, case in cases().items():
        update.token_losses = poisoned if name == "not finite" else honest
        found[name] = {
            str(dtype)[6:]: compared(case, group, dtype) for dtype in (torch.float32, torch.float64)
        }
    update.token_losses = honest
    (folder / f"updates-{group.rank}.json").write_text(json.dumps(found))


def made(folder: Path, words: Path, case: Case, group: Group) -> None:
    """A whole job; one process has written its inputs."""
    spec, data = case
    if group.first:
        folder.mkdir(parents=True, exist_ok=True)
        test_train.files(folder, data)
    group.wait()
    views = {name: folder / f"{name}.safetensors" for name in ("original", "redacted")}
    stage.train(spec, **views, tokenizer=words, **test_train.outputs(folder))
    group.wait()


def jobs(folder: Path, group: Group, methods: list[str]) -> None:
    """FOLDER/whole-NAME and FOLDER/resumed-NAME; one process goes on with FOLDER/left, and has
    begun FOLDER/right.
    """
    words = folder / "tokenizer.json"
    plain = test_train.partition()
    wanted = {method: still(test_train.spec(method, every_epoch=True)) for method in methods}
    for name, spec in (wanted | {"dropout": test_train.spec("crt")}).items():
        made(folder / f"whole-{name}", words, (spec, plain), group)
        killed(
            7,
            lambda name=name, spec=spec: made(
                folder / f"resumed-{name}", words, (spec, plain), group
            ),
        )
        torch.manual_seed(group.rank)
        made(folder / f"resumed-{name}", words, (spec, plain), group)
    killed(7, lambda: made(folder / "left", words, (wanted["crt"], plain), group))
    made(folder / "right", words, (wanted["crt"], plain), group)


def main(folder: Path, methods: list[str]) -> None:
    with joined("cpu") as group:
        stage.joined = lambda device: nullcontext(group)  # one group for all that follows
        updates(folder, group)
        jobs(folder, group, methods)


if __name__ == "__main__":
    torch.set_num_threads(1)
    main(Path(sys.argv[1]), sys.argv[2:])
