"""What is pushed was searched: every file of it, the summary and the records of jobs among it."""

import re
from base64 import urlsafe_b64encode
from pathlib import Path

import pytest

from confide.config.outgoing import pushed
from confide.files.io import read_json, sha256
from tests.points import read_points

pytestmark = pytest.mark.slow

OWN = ("results/summary/scan.json", "results/summary/scan.csv")
PAGES = ("results/summary/scan.html", "results/summary/scan.sarif")
REVIEW = "data/own/reviews/sim.json"
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
    rows = read_points(project.folder / "data/work/sim/points.jsonl")
    row = next(row for row in rows if any(span[2] == "name" for span in row["gold"]))
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


def test_what_a_person_marked_is_looked_for_wherever_gold_secrets_are(fresh, tmp_path):
    """In what a study and the summary hand out."""
    project = fresh.copy(tmp_path / "project")
    plan = project.snakemake("all", "-np")
    assert "marked.jsonl" not in plan
    review = project.folder / REVIEW
    review.parent.mkdir()
    review.write_text("{}")
    parameters = project.folder / "params.yaml"
    of_one_policy = parameters.read_text().replace("gammas: [0.1], ", "")
    parameters.write_text(of_one_policy.replace("policy: d", f"review: {REVIEW}, policy: d", 1))
    plan = project.snakemake("all", "-np")
    marked = "data/work/sim/g0/marked.jsonl"
    assert re.search(f"confide marked .* --review {REVIEW} .* --output {marked} ", plan)
    searches = [line for line in plan.splitlines() if "confide scan " in line]
    assert len(searches) == 2 and all(f" {marked} " in line for line in searches)
