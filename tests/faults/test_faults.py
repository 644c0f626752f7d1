"""A part of the table of faults as tests; `python tests/faults/table.py` has the whole of it."""

import os
import shutil
import signal

import pytest
from harness import RUN, half_done, small_disk, without
from training_faults import killed_anywhere, killed_while_writing
from workflow_faults import cut, damaged_record, dated, ended, full_disk, killed

pytestmark = [pytest.mark.slow, pytest.mark.nightly]
MOUNTS = os.geteuid() == 0 and shutil.which("mount") is not None


def test_a_workflow_that_is_killed_ends_with_the_same_bytes(built, tmp_path):
    """One model without attacks, so that what is left to do after the kill is short."""
    run = "jft/g0-s0"
    project = without(built, tmp_path / "project", f"models/{run}", f"results/runs/{run}")
    row = killed(project, built, tmp_path, 1)
    assert row.lost == [] and row.times == 1


def test_a_workflow_that_is_killed_twice_ends_with_the_same_bytes(built, tmp_path):
    row = killed(half_done(built, tmp_path / "project"), built, tmp_path, 2)
    assert row.lost == [] and row.times == 2


def test_a_workflow_that_gets_sigterm_ends_with_the_same_bytes(built, tmp_path):
    assert ended(half_done(built, tmp_path / "project"), built, tmp_path, signal.SIGTERM).lost == []


def test_a_training_job_that_is_killed_anywhere_ends_with_the_same_bytes(built, tmp_path):
    (row,) = killed_anywhere(built, tmp_path, 2)
    assert row.lost == [] and row.times == 2


def test_no_output_of_a_killed_training_job_changes_any_more(built, tmp_path):
    assert [row.lost for row in killed_while_writing(built, tmp_path, 2)] == [[], []]


@pytest.mark.skipif(not MOUNTS, reason="a small disk needs root, to mount one")
def test_a_full_disk_is_one_line_and_costs_nothing_but_time(built, tmp_path):
    assert full_disk(built, tmp_path, "results").lost == []


@pytest.mark.skipif(not MOUNTS, reason="a small disk needs root, to mount one")
def test_a_run_on_a_full_disk_is_refused_in_one_line(built, tmp_path):
    project = half_done(built, tmp_path / "project")
    with small_disk(project.folder, 0):
        output = project.snakemake(check=False)
    said = f"{project.folder}: no space is left on this disk"
    assert project.status == 2 and output.splitlines()[-1] == said
    assert "Traceback" not in output


def test_files_and_records_that_are_cut_short_are_refused_by_name(built, tmp_path):
    project = built.copy(tmp_path / "project")
    assert cut(project, built, "data/work/sim/points.jsonl", remake=False).lost == []
    assert damaged_record(project, built, f"results/runs/{RUN}/game.json").lost == []
    assert dated(project, built).lost == []
