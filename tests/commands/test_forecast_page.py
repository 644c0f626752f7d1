"""`confide forecast`: how jobs share cores, and the page."""

from pathlib import Path

import pytest

from confide.advisor.rates import BEFORE, NOT_KNOWN, Cost
from confide.commands.forecast import cores_of, outlook, page
from confide.output.rounding import duration
from confide.runtime.workflow_log import WorkflowJob


def job(rule: str, inputs: str, output: str) -> WorkflowJob:
    return WorkflowJob(rule=rule, inputs=tuple(inputs.split()), outputs=(output,))


JOBS = [
    job("train", "a", "b"),  # out of order: it waits for what makes a
    job("split", "there", "a"),
    job("train", "a", "c"),
    job("study", "b c", "d"),
]
COSTS = [
    Cost(seconds=100.0, memory_mb=500.0, source=BEFORE),
    Cost(seconds=10.0, memory_mb=50.0, source=BEFORE),
    Cost(seconds=60.0, memory_mb=700.0, disk_mb=4.0, source=BEFORE),
    Cost(seconds=5.0, memory_mb=10.0, source=BEFORE),
]


def test_a_job_waits_for_what_it_reads_and_for_a_core():
    assert outlook(JOBS, COSTS, 1) == (175.0, 700.0)
    assert outlook(JOBS, COSTS, 2) == (115.0, 1200.0)
    assert outlook(JOBS, COSTS, 16) == (115.0, 1200.0)


@pytest.mark.parametrize(
    ("options", "cores"),
    [(["--cores", "3"], 3), (["-c5", "-n"], 5), (["prepare", "--cores=7"], 7), (["-j", "2"], 2)],
)
def test_cores_are_those_of_the_options(options, cores):
    assert cores_of(options) == cores


def test_without_a_number_all_cores_count():
    assert cores_of([]) == cores_of(["--cores", "all"]) == cores_of(["--cores"]) >= 1


def test_the_page_says_the_sum_first_and_what_is_unknown():
    lines = page(JOBS, COSTS, 2)
    assert lines[0] == (
        "4 jobs, about 1.9 minutes on 2 cores, up to 1.2 GB of memory at a time, 4 MB of new files."
    )
    rows = [line for line in lines if line.startswith("| train")]
    assert rows == [f"| train | 2 | 80 s | 2.7 minutes | 700 MB | {BEFORE} |"]
    lines = page([*JOBS, job("fetch", "", "there")], [*COSTS, NOT_KNOWN], 2)
    assert lines[0].startswith("5 jobs, at least 1.9 minutes")
    assert "| fetch | 1 | unknown | unknown | unknown | nothing |" in lines
    assert "unknown comes on top" in lines[-1]


@pytest.mark.parametrize(
    ("seconds", "words"),
    [
        (0.04, "0.0 s"),
        (9.94, "9.9 s"),
        (60, "60 s"),
        (89.6, "90 s"),
        (90, "1.5 minutes"),
        (3600, "60 minutes"),
        (5400, "1.5 hours"),
        (100_000, "28 hours"),
        (1e6, "12 days"),
    ],
)
def test_durations_have_two_digits(seconds, words):
    assert duration(seconds) == words


def times(folder: Path) -> dict[Path, int]:
    """When each file was changed that a run makes."""
    places = ("data", "models", "results", "logs", ".snakemake/metadata")
    files = [path for place in places for path in (folder / place).rglob("*") if path.is_file()]
    return {path: path.stat().st_mtime_ns for path in files}


@pytest.mark.slow
def test_a_built_project_has_nothing_to_do_and_a_forced_job_costs_what_it_did(built):
    assert "Nothing is left to do." in built.run("confide", "forecast")
    before = times(built.folder)
    said = built.run("confide", "forecast", "--forcerun", "evaluate", "--cores", "2")
    assert " on 2 cores, up to " in said and f"{BEFORE} |" in said and "unknown" not in said
    assert times(built.folder) == before


@pytest.mark.slow
def test_a_plan_that_is_refused_is_no_forecast(tmp_path, built):
    said = built.run("confide", "forecast", "-d", str(tmp_path), check=False)
    assert built.status == 1 and "params.yaml" in said and "there is no plan" in said
