"""`confide watch`: how far the run in this folder is, at one look: a bar for all of it and for each
running job, what failed, and the time that is left.

It reads what the run writes, from outside: nothing is slowed, and any number may watch. Ctrl-C ends
the watching alone.
"""

import math
import re
import time
from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from contextlib import chdir
from datetime import datetime
from pathlib import Path
from statistics import mean

from rich.console import Console, Group
from rich.live import Live
from rich.progress_bar import ProgressBar
from rich.table import Table
from rich.text import Text

from confide.advisor.rates import BENCHMARKS, measured, read_rates, short
from confide.commands import mirror
from confide.errors import InputError
from confide.output.escaping import warn
from confide.output.rounding import duration
from confide.runtime.failures import last_line, lines_of, reason
from confide.runtime.workflow_log import FOLDER, STATS, Event, Progress, progress
from confide.specs import TrackingSpec

EPOCH = re.compile(r".*\bepoch (\d+) of (\d+)\b")
ENDED = re.compile(r"Complete log\(s\):|Nothing to be done")
CORES = re.compile(r"Provided (?:cores|remote nodes): (\d+)")
LIVE = "confide-live"  # experiment in MLflow
GATHERS = "all"  # rules that only name what others make
BAR = 24  # columns


def watch(*, folder: Path = Path(), every: float = 1.0, mlflow: bool = False) -> None:
    """Show the newest run until it ends; only once where nobody sees it move.

    folder: in which the workflow works.
    every: seconds between two looks.
    mlflow: whether to copy each epoch to MLflow, experiment confide-live, as well.
    """
    if not 0 <= every < math.inf:
        raise InputError("must not be negative", key="every", value=every)
    console = Console()
    log = newest(folder)
    typical = before(folder)
    if not console.is_terminal:
        console.print(view(lines_of(log), folder, typical, datetime.now()))
        return
    copied: dict[str, int] = {}
    with Live(console=console, auto_refresh=False) as live:
        while True:
            lines = lines_of(log)
            live.update(view(lines, folder, typical, datetime.now()), refresh=True)
            mlflow = mlflow and copies(folder, copied)
            if has_ended(lines):
                return
            time.sleep(every)


def copies(folder: Path, copied: dict[str, int]) -> bool:
    """Copy new epochs to MLflow; False where it does not answer, which is said."""
    try:
        with chdir(folder):
            mirror.update(TrackingSpec(experiment=LIVE), Path(), copied)
    except InputError as error:
        warn(f"confide watch: {error}")
        return False
    return True


def newest(folder: Path) -> Path:
    """Snakemake's log of the run that began last; InputError where there was none.

    Reports have such logs, too, but no table of jobs. With `--quiet all` a log stays empty, and an
    older one must not be taken for it.
    """
    logs = sorted((folder / FOLDER).glob("*.snakemake.log"), reverse=True)
    if logs and not logs[0].stat().st_size:
        problem = "is empty: the last run has just begun, or leaves nothing to watch, with --quiet"
        raise InputError(problem, file=logs[0])
    for log in logs:
        if any(line.startswith(STATS) for line in lines_of(log)):
            return log
    problem = "nothing has been run here: `confide run` comes first"
    raise InputError(problem, file=folder.resolve())


def has_ended(lines: Sequence[str]) -> bool:
    """Whether a run has come to its end, by its log."""
    return any(map(ENDED.match, lines[-20:]))


def before(folder: Path) -> dict[str, float]:
    """Seconds that a job of each rule takes: here, as far as some were done, or else elsewhere."""
    typical = {kind.partition(" ")[0]: rate.seconds for kind, rate in read_rates().items()}
    taken = defaultdict(list)
    for file, cost in measured(folder).items():
        rule = file.relative_to(BENCHMARKS).parts[0].removesuffix(".tsv")
        taken[rule].append(cost.seconds)
    return typical | {rule: mean(seconds) for rule, seconds in taken.items()}


