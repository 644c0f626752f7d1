"""What the data stages of a large corpus would take on a cluster: by arithmetic, and by a schedule
that is simulated.

    python benchmarks/plan.py --tb 1 --nodes 8

Nothing large is run. What a job takes and moves is what `data_stages.py` measured at its largest
size, times how much larger the corpus is; what putting shares together takes is from `shares.py`.
Both suppose that a job takes twice as long for twice the text, which `data_stages.py` shows by its
sizes, and that a file which a stage reads twice is read once from disk. The cluster is a
supposition, too: so many nodes with so many cores, and a file system that all of them share.

Arithmetic adds up what no schedule could save: jobs one after another that need each other, each
as long as its cores or the file system take. The simulation starts jobs in the order in which they
become ready, as Snakemake and Slurm would, and lets those that run at one time divide the file
system among them. It cannot be faster than the arithmetic; how much slower it is, a bad number of
shares costs.
"""

import argparse
import json
import math
from collections.abc import Container, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from confide.files.io import write_json

FOLDER = Path(__file__).parent
CORES = 16  # of a node
MEMORY_GB = 64.0  # of a node
DISK_MB_PER_S = 2000.0  # of the file system of all nodes
WRITES = {"plant": 0.3}  # share of a stage's time that is one thread's, which writes
# The graph: each stage with those that come before it. Stages of one job; those that have a job
# for each share; and what puts the shares of a stage together.
WHOLE: dict[str, tuple[str, ...]] = {
    "split": (),
    "plant": ("split",),
    "recall": ("gather_spans",),
    "neighbours": ("gather_spans",),
}
SHARED = {
    "digests": ("plant",),
    "repeats": ("digests",),
    "copies": ("repeats",),
    "redact": ("plant",),
    "partition": ("gather_copies", "gather_spans"),
}
GATHERED = {"gather_copies": "copies", "gather_spans": "redact", "gather": "partition"}
START = 60.0  # seconds that Slurm and Snakemake need to start a job
TINY = 1e-9


@dataclass(frozen=True)
class Cluster:
    """Nodes that are alike, and the file system of all of them."""

    nodes: int
    cores: int  # of a node
    memory_gb: float  # of a node
    disk_mb_per_s: float  # of the shared file system, reading and writing together


@dataclass
class Job:
    """A job on one node: processor seconds of all its cores, and megabytes read and written."""

    name: str
    seconds: float
    moved_mb: float
    cores: int = 1
    one_thread: float = 0.0  # share of its seconds that only one core can take
    memory_gb: float = 1.0
    needs: tuple[str, ...] = ()
    left: float = field(init=False)  # share of it that is not done

    def __post_init__(self) -> None:
        self.left = 1.0

    @property
    def alone(self) -> float:
        """Seconds that it takes where nothing else needs the file system."""
        divided = (1 - self.one_thread) / self.cores
        return START + self.seconds * (self.one_thread + divided)

    @property
    def asked(self) -> float:
        """Megabytes a second that it then moves."""
        return self.moved_mb / self.alone

    def speed(self, share: float) -> float:
        """What part of it is done in a second where it may move so many megabytes in one."""
        return min(1.0, share / self.asked if self.asked else 1.0) / self.alone


def jobs(
    stages: dict[str, Any], megabytes: float, shares: int, threads: int, whole: bool = True
) -> Iterator[Job]:
    """The graph of the data stages for so much text.

    `stages`: by name what a stage takes and moves per megabyte. Those of SHARED have `shares` jobs
    each; stages that know threads have `threads` cores. Unless `whole`, those of WHOLE have as many
    jobs, too, as if they could be divided.
    """
    in_one = WHOLE if whole else {}
    in_shares = SHARED if whole else WHOLE | SHARED
    for name, needs in in_one.items():
        cost = stages[name]
        yield Job(
            name,
            seconds=cost["seconds"] * megabytes,
            moved_mb=cost["moved"] * megabytes,
            cores=threads,
            one_thread=WRITES.get(name, 0.0),
            needs=needs,
        )
    for name, needs in in_shares.items():
        cost = stages[name]
        before = tuple(job for need in needs for job in parts_of(need, shares, in_shares))
        for part in parts_of(name, shares, in_shares):
            yield Job(
                part,
                seconds=cost["seconds"] * megabytes / shares,
                moved_mb=cost["moved"] * megabytes / shares,
                needs=before,
            )
    for name, shared in GATHERED.items():
        cost = stages[name]
        yield Job(
            name,
            seconds=cost["seconds"] * megabytes,
            moved_mb=cost["moved"] * megabytes,
            needs=parts_of(shared, shares, in_shares),
        )


