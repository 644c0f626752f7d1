"""What test_train_sharded.py has torchrun run in two processes: python -m torch.distributed.run ...
FOLDER BASE WAY-METHOD...

`updates` makes the same updates in the group and, in every process, alone, and keeps how far apart
they are; `jobs` runs whole jobs, each twice, the second time killed and resumed.
"""

import json
import sys
from contextlib import nullcontext
from pathlib import Path

import torch

from confide import models
from confide.models import trainable
from confide.models.recompute import recompute
from confide.models.sharding import Shards, moved
from confide.runtime.parallel import ALONE, Group, joined
from confide.specs import CausalLMSpec, TrainSpec
from confide.stages import train as stage
from confide.train.job import Job
from confide.train.planning import enumerate_steps
from confide.train.sizes import sizes_of
from tests.stages.group_worker import made
from tests.stages.killing import killed
from tests.stages.test_train import partition, spec

WAYS = {"full": {}, "adapter": {"adapter": {"rank": 2}, "frozen_dtype": "bfloat16"}}
METHODS = ("nonprivate", "dpsgd", "crt")


def wanted(base: Path, way: str, method: str, *, shard: bool = True) -> TrainSpec:
    """A job without dropout, which each process would draw for its own examples."""
    usual = spec(method, every_epoch=way == "full", device="cpu", checkpoint_every=3)
    recipe = usual.recipe.model_copy(
        update={"shard": shard, "physical_batch_size": 3, "epochs": 2, "lr": 0.002}
    )
    model = CausalLMSpec(kind="causal_lm", pretrained=str(base), dropout=0.0, **WAYS[way])
    return usual.model_copy(update={"recipe": recipe, "model": model})


def job_of(case: TrainSpec, group: Group) -> Job:
    """A job in float64 at its start; in a group of several its weights are divided."""
    torch.manual_seed(0)
    model = models.build(case.model, 300, 0).double().train()
    with torch.no_grad():
        for weight in model.parameters():
            if weight.requires_grad:
                weight.add_(torch.randn_like(weight) / 8)
    recompute(model)
    if group.size > 1:
        model.shards = Shards(model, group)
    return Job(
        case,
        partition(),
        model,
        noise_multiplier=0.8,
        updates={True: 4, False: 4},
        device="cpu",
        group=group,
    )


def updates(folder: Path, base: Path, group: Group) -> None:
    """FOLDER/updates-RANK.json: how many weights are divided, how much of them is kept, and the
    largest difference of a gradient from one process's, over its largest number.
    """
    found = {}
    for way in WAYS:
        case = wanted(base, way, "crt")
        together, alone = (job_of(case, one) for one in (group, ALONE))
        shards = together.model.shards
        assert shards is not None
        kept = sum(part.numel() for part in shards.parts.values())
        whole = sum(weight.numel() for weight in shards.parts)
        kinds = dict.fromkeys(
            step for steps in enumerate_steps(case, sizes_of(case, partition())) for step in steps
        )
        apart = []
        for step in [*kinds] * 2:
            for job in (together, alone):
                for update, _ in job.gradients.of(step):
                    job.optimizers.move(noisy=update.noisy)
            for mine, theirs in zip(trainable(together.model), moved(alone.model), strict=True):
                part = shards.part_of(mine)
                grad = shards.local(theirs.grad, mine)
                if grad.numel():
                    apart.append(float((part.grad - grad).abs().max() / theirs.grad.abs().max()))
                part.data.copy_(shards.local(theirs.data, mine))
        found[way] = {"share": kept / whole, "count": len(shards.parts), "apart": max(apart)}
    (folder / f"updates-{group.rank}.json").write_text(json.dumps(found))


def jobs(folder: Path, base: Path, group: Group, names: list[str]) -> None:
    """FOLDER/whole-NAME and FOLDER/again-NAME."""
    words = folder / "tokenizer.json"
    for name in names:
        case = wanted(base, *name.split("-")), partition()
        again = folder / f"again-{name}"
        made(folder / f"whole-{name}", words, case, group)
        killed(5, lambda case=case, again=again: made(again, words, case, group))
        torch.manual_seed(group.rank)
        made(again, words, case, group)


def main(folder: Path, base: Path, names: list[str]) -> None:
    with joined("cpu") as group:
        stage.joined = lambda device: nullcontext(group)  # one group for all that follows
        updates(folder, base, group)
        jobs(folder, base, group, names)


if __name__ == "__main__":
    torch.set_num_threads(1)
    main(Path(sys.argv[1]), Path(sys.argv[2]), sys.argv[3:])
