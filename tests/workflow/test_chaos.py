"""The chaos run of benchmarks/chaos.py in short: what it says of a study that faults have hit, and
of one whose results somebody has changed.
"""

import os
import random
import shutil
import sys
import time
from pathlib import Path

import pytest

sys.path[:0] = [
    str(Path(__file__).parents[2] / "benchmarks"),
    str(Path(__file__).parents[1] / "faults"),
]

from chaos import Record, Round, Schedule, on_small_disk, rounds  # noqa: E402
from disturbances import FAULTS  # noqa: E402
from harness import RUN, half_done, snakemake  # noqa: E402

MOUNTS = os.geteuid() == 0 and shutil.which("mount") is not None
pytestmark = [
    pytest.mark.slow,
    pytest.mark.nightly,
    pytest.mark.skipif(not MOUNTS, reason="a disk of its own needs root, to mount one"),
]
SECONDS = 60
EVERY = 8
MODEL = f"models/{RUN}/model.safetensors"
LEFT = f"results/runs/{RUN}/.game.json.host.1.tmp"


def schedule(kinds, seconds):
    """Faults of some kinds for so many seconds."""
    until = time.monotonic() + seconds
    return Schedule(kinds=kinds, every=EVERY, until=until, chance=random.Random(1))


def test_a_study_that_faults_have_hit_ends_with_the_bytes_of_one_that_none_has(built, tmp_path):
    kinds = ["kill -9 of a job", "kill -9 of Snakemake", "two Snakemakes", "stopped job"]
    record = Record(log=tmp_path / "log.jsonl")
    rounds(
        half_done(built, tmp_path / "fresh"),
        built,
        tmp_path,
        commands=[snakemake()],
        schedule=schedule(kinds, SECONDS),
        record=record,
    )
    assert record.complaints == []
    assert record.rounds and all(row["differences"] == [] for row in record.rounds)
    summary = record.summary()
    assert summary["faults"] >= 1
    assert sum(summary["kinds"][kind]["times"] for kind in kinds) == summary["faults"]
    assert record.log.read_text().count('"event": "fault"') == summary["faults"]


def test_a_changed_result_and_what_is_left_over_are_reported(built, tmp_path):
    record = Record(log=tmp_path / "log.jsonl")
    with on_small_disk(built, tmp_path / "disk") as project:
        path = project.folder / MODEL
        dates = path.stat()
        content = bytearray(path.read_bytes())
        content[-1] ^= 1
        path.write_bytes(content)
        os.utime(path, ns=(dates.st_atime_ns, dates.st_mtime_ns))  # so that nothing else sees it
        (project.folder / LEFT).touch()
        wrong = Round(
            project=project,
            reference=built,
            command=snakemake(),
            schedule=schedule(list(FAULTS), 0),
            record=record,
            number=1,
        ).differences()
    assert wrong == [MODEL, LEFT, f"left over: {LEFT}"]
    assert len(record.complaints) == 3
