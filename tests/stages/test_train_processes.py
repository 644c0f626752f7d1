"""One model on two processes: gradients, noise, ledger and files of one, whatever the method; and
how they end.
"""

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest
import torch
from safetensors.torch import load_file

from confide.dp.mechanism.randomness import generator_of, usual_generator
from confide.files.io import read_jsonl
from confide.runtime.parallel import ALONE, Group
from confide.specs import TrainSpec
from tests.nightly import nightly
from tests.stages.group_worker import cases, made, still
from tests.stages.killing import killed
from tests.stages.test_train import (
    RECIPE,
    TRAINED,
    files,
    history,
    outputs,
    partition,
    read_values,
    spec,
    vocabulary,
)

__all__ = ["vocabulary"]

ROOT = Path(__file__).parents[2]
ENVIRONMENT = os.environ | {"PYTHONPATH": f"{ROOT / 'src'}:{ROOT}", "OMP_NUM_THREADS": "1"}
TOGETHER = [sys.executable, "-m", "torch.distributed.run", "--standalone", "--nproc-per-node=2"]
pytestmark = pytest.mark.slow


# Of the jobs those of one method are run every day.
ASKED = [name if name == "crt" else nightly(name) for name in TRAINED]


@pytest.fixture(scope="module")
def done(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory, vocabulary: Path
) -> Path:
    """The folder of group_worker.py, whose two processes have ended well.

    They run the jobs of those methods whose tests are asked for.
    """
    asked = {item.nodeid.partition("::")[2] for item in request.session.items}
    test = test_jobs_leave_the_files_of_one_process.__name__
    methods = [name for name in TRAINED if name == "crt" or f"{test}[{name}]" in asked]
    folder = tmp_path_factory.mktemp("group")
    (folder / "tokenizer.json").write_bytes(vocabulary.read_bytes())
    begun = still(spec("crt", every_epoch=True)), partition()
    killed(7, lambda: made(folder / "right", vocabulary, begun, ALONE))
    command = [*TOGETHER, "-m", "tests.stages.group_worker", str(folder), *methods]
    ran = subprocess.run(
        command, cwd=ROOT, env=ENVIRONMENT, capture_output=True, text=True, check=False
    )
    assert ran.returncode == 0, ran.stderr
    return folder


def alone(folder: Path, vocabulary: Path, wanted: TrainSpec) -> dict[str, Path]:
    made(folder, vocabulary, (wanted, partition()), ALONE)
    return outputs(folder)


@pytest.mark.parametrize("name", cases())
def test_updates_are_those_of_one_process(name: str, done: Path) -> None:
    found = [json.loads((done / f"updates-{rank}.json").read_text())[name] for rank in (0, 1)]
    for dtype, bound in (("float32", 1e-2 if name == "bfloat16" else 1e-6), ("float64", 1e-12)):
        first, second = (one[dtype] for one in found)
        assert first["apart"] == second["apart"] < bound and first["ledger"] and second["ledger"]
        (count, expected), other = first["nonfinite"], second["nonfinite"]
        assert count == expected == other[0] and (count > 0) == (name == "not finite")
        assert max(first["losses"], second["losses"]) < 10 * bound
        pairs = list(zip(first["sizes"], second["sizes"], strict=True))
        # sums are in another order where they are divided, unless they are of integers
        assert (first["apart"] > 0) == (name not in ("selective published", "discrete noise"))
        if not name.startswith(("authors", "all of")):
            assert all(
                0 <= one - other <= 1 for one, other in pairs
            )  # every second example, the first to the first process
    if name == "less than an example each":
        assert {(0, 0), (1, 0)} < set(pairs)


