"""Watch training from outside: say which epoch each running job has finished, and copy all epochs
to MLflow (`make live`).

It reads checkpoints and finished metrics, in a process of its own, so that no tracking server can
stop, slow or change a training job. What it logs is provisional: `track` loads the finished runs.
"""

import argparse
import json
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from safetensors import SafetensorError, safe_open

from confide.errors import InputError
from confide.files import permissions
from confide.files.io import read_jsonl
from confide.output.escaping import say, warn
from confide.runtime.tracking import address, connect, find, log_metrics, open_run, reachable
from confide.specs import TrackingSpec
from confide.stages.track import numbers

STATE = "state.safetensors"


def rows_of(folder: Path, run: str) -> list[dict[str, Any]]:
    """Metrics of a run so far, of its finished model or its checkpoint; perhaps none."""
    finished = folder / "models" / run / "metrics.jsonl"
    state = folder / ".checkpoints" / run / STATE
    try:
        if state.exists():
            with safe_open(state, "numpy") as file:
                return json.loads(file.metadata()["values"])["metrics"]
        return list(read_jsonl(finished)) if finished.exists() else []
    except (OSError, SafetensorError, InputError, KeyError, TypeError, ValueError, RecursionError):
        return []  # replaced or removed while we looked: next time


def runs_in(folder: Path) -> Iterator[str]:
    """Runs that have been started here."""
    for lock in sorted((folder / ".checkpoints").glob("*/*/lock")):
        yield str(lock.parent.relative_to(folder / ".checkpoints"))


def update(spec: TrackingSpec, folder: Path, rows_logged: dict[str, int]) -> int:
    """Log the epochs that are new since the last call; returns how many.

    InputError where the server does not answer.
    """
    fresh = {
        run: rows[rows_logged.get(run, 0) :]
        for run in runs_in(folder)
        if len(rows := rows_of(folder, run)) > rows_logged.get(run, 0)
    }
    if not fresh:
        return 0
    client, experiment = connect(spec)
    with reachable(address(spec)):
        for run, rows in fresh.items():
            key = f"live/{run}"
            live_run = find(client, experiment, key)
            identity = (
                live_run.info.run_id
                if live_run
                else open_run(client, experiment, key, f"{run} (live)", {"confide.run": run})
            )
            values = [
                (name, value, row["epoch"])
                for row in rows
                for name, value in numbers(row)
                if name != "epoch"
            ]
            log_metrics(client, identity, values, int(time.time() * 1000))
            rows_logged[run] = rows_logged.get(run, 0) + len(rows)
    return sum(map(len, fresh.values()))


def news(folder: Path, rows_reported: dict[str, int]) -> list[str]:
    """A line for each running job that has finished another epoch since the last call."""
    lines = []
    for run in runs_in(folder):
        is_running = (folder / ".checkpoints" / run / STATE).exists()
        rows = rows_of(folder, run) if is_running else []
        if len(rows) > rows_reported.get(run, 0):
            rows_reported[run] = len(rows)
            lines.append(line_of(run, rows[-1]))
    return lines


def line_of(run: str, row: dict[str, Any]) -> str:
    """A job and its last epoch."""
    perplexity = row.get("valid_ppl")
    number = "unknown" if perplexity is None else f"{perplexity:.4g}"
    return f"{run}: epoch {row['epoch']}, validation perplexity {number}"


def watch(spec: TrackingSpec, folder: Path, every: float, rounds: int | None = None) -> None:
    """Update again and again; a server that does not answer costs one line, and is asked again."""
    rows_logged: dict[str, int] = {}
    rows_reported: dict[str, int] = {}
    while rounds is None or rounds > 0:
        for line in news(folder, rows_reported):
            say(line)
        try:
            update(spec, folder, rows_logged)
        except InputError as error:
            warn(f"mirror: {error}")
        rounds = None if rounds is None else rounds - 1
        if rounds != 0:
            time.sleep(every)


def main() -> int:
    """`python -m confide.commands.mirror` watches the runs of this folder, until interrupted."""
    parser = argparse.ArgumentParser(prog="confide.commands.mirror", description=main.__doc__)
    parser.add_argument("--folder", type=Path, default=Path("."))
    parser.add_argument("--experiment", default="confide-live")
    parser.add_argument("--uri", default=TrackingSpec().uri)
    parser.add_argument("--every", type=float, default=10.0, help="seconds between two looks")
    arguments = parser.parse_args()
    permissions.private()
    try:
        watch(
            TrackingSpec(experiment=arguments.experiment, uri=arguments.uri),
            arguments.folder,
            arguments.every,
        )
    except KeyboardInterrupt:
        return 130
    return 0


if __name__ == "__main__":
    sys.exit(main())
