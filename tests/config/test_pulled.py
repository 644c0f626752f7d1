"""What is said where models are there and their text is not."""

from pathlib import Path

import pytest

from confide.config import jobs
from confide.config.jobs import MODEL_FILES
from confide.config.params import load
from confide.config.pulled import without_corpus, without_text


def make(folder: Path, run: str) -> None:
    for file in MODEL_FILES:
        place = folder / "models" / run / file
        place.parent.mkdir(parents=True, exist_ok=True)
        place.touch()
    certificate = folder / "results/runs" / run / "certificate.json"
    certificate.parent.mkdir(parents=True, exist_ok=True)
    certificate.touch()


@pytest.fixture
def runs(fresh, monkeypatch) -> dict[str, jobs.Run]:
    monkeypatch.chdir(fresh.folder)
    params = load()
    return jobs.runs_of(params, params.select)


def test_nothing_is_said_where_nothing_is_there_or_all_of_it(runs, tmp_path):
    assert without_text(runs, tmp_path) == "" and without_corpus(tmp_path) == ""
    for run in runs:
        make(tmp_path, run)
    for run in runs.values():
        points = tmp_path / f"data/work/{run.row.dataset}/points.jsonl"
        points.parent.mkdir(parents=True, exist_ok=True)
        points.touch()
    assert without_text(runs, tmp_path) == ""


def test_models_without_their_text_are_counted(runs, tmp_path):
    first, second, *_ = runs
    make(tmp_path, first)
    make(tmp_path, second)
    (tmp_path / "models" / second / "ledger.jsonl").unlink()
    said = without_text(runs, tmp_path)
    assert said.startswith("1 model with its certificate is here: ")
    assert "confide verify" in said and "snakemake prepare" in said
    make(tmp_path, second)
    assert without_corpus(tmp_path).startswith("2 models with their certificates are here: ")
