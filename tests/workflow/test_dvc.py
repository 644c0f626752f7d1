"""DVC around the workflow: it records what Snakemake built, gives it back to a clone, and never
signs what is stale.
"""

import hashlib
import json
import shutil

import pytest
from project import ROOT
from table_of_files import built_files

pytestmark = pytest.mark.slow


def configure(project) -> None:
    """Set DVC of a project up as in a checkout of this one."""
    for name in (".dvc/config", ".dvc-state/repo/.gitignore"):
        (project.folder / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(ROOT / name, project.folder / name)


@pytest.fixture(scope="module")
def recorded(built, tmp_path_factory):
    """A built project in git and DVC, with a remote store."""
    place = tmp_path_factory.mktemp("dvc")
    project = built.copy(place / "project")
    own = (".snakemake/", "logs/", ".checkpoints/", "mlruns/", "mlflow.db")
    (project.folder / ".gitignore").write_text("".join(f"/{name}\n" for name in own))
    project.git("init", "-q")
    project.dvc("init", "-q")
    configure(project)
    for _ in range(4):
        project.edit("dvc.yaml", "crt_customersim", "tiny")
    documented = project.folder / "docs/results/tiny.json"
    documented.parent.mkdir(parents=True)
    documented.write_text('{"crt.g0.ppl": 1.5}\n')
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


@pytest.fixture
def pulled(clone):
    """A clone with what the remote has, and the text made again."""
    clone.dvc("pull", "-q", "--allow-missing")
    clone.snakemake("prepare")
    return clone


def test_git_holds_no_data(recorded):
    files = recorded.git("ls-files").splitlines()
    assert not [
        name
        for name in files
        if name.startswith(("models", "results", "data/")) and not name.endswith(".gitignore")
    ]


def test_the_remote_has_what_the_page_names_and_no_text(recorded):
    kept = {
        path.parent.name + path.name
        for path in (recorded.folder.parent / "store").glob("files/md5/*/*")
    }
    files = {
        path: row
        for path, row in built_files(recorded.folder).items()
        if not path.startswith(".dvc")
    }
    digests = {
        path: hashlib.md5((recorded.folder / path).read_bytes()).hexdigest() for path in files
    }
    pushed = {digests[path] for path, row in files.items() if row.push == "yes"}
    assert len(pushed) > 100 and pushed <= kept
    assert not [
        path for path, row in files.items() if row.push != "yes" and digests[path] in kept - pushed
    ]
    listed = kept - pushed
    assert len(listed) == 6 and all(name.endswith(".dir") for name in listed)  # results are three


def test_the_cache_has_the_text_behind_a_closed_door(recorded):
    digest = hashlib.md5((recorded.folder / "data/work/sim/points.jsonl").read_bytes()).hexdigest()
    assert (recorded.folder / ".dvc/cache/files/md5" / digest[:2] / digest[2:]).is_file()
    assert (recorded.folder / ".dvc").stat().st_mode & 0o777 == 0o700


@pytest.mark.nightly
def test_a_clone_has_models_and_results_and_trains_nothing_once_the_text_is_there(clone):
    output = clone.dvc("pull", check=False)
    assert clone.status != 0 and "data/work" in output  # it says what is not there
    clone.dvc("pull", "--allow-missing")
    assert (
        not (clone.folder / "data/work").exists()
        and (clone.folder / "results/studies/tiny/table.csv").is_file()
    )
    assert "Nothing to be done" in clone.snakemake("-n", "report_all")
    for certificate in (clone.folder / "results/runs").glob("*/*/certificate.json"):
        assert "holds" in clone.run("confide", "verify", str(certificate))
    remark = "7 models with their certificates are here: "
    assert remark in clone.snakemake("-n")
    clone.snakemake("prepare")
    looked_at_again = {"passed_tiny": 1, "search_summary": 1, "track": 1}
    assert clone.planned() == looked_at_again and remark not in clone.snakemake("-n")
    clone.edit("params.yaml", "bootstrap: 50", "bootstrap: 60")
    assert clone.planned() == {
        "passed_tiny": 1,  # its mark lies in logs, which no clone has
        "attack": 5,
        "study_tiny": 1,
        "summary": 1,
        "scan_tiny": 1,
        "search_summary": 1,
        "track": 1,
    }


def test_the_users_own_corpus_is_watched_and_kept_out_of_git(clone):
    clone.dvc("pull", "-q", "--allow-missing")
    (clone.folder / "data/own/corpus.jsonl").write_text('{"text": "something private"}\n')
    assert "data/own" in clone.dvc("status") and clone.git("status", "--porcelain") == ""


@pytest.mark.nightly
def test_a_clone_without_records_does_not_sign_stale_results(clone):
    """Without Snakemake's records a changed parameter looks up to date; it must not end in
    dvc.lock.
    """
    clone.dvc("pull", "-q", "--allow-missing", "prepare", "train", "attack")
    clone.edit("params.yaml", "bootstrap: 50", "bootstrap: 60")
    before = (clone.folder / "dvc.lock").read_text()
    output = clone.dvc("repro", check=False)
    assert clone.status != 0 and "has no record of how it was made" in output
    assert (clone.folder / "dvc.lock").read_text() == before


@pytest.mark.nightly
def test_repro_after_a_change_runs_what_it_touches_and_records_it(pulled):
    pulled.edit("params.yaml", "bootstrap: 50", "bootstrap: 60")
    output = pulled.dvc("repro")
    assert output.count("didn't change, skipping") == 1  # train
    assert " ".join(pulled.dvc("status").split()) == "prepare: always changed"
    assert "Nothing to be done" in pulled.snakemake("-n")
    changed = json.loads(pulled.dvc("params", "diff", "--json"))
    assert changed["params.yaml"]["attacks.address.bootstrap"] == {"old": 50, "new": 60, "diff": 10}
    assert (
        "results/studies/tiny/summary.json"
        in json.loads(pulled.dvc("metrics", "show", "--json"))[""]["data"]
    )
    pulled.dvc("metrics", "diff")
    pulled.dvc("plots", "diff", "--json")
