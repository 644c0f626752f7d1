"""One training job, killed wherever: what it ends with must be what it would have ended with, and
no output may change.
"""

import json
import random
import re
import subprocess
import sys
from collections import Counter
from pathlib import Path

from harness import Row, confide, half_done, start, wait_for
from project import Project

from confide.config import jobs
from confide.config.params import load
from confide.files.io import sha256
from confide.train.checkpoint import FINISHED

DYING = str(Path(__file__).with_name("dying.py"))
RUN = "selective/g0.1-s0"
OUTPUTS = ("model", "config", "metrics", "ledger", "epochs")
EXACT = ("model", "config", "ledger", "epochs")  # metrics hold times


class Training:
    """One job of the tiny study that writes a checkpoint after every second update, with its files
    in a folder of its own.
    """

    def __init__(self, reference: Project, folder: Path, **changes: object):
        self.reference = reference
        self.folder = folder
        params = load(reference.folder / "params.yaml")
        run = jobs.runs_of(params, params.select)[RUN]
        changes = {"checkpoint_every": 2, "every_epoch": True} | changes
        self.spec = jobs.training(params, run).model_copy(update=changes).model_dump_json()
        self.views = reference.folder / "data/work" / run.partition

    def arguments(self) -> list[str]:
        """The command line of the job."""
        files = {
            "original": self.views / "original.safetensors",
            "redacted": self.views / "redacted.safetensors",
        }
        files |= {
            "tokenizer": self.reference.folder / "data/tokenizers/bpe.json",
            "checkpoint": self.folder / "checkpoint",
        }
        files |= {name: self.folder / name for name in OUTPUTS}
        return [
            "train",
            "--spec",
            self.spec,
            *(word for name, path in files.items() for word in (f"--{name}", str(path))),
        ]

    def run(self, point: str = "never") -> tuple[int, str]:
        """Status, and the last line that it said."""
        command = [sys.executable, DYING, point, *self.arguments()]
        done = subprocess.run(
            command, env=self.reference.environment, capture_output=True, text=True
        )
        return done.returncode, done.stderr.splitlines()[-1]

    def digests(self) -> dict[str, str]:
        """Of the outputs that are there."""
        return {name: sha256(self.folder / name) for name in EXACT if (self.folder / name).exists()}

    def differences(self, other: "Training") -> list[str]:
        """What two finished jobs have that is not the same; repeated noise; leftovers."""
        ours = self.digests()
        theirs = other.digests()
        wrong = [name for name in EXACT if ours.get(name) != theirs.get(name)]
        drawn = [
            row.get("random")
            for row in map(json.loads, (self.folder / "ledger").read_text().splitlines())
        ]
        wrong += ["the same noise twice"] if max(Counter(filter(None, drawn)).values()) > 1 else []
        files = {path.name for path in self.folder.iterdir()} | {
            path.name for path in (self.folder / "checkpoint").iterdir()
        }
        return wrong + sorted(files - {*OUTPUTS, "checkpoint", "lock", FINISHED})


def killed_anywhere(reference: Project, folder: Path, points: int, seed: int = 0) -> list[Row]:
    """kill -9 at calls drawn at random among all that the job makes, again and again until it lives
    to its end.
    """
    whole = Training(reference, folder / "whole")
    chance = random.Random(seed)
    _, said = whole.run()
    calls = int(re.findall(r"\d+", said)[0])
    places = Counter()
    lost = []
    attempt = None
    while places.total() < points or attempt is not None:
        attempt = attempt or Training(reference, folder / f"killed-{places.total()}")
        last = places.total() >= points
        status, said = attempt.run("never" if last else f"call:{chance.randrange(1, calls)}")
        if status == 0:
            lost += attempt.differences(whole)
            attempt = None
        elif said.startswith("killed at "):
            places[said.removeprefix("killed at ").partition(".")[0]] += 1
        else:
            lost.append(said)
            break
    where = f"calls among {calls}, at random, in {len(places)} modules"
    says = "weights and ledger bit for bit, no noise twice"
    return [row("kill -9 of a training job", where, lost, says, places.total())]


def killed_while_writing(reference: Project, folder: Path, points: int) -> list[Row]:
    """kill -9 with half of a file written, for every file that the job writes; noise from the
    system's entropy.
    """
    rows: dict[str, list[list[str]]] = {}
    _, said = Training(reference, folder / "whole").run()
    renames = int(re.findall(r"\d+", said)[1])
    outputs = list(
        range(renames - len(OUTPUTS), renames + 1)
    )  # the last checkpoint, then the outputs
    first = list(range(1, renames - len(OUTPUTS)))
    for point in sorted({*first[: max(0, points - len(outputs))], *outputs[-points:]}):
        job = Training(reference, folder / str(point), noise_seed=None)
        status, said = job.run(f"rename:{point}")
        seen = job.digests()
        lost = [] if said.startswith("killed at ") else [f"not killed: {said}"]
        status, _ = job.run()
        lost += [] if status == 0 else ["the rerun failed"]
        lost += [
            f"{name} was given out and then changed"
            for name in seen
            if job.digests()[name] != seen[name]
        ]
        lost += job.differences(job)
        rows.setdefault(said.removeprefix("killed at "), []).append(lost)
    says = (
        "what had its final name is still the same, noise from the system included; nothing "
        "left over"
    )
    return [
        row(
            "kill -9 with half a file written",
            f"`{name}` of a training job",
            [one for lost in found for one in lost],
            says,
            len(found),
        )
        for name, found in rows.items()
    ]


def two_jobs_at_once(reference: Project, folder: Path) -> list[Row]:
    """`confide train` twice on one checkpoint: the second waits, and says so."""
    whole = Training(reference, folder / "whole")
    job = Training(reference, folder / "shared")
    whole.run()
    project = half_done(reference, folder / "project")
    logs = [folder / "first.log", folder / "second.log"]
    first = start(project, *confide(*job.arguments()), log=logs[0])
    wait_for((job.folder / "checkpoint/lock").exists, first)
    second = start(project, *confide(*job.arguments()), log=logs[1])
    statuses = [process.wait() for process in (first, second)]
    said = "\n".join(log.read_text() for log in logs)
    lost = [] if statuses == [0, 0] else [f"statuses {statuses}"]
    lost += [] if "waiting for its end" in said else ["nothing was said"]
    lost += job.differences(whole)
    return [
        row(
            "`confide train` twice at once",
            "one checkpoint folder",
            lost,
            "the second says that it waits; same bytes",
        )
    ]


def row(fault: str, where: str, lost: list[str], says: str, times: int = 1) -> Row:
    """The outcome is `says` where nothing was lost, and what was lost elsewhere."""
    return Row(
        fault,
        where,
        f"nothing lost: {says}" if not lost else f"LOST: {'; '.join(lost[:5])}",
        lost,
        times,
    )
