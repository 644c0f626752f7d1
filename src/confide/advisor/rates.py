"""What jobs took: here, as Snakemake measured it, and elsewhere, by rates.csv.

tools/rates.py makes that file.
"""

import csv
import subprocess
import sys
import time
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType
from typing import NamedTuple

from confide.runtime.workflow_log import WorkflowJob

RATES = Path(__file__).with_name("rates.csv")
COLUMNS = ("kind", "seconds", "memory_mb")
# What a job takes more seconds for: columns of rates.csv after those above, blank where it does not
OF_TEXT = ("mb", "1000_points", "1000_secrets")  # of the corpus, prices of benchmarks/prices.py
OF_TOKENS = "1000_tokens"  # that a trained model reads
OF_RUNS = "run"  # of a study
AMOUNTS = (*OF_TEXT, OF_TOKENS, OF_RUNS)
IMPORT = "import"  # of rates.csv: how long a start of Python with torch takes
TOKEN = "token"  # of rates.csv: how long its model took to read one
BENCHMARKS = Path("logs/benchmarks")  # where Snakemake says what jobs took
OF_STUDIES = ("gate", "study", "scan", "search")  # rules that are called after a study, too
# ways to know, best first
BEFORE = "what it took here before"
ALIKE = "what jobs like it took here"
REHEARSED = "a few of its steps"
GUESSED = "a few of its steps, lengths guessed from characters"
ELSEWHERE = "what it took elsewhere"
UNKNOWN = "unknown"


@dataclass(frozen=True, slots=True, kw_only=True)
class Cost:
    """What a job takes."""

    seconds: float
    memory_mb: float = 0.0
    disk_mb: float = 0.0
    source: str = UNKNOWN

    @property
    def is_known(self) -> bool:
        """Whether the other numbers mean anything."""
        return self.source != UNKNOWN


NOT_KNOWN = Cost(seconds=0.0)


class Rate(NamedTuple):
    """What a kind of job took on another machine."""

    seconds: float
    memory_mb: float = 0.0
    more: Mapping[str, float] = MappingProxyType({})  # seconds for one of an amount

    def of_text(self) -> bool:
        """Whether it takes longer for more text."""
        return any(name in self.more for name in OF_TEXT)

    def seconds_more(self, amounts: Mapping[str, float]) -> float:
        """Seconds that so much of everything adds."""
        return sum(price * amounts.get(name, 0.0) for name, price in self.more.items())


def read_benchmark(file: Path) -> Cost:
    """What a job took, from the file that Snakemake measures it into; the last run counts."""
    with open(file, newline="") as table:
        row = list(csv.DictReader(table, delimiter="\t"))[-1]
    memory = row["max_rss"]
    return Cost(
        seconds=float(row["s"]),
        memory_mb=0.0 if memory in ("NA", "-") else float(memory),
        source=BEFORE,
    )


def measured(folder: Path) -> dict[Path, Cost]:
    """What the jobs of a folder took, by the file, seen from there, that says so."""
    files = sorted((folder / BENCHMARKS).rglob("*.tsv"))
    return {file.relative_to(folder): read_benchmark(file) for file in files}


def study_of(rule: str) -> str | None:
    """The study that a rule is called after."""
    head, _, study = rule.partition("_")
    return study if head in OF_STUDIES and study else None


def short(rule: str) -> str:
    """A rule without the name of the study that it is called after."""
    study = study_of(rule)
    return rule if study is None else rule.removesuffix(f"_{study}")


def kind_of(job: WorkflowJob, attacks: Mapping[str, str]) -> str:
    """Row of rates.csv; attacks: kinds of attacks by their names."""
    name = job.wildcards.get("attack")
    if name is not None and name in attacks:
        return f"attack {attacks[name]}"
    return short(job.rule)


def read_rates() -> dict[str, Rate]:
    """rates.csv by kind."""
    with open(RATES, newline="") as file:
        return {row["kind"]: rate_of(row) for row in csv.DictReader(file)}


def rate_of(row: Mapping[str, str]) -> Rate:
    """A row of rates.csv."""
    more = {name: float(row[f"per_{name}"]) for name in AMOUNTS if row.get(f"per_{name}")}
    return Rate(seconds=float(row["seconds"]), memory_mb=float(row["memory_mb"] or 0), more=more)


def importing() -> float:
    """Seconds that a start of Python with torch takes here, the shorter of two."""
    taken = []
    for _ in range(2):
        began = time.perf_counter()
        subprocess.run([sys.executable, "-c", "import torch"], check=True)
        taken.append(time.perf_counter() - began)
    return min(taken)
