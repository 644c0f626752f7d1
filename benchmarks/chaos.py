"""A study that is built again and again while something goes wrong about once a minute.

    python benchmarks/chaos.py [--minutes 60] [--every 60] [--seed 0] [--log chaos.log.jsonl]

Each round builds a study (tests/params.tiny.yaml with benchmarks/chaos.yaml laid over it) on a
small disk of its own while faults hit it (disturbances.py), and does what docs/faults.md says after
each: unlock, delete what is refused by name, run again. What it ends with must be what an
undisturbed run has made, byte for byte; tests/workflow/same.py says what may differ, and why.
Nothing may be left over. A model whose job had to halve its passes for want of memory differs in
rounding, as its log says: it is deleted and made again.

The log has a JSON line for each fault, for each end of a Snakemake and for each round, written as
it happens; a run with the log of an earlier one goes on from there. The result has its sums. Needs
root, to mount the small disk.
"""

import json
import os
import random
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from argparse import ArgumentParser, Namespace, RawDescriptionHelpFormatter
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import psutil
import yaml
from disturbances import FAULTS, MEBIBYTE, ROOT, Missed, Scene
from machine import machine

sys.path[:0] = [str(ROOT / "tests/workflow")]

from harness import PATIENCE, signalled, start, without  # noqa: E402
from harness import snakemake as snakemake_command  # noqa: E402
from project import Project, build, environment_in, project_in  # noqa: E402
from same import PLACES, differences  # noqa: E402
from service_faults import tracked, unfinished  # noqa: E402

from confide.config.layers import merged, read_layer  # noqa: E402
from confide.files.io import write_json  # noqa: E402
from confide.runtime.failures import NO_REASON, reason  # noqa: E402
from confide.runtime.workflow_log import progress  # noqa: E402
from confide.train.checkpoint import FINISHED  # noqa: E402

PARAMETERS = [ROOT / "tests/params.tiny.yaml", ROOT / "benchmarks/chaos.yaml"]
TARGETS = ("all", "all_papers", "leaderboard")
# Every second round makes redaction and tokenization in two jobs each, to the same bytes.
SHARES = ("--config", "datasets={sim: {shares: 2}, mixed: {shares: 2}}")
DISK = 768 * MEBIBYTE
# What a message says of a file that is to be deleted, as docs/faults.md has it.
REFUSED = re.compile(
    r"(?m)^(?:confide \w+: error: )?(\S+?)(?::\d+)?: "
    r".*(?:delete it|delete this folder|deleting the file)"
)
TRACEBACK = "Traceback (most recent call last)"
FAULT = re.compile(r"(?m)confide \w+: fault: .*$")
NO_SPACE = re.compile(r"(?m)^.*No space left on device.*$")
HALVED = "physical batches of at most"
ROW = ("round", "faults", "snakemakes", "jobs", "deleted", "differences")
ATTEMPTS = 8  # runs of Snakemake in which nothing is done before a round counts as stuck


@dataclass(kw_only=True)
class Record:
    """The log of a chaos run, and its sums."""

    log: Path
    faults: list[dict[str, Any]] = field(default_factory=list)
    rounds: list[dict[str, Any]] = field(default_factory=list)
    complaints: list[str] = field(default_factory=list)
    ends: list[dict[str, Any]] = field(default_factory=list)  # of Snakemakes

    def write(self, event: str, **values: Any) -> None:
        """Add a line to the log."""
        now = time.strftime("%Y-%m-%dT%H:%M:%S%z")
        with open(self.log, "a") as lines:
            lines.write(json.dumps({"time": now, "event": event, **values}) + "\n")

    def complain(self, what: str) -> None:
        """Note something that must not be."""
        self.complaints.append(what)
        self.write("complaint", what=what)
        print(what, file=sys.stderr, flush=True)

    @classmethod
    def read(cls, log: Path) -> "Record":
        """What a log says so far, be it empty or of a run that was cut off."""
        record = cls(log=log.resolve())
        log.touch()
        for line in map(json.loads, log.read_text().splitlines()):
            if line["event"] == "fault":
                record.faults.append(line | {"followed": "not known"})
            elif line["event"] == "end":
                record.ends.append(line)
                for number, followed in zip(line["faults"], line["followed"], strict=True):
                    record.faults[number]["followed"] = followed
            elif line["event"] == "round":
                record.rounds.append({key: line[key] for key in ROW})
            elif line["event"] == "complaint":
                record.complaints.append(line["what"])
        return record

    def summary(self) -> dict[str, Any]:
        """Sums for the result file."""
        by_kind = {}
        for kind in FAULTS:
            faults = [fault for fault in self.faults if fault["kind"] == kind]
            outcomes = Counter(outcome(fault) for fault in faults)
            by_kind[kind] = {"times": len(faults), "followed": dict(outcomes.most_common())}
        stages = Counter(fault["stage"] for fault in self.faults if "stage" in fault)
        return {
            "faults": len(self.faults),
            "kinds": by_kind,
            "stages": dict(sorted(stages.items())),
            "rounds": self.rounds,
            "complaints": self.complaints,
        }


