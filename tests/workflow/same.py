"""What differs between two folders in which the same study was built: nothing but times may."""

import csv
import json
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

PLACES = ("data/work", "data/tokenizers", "models", "results")
# in scan.json and scan.csv: what attempts leave
LEFT = ("logs/", ".snakemake/", "mlflow.db", "results/summary/tracked.json")
COSTS = ("seconds", "cpu_seconds", "peak_mb")  # of an epoch, of an attack: time and memory
SEARCHED = re.compile(rb"found in [0-9,]+ files")
COST = re.compile(rb'("(?:[^"]*\.)?(?:%s)": ?)[^,\n}]+' % "|".join(COSTS).encode())  # in JSON


def differences(folder: Path, other: Path) -> list[str]:
    """Built files that only one of the folders has, or whose bytes differ, but for times; sorted
    names.
    """
    first = built(folder)
    second = built(other)
    alone = first ^ second
    return sorted(
        alone | {name for name in first & second if content(folder / name) != content(other / name)}
    )


def built(folder: Path) -> set[str]:
    """Names of what the workflow has made, temporary files of killed jobs among it."""
    paths = (path for place in PLACES for path in (folder / place).rglob("*") if path.is_file())
    return {str(path.relative_to(folder)) for path in paths if path.name != ".gitignore"}  # DVC's


def content(path: Path) -> Any:
    """A file's bytes without times, and without the sizes of files with times in them."""
    return READ.get(path.name, READ.get(path.suffix, Path.read_bytes))(path)


def _without_costs(path: Path) -> bytes:
    return COST.sub(rb"\1", path.read_bytes())


def _searched(path: Path) -> tuple[Any, list[tuple[str, int]]]:
    """Secrets looked for, files searched, how many were found there; of what attempts leave, only
    those with some.
    """
    counts = json.loads(path.read_bytes())
    files = [
        (row["path"], row["hits"])
        for row in counts["files"]
        if row["hits"] or not row["path"].startswith(LEFT)
    ]
    return counts["secrets"], files


def _table(path: Path) -> list[list[str]]:
    """Cells, without the columns of times, and of sizes where files are listed."""
    with path.open(newline="") as lines:
        rows = list(csv.reader(lines))
    if path.name == "scan.csv":
        return _columns([row for row in rows if not row[0].startswith(LEFT)], {"kilobytes"})
    return _columns(rows, {*COSTS})


def _markdown(path: Path) -> list[list[str]]:
    return _columns([line.split("|") for line in path.read_text().split("\n")], {*COSTS})


def _columns(rows: list[list[str]], passed_over: set[str]) -> list[list[str]]:
    """Rows without some columns; where the number of cells changes, another table begins."""
    found = []
    titles = []
    for row in rows:
        titles = titles if len(titles) == len(row) else row
        found.append(
            [
                cell
                for title, cell in zip(titles, row, strict=True)
                if title.strip() not in passed_over
            ]
        )
    return found


def _page(path: Path) -> bytes:
    """Without how many files were searched: what attempts leave is among them."""
    return SEARCHED.sub(b"", path.read_bytes())


def _derived(path: Path) -> None:
    """A page of a table that is compared itself: times and sizes of files are all over it."""


READ: dict[str, Callable[[Path], Any]] = {
    ".json": _without_costs,
    ".jsonl": _without_costs,
    ".csv": _table,
    ".md": _markdown,
    "scan.json": _searched,
    "index.html": _page,
    "opening.rst": _page,
    "scan.html": _derived,
    "table.html": _derived,
}
