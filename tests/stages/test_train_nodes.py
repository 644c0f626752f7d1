"""One model on several nodes of a job of Slurm's.

Here srun is a stand-in that starts the tasks of all nodes on this machine; test_cluster.py has a
real one.
"""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from confide.specs import TrainSpec
from confide.text import tokenizer as tokenizers
from tests.stages.shard_worker import wanted
from tests.stages.test_train import RECIPE, files, outputs, partition, spec, vocabulary
from tests.stages.test_train_processes import ENVIRONMENT, command
from tests.stages.test_train_sharded import base

__all__ = ["base", "vocabulary"]
pytestmark = pytest.mark.slow

SRUN = f"""#!{sys.executable}
import os
import subprocess
import sys

place = sys.argv.index({sys.executable!r})
options, task = sys.argv[1:place], sys.argv[place:]
with open(os.environ["TOLD"], "w") as told:
    print(*options, file=told)
tasks = []
for node in range(int(options[0].removeprefix("--nodes="))):
    place = {{"SLURM_NODEID": str(node), "SLURM_LAUNCH_NODE_IPADDR": "127.0.0.1"}}
    disk = os.environ["DISK"] + str(node) if "DISK" in os.environ else None
    tasks.append(subprocess.Popen(task, env=os.environ | place, cwd=disk))
sys.exit(max(task.wait() for task in tasks))
"""
WRITTEN = ("model", "config", "ledger", "epochs")


@pytest.fixture
def slurm(tmp_path: Path) -> dict[str, str]:
    """What a job of Slurm's with two nodes has in its environment."""
    programs = tmp_path / "bin"
    programs.mkdir()
    (programs / "srun").write_text(SRUN)
    (programs / "srun").chmod(0o755)
    return ENVIRONMENT | {
        "PATH": f"{programs}{os.pathsep}{ENVIRONMENT['PATH']}",
        "TOLD": str(tmp_path / "told"),
        "SLURM_JOB_ID": str(os.getpid()),
    }


def run(line: list[str], environment: dict[str, str]) -> subprocess.CompletedProcess:
    return subprocess.run(line, env=environment, capture_output=True, text=True, check=False)


def same_files(
    folder: Path,
    vocabulary: Path,
    slurm: dict[str, str],
    job: TrainSpec,
    *,
    processes: int,
    of_each_node: int,
) -> bool:
    """Whether so many processes of one machine leave the bytes that those of two nodes leave."""
    alone = command(folder / "here", vocabulary, job, "--processes", str(processes))
    several = ("--nodes", "2", "--processes", str(of_each_node))
    on_nodes = command(folder / "there", vocabulary, job, *several)
    for line, environment in ((alone, ENVIRONMENT), (on_nodes, slurm)):
        ran = run(line, environment)
        assert ran.returncode == 0, ran.stderr
    here = outputs(folder / "here")
    there = outputs(folder / "there")
    return all(here[name].read_bytes() == there[name].read_bytes() for name in WRITTEN)


def test_two_nodes_leave_the_files_of_two_processes(
    slurm: dict[str, str], tmp_path: Path, vocabulary: Path
) -> None:
    job = spec("crt", device="cpu")
    assert same_files(tmp_path, vocabulary, slurm, job, processes=2, of_each_node=1)
    asked = "--nodes=2 --ntasks=2 --ntasks-per-node=1 --cpus-per-task=1 --kill-on-bad-exit"
    assert (tmp_path / "told").read_text().split() == asked.split()


@pytest.mark.nightly
def test_two_processes_on_each_of_two_nodes_are_four(
    slurm: dict[str, str], tmp_path: Path, vocabulary: Path
) -> None:
    job = spec("dpsgd", device="cpu")
    assert same_files(tmp_path, vocabulary, slurm, job, processes=4, of_each_node=2)


@pytest.mark.nightly
def test_two_nodes_divide_a_model_as_two_processes_do(
    slurm: dict[str, str], tmp_path: Path, base: Path
) -> None:
    """Two processes that divide nothing sum in another order, and leave other bytes."""
    words = tmp_path / "tokenizer.json"
    tokenizers.save(tokenizers.from_folder(base, source="llama"), words)
    divided, whole = (wanted(base, "full", "crt", shard=shard) for shard in (True, False))
    assert same_files(tmp_path, words, slurm, divided, processes=2, of_each_node=1)
    assert (tmp_path / "told").exists()
    ran = run(command(tmp_path / "whole", words, whole, "--processes", "2"), ENVIRONMENT)
    assert ran.returncode == 0, ran.stderr
    models = [outputs(tmp_path / place)["model"].read_bytes() for place in ("there", "whole")]
    assert models[0] != models[1]


@pytest.mark.nightly
def test_an_error_on_two_nodes_is_one_line(
    slurm: dict[str, str], tmp_path: Path, vocabulary: Path
) -> None:
    recipe = RECIPE.model_copy(
        update={"lr": 1e38, "optimizer": "sgd", "exact_clip": None, "schedule": "constant"}
    )
    wild = spec("nonprivate", device="cpu").model_copy(update={"recipe": recipe})
    ran = run(command(tmp_path / "wild", vocabulary, wild, "--nodes", "2"), slurm)
    errors = [line for line in ran.stderr.splitlines() if "needs about" not in line]
    assert ran.returncode == 2 and len(errors) == 1
    assert "recipe.lr = 1e+38: diverged before update" in errors[0]


def test_nodes_that_read_other_files_are_refused(
    slurm: dict[str, str], tmp_path: Path, vocabulary: Path
) -> None:
    """On disks of their own one may still have what an earlier policy redacted."""
    line = command(tmp_path / "job", vocabulary, spec("crt", device="cpu"), "--nodes", "2")
    line[line.index("--redacted") + 1] = "redacted.safetensors"
    for node in (0, 1):
        disk = tmp_path / f"node{node}"
        disk.mkdir()
        files(disk, partition(private_ids=node))
    ran = subprocess.run(
        line,
        env=slurm | {"DISK": str(tmp_path / "node")},
        cwd=tmp_path / "node0",
        capture_output=True,
        text=True,
        check=False,
    )
    assert ran.returncode == 2 and "have read different files" in ran.stderr
    assert not (tmp_path / "job" / "model.safetensors").exists()


@pytest.mark.parametrize(
    ("nodes", "job", "said"),
    [
        ("0", "1", "nodes = 0: is not a number of nodes"),
        ("2", None, "nodes = 2: several need a job of Slurm's, and this is none"),
    ],
)
def test_nodes_that_are_not_there_are_refused(
    slurm: dict[str, str],
    tmp_path: Path,
    vocabulary: Path,
    nodes: str,
    job: str | None,
    said: str,
) -> None:
    if job is None:
        del slurm["SLURM_JOB_ID"]
    line = command(tmp_path / "job", vocabulary, spec("crt", device="cpu"), "--nodes", nodes)
    ran = run(line, slurm)
    assert ran.returncode == 2 and ran.stderr.splitlines() == [f"confide train: error: {said}"]
    assert not (tmp_path / "told").exists()