def outcome(fault: dict[str, Any]) -> str:
    """What followed; a job may have made nothing yet that could come late."""
    return "hit nothing" if fault.get("outputs") == 0 else fault["followed"]


@dataclass(kw_only=True)
class Schedule:
    """When faults are due, and which."""

    kinds: list[str]
    every: float  # seconds between two faults, on average
    until: float  # time.monotonic() after which there are none any more
    chance: random.Random
    next: float = 0.0
    waiting: list[str] = field(default_factory=list)

    def plan(self) -> None:
        """Say when the next fault is due."""
        self.next = time.monotonic() + self.every * self.chance.uniform(0.5, 1.5)

    def draw(self) -> str:
        """The kind of the next fault: each comes once before any comes again."""
        if not self.waiting:
            self.waiting = self.chance.sample(self.kinds, len(self.kinds))
        return self.waiting.pop()

    def put_back(self, kind: str) -> None:
        """Let a kind for which there was nothing to hit come after all that are waiting."""
        if not self.waiting:
            self.waiting = self.chance.sample(self.kinds, len(self.kinds))
        if kind not in self.waiting:
            self.waiting.insert(0, kind)

    def is_due(self) -> bool:
        """Whether it is time for a fault."""
        return self.next <= time.monotonic() < self.until


@dataclass(kw_only=True)
class Round:
    """One study on its way from nothing to all results."""

    project: Project
    reference: Project
    command: list[str]
    schedule: Schedule
    record: Record
    number: int

    def run(self) -> dict[str, Any]:
        """Build the study whatever happens; the row of the round."""
        idle = 0
        while True:
            end = self.attempt()
            if end["status"] == 0 and not end["deleted"]:
                break
            idle = 0 if end["finished"] or end["deleted"] else idle + 1
            if idle == ATTEMPTS:
                self.record.complain(f"round {self.number} is stuck")
                break
        wrong = self.differences()
        ends = [end for end in self.record.ends if end["round"] == self.number]
        row = {
            "round": self.number,
            "faults": sum(fault["round"] == self.number for fault in self.record.faults),
            "snakemakes": len(ends),
            "jobs": sum(end["finished"] for end in ends),
            "deleted": [name for end in ends for name in end["deleted"]],
            "differences": wrong,
        }
        self.record.rounds.append(row)
        self.record.write("round", **row)
        return row

    def attempt(self) -> dict[str, Any]:
        """Run Snakemake to its end, with the faults that are due meanwhile; the line of its end."""
        if any((self.project.folder / ".snakemake/locks").glob("*")):
            self.project.snakemake("--unlock")
        said = self.project.folder.parent.parent / f"said-{len(self.record.ends)}.txt"
        process = start(self.project, *self.command, log=said)
        scene = Scene(
            project=self.project,
            reference=self.reference,
            snakemake=process,
            command=self.command,
            said=said,
            chance=self.schedule.chance,
        )
        hit = []
        changed = time.monotonic()
        size = 0
        while process.poll() is None:
            if self.schedule.is_due():
                hit += self.disturb(scene)
                changed = time.monotonic()
            if said.stat().st_size != size:
                size = said.stat().st_size
                changed = time.monotonic()
            if time.monotonic() - changed > PATIENCE:
                self.record.complain(f"round {self.number}: nothing happens any more: {said}")
                signalled(process, signal.SIGKILL)
            time.sleep(0.1)
        text = said.read_text(errors="replace")
        return self.follow(hit, process.returncode, text)

    def disturb(self, scene: Scene) -> list[dict[str, Any]]:
        """Let one fault happen; none if there was nothing to hit."""
        kind = self.schedule.draw()
        try:
            detail = FAULTS[kind](scene)
        except (Missed, psutil.Error, OSError) as error:  # what it was to hit has just ended
            self.record.write("missed", kind=kind, why=repr(error))
            self.schedule.put_back(kind)
            return []
        self.schedule.plan()
        fault = {"number": len(self.record.faults), "kind": kind, "round": self.number, **detail}
        for wrong in detail.get("wrong", ()):
            self.record.complain(f"{kind}: {wrong}")
        self.record.faults.append(fault)
        self.record.write("fault", **fault)
        return [fault]

    def follow(self, faults: list[dict[str, Any]], status: int, text: str) -> dict[str, Any]:
        """Note what came of the faults of one Snakemake, and mend what it says must be mended.

        The line of its end.
        """
        failed = {log for job in progress(text.splitlines()).failed.values() for log in job.logs}
        for fault in faults:
            log = fault.get("job")
            if log is None:
                fault["followed"] = "the second refused"
            elif log in failed:
                why = reason(self.project.folder / log)
                fault["why"] = why
                fault["followed"] = "failed, killed" if why == NO_REASON else "failed, said why"
            elif status < 0:
                fault["followed"] = "ended with Snakemake"
            else:
                fault["followed"] = "went on"
        if TRACEBACK in text:
            place = text.index(TRACEBACK)
            self.record.complain(f"a traceback: {text[place - 300 : place + 1500]}")
        for line in dict.fromkeys(FAULT.findall(text)):
            self.record.complain(line)
        names = list(dict.fromkeys(REFUSED.findall(text))) if status else []
        for name in names:
            path = self.project.folder / name
            if path.is_dir() and name.startswith(".checkpoints/"):
                shutil.rmtree(path)
            path.unlink(missing_ok=True)
        names += self.delete_halved()
        end = {
            "round": self.number,
            "status": status,
            "finished": text.count("Finished jobid"),
            "faults": [fault["number"] for fault in faults],
            "followed": [fault["followed"] for fault in faults],
            "why": {log: reason(self.project.folder / log) for log in sorted(failed)},
            "no_space": sorted(set(NO_SPACE.findall(text))),
            "deleted": names,
        }
        self.record.ends.append(end)
        self.record.write("end", **end)
        return end

    def delete_halved(self) -> list[str]:
        """Delete models whose jobs had to halve their passes for want of memory.

        They are as good, but sums of other parts are rounded otherwise, as their logs say.
        """
        names = []
        folder = self.project.folder
        for log in sorted((folder / "logs/train").rglob("*.log")):
            if HALVED in log.read_text(errors="replace"):
                run = log.relative_to(folder / "logs/train").with_suffix("")
                names += [f"models/{run}", f".checkpoints/{run}"]
                log.unlink()
        for name in names:
            shutil.rmtree(folder / name, ignore_errors=True)
        return names

    def differences(self) -> list[str]:
        """What differs from an undisturbed study, and what is left over or left to do."""
        folder = self.project.folder
        wrong = differences(folder, self.reference.folder)
        wrong += [f"left over: {os.path.relpath(path, folder)}" for path in left_over(folder)]
        idle = self.project.snakemake(*self.command[3:], "-n", check=False)
        if "Nothing to be done" not in idle:
            wrong.append(f"something is left to do: {idle[-2000:]}")
        databases = [place.folder / "mlflow.db" for place in (self.project, self.reference)]
        if all(database.exists() for database in databases):
            ours, theirs = (known(database) for database in databases)
            wrong += ["MLflow holds something else"] if ours != theirs else []
            wrong += ["MLflow holds unfinished runs"] if unfinished(databases[0]) else []
        for one in wrong:
            self.record.complain(f"round {self.number}: {one}")
        return wrong


