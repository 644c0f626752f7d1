"""The simulation of a schedule: what it must give where anybody can tell."""

import importlib.util
import sys
from pathlib import Path

import pytest

FILE = Path(__file__).parents[2] / "benchmarks/plan.py"
spec = importlib.util.spec_from_file_location("plan", FILE)
plan = importlib.util.module_from_spec(spec)
sys.modules["plan"] = plan  # its dataclasses look there
spec.loader.exec_module(plan)

CLUSTER = plan.Cluster(nodes=2, cores=4, memory_gb=8.0, disk_mb_per_s=100.0)
STAGES = (*plan.WHOLE, *plan.SHARED, *plan.GATHERED)


def job(name, seconds=3540.0, moved_mb=0.0, **more):
    """An hour, of which a minute is the start."""
    return plan.Job(name, seconds=seconds, moved_mb=moved_mb, **more)


def hours(jobs):
    return max(end for _, end in plan.simulated(jobs, CLUSTER).values()) / 3600


def test_jobs_that_need_each_other_follow_one_another():
    times = plan.simulated([job("b", needs=("a",)), job("a")], CLUSTER)
    assert times["a"] == pytest.approx((0, 3600)) and times["b"] == pytest.approx((3600, 7200))


@pytest.mark.parametrize("count, expected", [(8, 1), (9, 2)])
def test_a_job_waits_for_a_core(count, expected):
    assert hours([job(f"{number}") for number in range(count)]) == pytest.approx(expected)


def test_a_job_waits_for_memory():
    jobs = [job(f"{number}", memory_gb=5.0) for number in range(3)]
    assert hours(jobs) == pytest.approx(2)


def test_cores_divide_the_work_and_not_the_start():
    assert hours([job("a", cores=4)]) == pytest.approx((60 + 3540 / 4) / 3600)
    half = 3540 / 2
    assert hours([job("a", cores=4, one_thread=0.5)]) == pytest.approx(
        (60 + half + half / 4) / 3600
    )


def test_jobs_divide_the_file_system_and_who_asks_for_little_has_it():
    """Two ask for 100 MB/s each and one for 10: 45, 45 and 10, and all of it once that one ends."""
    jobs = [job("a", moved_mb=360_000), job("b", moved_mb=360_000), job("c", moved_mb=36_000)]
    times = plan.simulated(jobs, CLUSTER)
    assert times["c"][1] == pytest.approx(3600)
    left = 360_000 - 45 * 3600
    assert times["a"][1] == pytest.approx(3600 + left / 50)
    assert plan.fair([10, 100, 100], 100) == pytest.approx(45)


def test_a_job_that_fits_nowhere_is_named():
    with pytest.raises(SystemExit, match="no node has room for: a"):
        plan.simulated([job("a", cores=5)], CLUSTER)


@pytest.mark.parametrize("whole", [True, False])
@pytest.mark.parametrize("shares", [1, 4, 16])
def test_no_schedule_is_shorter_than_the_arithmetic(shares, whole):
    costs = {name: {"seconds": 0.1, "moved": 3.0} for name in STAGES}
    jobs = list(plan.jobs(costs, 1000, shares=shares, threads=4, whole=whole))
    least = plan.bound(jobs, CLUSTER) / 3600
    assert least <= hours(jobs) + 1e-9
    assert len(jobs) == (5 * shares + 7 if whole else 9 * shares + 3)
    assert {need for job in jobs for need in job.needs} < {job.name for job in jobs}
