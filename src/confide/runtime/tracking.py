"""MLflow for the stage `track` and the live mirror; training jobs never import it.

A tracking server is a convenience: one that cannot be reached is a one-line error after seconds,
not minutes of silence.
"""

import os
import re
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from confide.errors import InputError
from confide.specs import TrackingSpec

if TYPE_CHECKING:
    from mlflow import MlflowClient

PATIENCE = {"MLFLOW_HTTP_REQUEST_MAX_RETRIES": "1", "MLFLOW_HTTP_REQUEST_TIMEOUT": "10"}
SILENCE = {
    "MLFLOW_DISABLE_TELEMETRY": "true",
    "DO_NOT_TRACK": "true",
    "GIT_PYTHON_REFRESH": "quiet",
}
# MLflow's limit of metrics in one request, and of characters that it surely keeps of one parameter
BATCH = 1000


def address(spec: TrackingSpec) -> str:
    """Where to, MLFLOW_TRACKING_URI first."""
    return os.environ.get("MLFLOW_TRACKING_URI") or spec.uri


def shown(uri: str) -> str:
    """An address without the user and password that it may carry."""
    return re.sub(r"//[^/@]*@", "//", uri)


@contextmanager
def reachable(uri: str) -> Iterator[None]:
    """Turn whatever the server or the database raises into one line that names the address."""
    from mlflow.exceptions import MlflowException
    from sqlalchemy.exc import SQLAlchemyError

    try:
        yield
    except (MlflowException, SQLAlchemyError, OSError) as error:  # requests raises OSErrors, too
        reason = re.sub(r"\s+", " ", str(error).split("\n")[0])[:160]
        message = f"the tracking server does not answer ({type(error).__name__}: {shown(reason)})"
        raise InputError(message, key="tracking.uri", value=shown(uri)) from None


def connect(spec: TrackingSpec) -> tuple["MlflowClient", str]:
    """A client that has answered, and the experiment's id.

    A database is created if there is none (seconds).
    """
    for name, value in {**PATIENCE, **SILENCE}.items():
        os.environ.setdefault(name, value)
    from mlflow import MlflowClient

    uri = address(spec)
    with reachable(uri):
        client = MlflowClient(tracking_uri=uri)
        known = client.get_experiment_by_name(spec.experiment)
        if known is not None:
            return client, known.experiment_id
        return client, client.create_experiment(spec.experiment)


def find(client: "MlflowClient", experiment: str, key: str) -> Any | None:
    """The run with a key, if there is one."""
    runs = client.search_runs([experiment], f"tags.`confide.key` = '{key}'", max_results=1)
    return runs[0] if runs else None


def open_run(
    client: "MlflowClient", experiment: str, key: str, name: str, tags: Mapping[str, str]
) -> str:
    """Id of a new run with a key."""
    return client.create_run(
        experiment, run_name=name, tags={"confide.key": key, **tags}
    ).info.run_id


def log_metrics(
    client: "MlflowClient", run: str, rows: Iterable[tuple[str, float, int]], when: int
) -> None:
    """Log (name, value, step) at `when` (ms since 1970), in few requests."""
    from mlflow.entities import Metric

    metrics = [Metric(name, value, when, step) for name, value, step in rows]
    for start in range(0, len(metrics), BATCH):
        client.log_batch(run, metrics=metrics[start : start + BATCH])


def log_params(client: "MlflowClient", run: str, values: Mapping[str, Any]) -> None:
    """Log parameters, a nested mapping flattened to dotted names."""
    from mlflow.entities import Param

    pairs = [Param(name, str(value)[:BATCH]) for name, value in flat(values)]
    for start in range(0, len(pairs), 100):
        client.log_batch(run, params=pairs[start : start + 100])


def flat(values: Mapping[str, Any], prefix: str = "") -> Iterator[tuple[str, Any]]:
    """Leaves of nested mappings with dotted names."""
    for name, value in values.items():
        if isinstance(value, Mapping):
            yield from flat(value, f"{prefix}{name}.")
        else:
            yield f"{prefix}{name}", value
