"""Inject every fault into real runs and write docs/faults.md: `python tests/faults/table.py
--points 20` (an hour, 2 cores).
"""

import argparse
import signal
import sys
import tempfile
import time
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

from harness import RUN, Row, half_done
from project import Project, environment_in, project_in
from service_faults import remote_that_vanishes, server_that_dies
from training_faults import killed_anywhere, killed_while_writing, two_jobs_at_once
from workflow_faults import (
    DISKS,
    clock,
    cut,
    damaged_record,
    dated,
    ended,
    full_disk,
    killed,
    two_at_once,
)

PAGE = Path(__file__).parents[2] / "docs/faults.md"
CUT = {  # file: whether it is also deleted and made again, which may be half of the study
    "data/work/sim/points.jsonl": False,
    "data/work/sim/g0.1-dedup/redacted.safetensors": False,
    "data/tokenizers/bpe.json": False,
    f"models/{RUN}/model.safetensors": False,
    f"models/{RUN}/ledger.jsonl": False,
    f"results/runs/{RUN}/game.json": True,
}
HEAD = """# Faults

Read this if a run was killed, started twice, or ran out of disk.

**After a crash:** `snakemake -d FOLDER --unlock` (in a clone's own folder `make unlock`), then the
same command again. Training goes on from its last checkpoint, to the same
weights and ε, bit for bit. A file that was cut short or changed is refused by name: delete it, and
it is made anew; where several jobs share it, all of them run again.

`python benchmarks/chaos.py` (as root) let 52 faults in an hour hit one study, built 16 times over:
kills, SIGTERM, stopped jobs, a full disk, too little memory, outputs that came late or in half,
damaged checkpoints. Each time its 183 files had the bytes of a quiet run; what was damaged was
refused by name. Every fault and what followed: [the log](../benchmarks/chaos.jsonl).

Each fault below was injected into the tiny study, and what the next run made compared with a run
without it, byte for byte but for times and memory (`python tests/faults/table.py --points 20`).

| fault | times | injected at |
|---|---|---|
"""


def rows(reference: Project, fresh: Project, folder: Path, points: int) -> Iterator[Row]:
    """Every fault in turn."""
    yield killed(fresh.copy(folder / "all"), reference, folder, points)
    yield killed(fresh.copy(folder / "alone"), reference, folder, max(1, points // 4), alone=True)
    for number in (signal.SIGTERM, signal.SIGINT):
        yield ended(half_done(reference, folder / number.name), reference, folder, number)
    yield two_at_once(half_done(reference, folder / "twice"), reference, folder)
    for name, fault in (("anywhere", killed_anywhere), ("writing", killed_while_writing)):
        yield from fault(reference, folder / name, points)
    yield from two_jobs_at_once(reference, folder / "two jobs")
    for place in DISKS:
        yield full_disk(reference, folder, place)
    for days in (400, -400):
        yield clock(half_done(reference, folder / f"clock{days}"), reference, days)
    project = reference.copy(folder / "cut")
    for name, remake in CUT.items():
        yield cut(project, reference, name, remake=remake)
    yield damaged_record(project, reference, f"results/runs/{RUN}/game.json")
    yield dated(project, reference)
    yield server_that_dies(reference.copy(folder / "tracked"), reference, folder)
    yield from remote_that_vanishes(reference.copy(folder / "recorded"), reference, folder)


def table(rows: list[Row]) -> Iterator[str]:
    """Lines of the table: one for all rows of a fault. Below it, what was lost."""
    for fault in dict.fromkeys(row.fault for row in rows):
        same = [row for row in rows if row.fault == fault]
        places = ", ".join(row.where.removesuffix(" of a training job") for row in same)
        times = sum(row.times for row in same)
        cells = (fault, str(times), places)
        yield "| " + " | ".join(cell.replace("|", "/") for cell in cells) + " |\n"
    yield "\n"
    for row in rows:
        if row.lost:
            yield f"**Lost by {row.fault}:** {'; '.join(row.lost[:5])}\n\n"
    if not any(row.lost for row in rows):
        yield "Nothing was lost by any of them.\n"


def main() -> int:
    """Build the study once undisturbed, inject every fault, write the page."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument(
        "--points", type=int, default=20, help="kills of the workflow, of a training job, ..."
    )
    points = parser.parse_args().points
    lost = 0
    with tempfile.TemporaryDirectory(prefix="faults-") as name:
        folder = Path(name)
        (folder / "bin").mkdir()
        fresh = project_in(folder / "fresh", environment_in(folder / "bin"))
        reference = fresh.copy(folder / "reference")
        reference.snakemake()
        found: list[Row] = []
        started = time.monotonic()
        for row in rows(reference, fresh, folder, points):
            found.append(replace(row, outcome=row.outcome.replace(f"{folder}/", "")))
            lost += bool(row.lost)
            print(f"{time.monotonic() - started:.0f} s: {found[-1]}", file=sys.stderr, flush=True)
    PAGE.write_text(HEAD + "".join(table(found)))
    return lost


if __name__ == "__main__":
    sys.exit(main())
