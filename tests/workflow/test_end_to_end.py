"""The whole chain on the tiny parameters: what it leaves behind, what it leaves unsaid, and what a
change reruns.
"""

import csv
import json
import os
import re

import pytest

from confide.config.params import load
from tests.points import read_points

pytestmark = pytest.mark.slow

SHOWN = {"study_tiny": 1, "summary": 1, "scan_tiny": 1, "search_summary": 1, "track": 1}
AUDITED = SHOWN | {"gate_tiny": 1, "passed_tiny": 1}
ALONG = {"trajectory": 1}
ALL = {"certify": 7, "evaluate": 7, "shadows": 1, "attack": 20, **ALONG, **AUDITED}
# Where, from, to, the jobs that it touches. The rest of them, CHANGES_TOO, are nightly.
CHANGES = [
    (
        "params.yaml",
        "{ kind: exposure }",
        "{ kind: exposure, chunk: 100 }",
        {"attack": 5, **ALONG, **SHOWN},
    ),
    (
        "params.yaml",
        "epsilon: 3.0",
        "epsilon: 2.0",
        {"train": 4, "certify": 4, "evaluate": 4, "attack": 12, **ALONG, **AUDITED},
    ),
    (
        "params.yaml",
        "copies: 4",
        "copies: 5",
        {
            "plant": 1,
            "dedup": 1,
            "redact": 2,
            "recall": 2,
            "partition": 2,
            "neighbours": 2,
            "train": 6,
        }
        | ALL
        | {"certify": 6, "evaluate": 6},
    ),
    ("src/confide/stages/certify.py", '"""', '"""Another word: ', {}),
    (
        "src/confide/stages/certify.py",
        "def certify(",
        "NEW = 1\n\n\ndef certify(",
        {"certify": 7, **AUDITED},
    ),
]
CHANGES_TOO = [
    ("params.yaml", "bootstrap: 50", "bootstrap: 60", {"attack": 5, **SHOWN}),
    ("params.yaml", "title: Tiny", "title: Small", {**SHOWN}),
    ("params.yaml", "experiment: tiny", "experiment: small", {"track": 1}),
    (
        "params.yaml",
        "pretrain: { lr: 0.02",
        "pretrain: { lr: 0.03",
        {
            "train": 2,
            "certify": 2,
            "evaluate": 2,
            "attack": 5,
            **ALONG,
            **AUDITED,
        },  # and what has it for a reference
    ),
    (
        "params.yaml",
        "dpsgd: { dataset: sim, model: lstm, method: dpsgd, recipe: quick,",
        "dpsgd: { dataset: sim, model: lstm, method: dpsgd, recipe: quick, seeds: [0, 1],",
        {"train": 1, "certify": 1, "evaluate": 1, "attack": 4, **AUDITED},
    ),
    (
        "params.yaml",
        "gammas: [0.1], attacks",
        "gammas: [0.2], attacks",
        {"redact": 1, "recall": 1, "partition": 1, "neighbours": 1},
    ),
    (
        "params.yaml",
        "vocab_size: 300",
        "vocab_size: 320",
        {"tokenizer": 1, "partition": 3, "neighbours": 3, "train": 7, **ALL},
    ),
    (
        "src/confide/attacks/exposure/exposure.py",
        "\ndef ",
        "\nNEW = 1\n\n\ndef ",
        {"attack": 20, **ALONG, **AUDITED},
    ),
]


