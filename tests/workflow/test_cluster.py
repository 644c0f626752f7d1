"""A real Slurm of one node: the same bytes as without it, more memory for what ran out of it, a
reason for what fails. One of three nodes: the same bytes where one is lost, whose shares alone are
made again, and one model on all of them, with the ledger of one process, whole or divided.
"""

import os
import re
import shlex
import shutil
import subprocess
import time
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
from safetensors.numpy import load_file
from same import differences

from confide.text import tokenizer as tokenizers
from tests.stages.shard_worker import wanted
from tests.stages.test_train import history, outputs
from tests.stages.test_train_processes import ENVIRONMENT, command
from tests.stages.test_train_sharded import base

__all__ = ["base"]

pytestmark = [pytest.mark.slow, pytest.mark.nightly, pytest.mark.cluster]

SCRIPTS = Path(__file__).parents[1] / "cluster"
PROFILE = ("--profile", "profiles/slurm")
PUBLIC = "models/public/g0-s0/model.safetensors"
DPSGD = "models/dpsgd/g0-s0/model.safetensors"


def cluster(folder: Path, cpus: int, nodes: int) -> Iterator[Path]:
    """A folder that holds a cluster, which lives as long as the tests."""
    if os.geteuid() or not all(map(shutil.which, ("slurmctld", "slurmd", "munged", "ip"))):
        pytest.skip(
            "needs root and a Slurm: "
            "apt-get install -y --no-install-recommends slurm-wlm munge iproute2"
        )
    try:
        subprocess.run([SCRIPTS / "start.sh", folder, str(cpus), str(nodes)], check=True)
        yield folder
    finally:
        subprocess.run([SCRIPTS / "stop.sh", folder], check=True)


@pytest.fixture(scope="session")
def slurm(tmp_path_factory):
    """A cluster of one node."""
    yield from cluster(tmp_path_factory.mktemp("slurm"), cpus=4, nodes=1)


@pytest.fixture
def three_nodes(tmp_path):
    """A cluster of three nodes, each with a network of its own."""
    yield from cluster(tmp_path / "slurm", cpus=2, nodes=3)


def client(slurm: Path, project) -> dict[str, str]:
    """Variables of a program that submits to the cluster."""
    path = f"{slurm}/bin{os.pathsep}{project.environment['PATH']}"
    return {"PATH": path, "SLURM_CONF": str(slurm / "slurm.conf")}


def submit(slurm: Path, project, *arguments: str, **options) -> str:
    """Output of a Snakemake that submits its jobs."""
    return project.snakemake(*PROFILE, *arguments, **client(slurm, project), **options)


def accounted(slurm: Path, project) -> list[tuple[str, int]]:
    """State and memory (MB) of the project's submissions in the order in which they ended, as Slurm
    itself recorded them.
    """
    lines = [
        line
        for line in (slurm / "log/jobs.txt").read_text().splitlines()
        if f"WorkDir={project.folder} " in line
    ]
    return [
        (re.search(r"JobState=(\w+)", line)[1], int(re.search(r"mem=(\d+)M", line)[1]))
        for line in lines
    ]


def test_same_bytes_as_on_one_machine(slurm, fresh, built, tmp_path):
    project = fresh.copy(tmp_path / "project")
    output = submit(slurm, project)
    assert differences(built.folder, project.folder) == []
    submissions = accounted(slurm, project)
    assert {state for state, _ in submissions} == {"COMPLETED"}
    assert len(submissions) == output.count("has been submitted with SLURM jobid")
    assert 7 < len(submissions) < 40  # every model has its own; the 65 jobs of the plan share
    assert "Nothing to be done" in project.snakemake("-n")


