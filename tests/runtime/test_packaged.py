"""The installed workflow: how Snakemake is called with it, and what stays as the user wrote it."""

import os
import sys
from pathlib import Path

import pytest

from confide import cli
from confide.errors import InputError
from confide.runtime import packaged

ROOT = Path(__file__).parents[2]


@pytest.fixture
def called(monkeypatch):
    """Command lines that a process would have become."""
    words: list[list[str]] = []
    monkeypatch.setattr(os, "execv", lambda program, line: words.append([program, *line]))
    return words


def test_a_checkout_has_its_workflow_at_the_top():
    assert packaged.folder() == ROOT


def test_a_wheel_has_its_workflow_in_the_package(tmp_path, monkeypatch):
    package = tmp_path / "site-packages/confide"
    (package / "_workflow").mkdir(parents=True)
    monkeypatch.setattr(packaged, "PACKAGE", package)
    with pytest.raises(InputError, match="has no Snakefile"):
        packaged.folder()
    (package / "_workflow/Snakefile").touch()
    assert packaged.folder() == package / "_workflow"


def test_run_passes_every_option_on_as_it_is(called):
    options = ["-n", "train_all", "--config", "a=b c", "--set-threads", "redact=8", "--", "x", "-h"]
    assert cli.main(["run", *options]) == 0
    snakefile = f"--snakefile={ROOT / 'Snakefile'}"
    profile = f"--workflow-profile={ROOT / 'profiles/default'}"
    own = [sys.executable, sys.executable, "-m", "snakemake", snakefile, profile]
    assert called == [own + options]


@pytest.mark.parametrize("name", ["slurm", "profiles/slurm"])
def test_a_profile_of_the_workflow_goes_by_its_name(name, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    own = str(ROOT / "profiles/slurm")
    assert packaged.command(["--profile", name, "-n"])[-3:] == ["--profile", own, "-n"]
    assert packaged.command([f"--profile={name}"])[-1] == f"--profile={own}"
    (tmp_path / name).mkdir(parents=True)  # what is here comes first, as for Snakemake
    assert packaged.command(["--profile", name])[-1] == name


@pytest.mark.parametrize("name", ["mine", "../profiles", ".", "slurm/config.yaml", ""])
def test_any_other_profile_is_left_to_snakemake(name, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert packaged.command(["--profile", name])[-1] == name


def test_a_report_needs_results(tmp_path, called, capsys, monkeypatch):
    monkeypatch.chdir(tmp_path)
    for place in ([], ["-d", "mine"], ["--directory=mine"]):
        assert cli.main(["report", *place]) == 2
        assert "not made yet" in capsys.readouterr().err and not called
    (tmp_path / "mine/results/summary").mkdir(parents=True)
    (tmp_path / "mine/results/summary/index.html").touch()
    monkeypatch.setattr("confide.commands.report.left", lambda *options: [])
    for place in (["-d", "mine"], ["-n", "-dmine"], ["x", "--directory=mine"]):
        assert cli.main(["report", *place]) == 0
        style = str(ROOT / "workflow/report/report.css")
        words = ["--report", "results/report.html", "--report-stylesheet", style, *place]
        assert called.pop()[-len(words) :] == words
    assert cli.main(["report"]) == 2


def test_help_says_whose_options_they_are(capsys, called):
    for flag in ("-h", "--help"):
        assert cli.main(["run", flag]) == 0
        said = capsys.readouterr().out
        assert "is Snakemake's" in said and said.count("\n  confide run ") == 5 and not called
