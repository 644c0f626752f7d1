"""What a job is said to take, beside what it takes; what is said where memory runs out."""

import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from confide import models
from confide.errors import InputError
from confide.models.batches import Batch
from confide.models.recompute import recompute
from confide.runtime import memory
from confide.runtime.memory import free, taken
from confide.specs import (
    AdapterSpec,
    CausalLMSpec,
    GPT2Spec,
    LSTMSpec,
    ModelSpec,
    PrivacySpec,
    RecipeSpec,
    TrainSpec,
)
from confide.stages import train as stage
from confide.train import forecast as forecasts
from confide.train.forecast import forecast
from confide.train.job import Job
from confide.train.planning import Epochs, enumerate_steps, updates_of_steps
from confide.train.sizes import sizes_of
from confide.types import Partition, View
from tests.nightly import nightly
from tests.stages.test_train import run, spec, vocabulary
from tests.terms import TERMS

__all__ = ["vocabulary"]
ROOT = Path(__file__).parents[2]
VOCAB = 500
SIZES: dict[str, ModelSpec] = {
    "gpt2 1x32": GPT2Spec(kind="gpt2", layers=1, width=32, heads=2, positions=64),
    "gpt2 4x64": GPT2Spec(kind="gpt2", layers=4, width=64, heads=2, positions=64),
    "gpt2 4x64, adapters": GPT2Spec(
        kind="gpt2", layers=4, width=64, heads=2, positions=64, lora_rank=4
    ),
    "lstm 100": LSTMSpec(kind="lstm", embedding=100, hidden=100),
}


def text(points: int, longest: int, vocab: int) -> Partition:
    """Points of nearly one length, all private, some held out."""
    source = np.random.default_rng(0)
    lengths = source.integers(longest - 4, longest + 1, points)
    starts = np.concatenate([[0], lengths.cumsum()]).astype(np.int64)
    ids = source.integers(2, vocab, starts[-1]).astype(np.int32)
    view = View(ids, starts, np.zeros(len(ids), bool))
    flags = np.ones(points, bool)
    split = (np.arange(points) % 10 == 0).astype(np.uint8)
    none = np.full(points, -1, dtype=np.int32)
    return Partition(view, view, view.private, flags, ~flags, split, none, none)


def job_of(
    model: ModelSpec, method: str, data: Partition, vocab: int = VOCAB, **recipe: Any
) -> tuple[Job, Epochs]:
    given = {"batch_size": 16, "noisy_batch_size": 16, "epochs": 1} | recipe
    wanted = TrainSpec(
        data=TERMS,
        run="a/g0-s0",
        method=method,
        model=model,
        recipe=RecipeSpec(**given),
        privacy=PrivacySpec(noise_multiplier=1.0),
        device="cpu",
    )
    torch.manual_seed(0)
    network = models.build(model, vocab, 1).train()
    if wanted.recipe.gradient_checkpointing:
        recompute(network)
    epochs = enumerate_steps(wanted, sizes_of(wanted, data))
    made = Job(
        wanted,
        data,
        network,
        noise_multiplier=1.0,
        updates=updates_of_steps([step for steps in epochs for step in steps]),
        device="cpu",
    )
    return made, epochs


@pytest.mark.parametrize("again", [False, True], ids=["kept", "recomputed"])
@pytest.mark.parametrize("method", ["nonprivate", "dpsgd"])
@pytest.mark.parametrize("size", ["gpt2 1x32", "lstm 100", *map(nightly, list(SIZES)[1:3])])
def test_forecasts_are_what_updates_take(size: str, method: str, again: bool) -> None:
    if again and size.startswith("lstm"):
        return
    data = text(40, 40, VOCAB)
    made, epochs = job_of(
        SIZES[size], method, data, gradient_checkpointing=again, physical_batch_size=6
    )
    before = [weight.clone() for weight in made.model.parameters()]
    state = torch.get_rng_state()
    found = forecast(made, epochs)
    assert torch.equal(torch.get_rng_state(), state)  # and nothing has happened
    assert all(map(torch.equal, before, made.model.parameters()))
    assert made.gradients.nonfinite() == 0
    really = taken(lambda: [made.run(step) for step in epochs[0][:3]], "cpu")
    assert 0.9 < (found.states + found.piece / forecasts.GAPS["cpu"]) / really < 1.1