@pytest.mark.parametrize("method", ASKED)
def test_jobs_leave_the_files_of_one_process(
    method: str, done: Path, tmp_path: Path, vocabulary: Path
) -> None:
    here = alone(tmp_path / "alone", vocabulary, still(spec(method, every_epoch=True)))
    there = outputs(done / f"whole-{method}")
    assert here["config"].read_bytes() == there["config"].read_bytes()
    assert history(here["ledger"]) == history(there["ledger"])
    for name in ("model", "epochs"):
        one = load_file(here[name])
        two = load_file(there[name])
        assert one.keys() == two.keys()
        assert all(torch.allclose(one[key], two[key], rtol=1e-3, atol=1e-3) for key in one)
    for one, two in zip(read_jsonl(here["metrics"]), read_jsonl(there["metrics"]), strict=True):
        assert one.keys() == two.keys() and one["valid_ppl"] == pytest.approx(
            two["valid_ppl"], rel=1e-3
        )
        assert one["step"] == two["step"] and one["loss"] == (
            one["loss"] and pytest.approx(two["loss"], rel=1e-3)
        )
    left = sorted(path.name for path in (done / f"whole-{method}/checkpoint").iterdir())
    assert left == ["finished.json", "lock"]


@pytest.mark.parametrize("name", [*ASKED, "dropout"])
def test_killed_processes_resume_to_the_same_bytes(name: str, done: Path) -> None:
    whole = outputs(done / f"whole-{name}")
    resumed = outputs(done / f"resumed-{name}")
    for file in ("model", "ledger", "epochs"):
        assert resumed[file].read_bytes() == whole[file].read_bytes()


def test_another_number_of_processes_goes_on(done: Path, vocabulary: Path) -> None:
    """Two after one, and one after two: the same ledger, and weights that rounding moves."""
    whole = outputs(done / "whole-crt")
    assert read_values(done / "left/checkpoint/state.safetensors")["done"] == 4
    alone(done / "left", vocabulary, still(spec("crt", every_epoch=True)))
    for name in ("left", "right"):
        made = outputs(done / name)
        assert history(made["ledger"]) == history(whole["ledger"])
        one = load_file(made["model"])
        two = load_file(whole["model"])
        assert all(torch.allclose(one[key], two[key], rtol=1e-3, atol=1e-3) for key in two)


def test_dropout_differs_between_processes_and_updates_and_moves_their_common_source_alike() -> (
    None
):
    sources = [torch.Generator().manual_seed(3) for _ in range(2)]
    drawn = [
        [torch.rand(8, generator=generator_of(rank, source)).tolist() for _ in range(3)]
        for rank, source in enumerate(sources)
    ]
    assert len({tuple(row) for rows in drawn for row in rows}) == 6
    assert torch.equal(sources[0].get_state(), sources[1].get_state())
    assert usual_generator(torch.device("cpu")) is torch.default_generator


def test_one_process_has_no_group() -> None:
    given = torch.ones(3)
    ALONE.sum([given])
    ALONE.check([given], "history")
    assert (
        given.tolist() == [1, 1, 1]
        and ALONE.same(7) == 7
        and ALONE.first
        and list(range(5))[ALONE.part] == [0, 1, 2, 3, 4]
    )
    parts = [list(range(5))[Group(rank, 3).part] for rank in range(3)]
    assert parts == [[0, 3], [1, 4], [2]]
    assert not torch.distributed.is_initialized()


def command(folder: Path, vocabulary: Path, wanted: TrainSpec, *more: str) -> list[str]:
    folder.mkdir(exist_ok=True)
    paths = outputs(folder) | files(folder, partition()) | {"tokenizer": vocabulary}
    flags = [part for name, path in paths.items() for part in (f"--{name}", str(path))]
    return [
        sys.executable,
        "-m",
        "confide.cli",
        "train",
        "--spec",
        wanted.model_dump_json(),
        *flags,
        *more,
    ]


@pytest.mark.nightly
def test_a_process_killed_outright_ends_the_job_and_the_next_goes_on(
    tmp_path: Path, vocabulary: Path
) -> None:
    """Its noise comes from the system's entropy, which the first process has drawn for both."""
    long = spec("crt", checkpoint_every=1, noise_seed=None, device="cpu")
    long = long.model_copy(update={"recipe": RECIPE.model_copy(update={"epochs": 200})})
    line = command(tmp_path, vocabulary, long, "--processes", "2")
    state = tmp_path / "checkpoint/state.safetensors"
    job = subprocess.Popen(line, env=ENVIRONMENT, stderr=subprocess.PIPE, text=True)
    while job.poll() is None and not state.exists():
        time.sleep(0.05)
    children = Path(f"/proc/{job.pid}/task/{job.pid}/children").read_text().split()
    ranks = [
        next(
            part
            for part in Path(f"/proc/{child}/environ").read_text().split("\0")
            if part.startswith("RANK=")
        )
        for child in children
    ]
    os.kill(int(children[ranks.index("RANK=1")]), signal.SIGKILL)
    errors = [
        line for line in job.communicate()[1].splitlines() if not line.startswith("a/g0-s0: ")
    ]
    assert job.returncode != 0 and not (tmp_path / "model.safetensors").exists()
    assert errors[-1] == "confide: error: process 1 was ended by SIGKILL" and not any(
        "Traceback" in line for line in errors
    )
    before = read_values(state)["done"]
    assert 0 < before < 2000
    short = subprocess.Popen(line, env=ENVIRONMENT, stderr=subprocess.PIPE, text=True)
    while short.poll() is None and read_values(state)["done"] < before + 3:
        time.sleep(0.05)
    assert short.poll() is None  # goes on
    short.terminate()
    assert "Traceback" not in short.communicate()[1] and short.returncode == 128 + signal.SIGTERM