def known(database: Path) -> set[str]:
    """Names of the runs that MLflow holds; behind @ stands a digest of files with times in them."""
    return {key.partition("@")[0] for key in tracked(database)}


def left_over(folder: Path) -> Iterator[Path]:
    """What killed jobs have left: temporary files, locks and marks of Snakemake's, checkpoints.

    Not the empty folders in TMPDIR of Snakemakes that were killed, which only they could remove.
    """
    for place in (*PLACES, "data/synthetic", ".checkpoints"):
        yield from (folder / place).rglob(".*.tmp")
    for place in (".snakemake/locks", ".snakemake/incomplete"):
        yield from (path for path in (folder / place).rglob("*") if path.is_file())
    checkpoints = (path for path in (folder / ".checkpoints").rglob("*") if path.is_file())
    yield from (path for path in checkpoints if path.name not in ("lock", FINISHED))
    temporary = (folder.parent / "tmp").iterdir()
    yield from (path for path in temporary if path.is_file() or any(path.iterdir()))


def study_in(folder: Path) -> tuple[Project, Project]:
    """The project with nothing built, and one built without faults.

    Both are taken as they are where the folder has them.
    """
    programs = folder / "bin"
    programs.mkdir(exist_ok=True)
    environment = environment_in(programs)
    fresh = Project(folder / "fresh", environment)
    reference = Project(folder / "reference", environment)
    done = folder / "undisturbed"
    if not done.exists():
        for project in (fresh, reference):
            shutil.rmtree(project.folder, ignore_errors=True)
        project_in(fresh.folder, environment)
        values = merged([read_layer(file) for file in PARAMETERS])
        (fresh.folder / "params.yaml").write_text(yaml.safe_dump(values, sort_keys=False))
        build(fresh.copy(reference.folder), *TARGETS)
        done.touch()
    return fresh, reference