def test_what_a_library_keeps_from_its_first_call_hides_no_example() -> None:
    """As cuBLAS keeps a workspace, which was more than a third example took."""
    kept: list[torch.Tensor] = []

    def read(batch: Batch) -> None:
        if not kept:
            kept.append(torch.empty(1_000_000))
        torch.empty(len(batch), 1000)

    job, _ = job_of(SIZES["lstm 100"], "nonprivate", text(40, 40, VOCAB))
    found = forecasts.scaled(read, job, count=50, length=10)
    assert found == pytest.approx(forecasts.GAPS["cpu"] * 50 * 4000, rel=0.05)


@pytest.mark.parametrize(
    "keys", [{"average": 0.5}, {"precondition": True}, {"noisy_filter": "subspace"}]
)
def test_what_refines_noised_updates_is_counted(keys: dict[str, Any]) -> None:
    data = text(40, 40, VOCAB)
    plain = forecast(*job_of(SIZES["lstm 100"], "jft", data, epochs=2))
    made, epochs = job_of(SIZES["lstm 100"], "jft", data, epochs=2, **keys)
    found = forecast(made, epochs)
    kept = [tensor for part in forecasts.refinements(made) for tensor in part.state().values()]
    most = 0
    for step in [step for steps in epochs for step in steps]:
        made.run(step)
        held = kept + list(made.filters.projections.values())
        most = max(most, sum(tensor.nbytes for tensor in held))
    assert found.sums + found.states - plain.sums - plain.states == most


def test_recomputed_blocks_take_less() -> None:
    sizes = GPT2Spec(kind="gpt2", layers=8, width=32, heads=2, positions=64, lora_rank=4)
    data = text(80, 60, 50)
    found = {}
    for method in ("nonprivate", "dpsgd"):
        for again in (False, True):
            made = job_of(sizes, method, data, vocab=50, gradient_checkpointing=again)
            found[method, again] = forecast(*made).piece
        assert found[method, True] < found[method, False] / 3


MEASURED = """
import gc, sys
from pathlib import Path
import torch
import torch._dynamo
from tests.train.test_forecast import job_of, text
from confide.runtime.memory import keep_pages
from confide.specs import GPT2Spec
from confide.train.forecast import forecast

def resident():
    lines = Path("/proc/self/status").read_text().splitlines()
    return 1024 * int(next(line for line in lines if line.startswith("VmHWM:")).split()[1])

torch.set_num_threads(1)
layers, width, rank, tokens, method = sys.argv[1:]
spec = GPT2Spec(kind="gpt2", layers=layers, width=width, heads=4, positions=256, lora_rank=rank)
data = text(100, 127, 4096)
keep_pages()
small = GPT2Spec(kind="gpt2", layers=1, width=8, heads=2, positions=16, lora_rank=rank)
job, epochs = job_of(small, method, text(20, 9, 50), vocab=50)
job.run(epochs[0][0])  # loads what is loaded late
gc.collect()
Path("/proc/self/clear_refs").write_text("5")
floor = resident()
job, epochs = job_of(spec, method, data, vocab=4096, physical_tokens=int(tokens))
for step in epochs[0][:3]:
    job.run(step)
print(resident() - floor, forecast(job, epochs).most)
"""


@pytest.mark.nightly
@pytest.mark.parametrize("method", ["nonprivate", "dpsgd"])
@pytest.mark.parametrize(
    "sizes", [(4, 256, 0, 1024), (4, 256, 0, 2048), (8, 256, 8, 1024), (8, 256, 8, 2048)]
)
def test_forecasts_are_what_a_process_takes(sizes: tuple[int, ...], method: str) -> None:
    line = [sys.executable, "-c", MEASURED, *map(str, sizes), method]
    ran = subprocess.run(line, cwd=ROOT, capture_output=True, text=True, check=True)
    really, said = map(int, ran.stdout.split())
    assert 0.6 < said / really < 1.5


def test_what_is_free_is_the_least_that_anybody_leaves(tmp_path: Path) -> None:
    assert free("cpu", tmp_path) is None
    for name in ("proc/self", "sys/fs/cgroup/job/step", "sys/fs/cgroup/memory/old"):
        (tmp_path / name).mkdir(parents=True)
    (tmp_path / "proc/meminfo").write_text("MemTotal: 9 kB\nMemAvailable:    8000 kB\n")
    assert free("cpu", tmp_path) == 8000 * 1024
    (tmp_path / "proc/self/cgroup").write_text("0::/job/step\n4:memory:/old\n3:pids:/\n")
    for folder, limit, used in (("job/step", "max", "5"), ("job", "900000", "500000")):
        (tmp_path / "sys/fs/cgroup" / folder / "memory.max").write_text(f"{limit}\n")
        (tmp_path / "sys/fs/cgroup" / folder / "memory.current").write_text(f"{used}\n")
    assert free("cpu", tmp_path) == 400_000
    (tmp_path / "sys/fs/cgroup/job/memory.stat").write_text("anon 7\ninactive_file 100000\n")
    assert free("cpu", tmp_path) == 500_000
    old = tmp_path / "sys/fs/cgroup/memory/old"
    (old / "memory.limit_in_bytes").write_text("300000\n")
    (old / "memory.usage_in_bytes").write_text("100000\n")
    assert free("cpu", tmp_path) == 200_000