def view(lines: Sequence[str], folder: Path, typical: Mapping[str, float], now: datetime) -> Group:
    """The whole picture. lines: of the run's log. typical: seconds of a job, by rule."""
    state = progress(lines)
    total = sum(count for rule, count in state.total.items() if rule != GATHERS)
    seconds = {**typical, **taken_in(state)}
    remaining = left(state, lines, folder, seconds, now)
    parts: list[Table | Text] = [overall(state, total, remaining, ended=has_ended(lines))]
    table = Table.grid(padding=(0, 2))
    for event in state.running.values():
        table.add_row(*running(event, folder, seconds, now))
    parts.append(table)
    parts += [failure(job.title, job.logs, folder) for job in state.failed.values()]
    return Group(*parts)


def taken_in(state: Progress) -> dict[str, float]:
    """Mean seconds of the jobs that are done, by rule."""
    taken = defaultdict(list)
    for job, seconds in state.done:
        if seconds is not None:
            taken[short(job.rule)].append(seconds)
    return {rule: mean(seconds) for rule, seconds in taken.items()}


def overall(state: Progress, total: int, remaining: str, *, ended: bool) -> Table:
    """The bar of all jobs. remaining: in words, how long they will still take."""
    done = sum(job.rule != GATHERS for job, _ in state.done)
    words = f"{done} of {total} jobs, {'ended' if ended else remaining}"
    if state.failed:
        words += f", {len(state.failed)} failed"
    table = Table.grid(padding=(0, 2))
    table.add_row(ProgressBar(total=max(1, total), completed=done, width=BAR), words)
    return table


def left(
    state: Progress,
    lines: Sequence[str],
    folder: Path,
    typical: Mapping[str, float],
    now: datetime,
) -> str:
    """How long the run will still take: what is left of running jobs, and all that wait."""
    waiting = Counter({short(rule): 0 for rule in state.total})
    for rule, count in state.total.items():
        if rule != GATHERS:
            waiting[short(rule)] += count
    waiting.subtract(short(job.rule) for job, _ in state.done)
    waiting.subtract(short(event.job.rule) for event in state.running.values())
    waiting.subtract(short(job.rule) for job in state.failed.values())
    seconds = sum(max(0, count) * typical.get(rule, 0.0) for rule, count in waiting.items())
    for event in state.running.values():
        share = share_done(event, folder, typical, now)
        if share:
            seconds += elapsed(event, now) * (1 - share) / share
    is_known = all(rule in typical for rule, count in waiting.items() if count > 0)
    cores = next((int(match[1]) for line in lines if (match := CORES.match(line))), 1)
    return f"{'about' if is_known else 'at least'} {duration(seconds / cores)} left"


def running(
    event: Event, folder: Path, typical: Mapping[str, float], now: datetime
) -> tuple[ProgressBar, str, str]:
    """Bar, title and time of a running job."""
    share = share_done(event, folder, typical, now)
    bar = ProgressBar(total=1.0, completed=share or 0.0, width=BAR, pulse=share is None)
    return bar, event.job.title, duration(elapsed(event, now))


def elapsed(event: Event, now: datetime) -> float:
    """Seconds since a job started."""
    return 0.0 if event.time is None else max(0.0, (now - event.time).total_seconds())


def share_done(
    event: Event, folder: Path, typical: Mapping[str, float], now: datetime
) -> float | None:
    """How much of a running job is done: by its epochs, or by the time that such jobs take; None
    where nobody knows.
    """
    for log in event.job.logs:
        if (epoch := EPOCH.match(last_line(folder / log))) is not None:
            return int(epoch[1]) / int(epoch[2])
    usual = typical.get(short(event.job.rule))
    return None if not usual else min(0.95, elapsed(event, now) / usual)


def failure(title: str, logs: Sequence[str], folder: Path) -> Text:
    """A failed job and why."""
    why = " ".join(f"{log}: {reason(folder / log)}" for log in logs)
    return Text(f"failed: {title}. {why}")
