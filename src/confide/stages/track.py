"""Load settings, learning curves, certificates, attacks and figures of studies into MLflow.

A run's key is the hash of its content: what is there and finished is skipped, what was interrupted
is replaced, and a run whose files changed is added beside its past. Nothing is read but files that
hold no text of a corpus.
"""

import hashlib
import math
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from confide.files.io import read_bytes, read_json, read_jsonl, write_json
from confide.files.jsons import JsonObject
from confide.output.escaping import say
from confide.runtime.tracking import (
    address,
    connect,
    find,
    log_metrics,
    log_params,
    open_run,
    reachable,
    shown,
)
from confide.specs import ReportRun, ReportSpec, TrackSpec, TrainSpec

if TYPE_CHECKING:
    from mlflow import MlflowClient

Values = list[tuple[str, float, int]]  # metric, value, step
SHOWN = (".csv", ".md", ".json", ".png", ".svg")
# what models wrote: masked, but text all the same, and so no business of a tracking server
TEXTS = "examples.md"


def track(spec: TrackSpec, *, results: Path, models: Path, output: Path) -> None:
    """Bring the server up to date; `output` lists the ids.

    InputError where it does not answer or a file is missing.

    Guarantees: a second call with the same files adds nothing.
    """
    client, experiment = connect(spec.tracking)
    uri = address(spec.tracking)
    ids: dict[str, str] = {}
    new = 0

    load = partial(load_run, client, experiment, results=results, models=models)
    with reachable(uri):
        trained = {run.run: run for run in spec.runs}
        in_studies: set[str] = set()
        for study in spec.studies:
            folder = results / "studies" / study.study
            parent = ids[study.study] = load_study(client, experiment, study, folder)
            for row in study.runs:
                name = f"{study.study}/{row.run}"
                ids[name], is_new = load(name, trained[row.run], row=row, parent=parent)
                new += is_new
                in_studies.add(row.run)
        for name, run in trained.items():
            if name not in in_studies:
                ids[name], is_new = load(name, run)
                new += is_new
    experiment_name = spec.tracking.experiment
    write_json(output, {"uri": shown(uri), "experiment": experiment_name, "ids": ids})
    say(f"tracked {new} new runs in {experiment_name!r} at {shown(uri)}")


def load_study(client: "MlflowClient", experiment: str, study: ReportSpec, folder: Path) -> str:
    """Id of a study's run, with its tables and figures as they are now."""
    files = sorted(path for path in folder.glob("*") if path.suffix in SHOWN and path.name != TEXTS)
    content = digest(study.model_dump_json(), files)
    known = find(client, experiment, study.study)
    run = known.info.run_id if known else open_run(client, experiment, study.study, study.title, {})
    if known is None or known.data.tags.get("confide.content") != content:
        for path in files:
            client.log_artifact(run, str(path))
        client.set_terminated(run)
        client.set_tag(run, "confide.content", content)  # last: it says that nothing is missing
    return run


def load_run(
    client: "MlflowClient",
    experiment: str,
    name: str,
    spec: TrainSpec,
    *,
    row: ReportRun | None = None,
    parent: str | None = None,
    results: Path,
    models: Path,
) -> tuple[str, bool]:
    """Id of a model's run, and whether it is new."""
    folder = results / "runs" / spec.run
    curve = models / spec.run / "metrics.jsonl"
    attacks = row.attacks if row is not None else []
    files = [curve, *(folder / f"{stem}.json" for stem in ("certificate", "evaluate", *attacks))]
    key = f"{name}@{digest(spec.model_dump_json(), files)}"
    known = find(client, experiment, key)
    if known is not None and known.info.status == "FINISHED":
        return known.info.run_id, False
    if known is not None:
        client.delete_run(known.info.run_id)
    settings = spec.model_dump() | (
        {"gamma": row.gamma, "dataset": row.dataset, "dedup": row.dedup} if row else {}
    )
    certificate = read_json(files[1])
    tags = {"confide.run": spec.run} | ({"mlflow.parentRunId": parent} if parent else {})
    run = open_run(client, experiment, key, spec.run, tags | unbounded(certificate["headline"]))
    log_params(client, run, settings)
    log_metrics(
        client, run, measured(curve, certificate, files[2:]), int(curve.stat().st_mtime * 1000)
    )
    client.log_artifact(run, str(files[1]))
    client.set_terminated(run)
    return run, True


def measured(curve: Path, certificate: JsonObject, files: list[Path]) -> Values:
    """Everything that is a finite number: per epoch, and of the final model."""
    epochs = [*read_jsonl(curve), *certificate["epochs"]]
    last = max((row["epoch"] for row in epochs), default=0)
    named = [("", row, row["epoch"]) for row in epochs]
    named.append(("certified.", certificate["headline"], last))
    named += [(f"{path.stem}.", read_json(path), last) for path in files]
    return [
        (prefix + name, value, step)
        for prefix, row, step in named
        for name, value in numbers(row)
        if prefix + name != "epoch"
    ]


def numbers(row: JsonObject) -> Iterator[tuple[str, float]]:
    """Finite numbers of a mapping; MLflow has no place for infinity."""
    for name, value in row.items():
        if isinstance(value, int | float) and not isinstance(value, bool) and math.isfinite(value):
            yield name, float(value)


def unbounded(headline: JsonObject) -> dict[str, str]:
    """Tags for epsilons that are infinite, so that they do not look forgotten."""
    return {
        f"certified.{name}": "inf" for name, value in headline.items() if value in ("inf", math.inf)
    }


def digest(text: str, files: list[Path]) -> str:
    """Sixteen hex digits for a text and the content of files."""
    total = hashlib.sha256(text.encode())
    for path in files:
        total.update(hashlib.sha256(read_bytes(path)).digest())
    return total.hexdigest()[:16]