def test_a_job_that_outgrows_its_memory_gets_more(slurm, project, built):
    (project.folder / PUBLIC).unlink()
    submit(
        slurm,
        project,
        PUBLIC,
        "--set-resources",
        "train:mem_mb=200 if attempt == 1 else 4000 * attempt",
    )
    (killed, little), (state, more) = accounted(slurm, project)
    assert killed != "COMPLETED" and little == 200 and (state, more) == ("COMPLETED", 8000)
    (log,) = (slurm / "log").glob("slurmd-*.log")
    assert "memory" in log.read_text()
    assert (project.folder / PUBLIC).read_bytes() == (built.folder / PUBLIC).read_bytes()


def test_a_failed_job_says_why(slurm, fresh, tmp_path):
    project = fresh.copy(tmp_path / "project")
    project.snakemake("data/work/public/points.jsonl")
    points = (
        project.folder / "data/work/public/points.jsonl"
    )  # which no job has read: else Snakemake would refuse it
    points.write_text("{\n" + points.read_text())
    output = submit(slurm, project, "data/work/public/copies.jsonl", "--retries", "0", check=False)
    assert project.status != 0 and [state for state, _ in accounted(slurm, project)] == ["FAILED"]
    said = {line.strip() for line in output.splitlines() if line.strip().startswith("confide")}
    why = "confide dedup: error: data/work/public/points.jsonl:1: malformed JSON"
    assert len([line for line in said if line.startswith(why)]) == 1 and "Traceback" not in output


def running(slurm: Path, rule: str) -> dict[str, str]:
    """Nodes on which submissions of a rule run, by what the rule makes."""
    listed = subprocess.run(
        ["squeue", "--noheader", "--states=RUNNING", "--format=%k %N"],
        env=os.environ | {"SLURM_CONF": str(slurm / "slurm.conf")},
        capture_output=True,
        text=True,
        check=True,
    )
    pairs = [line.split() for line in listed.stdout.splitlines()]
    return {made: node for made, node in pairs if made.startswith(f"rule_{rule}_")}


def started(slurm: Path, project, *arguments: str) -> subprocess.Popen:
    """A Snakemake that submits its jobs, and is not waited for."""
    return subprocess.Popen(
        [*project.python, "snakemake", *arguments, *PROFILE],
        cwd=project.folder,
        env=project.environment | client(slurm, project),
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )


def states(slurm: Path, project) -> Counter[str]:
    """How many of the project's submissions ended how."""
    return Counter(state for state, _ in accounted(slurm, project))


def test_a_lost_node_costs_its_shares_alone(three_nodes, fresh, tmp_path):
    """Each share has several shards of the text, and each shard something to say."""
    one = fresh.copy(tmp_path / "one")
    one.cut_small()
    project = one.copy(tmp_path / "project")
    project.share("sim", 3)
    one.snakemake("prepare")
    assert (one.folder / "data/work/sim/g0.1/spans.jsonl").read_text().count('"complete"') >= 9
    lost: dict[str, str] = {}
    with started(three_nodes, project, "prepare") as snakemake:
        while not lost and snakemake.poll() is None:
            time.sleep(0.5)
            lost = running(three_nodes, "redact_share")
        subprocess.run([SCRIPTS / "lose.sh", three_nodes, next(iter(lost.values()))], check=True)
        output = snakemake.communicate()[0]
    assert snakemake.returncode == 0, output[-6000:]
    views = [
        f"data/work/{name}/{view}.safetensors"
        for name in ("sim/g0-dedup", "sim/g0.1-dedup", "public/g0-dedup")
        for view in ("original", "redacted")
    ]
    listed = [f"data/work/sim/{name}.jsonl" for name in ("copies", "g0/spans", "g0.1/spans")]
    for name in views + listed:
        assert (project.folder / name).read_bytes() == (one.folder / name).read_bytes()
    assert not list(project.folder.glob("data/work/**/shares/*"))
    ended = states(three_nodes, project)
    assert ended.keys() == {"COMPLETED", "NODE_FAIL"}
    assert ended["NODE_FAIL"] <= 2  # the node had two processors
    assert ended["COMPLETED"] == output.count("has been submitted with SLURM jobid")


