"""What Snakemake writes of a run, in its log or as the plan of a dry run, read back as jobs.

Both are made of the same paragraphs. A head, which names a rule, is followed by one line for each
thing that its job reads or writes; a line of its own says that a job is done.
"""

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field, replace
from datetime import datetime
from pathlib import Path
from typing import NamedTuple

TIME = re.compile(r"\[(\w{3} \w{3} +\d+ [\d:]{8} \d{4})\]$")
TIME_FORMAT = "%a %b %d %H:%M:%S %Y"
HEAD = re.compile(r"(?:local)?(?:rule|checkpoint) (\w+):$")
FAILED_HEAD = re.compile(r"Error in (rule|group) ([\w-]+):$")
FIELD = re.compile(r"(input|output|log|jobid|benchmark|wildcards): (.*)$")
FINISHED = re.compile(r"Finished jobid: (\d+)\b(?: \(Rule: (\w+)\))?")
STATS = "Job stats:"
COUNT = re.compile(r"(\w+) +(\d+)$")
TOTAL = "total"
REMARK = re.compile(r" \(check log file\(s\) [^()]*\)$")
FOLDER = Path(".snakemake/log")  # where Snakemake keeps its logs, below the folder of a run


@dataclass(frozen=True, slots=True, kw_only=True)
class WorkflowJob:
    """One job of a workflow, as a paragraph describes it."""

    rule: str
    number: int = -1
    inputs: tuple[str, ...] = ()
    outputs: tuple[str, ...] = ()
    logs: tuple[str, ...] = ()
    benchmark: str | None = None
    wildcards: dict[str, str] = field(default_factory=dict)

    def with_field(self, name: str, value: str) -> "WorkflowJob":
        """The same job with what one more line says of it."""
        parts = tuple(value.split(", "))
        if name == "jobid":
            return replace(self, number=int(value))
        if name == "benchmark":
            return replace(self, benchmark=value)
        if name == "wildcards":
            pairs = [part.partition("=") for part in parts]
            return replace(self, wildcards={key: text for key, _, text in pairs})
        if name == "log":
            return replace(self, logs=tuple(REMARK.sub("", value).split(", ")))
        if name == "input":
            return replace(self, inputs=parts)
        return replace(self, outputs=parts)

    @property
    def title(self) -> str:
        """Its rule, and which of the rule's jobs it is."""
        return " ".join([self.rule, *self.wildcards.values()])


class Event(NamedTuple):
    """A job has started, is done, or has failed."""

    kind: str  # started, done, failed
    job: WorkflowJob  # of one that is done nothing but its number and rule are known
    time: datetime | None


@dataclass(slots=True)
class Progress:
    """How far a run is."""

    total: dict[str, int] = field(default_factory=dict)  # jobs of each rule
    running: dict[int, Event] = field(default_factory=dict)  # by number, in the order of starts
    # jobs that are done, each with its seconds; None where a log names no starts (--quiet rules)
    done: list[tuple[WorkflowJob, float | None]] = field(default_factory=list)
    failed: dict[int, WorkflowJob] = field(
        default_factory=dict
    )  # those not done in a later attempt


def planned(text: str) -> list[WorkflowJob]:
    """The jobs of a dry run, in its order, but for those that only gather what others make."""
    return [event.job for event in events(text.splitlines()) if event.job.outputs]


def events(lines: Iterable[str]) -> Iterator[Event]:
    """What happened, in order. Jobs of a group are paragraphs within that of the group."""
    event: Event | None = None
    time: datetime | None = None
    kind = "started"
    for line in lines:
        text = line.strip()
        if event is not None and (entry := FIELD.match(text)) is not None:
            event = event._replace(job=event.job.with_field(entry[1], entry[2]))
            continue
        if event is not None and line.startswith(" ") and HEAD.match(text) is None:
            continue
        if event is not None:
            yield event
        event = None
        if not line.startswith(" "):
            kind = "started"
        if (stamp := TIME.match(text)) is not None:
            time = datetime.strptime(stamp[1], TIME_FORMAT)
        elif (head := HEAD.match(text)) is not None:
            event = Event(kind, WorkflowJob(rule=head[1]), time)
        elif (head := FAILED_HEAD.match(line)) is not None:
            kind = "failed"
            event = Event(kind, WorkflowJob(rule=head[2]), time) if head[1] == "rule" else None
        elif (finished := FINISHED.match(line)) is not None:
            event = Event(
                "done", WorkflowJob(rule=finished[2] or "", number=int(finished[1])), time
            )
    if event is not None:
        yield event


def progress(lines: Iterable[str]) -> Progress:
    """How far a run is. lines: of its log, from its beginning."""
    lines = list(lines)
    state = Progress(total=counts(lines))
    for event in events(lines):
        number = event.job.number
        begun = state.running.pop(number, None)
        if event.kind == "started":
            state.running[number] = event
        elif event.kind == "failed":
            state.failed[number] = event.job
        else:
            state.failed.pop(number, None)
            job = event.job if begun is None else begun.job
            if job.rule:
                state.done.append((job, seconds_between(begun, event)))
    return state


def seconds_between(begun: Event | None, ended: Event) -> float | None:
    """How long a job took; None where its log does not say when it began, or ended."""
    if begun is None or begun.time is None or ended.time is None:
        return None
    return (ended.time - begun.time).total_seconds()


def counts(lines: Iterable[str]) -> dict[str, int]:
    """Jobs of each rule, by the table that a run begins with; empty where there is none."""
    table: dict[str, int] = {}
    in_table = False
    for line in lines:
        if line.startswith(STATS):
            in_table = True
        elif in_table and (row := COUNT.match(line)) is not None:
            if row[1] == TOTAL:
                break
            table[row[1]] = int(row[2])
    return table
