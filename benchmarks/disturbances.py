"""What goes wrong in a chaos run: a function for each kind of fault does it and says what it did.

A fault hits a job that Snakemake is running, or Snakemake itself, or the disk that both write on.
What chance decides comes from the generator of the scene.
"""

import itertools
import os
import random
import re
import resource
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import psutil

from confide.runtime.workflow_log import progress

ROOT = Path(__file__).parents[1]
sys.path[:0] = [str(ROOT / "tests"), str(ROOT / "tests/faults")]

from harness import family  # noqa: E402
from project import Project  # noqa: E402

LOG = re.compile(r"(?:\| tee|>) (logs/\S+)")  # in the command of a job
SOON = 20.0  # seconds in which a job to hit must turn up
LATE = 60.0  # seconds until a job that was picked must have ended
REFUSAL = "cannot be locked"
MEBIBYTE = 1 << 20

Detail = dict[str, Any]  # of a fault, as JSON can say it


class Missed(Exception):
    """There was nothing to hit: another fault is due in its place."""


@dataclass(frozen=True, kw_only=True)
class Job:
    """A job that Snakemake is running."""

    stage: str
    log: str  # as seen from the folder of the project
    outputs: tuple[str, ...]
    bash: psutil.Process
    worker: psutil.Process  # the process of `confide`

    def processes(self) -> list[psutil.Process]:
        """The shell and all that it has started."""
        try:
            return [self.bash, *self.bash.children(recursive=True)]
        except psutil.NoSuchProcess:
            return []

    def send(self, number: signal.Signals) -> None:
        """A signal to all of its processes."""
        for process in self.processes():
            with suppress(psutil.NoSuchProcess):
                process.send_signal(number)

    def detail(self) -> Detail:
        """What the log of a chaos run says of it."""
        return {"stage": self.stage, "job": self.log}


@dataclass(frozen=True, kw_only=True)
class Scene:
    """What a fault can reach."""

    project: Project
    reference: Project  # the same study, built without any fault
    snakemake: subprocess.Popen[bytes]
    command: list[str]  # of this Snakemake
    said: Path  # what it has printed
    chance: random.Random

    def jobs(self) -> list[Job]:
        """Jobs that are running, in the order of their logs."""
        lines = self.said.read_text(errors="replace").splitlines()
        outputs = {}
        for event in progress(lines).running.values():
            outputs |= dict.fromkeys(event.job.logs, event.job.outputs)
        jobs = []
        for process in family(self.snakemake)[1:]:
            with suppress(psutil.NoSuchProcess, psutil.ZombieProcess):
                stage = stage_of(process.cmdline())
                if stage is None:
                    continue
                bash = shell_of(process, self.snakemake.pid)
                log = LOG.search(" ".join(bash.cmdline()))
                if log is None or any(log[1] == job.log for job in jobs):
                    continue
                jobs.append(
                    Job(
                        stage=stage,
                        log=log[1],
                        outputs=outputs.get(log[1], ()),
                        bash=bash,
                        worker=process,
                    )
                )
        return sorted(jobs, key=lambda job: job.log)

    def job(self, fits: Callable[[Job], bool] = lambda job: True) -> Job:
        """One of the running jobs, at a moment that chance decides; Missed where none turns up."""
        time.sleep(self.chance.uniform(0, 4))
        until = time.monotonic() + SOON
        while time.monotonic() < until and self.snakemake.poll() is None:
            jobs = [job for job in self.jobs() if fits(job)]
            if jobs:
                return self.chance.choice(jobs)
            time.sleep(0.1)
        raise Missed

    def everybody(self, number: signal.Signals) -> None:
        """A signal to Snakemake and all of its jobs; returns when Snakemake has ended."""
        for process in family(self.snakemake):
            with suppress(psutil.NoSuchProcess):
                process.send_signal(number)
        self.snakemake.wait()


def stage_of(words: list[str]) -> str | None:
    """The stage that a command line runs, if it is one of Python that runs `confide`."""
    for program, stage in itertools.pairwise(words[:4]):
        if Path(program).name in ("confide", "confide.cli"):
            return stage
    return None