def parts_of(name: str, shares: int, in_shares: Container[str]) -> tuple[str, ...]:
    """Names of the jobs of a stage."""
    if name not in in_shares:
        return (name,)
    return tuple(f"{name} {number}" for number in range(shares))


def bound(planned: list[Job], cluster: Cluster) -> float:
    """Seconds that no schedule goes below.

    The longest of three: the longest chain of jobs that need each other, what all cores take, what
    the file system takes.
    """
    ends: dict[str, float] = {}

    def end(job: Job) -> float:
        if job.name not in ends:
            before = max((end(by_name[name]) for name in job.needs), default=0.0)
            ends[job.name] = before + max(job.alone, job.moved_mb / cluster.disk_mb_per_s)
        return ends[job.name]

    by_name = {job.name: job for job in planned}
    chain = max(end(job) for job in planned)
    cores = sum(job.alone * job.cores for job in planned) / (cluster.nodes * cluster.cores)
    disk = sum(job.moved_mb for job in planned) / cluster.disk_mb_per_s
    return max(chain, cores, disk)


def simulated(planned: list[Job], cluster: Cluster) -> dict[str, tuple[float, float]]:
    """When each job begins and ends, in seconds."""
    waiting = list(planned)
    running: dict[str, tuple[Job, int]] = {}
    free = [[cluster.cores, cluster.memory_gb] for _ in range(cluster.nodes)]
    began: dict[str, float] = {}
    ended: dict[str, float] = {}
    now = 0.0
    while waiting or running:
        for job in [job for job in waiting if all(name in ended for name in job.needs)]:
            node = placed(job, free)
            if node is None:
                continue
            free[node][0] -= job.cores
            free[node][1] -= job.memory_gb
            waiting.remove(job)
            running[job.name] = job, node
            began[job.name] = now
        if not running:
            names = ", ".join(job.name for job in waiting)
            raise SystemExit(f"no node has room for: {names}")
        share = fair([job.asked for job, _ in running.values()], cluster.disk_mb_per_s)
        speeds = {name: job.speed(share) for name, (job, _) in running.items()}
        step = min(job.left / speeds[name] for name, (job, _) in running.items())
        now += step
        for name, (job, node) in list(running.items()):
            job.left -= speeds[name] * step
            if job.left <= TINY:
                del running[name]
                free[node][0] += job.cores
                free[node][1] += job.memory_gb
                ended[name] = now
    return {name: (began[name], end) for name, end in ended.items()}


def hours(times: dict[str, tuple[float, float]]) -> float:
    """When the last job ends."""
    return max(end for _, end in times.values()) / 3600


def fair(asked: list[float], all_together: float) -> float:
    """The most that one of several may have, so that who asks for less has what he asks for.

    Where there is enough for all it is more than anybody asks for.
    """
    left = all_together
    for number, least in enumerate(sorted(asked)):
        share = left / (len(asked) - number)
        if least > share:
            return share
        left -= least
    return math.inf


def placed(job: Job, free: list[list[float]]) -> int | None:
    """The first node that has cores and memory for a job."""
    rooms = (
        number
        for number, (cores, memory) in enumerate(free)
        if cores >= job.cores and memory >= job.memory_gb
    )
    return next(rooms, None)