@contextmanager
def on_small_disk(fresh: Project, folder: Path, size: int = DISK) -> Iterator[Project]:
    """A copy of a project on a disk of its own, with a place for temporary files beside it.

    What lies there of a run that was cut off is taken as it is.
    """
    project = Project(folder / "project", fresh.environment | {"TMPDIR": str(folder / "tmp")})
    if not folder.is_mount():
        folder.mkdir(exist_ok=True)
        subprocess.run(["mount", "-t", "tmpfs", "-o", f"size={size}", "tmpfs", folder], check=True)
        fresh.copy(project.folder)
        (folder / "tmp").mkdir()
    try:
        yield project
    finally:
        subprocess.run(["umount", "-l", folder], check=True)
        folder.rmdir()


def rounds(
    fresh: Project,
    reference: Project,
    folder: Path,
    *,
    commands: list[list[str]],
    schedule: Schedule,
    record: Record,
) -> None:
    """Build the study again and again until no fault is due any more; the commands take turns."""
    number = len(record.rounds)
    schedule.plan()
    while time.monotonic() < schedule.until:
        number += 1
        with on_small_disk(fresh, folder / "disk") as project:
            row = Round(
                project=project,
                reference=reference,
                command=commands[(number - 1) % len(commands)],
                schedule=schedule,
                record=record,
                number=number,
            ).run()
            if row["differences"]:
                shutil.copytree(project.folder, folder / f"differs-{number}", symlinks=True)
        print(row, flush=True)


def main(arguments: Sequence[str] | None = None) -> int:
    """Build the study once undisturbed, then in rounds; 1 if anything was not as it must be."""
    parser = ArgumentParser(description=__doc__, formatter_class=RawDescriptionHelpFormatter)
    parser.add_argument("--output", type=Path, default=Path(__file__).with_suffix(".json"))
    parser.add_argument("--minutes", type=float, default=60)
    parser.add_argument(
        "--every", type=float, default=60, help="seconds between faults, on average"
    )
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--log", type=Path, default=Path("chaos.log.jsonl"))
    parser.add_argument("--kinds", nargs="+", choices=FAULTS, default=list(FAULTS))
    stays = "folder to work in, which stays; an undisturbed study in it is not built again"
    parser.add_argument("--keep", type=Path, help=stays)
    again = "what is made again of a study that is built, such as models/crt; else all is made"
    parser.add_argument("--again", nargs="+", default=[], help=again)
    parser.add_argument("--read", action="store_true", help="write the result of a log, no more")
    chosen = parser.parse_args(arguments)
    record = Record.read(chosen.log)
    if chosen.read:
        return written(record, chosen)
    folder = chosen.keep or Path(tempfile.mkdtemp(prefix="chaos-"))
    folder.mkdir(exist_ok=True)
    fresh, reference = study_in(folder)
    if chosen.again:
        fresh = without(reference, Path(tempfile.mkdtemp(dir=folder)) / "again", *chosen.again)
    record.write("undisturbed")
    schedule = Schedule(
        kinds=chosen.kinds,
        every=chosen.every,
        until=time.monotonic() + 60 * chosen.minutes,
        chance=random.Random(chosen.seed),
    )
    commands = [snakemake_command(*TARGETS), snakemake_command(*TARGETS, *SHARES)]
    rounds(fresh, reference, folder, commands=commands, schedule=schedule, record=record)
    if chosen.keep is None:
        shutil.rmtree(folder)
    return written(record, chosen)


def written(record: Record, chosen: Namespace) -> int:
    """Write the result; 1 if anything was not as it must be."""
    settings = {"minutes": chosen.minutes, "every_seconds": chosen.every, "seed": chosen.seed}
    write_json(chosen.output, machine("snakemake", "torch") | settings | record.summary())
    return 1 if record.complaints else 0


if __name__ == "__main__":
    sys.exit(main())