def shell_of(process: psutil.Process, snakemake: int) -> psutil.Process:
    """The shell of a job: which ancestor of a process Snakemake has started."""
    while process.ppid() != snakemake:
        parent = process.parent()
        if parent is None:
            raise psutil.NoSuchProcess(process.pid)
        process = parent
    return process


def kill_job(scene: Scene) -> Detail:
    """kill -9 of a job: of all of its processes, or of one."""
    job = scene.job()
    target = scene.chance.choice(["all", "shell", "worker", "any"])
    if target == "all":
        job.send(signal.SIGKILL)
    else:
        processes = {"shell": [job.bash], "worker": [job.worker]}.get(target, job.processes())
        with suppress(psutil.NoSuchProcess):
            scene.chance.choice(processes or [job.bash]).kill()
    return job.detail() | {"target": target}


def kill_snakemake(scene: Scene) -> Detail:
    """kill -9 of Snakemake: alone, so that its jobs live on, or with its jobs."""
    job = scene.job()
    alone = scene.chance.random() < 0.5
    if alone:
        scene.snakemake.kill()
        scene.snakemake.wait()
    else:
        scene.everybody(signal.SIGKILL)
    return job.detail() | {"target": "Snakemake alone" if alone else "Snakemake and its jobs"}


def terminate_job(scene: Scene) -> Detail:
    """SIGTERM, as a preempted job gets it: to one job, or to Snakemake, too."""
    job = scene.job()
    alone = scene.chance.random() < 0.7
    if alone:
        job.send(signal.SIGTERM)
    else:
        scene.everybody(signal.SIGTERM)
    return job.detail() | {"target": "job" if alone else "Snakemake and its jobs"}


def fill_disk(scene: Scene) -> Detail:
    """No space on the disk of the project for some seconds."""
    job = scene.job()
    seconds = round(scene.chance.uniform(4, 12), 1)
    ballast = scene.project.folder.parent / "ballast"
    until = time.monotonic() + seconds
    try:
        while time.monotonic() < until:  # what a job gives back is taken at once
            fill(ballast)
            time.sleep(0.02)
    finally:
        ballast.unlink(missing_ok=True)
    return job.detail() | {"seconds": seconds}


def fill(ballast: Path) -> None:
    """Let a file grow by all that is free on its disk."""
    free = os.statvfs(ballast.parent)
    size = ballast.stat().st_size if ballast.exists() else 0
    with open(ballast, "ab") as file, suppress(OSError):
        if free.f_bavail:
            os.posix_fallocate(file.fileno(), size, free.f_bavail * free.f_frsize)


def start_twice(scene: Scene) -> Detail:
    """A second Snakemake in the same folder; it must refuse."""
    scene.job()
    second = subprocess.run(
        scene.command,
        cwd=scene.project.folder,
        env=scene.project.environment,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )
    lines = [line for line in second.stdout.splitlines() if REFUSAL in line]
    wrong = [] if second.returncode and len(lines) == 1 else [second.stdout[-2000:]]
    wrong += ["a traceback"] if "Traceback" in second.stdout else []
    return {"status": second.returncode, "said": lines, "wrong": wrong}


def late_output(scene: Scene) -> Detail:
    """Outputs of a job that has ended turn up some seconds later, with an old date or their own.

    The shell of the job is stopped meanwhile, so that Snakemake does not see its end before the
    outputs are gone.
    """
    job = scene.job(lambda job: bool(job.outputs))
    folder = scene.project.folder
    away = folder.parent / "away"
    late = scene.chance.choice([2.0, 12.0])  # Snakemake waits five seconds
    is_stale = scene.chance.random() < 0.5
    with stopped(job.bash):
        wait_until(lambda: not alive(job.worker), seconds=LATE)
        if alive(job.worker):
            job.bash.resume()
            raise Missed
        names = [name for name in job.outputs if (folder / name).is_file()]
        for name in names:
            (away / name).parent.mkdir(parents=True, exist_ok=True)
            (folder / name).rename(away / name)
    time.sleep(late)
    for name in names:
        if is_stale:
            day_before = time.time() - 86400
            os.utime(away / name, (day_before, day_before))
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        if not (folder / name).exists():
            (away / name).rename(folder / name)
    shutil.rmtree(away, ignore_errors=True)
    return job.detail() | {"seconds": late, "old date": is_stale, "outputs": len(names)}


