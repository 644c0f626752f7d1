"""Load settings, learning curves, certificates, attacks and figures of studies into MLflow, and
register the models that their studies' gates passed.

A run's key is the hash of its content: what is there and finished is skipped, what was interrupted
is replaced, and a run whose files changed is added beside its past, which the saved view leaves
out. Nothing is read but files that hold no text of a corpus, and no weights are copied.
"""

import hashlib
import math
from collections.abc import Iterator, Mapping
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from confide.certify.certificate import check_seal
from confide.certify.facts import SECRET_MISSED
from confide.files.io import read_bytes, read_file, read_json, read_jsonl, write_json
from confide.files.jsons import JsonObject
from confide.output.escaping import say
from confide.output.rounding import rounded_up
from confide.provenance.commit import commit_of, is_changed
from confide.report.results import largest_exposure
from confide.runtime.tracking import (
    address,
    connect,
    find,
    log_dataset,
    log_metrics,
    log_params,
    open_run,
    reachable,
    register,
    save_view,
    set_tags,
    shown,
    withdraw,
)
from confide.signing.evidence import Evidence, take_gate
from confide.specs import DataSpec, ReportRun, ReportSpec, TrackSpec, TrainSpec
from confide.specs.files import CERTIFICATE, Claims

if TYPE_CHECKING:
    from mlflow import MlflowClient

Values = list[tuple[str, float, int]]  # metric, value, step
Named = Iterator[tuple[str, float]]
SHOWN = (".csv", ".md", ".json", ".html", ".sarif", ".png", ".svg")
# what models wrote: masked, but text all the same, and so no business of a tracking server
TEXTS = "examples.md"
SETTINGS = "params.yaml"  # where those of a dataset stand
LAYOUT = "2"  # of a run in MLflow: part of its key
CODE = Path(__file__).parents[1]


def track(spec: TrackSpec, *, results: Path, models: Path, output: Path) -> None:
    """Bring the server up to date; `output` says what is there, and where its pages show it.

    InputError where it does not answer or a file is missing.

    Guarantees: a second call with the same files adds nothing. Only a model whose study's gate
    passes and whose epsilon is finite for a record or a missed secret is registered, under the name
    of study and run.
    """
    client, experiment = connect(spec.tracking)
    uri = address(spec.tracking)
    ids: dict[str, str] = {}
    study_of: dict[str, str] = {}  # by name of a run
    new = 0

    load = partial(load_run, client, experiment, results=results, models=models)
    with reachable(uri):
        source = source_tags()
        view = save_view(client, experiment)
        trained = {run.run: run for run in spec.runs}
        in_studies: set[str] = set()
        for study in spec.studies:
            folder = results / "studies" / study.study
            ids[study.study] = load_study(client, experiment, study, folder)
            for row in study.runs:
                name = f"{study.study}/{row.run}"
                tags = source | {"confide.study": study.study}
                ids[name], is_new = load(name, trained[row.run], row=row, tags=tags)
                new += is_new
                in_studies.add(row.run)
                study_of[name] = study.study
        for name, run in trained.items():
            if name not in in_studies:
                ids[name], is_new = load(name, run, tags=source)
                new += is_new
        mark_current(client, experiment, ids)
        registered = [
            name
            for name, study_name in study_of.items()
            if registration(client, name, ids[name], study_name, results)
        ]
    there = {"experiment": spec.tracking.experiment, "view": view, "runs": list(ids)}
    write_json(output, there | {"registered": registered})
    say(f"tracked {new} new runs in {spec.tracking.experiment!r} at {shown(uri)}")


def source_tags() -> dict[str, str]:
    """What MLflow shows as the source of a run: the command, and the commit of our code."""
    commit = commit_of(CODE)
    tags = {"mlflow.source.name": "confide train", "mlflow.source.type": "LOCAL"}
    if commit is not None:
        tags["mlflow.source.git.commit"] = commit
        tags["mlflow.source.git.dirty"] = str(is_changed(CODE)).lower()
    return tags


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
    tags: Mapping[str, str],
    results: Path,
    models: Path,
) -> tuple[str, bool]:
    """Id of a model's run, and whether it is new; it lasts as long as training did."""
    folder = results / "runs" / spec.run
    curve = models / spec.run / "metrics.jsonl"
    attacks = row.attacks if row is not None else []
    stems = ("evaluate", *attacks)
    files = [curve, folder / CERTIFICATE, *(folder / f"{stem}.json" for stem in stems)]
    key = f"{name}@{digest(LAYOUT + spec.model_dump_json(), files)}"
    known = find(client, experiment, key)
    if known is not None and known.info.status == "FINISHED":
        return known.info.run_id, False
    if known is not None:
        client.delete_run(known.info.run_id)
    settings = spec.model_dump() | (
        {"gamma": row.gamma, "dataset": row.dataset, "dedup": row.dedup} if row else {}
    )
    epochs = list(read_jsonl(curve))
    certificate = read_json(files[1])
    scores = {path.stem: read_json(path) for path in files[2:]}
    ended = int(curve.stat().st_mtime * 1000)
    started = ended - int(1000 * seconds_of(epochs))
    names = {"confide.run": spec.run, "confide.name": name}
    tags = {**tags, **names, **unbounded(certificate["headline"])}
    run = open_run(client, experiment, key, spec.run, tags, started=started)
    log_params(client, run, settings | shown_epsilons(certificate))
    log_dataset(client, run, spec.data.dataset, digest_of(spec.data), SETTINGS)
    last = max((row["epoch"] for row in [*epochs, *certificate["epochs"]]), default=0)
    values = measured(epochs, certificate, scores, last=last)
    shortened = headlines(certificate, scores)
    log_metrics(client, run, [*values, *((name, value, last) for name, value in shortened)], ended)
    client.log_artifact(run, str(files[1]))
    client.set_terminated(run, end_time=ended)
    return run, True