def test_everything_is_there(built):
    for run in (
        "public/g0-s0",
        "nonprivate/g0-s0",
        "redacted/g0.1-s0",
        "dpsgd/g0-s0",
        "crt/g0.1-s0",
        "selective/g0.1-s0",
    ):
        model = {path.name for path in (built.folder / "models" / run).iterdir()}
        assert model == {
            "model.safetensors",
            "config.json",
            "metrics.jsonl",
            "ledger.jsonl",
            "epochs.safetensors",
        }
        attacks = (
            set()
            if "public" in run
            else {"exposure.json", "address.json", "game.json", "lira.json"}
        )
        attacks = (
            attacks - {"lira.json"} | {"bare.json", "trajectory.json"}
            if "selective" in run
            else attacks
        )
        certified = {"certificate.json", "certificate.md", "certificate.html"}
        own = certified | {"recall.json", "neighbours.json", "evaluate.json"} | attacks
        assert {path.name for path in (built.folder / "results/runs" / run).iterdir()} == own
    with open(built.folder / "results/studies/tiny/table.csv") as file:
        rows = {row["name"]: row for row in csv.DictReader(file)}
    assert set(rows) == {"nonprivate", "redacted", "dpsgd", "crt", "selective", "jft"}
    assert (
        rows["nonprivate"]["epsilon_bayesian"] == "inf"
        and 2.9 < float(rows["dpsgd"]["epsilon_replace_one"]) <= 3
    )
    assert float(rows["crt"]["epsilon_bayesian"]) < 3
    quoted = (built.folder / "results/studies/tiny/published.csv").read_text()
    assert "crt_f6" in quoted and "sdp_t3" in quoted
    for figure in load(built.folder / "params.yaml").studies["tiny"].figures:
        for suffix in ("png", "svg"):
            assert (built.folder / f"results/studies/tiny/{figure}.{suffix}").stat().st_size > 1000


def test_a_finished_run_says_where_its_pages_are(built):
    end = built.output.splitlines()[-4:]
    assert "All results: results/summary/index.html; as one file, for those who may see" in str(end)
    assert str(end).count("page of each model: results/studies/tiny/assessment_*.html") == 1
    assert built.output.count("All results:") == 1  # and no job of it does
    assert list((built.folder / "results/studies/tiny").glob("assessment_*.html"))


def test_nothing_to_be_done_afterwards_whatever_the_dates_or_processes(project):
    assert "Nothing to be done" in project.snakemake("-n", "--set-resources", "train:processes=2")
    for number, path in enumerate(sorted(project.folder.rglob("*.*"), reverse=True)):
        if ".snakemake" not in path.parts:
            os.utime(path, (10**9 + 1000 * number,) * 2)
    assert "Nothing to be done" in project.snakemake("-n")


@pytest.mark.parametrize(
    ("file", "old", "new", "jobs"),
    [*CHANGES, *(pytest.param(*change, marks=pytest.mark.nightly) for change in CHANGES_TOO)],
)
def test_a_change_reruns_what_it_touches(project, file, old, new, jobs):
    project.edit(file, old, new)
    planned = project.planned()
    if "gammas" in old:  # new files as well: those of the new gamma
        jobs = jobs | {"train": 1, "certify": 1, "evaluate": 1, "attack": 4, **AUDITED}
    assert planned == jobs


def secrets_of(project) -> set[str]:
    """Every planted secret and every gold secret that is long enough not to occur by chance."""
    found = set()
    for points in project.folder.glob("data/work/*/points.jsonl"):
        for row in read_points(points):
            found |= {row["text"][start:end] for start, end, *_ in row["gold"]}
    return {secret for secret in found if len(secret) >= 7}


def test_a_leaderboard_reads_what_was_certified_of_real_runs(project):
    """DP-SGD protects any record, and of one seed no verdict is given."""
    project.snakemake("leaderboard")
    with open(project.folder / "results/leaderboards/leaderboard/cells.csv") as file:
        cells = {(row["secret"], row["epsilon"]): row for row in csv.DictReader(file)}
    assert len(cells) == 9 and {row["missing"] for row in cells.values()} == {"0"}
    for secret in ("missed", "record"):
        assert cells[secret, "1.0"]["verdict"] == "nobody certifies it"
    record = cells["record", "3.0"]
    assert (record["papers_name"], record["verdict"]) == ("dpsgd", "none of ours certifies it")
    assert 2.9 < float(record["papers_epsilon"]) <= 3
    assert not record["ours"] and float(record["papers_bits"]) > 0


