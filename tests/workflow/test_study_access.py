"""A finished study is its owner's alone, whatever the umask, and docs/threat_model.md says of each
file what is true of it.
"""

import shutil
import sqlite3
from collections import Counter
from fnmatch import fnmatch
from pathlib import Path

import pytest
from table_of_files import built_files, places, row_of, rows

from confide.commands.release import RELEASED, ROUNDED
from confide.files.io import read_json, sha256
from confide.scan.search import Searcher
from confide.scan.secrets import collect
from confide.scan.variants import length

pytestmark = pytest.mark.slow

ROOT = Path(__file__).parents[2]
NOT_TINY = {
    "data/own/*",
    "data/own/reviews/*",
    "data/raw/*",
    "data/synthetic/*",
    "results/leaderboards/*",
    "results/papers/*",
    ".dvc/*",
}


def test_every_file_is_its_owners_alone_and_of_a_kind_that_the_page_names(built):
    """The fixture runs everything with umask 000."""
    kinds = Counter()
    for path, row in built_files(built.folder).items():
        assert row is not None, f"{path}: docs/threat_model.md names no such file"
        kinds[row.patterns[0]] += 1
        mode = (built.folder / path).stat().st_mode & 0o777
        top = built.folder / path.split("/")[0]
        assert mode == 0o600 if row.mode == "0600" else top.stat().st_mode & 0o777 == 0o700, path
    assert {row.patterns[0] for row in rows()} == set(kinds) | NOT_TINY and kinds[
        "data/work/*"
    ] > 10
    for name in ("data", "models", "results", "logs", ".checkpoints"):
        folders = [
            built.folder / name,
            *(path for path in (built.folder / name).rglob("*") if path.is_dir()),
        ]
        assert {path.stat().st_mode & 0o777 for path in folders if path.name != "own"} == {0o700}


def test_outside_the_project_there_is_what_the_page_names(built):
    """The fixture's run had a home and a folder of temporary files of its own, and a umask of
    000.
    """
    found = []
    for name, place in (("home", "~"), ("tmp", "$TMPDIR")):
        top = built.folder.parent / name
        for path in top.rglob("*"):
            if path.is_file() or not any(path.iterdir()):
                shown = f"{place}/{path.relative_to(top)}"
                kinds = [
                    one
                    for one in places()
                    if fnmatch(f"{shown}/", one.pattern) or fnmatch(shown, one.pattern)
                ]
                assert kinds, f"{shown}: docs/threat_model.md names no such file"
                found.append(kinds[0].pattern)
                depth = (
                    2 if place == "~" else 1
                )  # of the folder in the home's that a program has made for itself
                lowest = path.relative_to(top).parts[: depth + 1]
                modes = [
                    top.joinpath(*lowest[:number]).stat().st_mode & 0o077
                    for number in range(1, len(lowest) + 1)
                ]
                assert kinds[0].open or 0 in modes or path.stat().st_mode & 0o077 == 0, shown
    stay = {one.pattern for one in places()}
    rare = {
        "~/.cache/huggingface/*",
        "~/.cache/confide/*",  # where torch loads its compiler
        "$TMPDIR/torchelastic_*",  # where a model is trained in several processes
    }
    assert stay - set(found) <= rare and len(stay) == 6
    assert not [pattern for pattern in found if pattern not in stay]


def test_git_and_dvc_keep_out_what_the_page_names(fresh, tmp_path):
    project = fresh.copy(tmp_path / "project")
    for name in (".gitignore", ".dvc/.gitignore"):
        (project.folder / name).parent.mkdir(exist_ok=True)
        shutil.copy(ROOT / name, project.folder / name)
    project.git("init", "-q")
    for row in rows():
        for pattern in row.patterns:
            project.git(
                "check-ignore",
                "--no-index",
                pattern.replace(".dvc/*", ".dvc/cache/*").replace("*", "x"),
            )
    project.dvc("init", "-q", "-f")
    project.dvc("check-ignore", ".checkpoints/dpsgd/g0-s0/state.safetensors")


def test_folders_that_stand_open_are_closed_by_the_next_start(project):
    for name in ("data", "models", ".snakemake"):
        (project.folder / name).chmod(0o755)
    (project.folder / ".dvc/cache").mkdir(parents=True)
    assert "Nothing to be done" in project.snakemake()
    assert {
        (project.folder / name).stat().st_mode & 0o777
        for name in ("data", "models", ".snakemake", ".dvc")
    } == {0o700}


def test_the_page_names_what_a_release_has(built):
    for certificate in built.folder.glob("results/runs/*/*/certificate.json"):
        for name, files in read_json(certificate)["files"].items():
            said = "rounded" if name in ROUNDED else "yes" if name in RELEASED else "no"
            assert {row_of(file["path"]).released for file in files} <= {said}, name
    released = {
        pattern for row in rows() if row.released in ("yes", "rounded") for pattern in row.patterns
    }
    assert len(released) == 6  # start_ledgers are ledgers


@pytest.mark.nightly
def test_mlflow_has_the_files_that_the_page_names_and_no_secret(project):
    kept = {sha256(path) for path in project.folder.glob("mlruns/**/artifacts/*")}
    files = {
        path: row for path, row in built_files(project.folder).items() if not path.startswith("ml")
    }
    given = {path for path in files if sha256(project.folder / path) in kept}
    said = {path for path, row in files.items() if row.mlflow == "yes"}
    assert {path for path in given if files[path].mlflow == "yes"} >= said and len(said) > 30
    named = {sha256(project.folder / path) for path in said}  # two empty pages are alike
    others = {path for path in given if files[path].mlflow != "yes"}
    assert not {path for path in others if sha256(project.folder / path) not in named}
    assert {
        path.stat().st_mode & 0o777
        for path in [project.folder / "mlflow.db", *project.folder.glob("mlruns/**/*.*")]
    } == {0o600}

    points = [
        project.folder / f"data/work/sim/{name}" for name in ("points.jsonl", "canaries.json")
    ]
    secrets = {
        number: text
        for number, text in enumerate(collect(points[:1], points[1:]))
        if length(text) >= 7
    }
    searcher = Searcher(secrets)
    assert len(secrets) > 50 and list(searcher.hits([points[0].read_bytes()]))
    with sqlite3.connect(project.folder / "mlflow.db") as database:
        dump = "\n".join(database.iterdump()).encode()
    assert b"noise_seed" in dump and not [
        hit for hit in searcher.hits([dump]) if hit.kind == "exact"
    ]
