"""DVC around the workflow: it records what Snakemake built, gives it back to a clone, and never signs what is stale."""

import json
import shutil

import pytest

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def recorded(built, tmp_path_factory):
    """A built project in git and DVC, with a remote store."""
    place = tmp_path_factory.mktemp("dvc")
    project = built.copy(place / "project")
    (project.folder / ".gitignore").write_text("/.snakemake/\n/logs/\n/.checkpoints/\n")
    project.git("init", "-q")
    project.dvc("init", "-q")
    shutil.copy(built.environment["PYTHONPATH"] + "/../.dvc/config", project.folder / ".dvc/config")
    project.edit("dvc.yaml", "crt_customersim", "tiny")
    project.edit("dvc.yaml", "crt_customersim", "tiny")
    project.edit("dvc.yaml", "crt_customersim", "tiny")
    project.dvc("remote", "add", "-f", "-d", "store", str(place / "store"))
    output = project.dvc("repro")
    assert output.count("Nothing to be done") == 4, output[-3000:]
    project.git("add", "-A")
    project.git("commit", "-q", "-m", "first")
    project.dvc("push", "-q")
    return project


@pytest.fixture
def clone(recorded, tmp_path):
    """A clone without any data."""
    recorded.git("clone", "-q", str(recorded.folder), str(tmp_path / "clone"))
    return type(recorded)(tmp_path / "clone", recorded.environment)


def test_git_holds_no_data(recorded):
    files = recorded.git("ls-files").splitlines()
    assert not [name for name in files if name.startswith(("models", "results", "data/")) and not name.endswith(".gitignore")]


def test_a_clone_that_pulls_has_nothing_to_do(clone):
    clone.dvc("pull", "-q")
    assert "Nothing to be done" in clone.snakemake("-n")
    assert "up to date" in clone.dvc("status")
    clone.edit("params.yaml", "bootstrap: 50", "bootstrap: 60")
    assert clone.planned() == {"attack": 5, "report_tiny": 1, "scan_tiny": 1}


def test_the_users_own_corpus_is_watched_and_kept_out_of_git(clone):
    clone.dvc("pull", "-q")
    (clone.folder / "data/own/corpus.jsonl").write_text('{"text": "something private"}\n')
    assert "data/own" in clone.dvc("status") and clone.git("status", "--porcelain") == ""


def test_a_clone_without_records_does_not_sign_stale_results(clone):
    """Without Snakemake's records a changed parameter looks up to date; it must not end in dvc.lock."""
    clone.dvc("pull", "-q", "prepare", "train", "attack")
    clone.edit("params.yaml", "bootstrap: 50", "bootstrap: 60")
    before = (clone.folder / "dvc.lock").read_text()
    output = clone.dvc("repro", check=False)
    assert clone.status != 0 and "has no record of how it was made" in output
    assert (clone.folder / "dvc.lock").read_text() == before


def test_repro_after_a_change_runs_what_it_touches_and_records_it(clone):
    clone.dvc("pull", "-q")
    clone.edit("params.yaml", "bootstrap: 50", "bootstrap: 60")
    output = clone.dvc("repro")
    assert output.count("didn't change, skipping") == 1  # train
    assert "up to date" in clone.dvc("status") and "Nothing to be done" in clone.snakemake("-n")
    changed = json.loads(clone.dvc("params", "diff", "--json"))
    assert changed["params.yaml"]["attacks.address.bootstrap"] == {"old": 50, "new": 60, "diff": 10}
    assert "results/studies/tiny/summary.json" in json.loads(clone.dvc("metrics", "show", "--json"))[""]["data"]
    clone.dvc("metrics", "diff")
    clone.dvc("plots", "diff", "--json")
