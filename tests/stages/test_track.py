"""Tracking: what reaches MLflow is what the files say, once; a server that is away costs one
line.
"""

import csv
import json
import math
import os
import socket
import sqlite3
from contextlib import closing

import pytest

from confide.certify.certificate import sealed
from confide.certify.gate import INCONCLUSIVE, NOT_AUDITED, OTHER_WEIGHTS, REFUTED, SKIPPED, STANDS
from confide.commands import mirror, watch
from confide.errors import InputError
from confide.files.io import read_jsonl
from confide.runtime.tracking import flat, reachable, shown
from confide.specs import ReportRun, ReportSpec, TrackingSpec, TrackSpec, TrainSpec
from confide.stages import track as stage
from confide.stages.track import measured, numbers, passes, shown_epsilons, track
from confide.train import checkpoint
from tests.terms import TERMS

MODEL = {"kind": "lstm", "embedding": 4, "hidden": 4}
CURVE = [
    {"epoch": 1, "step": 5, "loss": 2.5, "valid_ppl": 9.0, "seconds": 20.0},
    {"epoch": 2, "step": 10, "loss": None, "valid_ppl": 7.0, "seconds": 22.5},
]
TEXT = "what a model wrote"
ENDED = 1_700_000_000  # when training was done, in seconds since 1970
WEIGHTS = {"public/g0-s0": "0" * 64, "crt/g0-s0": "a" * 64, "crt/g0-s1": "b" * 64}
PRICES = [{"epoch": 1, "record_epsilon": 0.5}, {"epoch": 2, "record_epsilon": "inf"}]


def certificate_of(run: str) -> dict:
    """What `track` reads of a certificate; the second seed's noise is nobody's to repeat."""
    content = {
        "run": run,
        "headline": {
            "record_epsilon": "inf",
            "gamma_upper": 0.25,
            "delta": 1e-5,
            "relation": "replace_one",
            "record_unit": "one turn",
            "condition": "if it rains",
        },
        "claims": [{"name": "secret_missed", "epsilon": 2.00041}],
        "policy": {},
        "epochs": PRICES,
        "files": {"model": [{"path": f"models/{run}/m", "sha256": WEIGHTS[run]}]},
        "noise_reproducible": run != "crt/g0-s1",
        "release_note": None if run == "crt/g0-s1" else "a model wrote its text",
    }
    return sealed(content)


def write_gate(project, rows: list[tuple[str, str, str]]) -> None:
    """A study's gate: run, outcome and weights of each of its rows."""
    folder = project / "results/studies/small"
    with open(folder / "gate.csv", "w", newline="") as file:
        table = csv.writer(file)
        table.writerow(("run", "audit", "outcome", "weights", "says"))
        table.writerows((run, "game", outcome, sha, "") for run, outcome, sha in rows)
    (folder / "gate.xml").write_text("<testsuite/>")


