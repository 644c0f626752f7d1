"""Copy the epochs of running jobs to MLflow while `confide watch --mlflow` looks at them.

Checkpoints and finished metrics are read from outside, so that no tracking server can stop, slow or
change a training job. What is logged is provisional: `track` loads the finished runs.
"""

import json
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from safetensors import SafetensorError, safe_open

from confide.errors import InputError
from confide.files.io import read_jsonl
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
                parts = json.loads(file.metadata()["values"])["parts"]
            return parts["metrics"]["rows"]
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
