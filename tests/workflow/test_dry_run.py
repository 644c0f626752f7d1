"""A dry run changes no file, and a run does what a dry run does not: it closes folders and mends
dates of the future.
"""

import hashlib
import os
import re
import time
from types import SimpleNamespace

import pytest
from project import ROOT
from snakemake.jobs import Job

from confide.provenance.snakemake_internals import leave_commands_out

VOCABULARY = "data/tokenizers/bpe.json"


@pytest.fixture
def project(fresh, tmp_path):
    """A project of which a little is made, which stands open, and whose clock was ahead."""
    project = fresh.copy(tmp_path / "project")
    project.snakemake(VOCABULARY, "-q")
    for name in ("data", ".snakemake"):
        (project.folder / name).chmod(0o755)
    ahead = time.time() + 1e6
    os.utime(project.folder / "data/work/public-turn/points.jsonl", (ahead, ahead))
    return project


def tree(folder):
    """Mode, date and content of everything in a folder but for what is Snakemake's own."""
    found = {}
    for path in [folder, *folder.rglob("*")]:
        name = path.relative_to(folder)
        if name.parts[:1] == (".snakemake",) and len(name.parts) > 1:
            continue
        status = path.stat()
        content = hashlib.sha256(path.read_bytes()).hexdigest() if path.is_file() else None
        date = None if name.parts[:1] == (".snakemake",) else status.st_mtime_ns
        found[str(name)] = (status.st_mode, date, content)
    return found


@pytest.mark.slow
@pytest.mark.parametrize("flags", [["-n"], ["-pnc1"], ["--dry-r"]])
def test_a_dry_run_changes_no_file(project, flags):
    before = tree(project.folder)
    assert "This was a dry-run" in project.snakemake(*flags, PYTHONDONTWRITEBYTECODE="1")
    assert tree(project.folder) == before


@pytest.mark.parametrize("shown", [False, True])
def test_commands_are_put_together_where_a_plan_shows_them(monkeypatch, shown):
    written = Job.shellcmd
    monkeypatch.setattr(Job, "shellcmd", written)  # to have it back afterwards
    leave_commands_out(
        SimpleNamespace(output_settings=SimpleNamespace(printshellcmds=shown)),
    )
    assert (Job.shellcmd is written) == shown
    if not shown:
        assert Job.shellcmd.fget(object()) is None


def test_another_snakemake_is_left_as_it_is(monkeypatch):
    monkeypatch.delattr(Job, "shellcmd")
    leave_commands_out(
        SimpleNamespace(output_settings=SimpleNamespace(printshellcmds=False)),
    )
    assert not hasattr(Job, "shellcmd")


@pytest.mark.slow
def test_a_plan_shows_commands_where_they_are_asked_for_and_no_groups(fresh):
    plain = fresh.snakemake("-n", "study_tiny")
    shown = fresh.snakemake("-np", "study_tiny")
    assert "confide study --spec" in shown and "confide study --spec" not in plain
    assert "rule study_tiny:" in plain and "group job" not in plain


@pytest.mark.slow
def test_a_run_closes_folders_and_mends_dates(project):
    project.snakemake("data/work/public/points.jsonl", "-q")
    for name in ("data", ".snakemake"):
        assert (project.folder / name).stat().st_mode & 0o777 == 0o700
    assert (project.folder / "data/work/public-turn/points.jsonl").stat().st_mtime <= time.time()


@pytest.mark.nightly
@pytest.mark.slow
def test_a_start_without_jobs_closes_folders_too(project):
    assert "Nothing to be done" in project.snakemake(VOCABULARY)
    assert (project.folder / "data").stat().st_mode & 0o777 == 0o700


def test_what_snakemake_does_not_document_is_used_in_one_file():
    private = re.compile(
        r"workflow\.(?!basedir\b|rst\b)\w+|from snakemake\b(?!\.utils import "
        r"min_version)|os\._exit|re\._parser"
    )
    places = [
        ROOT / "Snakefile",
        *(ROOT / "workflow").rglob("*.smk"),
        *(ROOT / "src").rglob("*.py"),
    ]
    users = {
        path.name
        for path in places
        if private.search(path.read_text()) and path.name != "tokenizer.py"
    }
    assert users == {"snakemake_internals.py"}