@pytest.fixture
def project(tmp_path, monkeypatch):
    """Files of a warm start and of two runs in one study, whose gate the first of them passes."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("MLFLOW_TRACKING_URI", raising=False)
    for run in ("public/g0-s0", "crt/g0-s0", "crt/g0-s1"):
        for folder in ("models", "results/runs"):
            (tmp_path / folder / run).mkdir(parents=True)
        (tmp_path / "models" / run / "metrics.jsonl").write_text(
            "".join(json.dumps(row) + "\n" for row in CURVE)
        )
        os.utime(tmp_path / "models" / run / "metrics.jsonl", (ENDED, ENDED))
        files = {
            "certificate": certificate_of(run),
            "evaluate": {"run": run, "ppl": 8.5, "ppl_public": 2.5},
            "exposure": {"attack": "exposure", "mean": 3.25, "max": 4.5, "list": [1, 2]},
        }
        for name, value in files.items():
            (tmp_path / "results/runs" / run / f"{name}.json").write_text(json.dumps(value))
    (tmp_path / "results/studies/small").mkdir(parents=True)
    (tmp_path / "results/studies/small/tradeoff.svg").write_text("<svg/>")
    (tmp_path / "results/studies/small/summary.json").write_text("{}")
    (tmp_path / "results/studies/small/examples.md").write_text(TEXT)
    verdicts = {"crt/g0-s0": STANDS, "crt/g0-s1": SKIPPED}
    write_gate(tmp_path, [(run, verdict, WEIGHTS[run]) for run, verdict in verdicts.items()])
    return tmp_path


def training(run: str, **fields) -> TrainSpec:
    return TrainSpec(data=TERMS, run=run, method="crt", model=MODEL, recipe={"epochs": 2}, **fields)


def spec(uri: str) -> TrackSpec:
    common = {
        "name": "crt",
        "method": "crt",
        "dataset": "sim",
        "model": "lstm",
        "gamma": 0.0,
        "attacks": ["exposure"],
    }
    rows = [ReportRun(run=f"crt/g0-s{seed}", seed=seed, **common) for seed in (0, 1)]
    runs = [
        training("public/g0-s0"),
        *(training(row.run, seed=row.seed, init="public/g0-s0", noise_seed=None) for row in rows),
    ]
    studies = [ReportSpec(study="small", title="Small study", runs=rows)]
    return TrackSpec(tracking=TrackingSpec(experiment="test", uri=uri), runs=runs, studies=studies)


def load(project, given: TrackSpec) -> dict:
    track(
        given,
        results=project / "results",
        models=project / "models",
        output=project / "tracked.json",
    )
    return json.loads((project / "tracked.json").read_text())


def database_of(project) -> str:
    """Absolute: MLflow keeps what it opened by its address."""
    return f"sqlite:///{project}/mlflow.db"


def query(project, sql: str) -> list[tuple]:
    with sqlite3.connect(project / "mlflow.db") as database:
        return database.execute(sql).fetchall()


def current(project) -> dict[str, str]:
    """Ids of the runs that the saved view shows, by name; it shows no deleted run."""
    rows = query(
        project,
        "select name.value, name.run_uuid from tags name "
        "join tags current on current.run_uuid = name.run_uuid "
        "join runs on runs.run_uuid = name.run_uuid "
        "where name.key = 'confide.name' and runs.lifecycle_stage = 'active' "
        "and current.key = 'confide.current' and current.value = 'yes'",
    )
    ids = dict(rows)
    assert len(ids) == len(rows), "two runs of one name are shown as current"
    return ids


def dump(project) -> list[str]:
    with sqlite3.connect(project / "mlflow.db") as database:
        return list(database.iterdump())


@pytest.mark.slow
def test_a_second_load_adds_nothing_and_a_change_adds_its_run(project, capsys):
    first = load(project, spec(database_of(project)))
    names = {"small/crt/g0-s0", "small/crt/g0-s1", "public/g0-s0"}
    assert set(first["runs"]) == {"small", *names}
    held = dump(project)
    assert load(project, spec(database_of(project))) == first and dump(project) == held
    assert query(
        project, "select count(*), count(distinct run_uuid) from runs where status = 'FINISHED'"
    ) == [(4, 4)]
    assert not query(project, "select * from tags where key = 'mlflow.parentRunId'")

    ids = current(project)
    assert set(ids) == names
    run = ids["small/crt/g0-s1"]
    ((start, end),) = query(
        project, f"select start_time, end_time from runs where run_uuid = '{run}'"
    )
    assert end == 1000 * ENDED and end - start == 42_500
    (used,) = query(
        project,
        "select d.name, d.digest from datasets d join inputs i on i.source_id = d.dataset_uuid "
        f"where i.destination_id = '{run}'",
    )
    assert used[0] == TERMS["dataset"] and len(used[1]) == 16
    metrics = {
        (key, step): value
        for key, step, value in query(
            project, f"select key, step, value from metrics where run_uuid = '{run}'"
        )
    }
    assert (
        metrics[("valid_ppl", 1)] == 9.0
        and metrics[("valid_ppl", 2)] == 7.0
        and ("loss", 2) not in metrics
    )
    assert metrics[("record_epsilon", 1)] == 0.5 and ("record_epsilon", 2) not in metrics
    assert metrics[("evaluate.ppl", 2)] == 8.5 and metrics[("exposure.mean", 2)] == 3.25
    short = {"ppl": 8.5, "ppl_public": 2.5, "exposure_max": 4.5, "gamma_upper": 0.25}
    assert {name: metrics[(name, 2)] for name in short} == short
    assert metrics[("epsilon_missed", 2)] == 2.00041 and ("epsilon_record", 2) not in metrics
    params = dict(query(project, f"select key, value from params where run_uuid = '{run}'"))
    assert (
        params["model.hidden"] == "4" and params["seed"] == "1" and params["init"] == "public/g0-s0"
    )
    tags = dict(query(project, f"select key, value from tags where run_uuid = '{run}'"))
    assert tags["certified.record_epsilon"] == "inf" and tags["confide.study"] == "small"
    assert params["epsilon_record"] == "∞" and params["epsilon_missed"] == "2.001"
    assert [path.name for path in project.rglob("mlruns/**/tradeoff.svg")] == ["tradeoff.svg"]
    assert params["noise_seed"] == "None"
    kept = [
        project / "mlflow.db",
        *(path for path in project.rglob("mlruns/**/*") if path.is_file()),
    ]
    assert len(kept) > 5 and not any(TEXT.encode() in path.read_bytes() for path in kept)

    curve = project / "models/crt/g0-s1/metrics.jsonl"
    curve.write_text(curve.read_text().replace("7.0", "6.0"))
    load(project, spec(database_of(project)))
    later = current(project)
    assert {name for name in names if ids[name] != later[name]} == {"small/crt/g0-s1"}

    with sqlite3.connect(project / "mlflow.db") as database:  # as if it had been killed half-way
        database.execute(
            f"update runs set status = 'RUNNING' where run_uuid = '{later['public/g0-s0']}'"
        )
    load(project, spec(database_of(project)))
    last = current(project)
    assert {name for name in names if later[name] != last[name]} == {"public/g0-s0"}
    assert "tracked 1 new runs" in capsys.readouterr().out.splitlines()[-1]


# The saved view and the registry
# --------------------------------------------------------------------------------------------------


@pytest.mark.slow
def test_the_view_and_the_registry(project):
    """Only the model whose gate passes is registered, once; it is withdrawn where it does not."""
    there = load(project, spec(database_of(project)))
    assert there["registered"] == ["small/crt/g0-s0"]
    assert there["view"] == "#/experiments/1/runs?viewStateShareKey=confide"
    (saved,) = query(
        project,
        "select value from experiment_tags where key = 'mlflow.sharedViewState.confide'",
    )
    state = json.loads(json.loads(saved[0])["state"])
    kinds = {"metrics": "metrics", "params": "params"}
    for column in state["selectedColumns"]:
        kind, name = column[:-1].split(".`")
        if kind in kinds and name != "epsilon_record":
            assert query(project, f"select 1 from {kinds[kind]} where key = '{name}'"), column

    run = current(project)["small/crt/g0-s0"]
    (version,) = query(project, "select name, version, source, run_id from model_versions")
    assert version == ("small.crt.g0-s0", 1, f"runs:/{run}/certificate.json", run)
    certificate = json.loads((project / "results/runs/crt/g0-s0/certificate.json").read_text())
    assert dict(query(project, "select key, value from model_version_tags")) == {
        "study": "small",
        "epsilon_record": "inf",
        "epsilon_missed": "2.00041",
        "delta": "1e-05",
        "relation": "replace_one",
        "record_unit": "one turn",
        "condition": "if it rains",
        "certificate": certificate["seal"],
        "weights": WEIGHTS["crt/g0-s0"],
        "against_release": "a model wrote its text",
    }
    assert not list(project.rglob("mlruns/**/*.safetensors"))

    path = project / "results/runs/crt/g0-s0/certificate.json"
    path.write_text(json.dumps(certificate | {"noise_reproducible": False}))
    with pytest.raises(InputError, match="its seal does not match"):
        load(project, spec(database_of(project)))
    path.write_text(json.dumps(certificate))
    write_gate(project, [("crt/g0-s0", NOT_AUDITED, ""), ("crt/g0-s1", SKIPPED, "")])
    assert load(project, spec(database_of(project)))["registered"] == []
    stages = query(project, "select current_stage from model_versions")
    assert stages == [("Deleted_Internal",)]


@pytest.mark.parametrize(
    ("record", "missed", "expected"),
    [
        ("inf", "inf", False),
        ("inf", 2.0, True),
        (3.0, "inf", True),
        (3.0, None, True),
        ("inf", None, False),
    ],
)
def test_a_model_without_a_bound_is_not_registered_whatever_its_gate_says(
    project, monkeypatch, record, missed, expected
):
    """As one of redacted text alone, whose gate passes for what the policy finds."""
    done = []
    monkeypatch.setattr(stage, "register", lambda *_: done.append("registered"))
    monkeypatch.setattr(stage, "withdraw", lambda *_: done.append("withdrawn"))
    path = project / "results/runs/crt/g0-s0/certificate.json"
    content = json.loads(path.read_text())
    caught = {"name": "secret_caught", "epsilon": 0.0}
    content["claims"] = [caught] + [{"name": "secret_missed", "epsilon": missed}] * bool(missed)
    content["headline"]["record_epsilon"] = record
    path.write_text(json.dumps(sealed(content)))
    found = stage.registration(None, "small/crt/g0-s0", "1", "small", project / "results")
    assert found is expected and done == ["registered" if expected else "withdrawn"]


@pytest.mark.parametrize(
    ("rows", "expected"),
    [
        ([(STANDS, "a" * 64)], True),
        ([(STANDS, "a" * 64), (SKIPPED, "")], True),
        ([(STANDS, "c" * 64)], False),
        ([(STANDS, "")], False),
        ([(SKIPPED, "")], False),
        ([], False),
        *(
            ([(STANDS, "a" * 64), (outcome, "a" * 64)], False)
            for outcome in (REFUTED, INCONCLUSIVE, OTHER_WEIGHTS, NOT_AUDITED, "unheard of")
        ),
    ],
)
def test_a_gate_passes_where_an_audit_of_these_weights_stands_and_nothing_else_is_said(
    project, rows, expected
):
    write_gate(project, [("crt/g0-s0", *row) for row in rows])
    certificate = project / "results/runs/crt/g0-s0/certificate.json"
    assert passes(certificate, project / "results/studies/small") is expected


@pytest.mark.parametrize("file", ["gate.csv", "gate.xml"])
def test_a_study_without_a_gate_passes_nothing(project, file):
    study = project / "results/studies/small"
    (study / file).unlink()
    assert not passes(project / "results/runs/crt/g0-s0/certificate.json", study)


@pytest.mark.parametrize("epsilon", [0.0, 1e-9, 2.9991, 3.0, 12345.67891])
def test_a_table_never_shows_less_than_is_certified(epsilon):
    certificate = {"headline": {"record_epsilon": epsilon}, "claims": []}
    shown = float(shown_epsilons(certificate)["epsilon_record"].replace(",", ""))
    assert epsilon <= shown <= 1.001 * epsilon


def test_an_unreachable_server_is_one_line_without_credentials(project):
    with socket.socket() as closed:
        closed.bind(("127.0.0.1", 0))
        uri = f"http://someone:word@127.0.0.1:{closed.getsockname()[1]}"
    with pytest.raises(InputError, match="the tracking server does not answer") as caught:
        load(project, spec(uri))
    text = str(caught.value)
    assert (
        "\n" not in text and "word" not in text and "someone" not in text and "tracking.uri" in text
    )
    assert not (project / "tracked.json").exists()


def test_a_database_that_cannot_be_made_is_one_line(project):
    (project / "file").touch()
    with pytest.raises(InputError, match=r"tracking\.uri = .*does not answer"):
        load(project, spec("sqlite:////proc/nosuch/mlflow.db"))


def test_only_finite_numbers_are_metrics(project):
    row = {
        "a": 1,
        "b": True,
        "c": "inf",
        "d": None,
        "e": math.nan,
        "f": math.inf,
        "g": [1],
        "h": 0.5,
        "i": {"x": 1},
    }
    assert dict(numbers(row)) == {"a": 1.0, "h": 0.5}
    certificate = {"headline": {"record_epsilon": 2.0}, "epochs": PRICES}
    epochs = list(read_jsonl(project / "models/crt/g0-s0/metrics.jsonl"))
    values = measured(epochs, certificate, {}, last=2)
    assert ("certified.record_epsilon", 2.0, 2) in values and len(values) == 2 + 3 + 2 + 1 + 1


@pytest.mark.parametrize(
    "address",
    ["postgresql://u:pa/ss@h/db", "http://user:p@ss@h/db", f"https://u:{'long' * 60}@h/db"],
)
def test_no_form_of_a_password_is_shown(address):
    assert shown(address).endswith("://h/db")
    with pytest.raises(InputError) as error, reachable("sqlite:///x"):
        raise OSError(f"no answer from {address}")
    assert "no answer from " in str(error.value) and "//h/db" in str(error.value)


def test_addresses_lose_their_credentials_and_mappings_their_depth():
    assert (
        shown("https://me:word@host/x") == "https://host/x"
        and shown("sqlite:///mlflow.db") == "sqlite:///mlflow.db"
    )
    assert dict(flat({"a": {"b": {"c": 1}}, "d": 2})) == {"a.b.c": 1, "d": 2}


# The live mirror
# --------------------------------------------------------------------------------------------------


@pytest.fixture
def training_run(project):
    """A run with a checkpoint after its first epoch."""
    folder = project / ".checkpoints/crt/g0-s9"
    with checkpoint.exclusive(folder):
        checkpoint.write(folder, "fingerprint", {"metrics": {"rows": CURVE[:1]}})
    return folder


def test_the_mirror_reads_checkpoints_then_results(project, training_run):
    assert list(mirror.runs_in(project)) == ["crt/g0-s9"]
    assert mirror.rows_of(project, "crt/g0-s9") == CURVE[:1]
    (training_run / mirror.STATE).write_bytes(b"half a file")
    assert mirror.rows_of(project, "crt/g0-s9") == []
    (training_run / mirror.STATE).unlink()
    assert (
        mirror.rows_of(project, "crt/g0-s9") == [] and mirror.rows_of(project, "crt/g0-s0") == CURVE
    )


@pytest.mark.slow
@pytest.mark.parametrize("table", ["experiments", "runs"])
def test_a_database_that_puts_files_elsewhere_is_refused(project, tmp_path_factory, table):
    """One that came with somebody else's folder, say."""
    uri = f"sqlite:///{table}.db"  # MLflow keeps what it opened by its address
    load(project, spec(uri))
    elsewhere = tmp_path_factory.mktemp("elsewhere")
    column = {"experiments": "artifact_location", "runs": "artifact_uri"}[table]
    with closing(sqlite3.connect(project / f"{table}.db")) as database:
        database.execute(f"UPDATE {table} SET {column} = ?", (str(elsewhere),))
        database.commit()
    (project / "results/studies/small/tradeoff.svg").write_text("<svg> </svg>")
    with pytest.raises(InputError, match=r"\.db: has files put outside of this folder"):
        load(project, spec(uri))
    assert not list(elsewhere.iterdir())


def test_a_dead_server_ends_the_copying_with_a_line(project, training_run, capsys, monkeypatch):
    monkeypatch.setenv("MLFLOW_TRACKING_URI", "http://127.0.0.1:9")
    assert not watch.copies(project, {})
    assert capsys.readouterr().err.startswith("confide watch: tracking.uri")


@pytest.mark.slow
def test_the_mirror_logs_each_epoch_once(project, training_run):
    seen: dict[str, int] = {}
    where = TrackingSpec(experiment="live", uri=database_of(project))
    assert mirror.update(where, project, seen) == 1 and mirror.update(where, project, seen) == 0
    (training_run / mirror.STATE).unlink()
    (project / "models/crt/g0-s9").mkdir()
    (project / "models/crt/g0-s9/metrics.jsonl").write_text(
        "".join(json.dumps(row) + "\n" for row in CURVE)
    )
    assert mirror.update(where, project, seen) == 1 and seen == {"crt/g0-s9": 2}
    found = query(project, "select step, value from metrics where key = 'valid_ppl' order by step")
    assert found == [(1, 9.0), (2, 7.0)]
