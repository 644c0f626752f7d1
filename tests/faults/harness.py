"""What every fault needs: a copy of a built project to break, processes to kill, and a row that
says what became of it.
"""

import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

import psutil

TESTS = Path(__file__).parents[1]
sys.path[:0] = [str(TESTS), str(TESTS / "workflow")]

from project import Project  # noqa: E402
from same import built, differences  # noqa: E402

RUN = "crt/g0.1-s0"  # whose files are made again where a fault needs something to do
PATIENCE = 1800  # seconds until a job that should have ended counts as hanging


@dataclass(frozen=True)
class Row:
    """One line of the table: what was done where, what the user read, and what was lost by it."""

    fault: str
    where: str
    outcome: str
    lost: list[str]
    times: int = 1


def without(reference: Project, folder: Path, *names: str) -> Project:
    """A copy of a built project in which some files and folders are still to be made."""
    project = reference.copy(folder)
    for name in names:
        path = folder / name
        shutil.rmtree(path) if path.is_dir() else path.unlink()
    return project


def half_done(reference: Project, folder: Path) -> Project:
    """A copy in which one model, what is measured of it, and the report are still to be made: ten
    jobs.
    """
    return without(reference, folder, f"models/{RUN}", f"results/runs/{RUN}")


def start(project: Project, *command: str, log: Path, **environment: str) -> subprocess.Popen:
    """A command in a session of its own, its words in a file; it hears Ctrl-C even where this runs
    in the background.
    """
    with open(log, "w") as out:
        return subprocess.Popen(
            command,
            cwd=project.folder,
            env=project.environment | environment,
            stdout=out,
            stderr=subprocess.STDOUT,
            start_new_session=True,
            preexec_fn=lambda: signal.signal(signal.SIGINT, signal.default_int_handler),
        )


def snakemake(*arguments: str) -> list[str]:
    return [sys.executable, "-m", "snakemake", *arguments]


def confide(*arguments: str) -> list[str]:
    return [sys.executable, "-m", "confide.cli", *arguments]


def family(process: subprocess.Popen) -> list[psutil.Process]:
    """A process and all that descend from it."""
    try:
        parent = psutil.Process(process.pid)
        return [parent, *parent.children(recursive=True)]
    except psutil.NoSuchProcess:
        return []


def signalled(process: subprocess.Popen, number: signal.Signals, *, alone: bool = False) -> None:
    """Send a signal to a process, and to all that descend from it unless `alone`; wait for its
    end.
    """
    for member in family(process)[: 1 if alone else None]:
        with suppress(psutil.NoSuchProcess):
            member.send_signal(number)
    process.wait(PATIENCE)


def wait_for(there: Callable[[], bool], process: subprocess.Popen) -> bool:
    """Wait until something is there (True) or the process has ended (False)."""
    until = time.monotonic() + PATIENCE
    while time.monotonic() < until:
        if there():
            return True
        if process.poll() is not None:
            return False
        time.sleep(0.05)
    raise TimeoutError(process.args)


def finished(log: Path) -> int:
    """Jobs that a run of Snakemake says are done."""
    return log.read_text().count("Finished jobid")


def completed(project: Project, reference: Project) -> list[str]:
    """Run the workflow to its end, as a user would after a crash; what then differs from an
    uninterrupted run.
    """
    if any((project.folder / ".snakemake/locks").glob("*")):
        project.snakemake("--unlock")
    output = project.snakemake(check=False)
    wrong = [] if project.status == 0 else [f"the rerun failed: {output[-2000:]}"]
    wrong += differences(project.folder, reference.folder)
    idle = project.snakemake("-n", check=False)
    return wrong if "Nothing to be done" in idle else [*wrong, "a second rerun has something to do"]


def verdict(lost: list[str], reference: Project) -> str:
    """The end of a row."""
    return (
        f"nothing lost: {len(built(reference.folder))} files as in an uninterrupted run"
        if not lost
        else f"LOST: {lost[:5]}"
    )


@contextmanager
def small_disk(folder: Path, spare: int) -> Iterator[Callable[[], None]]:
    """Put a folder on a disk of its own with `spare` kB left; yields what makes space on it. Needs
    root.
    """
    inside = folder.with_name(f"{folder.name}-before")
    folder.mkdir(parents=True, exist_ok=True)
    folder.rename(inside)
    folder.mkdir()
    subprocess.run(["mount", "-t", "tmpfs", "-o", "size=256m", "tmpfs", folder], check=True)
    ballast = folder / ".ballast"
    try:
        shutil.copytree(inside, folder, dirs_exist_ok=True, symlinks=True)
        free = os.statvfs(folder)
        with open(ballast, "wb") as file:
            os.posix_fallocate(
                file.fileno(), 0, max(1, free.f_bavail * free.f_bsize - spare * 1024)
            )
        yield ballast.unlink
    finally:
        subprocess.run(["umount", "-l", folder], check=True)
        folder.rmdir()
        inside.rename(folder)
