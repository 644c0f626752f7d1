"""`confide forecast [OPTION ...]`: what `confide run` would take, in time, memory and disk, before
it begins.

Options are those of `confide run`. Nothing is built. What is not known yet is estimated: training
from a few of its steps, run on text without meaning, which takes a minute.

  confide forecast                     of all that params.yaml selects, on all cores
  confide forecast prepare --cores 2   of redaction and what it misses, on two cores
  confide forecast -d mine             of the folder mine
"""

import argparse
import os
from collections.abc import Sequence
from contextlib import chdir
from heapq import heappop, heappush
from typing import NamedTuple

from confide.advisor.forecast import costs
from confide.advisor.rates import Cost
from confide.config.params import load
from confide.output.escaping import say
from confide.output.rounding import duration
from confide.report.tables.table import table_lines
from confide.runtime import packaged
from confide.runtime.plan import left
from confide.runtime.workflow_log import WorkflowJob

HEAD = ("jobs", "how many", "time of each", "of all", "memory of each", "estimated from")


class Outlook(NamedTuple):
    """What several jobs take together."""

    seconds: float
    memory_mb: float  # at one time


def forecast(*options: str) -> None:
    """Print a table. Failure where Snakemake refuses the plan, after it has said why."""
    jobs = left(*options)
    if not jobs:
        say("Nothing is left to do.")
        return
    with chdir(packaged.directory(options)):
        prices = costs(load(), jobs)
    cores = cores_of(options)
    say(*page(jobs, prices, cores))


def cores_of(options: Sequence[str]) -> int:
    """How many cores Snakemake may use, by its options."""
    parser = argparse.ArgumentParser(prog="confide", add_help=False, allow_abbrev=False)
    parser.add_argument("-c", "--cores", "-j", "--jobs", dest="cores", nargs="?", default="all")
    cores = parser.parse_known_args(options)[0].cores
    if cores is None or not cores.isdigit():
        return len(os.sched_getaffinity(0))
    return max(1, int(cores))


def page(jobs: Sequence[WorkflowJob], prices: Sequence[Cost], cores: int) -> list[str]:
    """What jobs take, kind by kind, below one sentence for all of them."""
    together = outlook(jobs, prices, cores)
    disk_mb = sum(price.disk_mb for price in prices)
    known = all(price.is_known for price in prices)
    time = f"{'about' if known else 'at least'} {duration(together.seconds)}"
    on = "1 core" if cores == 1 else f"{cores} cores"
    head = (
        f"{len(jobs)} jobs, {time} on {on}, "
        f"up to {size(together.memory_mb)} of memory at a time, {size(disk_mb)} of new files."
    )
    kinds: dict[tuple[str, str], list[Cost]] = {}
    for job, price in zip(jobs, prices, strict=True):
        kinds.setdefault((job.rule, price.source), []).append(price)
    rows = [row(rule, source, group) for (rule, source), group in kinds.items()]
    lines = [head, "", *table_lines(list(HEAD), rows), ""]
    lines.append("These are estimates: a factor of two is well possible.")
    if not known:
        lines.append(
            "What is unknown comes on top. Run `confide forecast` again once data are there."
        )
    return lines


def row(rule: str, source: str, group: Sequence[Cost]) -> list[str]:
    """Jobs of one kind."""
    if not group[0].is_known:
        return [rule, str(len(group)), "unknown", "unknown", "unknown", "nothing"]
    total = sum(price.seconds for price in group)
    memory = max(price.memory_mb for price in group)
    each = duration(total / len(group))
    return [rule, str(len(group)), each, duration(total), size(memory), source]


def size(megabytes: float) -> str:
    """Megabytes with their unit, two digits of them."""
    if megabytes < 1000:
        return f"{max(1, round(megabytes))} MB"
    return f"{megabytes / 1000:.1f} GB" if megabytes < 10_000 else f"{megabytes / 1000:.0f} GB"


def outlook(jobs: Sequence[WorkflowJob], prices: Sequence[Cost], cores: int) -> Outlook:
    """What jobs take together: each starts when what it reads is made and a core is free."""
    maker = {output: number for number, job in enumerate(jobs) for output in job.outputs}
    waits_for = [{maker[file] for file in job.inputs if file in maker} for job in jobs]
    waiting = list(range(len(jobs)))
    running: list[tuple[float, int]] = []  # when each ends
    done: set[int] = set()
    now = 0.0
    most = 0.0
    while waiting or running:
        ready = [number for number in waiting if waits_for[number] <= done]
        for number in ready[: cores - len(running)]:
            waiting.remove(number)
            heappush(running, (now + prices[number].seconds, number))
        most = max(most, sum(prices[number].memory_mb for _, number in running))
        now, number = heappop(running)
        done.add(number)
    return Outlook(now, most)