def costs() -> dict[str, dict[str, float]]:
    """What stages take and move per megabyte of text, by what was measured at the largest size.

    Turns of 54 bytes, which are dearest.
    """
    data = json.loads((FOLDER / "data_stages.json").read_text())
    sizes = data["cases"]["turn"].values()
    largest = max(sizes, key=lambda case: case["megabytes"])
    by_stage = {
        name: {
            "seconds": row["cpu_seconds"] / largest["megabytes"],
            "moved": (row["read_mb"] + row["written_mb"]) / largest["megabytes"],
            "written": row["written_mb"] / largest["megabytes"],
        }
        for name, row in largest["stages"].items()
    }
    shared = json.loads((FOLDER / "shares.json").read_text())
    measured = shared["stages"]
    for step, row in measured["dedup"]["steps"].items():
        seconds = sum(job["cpu_seconds"] for job in row["shares"])
        amounts = {"seconds": seconds, "moved": row["moved_mb"], "written": row["written_mb"]}
        by_stage[step] = {name: each / shared["megabytes"] for name, each in amounts.items()}
    for name, stage in GATHERED.items():
        row = measured["dedup" if stage == "copies" else stage]["together"]
        by_stage[name] = {
            "seconds": row["cpu_seconds"] / shared["megabytes"],
            # it reads what the stage wrote, and writes as much
            "moved": 2 * by_stage[stage]["written"],
            "written": by_stage[stage]["written"],
        }
    del by_stage["dedup"]  # of one job
    return by_stage


def planned(terabytes: float, nodes: int) -> dict[str, Any]:
    """The plan for a corpus: what was supposed, hours by both ways, and hours of each stage."""
    by_stage = costs()
    cluster = Cluster(nodes=nodes, cores=CORES, memory_gb=MEMORY_GB, disk_mb_per_s=DISK_MB_PER_S)
    shares = nodes * CORES
    graph = list(jobs(by_stage, 1e6 * terabytes, shares=shares, threads=CORES))
    times = simulated(graph, cluster)
    divided = list(jobs(by_stage, 1e6 * terabytes, shares=shares, threads=CORES, whole=False))
    stages: dict[str, list[float]] = {}
    for name, (begin, end) in times.items():
        first, last = stages.setdefault(name.partition(" ")[0], [begin, end])
        stages[name.partition(" ")[0]] = [min(first, begin), max(last, end)]
    return {
        "terabytes": terabytes,
        "nodes": nodes,
        "cores": CORES,
        "memory_gb": MEMORY_GB,
        "disk_mb_per_s": DISK_MB_PER_S,
        "jobs": len(graph),
        "bound_hours": bound(graph, cluster) / 3600,
        "hours": hours(times),
        # if the stages of one job had a job for each share, too
        "hours_divided": hours(simulated(divided, cluster)),
        "core_hours": sum(job.seconds for job in graph) / 3600,
        "written_tb": terabytes * sum(cost["written"] for cost in by_stage.values()),
        "moved_tb": sum(job.moved_mb for job in graph) / 1e6,
        "stages": {name: [begin / 3600, end / 3600] for name, (begin, end) in stages.items()},
    }


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--tb", type=float, nargs="+", default=[0.01, 0.1, 1.0], help="of text")
    parser.add_argument("--nodes", type=int, default=8)
    parser.add_argument("--output", type=Path, default=Path(__file__).with_suffix(".json"))
    arguments = parser.parse_args()
    plans = [planned(terabytes, arguments.nodes) for terabytes in arguments.tb]
    for plan in plans:
        print(
            f"{plan['terabytes']:g} TB on {plan['nodes']} nodes: {plan['hours']:.1f} hours, "
            f"at least {plan['bound_hours']:.1f}; {plan['core_hours']:.0f} core-hours, "
            f"{plan['moved_tb']:.1f} TB moved, {plan['jobs']} jobs"
        )
    write_json(arguments.output, {"plans": plans})


if __name__ == "__main__":
    main()