def mark_current(client: "MlflowClient", experiment: str, ids: Mapping[str, str]) -> None:
    """Tag the newest run of each model, and those that it replaced."""
    token = None
    while True:
        runs = client.search_runs([experiment], page_token=token)
        for run in runs:
            name = run.data.tags.get("confide.name", "")
            if name in ids:
                is_current = ids[name] == run.info.run_id
                set_tags(client, run, {"confide.current": "yes" if is_current else "no"})
        token = runs.token
        if not token:
            return


def registration(client: "MlflowClient", name: str, run: str, study: str, results: Path) -> bool:
    """Whether a model is in the registry.

    It belongs there only if its study's gate passes, and something is guaranteed of what the policy
    misses: of redacted text alone the gate tests what the policy finds.
    """
    path = results / "runs" / name.removeprefix(f"{study}/") / CERTIFICATE
    model = name.replace("/", ".")
    certificate = read_json(path)
    if not is_bounded(certificate) or not passes(path, results / "studies" / study):
        withdraw(client, model, run)
        return False
    check_seal(certificate, path)
    register(client, model, run, CERTIFICATE, {"study": study, **claimed(certificate)})
    return True


def is_bounded(certificate: JsonObject) -> bool:
    """Whether an epsilon is finite that holds whatever the policy misses."""
    return any(epsilon < math.inf for epsilon in epsilons_of(certificate).values())


def passes(certificate: Path, study: Path) -> bool:
    """Whether a study's gate compared these weights with an audit, and nothing speaks against."""
    certified = read_file(certificate, Claims)
    weights = certified["files"].get("model", [])
    if len(weights) != 1:
        return False
    checks = Evidence()
    take_gate(checks, certified["run"], weights[0]["sha256"], study)
    return not checks.against and not checks.changed


def claimed(certificate: JsonObject) -> dict[str, str]:
    """What the registry says of a model: claims as they are, and what speaks against a release."""
    headline = certificate["headline"]
    epsilons = {name: str(value) for name, value in epsilons_of(certificate).items()}
    return {
        **epsilons,
        **{name: str(headline[name]) for name in ("delta", "relation", "record_unit", "condition")},
        "certificate": certificate["seal"],
        "weights": certificate["files"]["model"][0]["sha256"],
        "against_release": certificate["release_note"] or "nothing that the certificate knows",
    }


def epsilons_of(certificate: JsonObject) -> dict[str, float]:
    """Of one record, and of a secret that the policy misses where there is such a claim."""
    epsilons = {"epsilon_record": float(certificate["headline"]["record_epsilon"])}
    for claim in certificate["claims"]:
        if claim["name"] == SECRET_MISSED:
            epsilons["epsilon_missed"] = float(claim["epsilon"])
    return epsilons


def shown_epsilons(certificate: JsonObject) -> dict[str, str]:
    """Epsilons as words of a table: rounded up, ∞ where nothing is bounded."""
    return {name: rounded_up(value) for name, value in epsilons_of(certificate).items()}


def headlines(certificate: JsonObject, scores: Mapping[str, JsonObject]) -> Named:
    """Short names of what a table shows first; the largest of several exposures."""
    evaluation = scores["evaluate"]
    exposures = [
        largest
        for score in scores.values()
        if score.get("attack") == "exposure" and (largest := largest_exposure(score)) is not None
    ]
    values = {
        **epsilons_of(certificate),
        "gamma_upper": certificate["headline"].get("gamma_upper"),
        "ppl": evaluation.get("ppl"),
        "ppl_public": evaluation.get("ppl_public"),
        "exposure_max": max(exposures, default=None),
    }
    return numbers(values)


def seconds_of(epochs: list[JsonObject]) -> float:
    """How long training took, as far as its epochs say so."""
    return math.fsum(epoch.get("seconds") or 0.0 for epoch in epochs)


def measured(
    epochs: list[JsonObject],
    certificate: JsonObject,
    scores: Mapping[str, JsonObject],
    *,
    last: int,
) -> Values:
    """Everything that is a finite number: per epoch, and of the model after the last one."""
    named = [("", row, row["epoch"]) for row in [*epochs, *certificate["epochs"]]]
    named.append(("certified.", certificate["headline"], last))
    named += [(f"{stem}.", score, last) for stem, score in scores.items()]
    return [
        (prefix + name, value, step)
        for prefix, row, step in named
        for name, value in numbers(row)
        if prefix + name != "epoch"
    ]


def numbers(row: JsonObject) -> Named:
    """Finite numbers of a mapping; MLflow has no place for infinity."""
    for name, value in row.items():
        if isinstance(value, int | float) and not isinstance(value, bool) and math.isfinite(value):
            yield name, float(value)


def unbounded(headline: JsonObject) -> dict[str, str]:
    """Tags for epsilons that are infinite, so that they do not look forgotten."""
    return {
        f"certified.{name}": "inf" for name, value in headline.items() if value in ("inf", math.inf)
    }


def digest_of(data: DataSpec) -> str:
    """Sixteen hex digits for the settings of a dataset, as its certificates state them."""
    return hashlib.sha256(data.model_dump_json().encode()).hexdigest()[:16]


def digest(text: str, files: list[Path]) -> str:
    """Sixteen hex digits for a text and the content of files."""
    total = hashlib.sha256(text.encode())
    for path in files:
        total.update(hashlib.sha256(read_bytes(path)).digest())
    return total.hexdigest()[:16]