@contextmanager
def stopped(process: psutil.Process) -> Iterator[None]:
    """Stop a process meanwhile; Missed where it has ended."""
    try:
        process.suspend()
        yield
        process.resume()
    except psutil.NoSuchProcess:
        raise Missed from None


def alive(process: psutil.Process) -> bool:
    """Whether a process does anything yet."""
    try:
        return process.status() not in (psutil.STATUS_ZOMBIE, psutil.STATUS_DEAD)
    except psutil.NoSuchProcess:
        return False


def wait_until(there: Callable[[], bool], *, seconds: float) -> None:
    """Wait for something, at most for so many seconds."""
    until = time.monotonic() + seconds
    while not there() and time.monotonic() < until:
        time.sleep(0.05)


def stop_job(scene: Scene) -> Detail:
    """SIGSTOP to all of a job, and SIGCONT some seconds later."""
    job = scene.job()
    seconds = round(scene.chance.uniform(5, 20), 1)
    job.send(signal.SIGSTOP)
    time.sleep(seconds)
    job.send(signal.SIGCONT)
    return job.detail() | {"seconds": seconds}


def cut_output(scene: Scene) -> Detail:
    """kill -9 of everything; half of an output of a running job then has its final name.

    A temporary file of the job lies beside it.
    """

    def outputs(job: Job) -> list[str]:
        return [name for name in job.outputs if (scene.reference.folder / name).is_file()]

    job = scene.job(
        lambda job: bool(outputs(job))
    )  # what Snakemake deletes is not in the reference
    scene.everybody(signal.SIGKILL)
    name = scene.chance.choice(outputs(job))
    path = scene.project.folder / name
    whole = (scene.reference.folder / name).read_bytes()
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(whole[: len(whole) // 2])
    temporary = path.with_name(f".{path.name}.{os.uname().nodename}.{job.worker.pid}.tmp")
    temporary.write_bytes(whole[:10])
    return job.detail() | {"file": name}


def damage_checkpoint(scene: Scene) -> Detail:
    """kill -9 of a training job; then its checkpoint, or weights after an epoch, are damaged.

    They are cut, or have a bit flipped.
    """

    def checkpoints(job: Job) -> list[Path]:
        run = job.log.removeprefix("logs/train/").removesuffix(".log")
        return sorted((scene.project.folder / ".checkpoints" / run).glob("*.safetensors"))

    job = scene.job(lambda job: job.stage == "train" and bool(checkpoints(job)))
    path = scene.chance.choice(checkpoints(job))
    with suppress(psutil.NoSuchProcess):
        job.worker.suspend()  # Snakemake sees its end after the damage
    if not path.exists():
        job.send(signal.SIGCONT)
        raise Missed
    content = bytearray(path.read_bytes())
    is_cut = scene.chance.random() < 0.4
    if is_cut:
        content = content[: scene.chance.randrange(len(content))]
    else:
        content[scene.chance.randrange(len(content))] ^= 1 << scene.chance.randrange(8)
    path.write_bytes(content)
    job.send(signal.SIGKILL)
    return job.detail() | {
        "file": str(path.relative_to(scene.project.folder)),
        "damage": "cut" if is_cut else "a flipped bit",
    }


def little_memory(scene: Scene) -> Detail:
    """A job may hold hardly more memory than it holds now (RLIMIT_AS)."""
    job = scene.job()
    spare = scene.chance.choice([0, 4, 16, 64])
    try:
        limit = job.worker.memory_info().vms + spare * MEBIBYTE
        resource.prlimit(job.worker.pid, resource.RLIMIT_AS, (limit, limit))
    except (psutil.NoSuchProcess, ProcessLookupError):
        raise Missed from None
    return job.detail() | {"MiB beyond what it holds": spare}


FAULTS: dict[str, Callable[[Scene], Detail]] = {
    "kill -9 of a job": kill_job,
    "kill -9 of Snakemake": kill_snakemake,
    "SIGTERM": terminate_job,
    "full disk": fill_disk,
    "two Snakemakes": start_twice,
    "late output": late_output,
    "stopped job": stop_job,
    "half an output": cut_output,
    "damaged checkpoint": damage_checkpoint,
    "little memory": little_memory,
}
