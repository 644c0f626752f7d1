"""Inject every fault into real runs and write docs/faults.md: `python tests/faults/table.py
--points 20` (an hour, 2 cores).
"""

import argparse
import signal
import sys
import tempfile
import time
from collections.abc import Iterator
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

Is anything lost when a run is killed, starved, crowded or confused? Each fault here is injected into real runs of the tiny
study (`tests/params.tiny.yaml`, {jobs} jobs). What the next `snakemake --unlock; snakemake` ends with is compared with a run
that nothing happened to, file by file and byte by byte, but for the time and memory that epochs took and, in the list of files
that were searched for secrets, the sizes of files that hold such numbers. A temporary file that stays behind counts as lost,
and so does a second rerun that finds something to do. `python tests/faults/table.py --points 20` does all this and writes this
page; every run of the tests does a part of it.

| fault | injected at | outcome | times tried |
|---|---|---|---|
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


def line(row: Row) -> str:
    """A row as the page has it."""
    return f"| {row.fault} | {row.where} | {row.outcome.replace('|', '/')} | {row.times} |\n"


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
        jobs = sum(fresh.planned().values())
        reference = fresh.copy(folder / "reference")
        reference.snakemake()
        lines = [HEAD.format(jobs=jobs)]
        started = time.monotonic()
        for row in rows(reference, fresh, folder, points):
            lines.append(line(row).replace(f"{folder}/", ""))
            lost += bool(row.lost)
            print(
                f"{time.monotonic() - started:.0f} s: {lines[-1]}",
                end="",
                file=sys.stderr,
                flush=True,
            )
    PAGE.write_text("".join(lines))
    return lost


if __name__ == "__main__":
    sys.exit(main())
