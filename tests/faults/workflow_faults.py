"""Whole runs of the tiny study that are killed, starved, crowded or confused, and what the next run
makes of it.
"""

import os
import random
import re
import shutil
import signal
import time
from pathlib import Path

from harness import (
    RUN,
    Row,
    completed,
    finished,
    signalled,
    small_disk,
    snakemake,
    start,
    verdict,
    wait_for,
    without,
)
from project import Project
from same import PLACES, differences

from confide.provenance.snakemake_internals import record

STUDY = "results/studies/tiny"
SHADOWS = "data/work/sim/shadows-few.safetensors"
DISKS = {  # folder on the small disk: kB left there, and what is still to be made
    ".checkpoints": (8, f"models/{RUN}"),
    "models": (8, f"models/{RUN}"),
    "results": (8, STUDY),
    "data": (0, SHADOWS),
    "logs": (0, f"models/{RUN}"),
}


def killed(
    project: Project,
    reference: Project,
    folder: Path,
    points: int,
    *,
    alone: bool = False,
    seed: int = 0,
) -> Row:
    """kill -9 of Snakemake and all its jobs (or of it `alone`: jobs live on), again and again in
    one run.
    """
    chance = random.Random(seed)
    done = 0
    folder = folder / f"killed-{alone}"
    folder.mkdir()
    total = sum(project.planned().values())
    places = sorted(
        chance.sample(range(total - 2), points)
    )  # two jobs take longer than what is waited
    for number, (before, place) in enumerate(zip([0, *places], places, strict=False)):
        log = folder / f"{number}.log"
        process = start(project, *snakemake(), log=log)
        if wait_for(
            lambda log=log, wanted=place - before: (
                finished(log) >= wanted and "Execute" in log.read_text()
            ),
            process,
        ):
            time.sleep(chance.uniform(0, 1))
        signalled(process, signal.SIGKILL, alone=alone)
        done += process.returncode == -signal.SIGKILL
        if number < points - 1:
            project.snakemake("--unlock")
    lost = completed(project, reference)
    lost += [f"{path.name} was left over" for path in left_over(project)]
    what = "Snakemake alone" if alone else "all processes"
    where = f"{len(places)} of {total} jobs, at random"
    return Row(f"kill -9 of {what}", where, verdict(lost, reference), lost, done)


def left_over(project: Project) -> list[Path]:
    """Temporary files of killed jobs."""
    return [
        path
        for place in (*PLACES, ".checkpoints")
        for path in (project.folder / place).rglob(".*.tmp")
    ]


def ended(project: Project, reference: Project, folder: Path, number: signal.Signals) -> Row:
    """SIGTERM (a cluster's time limit) or SIGINT (Ctrl-C) in the middle of training."""
    log = folder / f"{number.name}.log"
    process = start(project, *snakemake(), log=log)
    wait_for(
        lambda: (
            any((project.folder / ".checkpoints" / RUN).glob("lock"))
            and "Execute" in log.read_text()
        ),
        process,
    )
    time.sleep(2)
    signalled(process, number)
    lost = [] if process.returncode != 0 else ["the run did not end"]
    lost += completed(project, reference)
    return Row(f"{number.name} to all processes", "training", verdict(lost, reference), lost)


def full_disk(reference: Project, folder: Path, place: str) -> Row:
    """No space under a folder: one line says so and names the file, nothing stands half written,
    the rerun completes.
    """
    spare, made = DISKS[place]
    project = without(reference, folder / f"full-{place}", made)
    lost = []
    if place == "logs":  # a job deletes its old log, which would make space
        shutil.rmtree(project.folder / place)
    with small_disk(project.folder / place, spare) as make_space:
        output = project.snakemake(check=False)
        said = re.findall(r"(?m)^.*No space left on device.*$", output)
        lost += [] if project.status != 0 and said else [f"status {project.status}, said {said}"]
        lost += ["a traceback"] if "Traceback" in output else []
        make_space()
        lost += [
            name
            for name in differences(project.folder, reference.folder)
            if (project.folder / name).exists()
        ]
        lost += completed(project, reference)
    line = said[0].strip() if said else "nothing"
    return Row(
        f"full disk ({spare} kB left)", f"`{place}`", f"“{line}”; {verdict(lost, reference)}", lost
    )