@pytest.mark.parametrize(
    "error",
    [
        torch.OutOfMemoryError("CUDA out of memory."),
        MemoryError(),
        RuntimeError("[enforce fail] DefaultCPUAllocator: can't allocate memory: you tried"),
    ],
)
def test_running_out_of_memory_is_one_line_of_advice(
    error: BaseException, tmp_path: Path, vocabulary: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fails(*_: object) -> None:
        raise error

    monkeypatch.setattr(Job, "run", fails)
    with pytest.raises(
        InputError, match=r"out of memory; what helps: a smaller recipe\.phy"
    ) as said:
        run(tmp_path, vocabulary, spec("dpsgd"))
    assert str(said.value).count("\n") == 0 and not (tmp_path / "model.safetensors").exists()


def test_a_real_allocation_that_fails_is_one_line(
    tmp_path: Path, vocabulary: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Job, "run", lambda *_: torch.empty(1 << 60))
    with pytest.raises(InputError, match="out of memory; what helps"):
        run(tmp_path, vocabulary, spec("dpsgd"))


def test_one_example_that_does_not_fit_is_one_line_of_advice(
    tmp_path: Path, vocabulary: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(stage, "announce", lambda *_: None)
    monkeypatch.setattr(
        memory.Budget, "run", lambda self, *_: self._halve(count=1, length=self.tokens or 1)
    )
    wanted = spec("dpsgd")
    recipe = wanted.recipe.model_copy(update={"physical_tokens": 4})
    gpt2 = GPT2Spec(kind="gpt2", layers=1, width=8, heads=2, positions=16)
    with pytest.raises(InputError) as said:
        run(tmp_path, vocabulary, wanted.model_copy(update={"recipe": recipe, "model": gpt2}))
    assert str(said.value) == (
        "recipe.physical_tokens: one example alone does not fit into memory; what helps: "
        "a smaller recipe.physical_tokens (now 4), recipe.gradient_checkpointing: true"
    )


def test_weights_that_do_not_fit_are_refused_before_they_are_there(
    tmp_path: Path, vocabulary: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    large = LSTMSpec(kind="lstm", embedding=1 << 18, hidden=1 << 18)
    with pytest.raises(InputError, match=r"model: a model of kind lstm has weights of 2... GB, an"):
        run(tmp_path, vocabulary, spec("dpsgd").model_copy(update={"model": large}))


def test_a_job_that_may_not_fit_is_told_so_and_runs(
    tmp_path: Path,
    vocabulary: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.setattr(forecasts, "free", lambda _: 1)
    run(tmp_path, vocabulary, spec("dpsgd"))
    lines = [line for line in capsys.readouterr().err.splitlines() if "epoch" not in line]
    assert len(lines) == 2 and "MB of memory (weights 0.0 MB" in lines[0]
    assert "more than there is; what helps: a smaller recipe.physical_batch_size" in lines[1]


@pytest.mark.parametrize("there", [True, False])
def test_a_processor_without_products_of_bfloat16_is_named(
    tmp_path: Path,
    vocabulary: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    there: bool,
) -> None:
    monkeypatch.setattr(stage, "has_bfloat16", lambda _: there)
    monkeypatch.setattr(forecasts, "has_bfloat16", lambda _: there)
    gpt2 = GPT2Spec(kind="gpt2", layers=1, width=8, heads=2, positions=64)
    wanted = spec("dpsgd").model_copy(update={"model": gpt2})
    run(tmp_path, vocabulary, wanted)
    assert "bfloat16" not in capsys.readouterr().err
    recipe = wanted.recipe.model_copy(update={"precision": "bfloat16", "epochs": 1})
    run(tmp_path, vocabulary, wanted.model_copy(update={"recipe": recipe}))
    assert ("computed in float32" in capsys.readouterr().err) is not there
    model = CausalLMSpec(kind="causal_lm", pretrained="a/b", adapter=AdapterSpec())
    ways = forecasts.savings(wanted.model_copy(update={"model": model}))
    assert ("model.frozen_dtype: bfloat16" in ways) is there