def test_nothing_outside_data_holds_a_secret(built):
    secrets = secrets_of(built)
    assert len(secrets) > 100
    any_secret = re.compile("|".join(map(re.escape, sorted(secrets))).encode())
    corpus = (built.folder / "data/work/sim/points.jsonl").read_bytes()
    assert any_secret.search(corpus)  # the scanner sees them where they are
    scanned = 0
    for path in built.folder.rglob("*"):
        inside = path.relative_to(built.folder).parts
        if path.is_file() and inside[0] not in ("data", "src", "params.yaml"):
            assert not any_secret.search(path.read_bytes()), path
            scanned += 1
    assert scanned > 100 and not any_secret.search(built.output.encode())


def test_canaries_are_not_in_results_or_logs(built):
    canaries = json.loads((built.folder / "data/work/sim/canaries.json").read_text())
    texts = [
        f"{canaries['prefix']}{secret}" for secret in [*canaries["secrets"], *canaries["controls"]]
    ]
    texts += [
        f"{audit['prefix']}{secret}"
        for audit in canaries["audits"].values()
        for secret in audit["secrets"]
    ]
    assert len(texts) == 3 + 3 + 120 + 60
    pattern = re.compile("|".join(map(re.escape, texts)))
    files = [
        path
        for name in ("results", "logs", "models", ".snakemake")
        for path in (built.folder / name).rglob("*")
    ]
    for path in files:
        if path.is_file():
            assert not pattern.search(path.read_text(errors="replace")), path


def test_html_report_works_offline(project):
    project.snakemake(
        "--report", "results/report.html", "--report-stylesheet", "workflow/report/report.css"
    )
    text = (project.folder / "results/report.html").read_text()
    assert "tradeoff" in text and "Bayesian confidentiality" in text
    (opening,) = re.findall("var workflow_desc = (.*)", text)
    assert (
        "What is certified" in opening and "<style" not in opening and "#app .prose table" in text
    )


@pytest.mark.nightly
def test_same_numbers_in_a_second_run(project):
    """Training is reproducible: forget the models, train again, same bytes."""
    models = sorted(project.folder.glob("models/*/*/model.safetensors"))
    before = [path.read_bytes() for path in models]
    project.snakemake("--forcerun", "train", "--until", "train")
    assert len(models) == 7 and [path.read_bytes() for path in models] == before


@pytest.mark.nightly
def test_tracking_is_idempotent_and_hears_of_a_dead_server(project):
    import sqlite3

    assert "tracked 7 new runs" in (project.folder / "logs/track.log").read_text()
    project.snakemake("track", "--forcerun", "track")
    assert "tracked 0 new runs" in (project.folder / "logs/track.log").read_text()
    with sqlite3.connect(project.folder / "mlflow.db") as database:
        assert database.execute(
            "select count(*) from runs where status = 'FINISHED'"
        ).fetchone() == (8,)
    assert "Nothing to be done" in project.snakemake("-n")
    away = {"MLFLOW_TRACKING_URI": "http://user:word@127.0.0.1:9"}
    project.snakemake("--forcerun", "track", check=False, **away)
    assert project.status != 0
    line = (project.folder / "logs/track.log").read_text()
    assert line.startswith("confide track: error:") and line.count("\n") == 1 and "word" not in line
    assert project.planned() == {"track": 1}


@pytest.mark.parametrize(
    ("name", "rule"),
    [
        ("results/runs/crt/g0.1-s0/recall.json", "certify"),
        ("results/runs/crt/g0.1-s0/certificate.html", "certify"),
        ("results/studies/tiny/gate.xml", "gate_tiny"),
        ("results/studies/tiny/scan.sarif", "scan_tiny"),
    ],
)
def test_a_deliverable_that_is_gone_is_made_again_though_nothing_reads_it(project, name, rule):
    (project.folder / name).unlink()
    assert project.planned()[rule] == 1
