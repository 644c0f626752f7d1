"""Tracking: what reaches MLflow is what the files say, once; a server that is away costs one
line.
"""

import json
import math
import socket
import sqlite3

import pytest

from confide.commands import mirror
from confide.errors import InputError
from confide.runtime.tracking import flat, shown
from confide.specs import ReportRun, ReportSpec, TrackingSpec, TrackSpec, TrainSpec
from confide.stages.track import measured, numbers, track
from tests.terms import TERMS

MODEL = {"kind": "lstm", "embedding": 4, "hidden": 4}
CURVE = [
    {"epoch": 1, "step": 5, "loss": 2.5, "valid_ppl": 9.0},
    {"epoch": 2, "step": 10, "loss": None, "valid_ppl": 7.0},
]
TEXT = "what a model wrote"
PRICES = [{"epoch": 1, "record_epsilon": 0.5}, {"epoch": 2, "record_epsilon": "inf"}]


@pytest.fixture
def project(tmp_path, monkeypatch):
    """Files of a warm start and of two runs in one study."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("MLFLOW_TRACKING_URI", raising=False)
    for run in ("public/g0-s0", "crt/g0-s0", "crt/g0-s1"):
        for folder in ("models", "results/runs"):
            (tmp_path / folder / run).mkdir(parents=True)
        (tmp_path / "models" / run / "metrics.jsonl").write_text(
            "".join(json.dumps(row) + "\n" for row in CURVE)
        )
        certificate = {
            "headline": {"record_epsilon": "inf", "delta": 1e-5, "relation": "replace_one"},
            "epochs": PRICES,
        }
        files = {
            "certificate": certificate,
            "evaluate": {"run": run, "ppl": 8.5},
            "exposure": {"mean": 3.25, "list": [1, 2]},
        }
        for name, value in files.items():
            (tmp_path / "results/runs" / run / f"{name}.json").write_text(json.dumps(value))
    (tmp_path / "results/studies/small").mkdir(parents=True)
    (tmp_path / "results/studies/small/tradeoff.svg").write_text("<svg/>")
    (tmp_path / "results/studies/small/summary.json").write_text("{}")
    (tmp_path / "results/studies/small/examples.md").write_text(TEXT)
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


@pytest.mark.slow
def test_a_second_load_adds_nothing_and_a_change_adds_its_run(project, capsys):
    first = load(project, spec(database_of(project)))
    assert set(first["ids"]) == {"small", "small/crt/g0-s0", "small/crt/g0-s1", "public/g0-s0"}
    assert load(project, spec(database_of(project))) == first
    assert query(
        project, "select count(*), count(distinct run_uuid) from runs where status = 'FINISHED'"
    ) == [(4, 4)]

    parents = dict(
        query(project, "select run_uuid, value from tags where key = 'mlflow.parentRunId'")
    )
    assert parents == {
        first["ids"][f"small/crt/g0-s{seed}"]: first["ids"]["small"] for seed in (0, 1)
    }
    run = first["ids"]["small/crt/g0-s1"]
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
    params = dict(query(project, f"select key, value from params where run_uuid = '{run}'"))
    assert (
        params["model.hidden"] == "4" and params["seed"] == "1" and params["init"] == "public/g0-s0"
    )
    tags = dict(query(project, f"select key, value from tags where run_uuid = '{run}'"))
    assert tags["certified.record_epsilon"] == "inf"
    assert [path.name for path in project.rglob("mlruns/**/tradeoff.svg")] == ["tradeoff.svg"]
    assert params["noise_seed"] == "None"
    kept = [
        project / "mlflow.db",
        *(path for path in project.rglob("mlruns/**/*") if path.is_file()),
    ]
    assert len(kept) > 5 and not any(TEXT.encode() in path.read_bytes() for path in kept)

    curve = project / "models/crt/g0-s1/metrics.jsonl"
    curve.write_text(curve.read_text().replace("7.0", "6.0"))
    second = load(project, spec(database_of(project)))
    assert {name for name in first["ids"] if first["ids"][name] != second["ids"][name]} == {
        "small/crt/g0-s1"
    }

    with sqlite3.connect(project / "mlflow.db") as database:  # as if it had been killed half-way
        database.execute(
            f"update runs set status = 'RUNNING' where run_uuid = '{second['ids']['public/g0-s0']}'"
        )
    third = load(project, spec(database_of(project)))
    assert third["ids"]["public/g0-s0"] != second["ids"]["public/g0-s0"]
    assert "tracked 1 new runs" in capsys.readouterr().out.splitlines()[-1]


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
    values = measured(project / "models/crt/g0-s0/metrics.jsonl", certificate, [])
    assert ("certified.record_epsilon", 2.0, 2) in values and len(values) == 2 + 3 + 1 + 1


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
    from safetensors.numpy import save_file

    folder = project / ".checkpoints/crt/g0-s9"
    folder.mkdir(parents=True)
    (folder / "lock").touch()
    save_file({}, folder / mirror.STATE, metadata={"values": json.dumps({"metrics": CURVE[:1]})})
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


def test_a_dead_server_does_not_stop_the_mirror(project, training_run, capsys):
    mirror.watch(TrackingSpec(uri="http://127.0.0.1:9"), project, every=0, rounds=2)
    lines = capsys.readouterr().err.splitlines()
    assert len([line for line in lines if line.startswith("mirror: tracking.uri")]) == 2


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