def two_at_once(project: Project, reference: Project, folder: Path) -> Row:
    """`snakemake` twice in one folder: the second refuses and says why."""
    log = folder / "first.log"
    first = start(project, *snakemake(), log=log)
    wait_for(lambda: "Execute" in log.read_text(), first)
    output = project.snakemake(check=False)
    lost = (
        []
        if project.status != 0 and "cannot be locked" in output
        else [f"the second one said {output[-500:]}"]
    )
    first.wait()
    lost += [] if first.returncode == 0 else [log.read_text()[-500:]]
    lost += differences(project.folder, reference.folder)
    return Row(
        "`snakemake` twice at once",
        "one folder",
        f"the second: “cannot be locked”; {verdict(lost, reference)}",
        lost,
    )


def clock(project: Project, reference: Project, days: int) -> Row:
    """The first half was made by a clock that was so many days ahead, in another time zone; then it
    is put right.
    """
    for path in [path for path in project.folder.rglob("*") if path.is_file()]:
        if "metadata" in path.parts:
            times = re.compile(r'("(?:start|end)time": )([\d.]+)')
            path.write_text(
                times.sub(
                    lambda found: f"{found[1]}{float(found[2]) + 86400 * days}", path.read_text()
                )
            )
        then = path.stat().st_mtime + 86400 * days
        os.utime(path, (then, then))
    lost = completed(project, reference)
    output = project.run(*snakemake("-n"), check=False, TZ="Asia/Tokyo")
    lost += [] if "Nothing to be done" in output else ["something to do"]
    return Row(f"clock {days:+} days, then right", "half of a run", verdict(lost, reference), lost)


def dated(project: Project, reference: Project) -> Row:
    """All files get dates of the far future and past."""
    for number, path in enumerate(
        sorted(path for path in project.folder.rglob("*") if path.is_file())
    ):
        if ".snakemake" not in path.parts:
            os.utime(path, (4 * 10**9 - number,) * 2 if number % 2 else (number,) * 2)
    lost = (
        [] if "Nothing to be done" in project.snakemake("-n", check=False) else ["something to do"]
    )
    lost += differences(project.folder, reference.folder)
    return Row(
        "dates of 1970 and 2096",
        "every file",
        f"nothing to be done; {verdict(lost, reference)}",
        lost,
    )


def cut(project: Project, reference: Project, name: str, *, remake: bool) -> Row:
    """Half of a file is gone (at the end of a line, where it has lines): refused by name; deleting
    it is a way on.
    """
    path = project.folder / name
    whole = path.read_bytes()
    dates = path.stat()
    half = whole[: len(whole) // 2]
    path.write_bytes(
        half[: half.rfind(b"\n") + 1] if path.suffix in (".json", ".jsonl", ".csv") else half
    )
    output = project.snakemake(check=False)
    refused = [line for line in output.splitlines() if line.startswith(f"{name}: ")]
    lost = [] if project.status != 0 and refused else [f"it was used: {output[-500:]}"]
    if remake:
        path.unlink()
        lost += completed(project, reference)
    else:
        path.write_bytes(whole)
        os.utime(path, ns=(dates.st_atime_ns, dates.st_mtime_ns))
        lost += differences(project.folder, reference.folder)
    way = "deleted and made again" if remake else "put back"
    line = refused[0].removeprefix(f"{name}: ") if refused else "nothing"
    return Row(
        "file cut to half", f"`{name}`", f"“{line}”; {way}: {verdict(lost, reference)}", lost
    )


def damaged_record(project: Project, reference: Project, name: str) -> Row:
    """Half of Snakemake's record of an output is gone: refused, or a change of parameters would
    pass unseen.
    """
    path = record(project.folder / ".snakemake/metadata", name)
    path.write_bytes(path.read_bytes()[:100])
    output = project.snakemake(check=False)
    refused = [line for line in output.splitlines() if line.startswith(f"{name}: ")]
    lost = [] if project.status != 0 and refused else [f"it passed: {output[-500:]}"]
    (project.folder / name).unlink()
    lost += completed(project, reference)
    line = refused[0].removeprefix(f"{name}: ") if refused else "nothing"
    return Row(
        "record cut short",
        f"`.snakemake/metadata` of `{name}`",
        f"“{line}”; deleted and made again: {verdict(lost, reference)}",
        lost,
    )
