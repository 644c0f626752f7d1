"""The stage reads listed runs only, names what is missing, and leaves all of its files or none."""

import json
import shutil
from pathlib import Path

import pytest

from confide.cli import main
from confide.errors import InputError
from confide.report.figures.registry import FIGURES
from confide.specs import ReportSpec, parse
from confide.stages.study import study as report

RUN = {
    "run": "crt/g0.1-s0",
    "name": "crt",
    "method": "crt",
    "dataset": "tiny",
    "model": "lstm",
    "gamma": 0.1,
    "seed": 0,
}
STUDY = {"study": "tiny", "title": "Tiny", "figures": ["tradeoff", "utility"], "runs": [RUN]}


@pytest.fixture
def root(tmp_path) -> Path:
    run = tmp_path / "results" / "runs" / RUN["run"]
    model = tmp_path / "models" / RUN["run"]
    run.mkdir(parents=True)
    model.mkdir(parents=True)
    epochs = [{"epoch": 1, "record_epsilon": 2.0, "bayesian_epsilon": 0.5}]
    headline = {
        "record_epsilon": 2.0,
        "bayesian_epsilon": 0.5,
        "delta": 8e-5,
        "relation": "replace_one",
    }
    headline |= {"unit": "one sentence", "accountant": "pld", "condition": "none"}
    (run / "certificate.json").write_text(
        json.dumps({"headline": headline, "epochs": epochs, "claims": []})
    )
    quality = {"ppl": 4.0, "ppl_public": 2.0, "ppl_private": None, "accuracy": 0.5}
    (run / "evaluate.json").write_text(json.dumps(quality))
    (model / "metrics.jsonl").write_text(
        json.dumps({"epoch": 1, "valid_ppl": 4.5, "seconds": 1.5}) + "\n"
    )
    return tmp_path


def build(root: Path, output: Path | None = None, **changes) -> Path:
    output = output or root / "results" / "studies" / "tiny"
    spec = parse(ReportSpec, STUDY | changes)
    report(spec, results=root / "results", models=root / "models", output=output)
    return output


def test_writes_all_files_the_same_twice(root):
    first = build(root)
    names = {"table.csv", "table.md", "table.html", "figures.md", "summary.json", "epochs.csv"}
    names |= {"assessment_crt_g0.1-s0.html"}
    names |= {
        f"{figure}.{ending}" for figure in ("tradeoff", "utility") for ending in ("png", "svg")
    }
    assert {path.name for path in first.iterdir()} == names
    before = {path.name: path.read_bytes() for path in first.iterdir()}
    shutil.rmtree(first)
    assert {path.name: path.read_bytes() for path in build(root).iterdir()} == before


def test_unlisted_runs_are_not_read(root):
    before = (build(root) / "table.csv").read_bytes()
    for folder in ("results/runs", "models"):
        shutil.copytree(root / folder / "crt" / "g0.1-s0", root / folder / "crt" / "g0.1-s1")
    assert (build(root) / "table.csv").read_bytes() == before


@pytest.mark.parametrize("name", ["certificate.json", "evaluate.json", "metrics.jsonl"])
def test_missing_file_is_named_and_nothing_is_written(root, name):
    next(root.rglob(name)).unlink()
    with pytest.raises(InputError, match=rf"crt/g0\.1-s0/{name}"):
        build(root)
    assert not (root / "results" / "studies").exists()


def test_missing_attack_is_named(root):
    with pytest.raises(InputError, match=r"crt/g0\.1-s0/exposure\.json"):
        build(root, runs=[RUN | {"attacks": ["exposure"]}])


def test_missing_field_is_named(root):
    path = next(root.rglob("certificate.json"))
    path.write_text(json.dumps({"headline": {}, "epochs": [], "claims": []}))
    with pytest.raises(InputError, match=r"certificate\.json: headline\.relation"):
        build(root)


def test_unknown_figure_is_refused(root):
    with pytest.raises(InputError, match="pie"):
        build(root, figures=["pie"])


def test_failure_while_drawing_leaves_nothing(root, monkeypatch):
    def broken(spec, results):
        raise RuntimeError

    monkeypatch.setitem(FIGURES, "utility", broken)
    with pytest.raises(RuntimeError):
        build(root)
    assert list((root / "results" / "studies").iterdir()) == []


def test_command_line(root, capsys):
    arguments = [
        "--results",
        str(root / "results"),
        "--models",
        str(root / "models"),
        "--output",
        str(root / "out"),
    ]
    assert main(["study", "--spec", json.dumps(STUDY | {"figures": []}), *arguments]) == 0
    assert (root / "out" / "table.csv").read_text().count("\n") == 2
    next(root.rglob("evaluate.json")).unlink()
    assert main(["study", "--spec", json.dumps(STUDY), *arguments]) == 2
    error = capsys.readouterr().err
    assert "evaluate.json" in error and "Traceback" not in error