@pytest.mark.parametrize("processes", [nightly("2"), "0"])
def test_a_user_s_error_is_one_line(processes: str, tmp_path: Path, vocabulary: Path) -> None:
    recipe = RECIPE.model_copy(
        update={"lr": 1e38, "optimizer": "sgd", "exact_clip": None, "schedule": "constant"}
    )
    wild = spec("nonprivate", device="cpu").model_copy(update={"recipe": recipe})
    line = command(tmp_path, vocabulary, wild, "--processes", processes)
    ran = subprocess.run(line, env=ENVIRONMENT, capture_output=True, text=True, check=False)
    said = (
        "recipe.lr = 1e+38: diverged before update"
        if processes == "2"
        else "processes = 0: is not a number"
    )
    errors = [line for line in ran.stderr.splitlines() if "needs about" not in line]
    assert ran.returncode == 2 and len(errors) == 1 and said in errors[0]


FAULTY = """
import sys
from pathlib import Path
import torch
from confide.errors import InputError
from confide.runtime.parallel import joined
with joined("cpu") as group:
    value = torch.full((3,), float(group.rank + 1))
    group.sum([value])
    turned = torch.arange(6.0).view(2, 3).t()
    found = turned.clone() if group.rank else turned.contiguous()
    group.sum([found])
    assert value.tolist() == [3, 3, 3] and torch.equal(found, 2 * turned)
    assert group.same(group.rank + (1 << 100)) == 1 << 100
    if sys.argv[1] == "differs":
        group.check([value + 1e-6 * group.rank], "history")
    if sys.argv[1] == "fails" and group.rank == 1:
        raise InputError("one example alone does not fit")
    group.sum([value])
"""


@pytest.mark.parametrize(
    ("how", "said"),
    [
        ("differs", "no longer have the same"),
        pytest.param("fails", "one example alone", marks=pytest.mark.nightly),
    ],
)
def test_an_error_of_any_process_is_raised_once(how: str, said: str, tmp_path: Path) -> None:
    script = tmp_path / "faulty.py"
    script.write_text(FAULTY)
    ran = subprocess.run(
        [*TOGETHER, str(script), how], env=ENVIRONMENT, capture_output=True, text=True, check=False
    )
    raised = [line for line in ran.stderr.splitlines() if "confide.errors.InputError: " in line]
    assert ran.returncode != 0 and len(raised) == 1 and said in raised[0]


@pytest.mark.gpu
@pytest.mark.skipif(torch.cuda.device_count() < 2, reason="needs two CUDA devices")
@pytest.mark.parametrize("method", TRAINED)
def test_two_gpus_make_the_ledger_of_one(method: str, tmp_path: Path, vocabulary: Path) -> None:
    made: dict[str, Any] = {}
    for count in ("1", "2"):
        wanted = still(spec(method)).model_copy(update={"device": "cuda"})
        subprocess.run(
            command(tmp_path / count, vocabulary, wanted, "--processes", count),
            env=ENVIRONMENT,
            check=True,
        )
        made[count] = outputs(tmp_path / count)
    assert history(made["1"]["ledger"]) == history(made["2"]["ledger"])
    one, two = (load_file(made[count]["model"]) for count in ("1", "2"))
    assert all(torch.allclose(one[key], two[key], rtol=1e-2, atol=1e-2) for key in one)