def on_nodes(nodes: int) -> tuple[str, ...]:
    """Options that train each model on several nodes."""
    return ("--set-resources", f"train:nodes={nodes}", f"train:tasks={nodes}", "train:mpi=srun")


@pytest.mark.parametrize("nodes", [2, 3])
def test_one_model_on_several_nodes(three_nodes, fresh, built, tmp_path, nodes):
    project = fresh.copy(tmp_path / "project")
    submit(three_nodes, project, DPSGD, *on_nodes(nodes))
    here = built.folder / DPSGD
    there = project.folder / DPSGD
    assert history(there.with_name("ledger.jsonl")) == history(here.with_name("ledger.jsonl"))
    one = load_file(here)
    several = load_file(there)
    assert one.keys() == several.keys()
    for name, values in one.items():
        np.testing.assert_allclose(several[name], values, rtol=1e-3, atol=1e-3)
    jobs = (three_nodes / "log/jobs.txt").read_text()
    assert jobs.count(f"NodeCnt={nodes} ") == 1


def test_one_model_that_two_nodes_divide(three_nodes, fresh, base, tmp_path):
    """FSDP2: no node has all of its blocks. The bytes are those of two processes on one machine,
    which test_train_nodes.py tells from those of two that divide nothing.
    """
    words = tmp_path / "tokenizer.json"
    tokenizers.save(tokenizers.from_folder(base, source="llama"), words)
    job = wanted(base, "full", "crt")
    here = command(tmp_path / "here", words, job, "--processes", "2")
    subprocess.run(here, env=ENVIRONMENT, check=True)
    there = command(tmp_path / "there", words, job, "--nodes", "2")
    log = tmp_path / "there.log"
    submitted = ["sbatch", "--wait", "--nodes=2", "--ntasks=2", "--mem=3000", f"--output={log}"]
    environment = ENVIRONMENT | client(three_nodes, fresh)
    ran = subprocess.run([*submitted, "--wrap", shlex.join(there)], env=environment, check=False)
    assert ran.returncode == 0, log.read_text()
    for name in ("model", "ledger", "config", "epochs"):
        one, two = (outputs(tmp_path / place)[name].read_bytes() for place in ("here", "there"))
        assert one == two, name
    logs = (three_nodes / "log").glob("slurmd-n*.log")
    assert sum("launch task StepId=1.0 " in log.read_text() for log in logs) == 2


def test_training_goes_on_after_a_lost_node_came_back(three_nodes, fresh, tmp_path):
    """As if nothing had been: the bytes are those of as many processes on one machine."""
    project = fresh.copy(tmp_path / "project")
    project.edit(
        "params.yaml", "noisy_batch_size: 64, epochs: 2", "noisy_batch_size: 64, epochs: 400"
    )
    project.snakemake("prepare")
    there = project.copy(tmp_path / "there")
    project.snakemake(DPSGD, "--cores", "3", "--set-resources", "train:processes=3")
    state = there.folder / ".checkpoints/dpsgd/g0-s0/state.safetensors"
    with started(three_nodes, there, DPSGD, *on_nodes(3)) as snakemake:
        while not state.exists() and snakemake.poll() is None:
            time.sleep(0.1)
        subprocess.run([SCRIPTS / "lose.sh", three_nodes, "n2"], check=True)
        while not states(three_nodes, there) and snakemake.poll() is None:
            time.sleep(0.5)
        assert snakemake.poll() is None
        subprocess.run([SCRIPTS / "node.sh", three_nodes, "n2"], check=True)
        output = snakemake.communicate()[0]
    assert snakemake.returncode == 0, output[-6000:]
    for name in ("model.safetensors", "ledger.jsonl", "epochs.safetensors"):
        one = (project.folder / DPSGD).with_name(name).read_bytes()
        assert one == (there.folder / DPSGD).with_name(name).read_bytes(), name
    ended = states(three_nodes, there)
    assert ended["COMPLETED"] == 1 and len(ended) == 2
