"""What is pushed was searched: every file of it, the summary and the records of jobs among it."""

import json
from base64 import urlsafe_b64encode
from pathlib import Path

import pytest

from confide.config.outgoing import pushed
from confide.files.io import read_json, sha256

pytestmark = pytest.mark.slow

OWN = ("results/summary/scan.json", "results/summary/scan.csv")
PAGES = ("results/summary/scan.html", "results/summary/scan.sarif")
LATER = (*OWN, *PAGES, "results/summary/tracked.json")  # written once all else was searched


def files_below(project, names: list[str]) -> set[str]:
    """Files that lie below some folders of a project."""
    paths = (
        path for name in names for path in (project.folder / name).rglob("*") if path.is_file()
    )
    return {str(path.relative_to(project.folder)) for path in paths}


def record_of(output: str) -> str:
    return f".snakemake/metadata/{urlsafe_b64encode(output.encode()).decode()}"


def test_every_file_that_is_pushed_was_searched_as_it_is(built):
    report = read_json(built.folder / OWN[0])
    searched = {row["path"]: row["sha256"] for row in report["files"]}
    sent = files_below(built, pushed(Path(built.folder / "dvc.yaml")))
    assert sent - searched.keys() == {*LATER, *map(record_of, LATER)} and len(searched) > 200
    assert {
        "results/summary/index.html",
        record_of("results/summary/index.html"),
    } <= searched.keys()
    for path in sent & searched.keys():
        assert searched[path] == sha256(built.folder / path), path
    assert (
        report["secrets"]["searched"] > 100
        and report["totals"]["hits"] == 0
        and report["warning"] is None
    )


def test_a_secret_in_the_summary_or_in_a_record_fails_the_last_search(project):
    with open(project.folder / "data/work/sim/points.jsonl") as lines:
        row = next(
            row for row in map(json.loads, lines) if any(span[2] == "name" for span in row["gold"])
        )
    start, end = next((start, end) for start, end, label, *_ in row["gold"] if label == "name")
    secret = row["text"][start:end]
    for name in (
        "results/summary/.left.html",
        f".snakemake/metadata/{urlsafe_b64encode(secret.encode()).decode()}",
    ):
        planted = project.folder / name
        planted.write_text('{"input": []}' if "metadata" in name else f"<p>{secret}</p>")
        output = project.snakemake("--forcerun", "search_summary", check=False)
        assert project.status != 0 and "1 hits (name)" in output and secret not in output
        planted.unlink()
