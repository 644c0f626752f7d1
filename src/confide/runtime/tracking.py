"""MLflow for the stage `track` and the live mirror; training jobs never import it.

A tracking server is a convenience: one that cannot be reached is a one-line error after seconds,
not minutes of silence.
"""

import json
import os
import re
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import urlparse

from confide.errors import InputError
from confide.files.folders import is_below
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
KEY = "confide.key"  # tag that tells a run from all others
VIEW = "confide"  # of MLflow's saved views, the one that is ours
COLUMNS = (  # of that view, as MLflow's pages call them
    "params.`method`",
    "params.`gamma`",
    "params.`epsilon_record`",
    "params.`epsilon_missed`",
    "metrics.`ppl`",
    "metrics.`ppl_public`",
    "metrics.`exposure_max`",
    "metrics.`gamma_upper`",
    "attributes.`Dataset`",
    "attributes.`Source`",
)
OF_FOLDER = "sqlite:///"  # an address of a database, of which one more / begins another folder
BEFORE = ("attributes.`Run Name`", "runDateAndNestInfo")  # columns that are always there


def address(spec: TrackingSpec) -> str:
    """Where to, MLFLOW_TRACKING_URI first."""
    return os.environ.get("MLFLOW_TRACKING_URI") or spec.uri


def shown(uri: str) -> str:
    """An address without the user and password that it may carry."""
    return re.sub(r"//\S*@", "//", uri)


@contextmanager
def reachable(uri: str) -> Iterator[None]:
    """Turn whatever the server or the database raises into one line that names the address."""
    from mlflow.exceptions import MlflowException
    from sqlalchemy.exc import SQLAlchemyError

    try:
        yield
    except (MlflowException, SQLAlchemyError, OSError) as error:  # requests raises OSErrors, too
        # shown as a whole: of an address that is cut, nobody can tell the password
        reason = shown(re.sub(r"\s+", " ", str(error).split("\n")[0]))[:160]
        message = f"the tracking server does not answer ({type(error).__name__}: {reason})"
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
        client = MlflowClient(tracking_uri=uri, registry_uri=uri)
        stored = client.get_experiment_by_name(spec.experiment)
        if stored is None:
            return client, client.create_experiment(spec.experiment)
    check_place(stored.artifact_location, uri)
    return client, stored.experiment_id


def check_place(place: str, uri: str) -> None:
    """InputError where the database of this folder has files put elsewhere.

    It may be somebody else's, or the folder was moved since.
    """
    database = uri.removeprefix(OF_FOLDER)
    if database == uri or database.startswith("/"):
        return  # chosen by the user
    parts = urlparse(place)
    if parts.scheme not in ("", "file") or not is_below(Path(parts.path), Path.cwd()):
        message = "has files put outside of this folder: delete it, and `snakemake track` makes it"
        raise InputError(message, file=database)


def find(client: "MlflowClient", experiment: str, key: str) -> Any | None:
    """The run with a key, if there is one."""
    runs = client.search_runs([experiment], f"tags.`{KEY}` = '{key}'", max_results=1)
    for run in runs:
        check_place(run.info.artifact_uri, client.tracking_uri)
    return runs[0] if runs else None


def open_run(
    client: "MlflowClient",
    experiment: str,
    key: str,
    name: str,
    tags: Mapping[str, str],
    *,
    started: int | None = None,
) -> str:
    """Id of a new run with a key; it started then (ms since 1970), or now."""
    return client.create_run(
        experiment, run_name=name, tags={KEY: key, **tags}, start_time=started
    ).info.run_id


def set_tags(client: "MlflowClient", run: Any, tags: Mapping[str, str]) -> None:
    """Give a run the tags that it does not have yet."""
    for name, value in tags.items():
        if run.data.tags.get(name) != value:
            client.set_tag(run.info.run_id, name, value)


def log_dataset(client: "MlflowClient", run: str, name: str, digest: str, source: str) -> None:
    """Name what a run was trained on; `source`: where its settings stand."""
    from mlflow.entities import Dataset, DatasetInput, InputTag

    dataset = Dataset(name, digest, source_type=source, source=json.dumps({"dataset": name}))
    client.log_inputs(run, [DatasetInput(dataset, [InputTag("mlflow.data.context", "training")])])


def save_view(client: "MlflowClient", experiment: str) -> str:
    """Where MLflow's pages show the table of all models, sorted by method; seen from its address.

    The view is a tag of the experiment, as those that users save are.
    """
    stored = client.get_experiment(experiment)
    state = {
        "searchFilter": "tags.`confide.current` = 'yes'",
        "orderByKey": "params.`method`",
        "orderByAsc": True,
        "selectedColumns": COLUMNS,
        "columnOrder": [*BEFORE, *COLUMNS],
    }
    view = {"name": VIEW, "createdAt": stored.creation_time, "state": json.dumps(state)}
    tags = {f"mlflow.sharedViewState.{VIEW}": json.dumps(view)}
    if "mlflow.experimentKind" not in stored.tags:
        tags["mlflow.experimentKind"] = "custom_model_development"  # else it opens on chats
    for name, value in tags.items():
        if stored.tags.get(name) != value:
            client.set_experiment_tag(experiment, name, value)
    return f"#/experiments/{experiment}/runs?viewStateShareKey={VIEW}"


def register(
    client: "MlflowClient", name: str, run: str, artifact: str, tags: Mapping[str, str]
) -> None:
    """Make a run a version of a registered model, once; its source is an artifact of the run."""
    if versions_of(client, name, run):
        return
    if not client.search_registered_models(f"name = '{name}'"):
        client.create_registered_model(name)
    source = f"runs:/{run}/{artifact}"
    client.create_model_version(name, source, run_id=run, tags=dict(tags), await_creation_for=0)


def withdraw(client: "MlflowClient", name: str, run: str) -> None:
    """Take a run out of the registry, if it is there."""
    for version in versions_of(client, name, run):
        client.delete_model_version(name, version.version)


def versions_of(client: "MlflowClient", name: str, run: str) -> list[Any]:
    """Versions of a registered model that a run has made."""
    return list(client.search_model_versions(f"name = '{name}' and run_id = '{run}'"))


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
