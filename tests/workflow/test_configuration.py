"""Files of parameters, on their way through the real Snakemake: nothing that they say is run, and
every error is one line.
"""

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
import yaml
from project import ROOT

from confide.config.yaml_lines import compose

RUNS_CODE = """\
__use_yte__: true
__definitions__:
  - "open('canary', 'w').close()"
select: [tiny]
"""
ROUTES = {  # command lines that lay a file over params.yaml
    "--configfile": ("--configfile", "other.yaml"),
    "--configfiles": ("--configfiles=other.yaml",),
    "after a file that is fine": ("--configfile", "params.yaml", "other.yaml"),
    "--config layers": ("--config", "layers=[other.yaml]"),
    "a list of one": ("--config", "layers=other.yaml"),
    "a profile": ("--profile", "mine"),
}


@pytest.fixture
def project(fresh, tmp_path):
    """A project with nothing built that a test may change."""
    return fresh.copy(tmp_path / "project")


def refusal(project, *arguments: str, file: str) -> str:
    """What a dry run says that ends in one line about a file; nothing was run that the file
    says.
    """
    output = project.snakemake("-n", *arguments, check=False)
    lines = [line for line in output.splitlines() if not line.startswith("Using ")]
    assert project.status == 2 and len(lines) == 1 and lines[0].startswith(file), output
    assert not list(project.folder.rglob("canary")), "the file's code was run"
    return lines[0]


def test_a_template_in_the_parameters_is_not_run(project):
    text = (project.folder / "params.yaml").read_text()
    (project.folder / "params.yaml").write_text(text + RUNS_CODE.replace("select: [tiny]\n", ""))
    line = refusal(project, file="params.yaml:")
    number = text.count("\n") + 1
    assert line.startswith(
        f"params.yaml:{number}: __use_yte__: makes a file a template, which may run any code"
    )


def test_a_template_in_an_included_file_is_not_run(project):
    text = (project.folder / "params.yaml").read_text()
    (project.folder / "params.yaml").write_text(text + "include: [studies/bad.yaml]\n")
    (project.folder / "studies/bad.yaml").write_text(RUNS_CODE)
    line = refusal(project, file="studies/bad.yaml:1:")
    assert "__use_yte__: makes a file a template, which may run any code" in line


@pytest.mark.parametrize("route", ROUTES)
def test_a_template_is_not_run_whatever_names_the_file(project, route):
    (project.folder / "other.yaml").write_text(RUNS_CODE)
    (project.folder / "mine").mkdir()
    (project.folder / "mine/config.yaml").write_text("configfile: other.yaml\n")
    assert "__use_yte__" in refusal(project, *ROUTES[route], file="other.yaml:1:")


def test_a_template_in_another_folder_is_not_run(project):
    (project.folder / "mine").mkdir()
    (project.folder / "mine/params.yaml").write_text(RUNS_CODE)
    assert "__use_yte__" in refusal(project, "-d", "mine", file="params.yaml:1:")


def test_without_the_default_profile_another_file_is_refused(project):
    """Snakemake's own reader has seen the file by then: what is prevented is that such a run goes
    on as if it had not.
    """
    (project.folder / "other.yaml").write_text("select: [tiny]\n")
    line = refusal(
        project,
        "--workflow-profile",
        "none",
        "--configfile",
        "other.yaml",
        file="other.yaml: --configfile:",
    )
    assert "--config layers=[FILE]" in line
    assert (
        project.planned("--workflow-profile", "none", "--config", "layers=[other.yaml]")["train"]
        == 7
    )


@pytest.mark.slow
@pytest.mark.nightly
def test_layers_are_laid_over_each_other_in_their_order(project):
    (project.folder / "first.yaml").write_text(
        "runs: { redacted: { seeds: [1, 2, 3] }, crt: { seeds: [1, 2] } }\n"
    )
    (project.folder / "second.yaml").write_text("runs: { crt: { seeds: [1, 2, 3, 4] } }\n")
    usual = 7  # of the tiny parameters alone
    assert project.planned("--configfile", "first.yaml", "second.yaml")["train"] == usual + 5
    assert (
        project.planned("--configfile", "first.yaml", "--config", "layers=[second.yaml]")["train"]
        == usual + 5
    )
    assert (
        project.planned(
            "--configfile", "second.yaml", "first.yaml", "--config", "runs={redacted: {seeds: [5]}}"
        )["train"]
        == usual + 1
    )


@pytest.mark.slow
def test_errors_name_the_layer_and_the_line_that_count(project):
    (project.folder / "other.yaml").write_text("select: [tiny]\nruns:\n  crt: { seeds: [1, 1] }\n")
    assert refusal(
        project,
        "--configfile",
        "other.yaml",
        file="other.yaml:3: runs.crt.seeds = 'list': lists a value twice",
    )
    assert refusal(
        project,
        "--config",
        "select=[nosuch]",
        file="--config: select.0 = 'nosuch': is not defined under studies",
    )
    assert refusal(
        project,
        "--config",
        "pathvars={results: x}",
        file="--config: pathvars = 'dict': unknown key",
    )
    assert refusal(project, "--config", "layers=3", file="--config: layers = 3: expected files")
    assert refusal(
        project, "--configfile", "nosuch.yaml", file="nosuch.yaml: cannot be read: No such file"
    )
    (project.folder / "other.yaml").write_text("- select\n")
    assert refusal(
        project, "--configfile", "other.yaml", file="other.yaml: expected keys with values"
    )
    (project.folder / "params.yaml").unlink()
    assert refusal(project, file="params.yaml: is not in this folder: `confide init CORPUS`")


SPAWNED = """
localrules: spawned


rule spawned:
    output: "spawned.txt"
    run:
        Path(output[0]).write_text(" ".join(sys.argv) + chr(10) + ",".join(SELECTED))
"""


@pytest.mark.nightly
@pytest.mark.slow
def test_jobs_that_are_snakemakes_of_their_own_read_the_same_files_by_the_same_reader(project):
    """A cluster's jobs are; here a rule with `run` is. They have no profile, so they must not get
    --configfile.
    """
    with (project.folder / "Snakefile").open("a") as snakefile:
        snakefile.write(SPAWNED)
    odd = project.folder / "it's, a [$HOME] ~`layer`\\.yaml"
    odd.write_text("runs: { redacted: { seeds: [1, 2] } }\n")
    project.snakemake("spawned", "--configfile", odd.name, "--config", "select=[tiny]")
    command, selected = (project.folder / "spawned.txt").read_text().splitlines()
    assert "--mode subprocess" in command and "--configfile" not in command
    assert "redacted/g0.1-s1" in selected and "redacted/g0.1-s2" in selected


@pytest.mark.nightly
@pytest.mark.slow
def test_the_papers_sizes_are_laid_over_any_parameters(project):
    shutil.copy(ROOT / "params.yaml", project.folder)
    select = ("--config", "select=[crt_gpt2]")
    large = project.planned(*select, "--profile", "profiles/gpu")
    assert large == project.planned(*select, "--configfile", "profiles/gpu/params.yaml")
    assert large["train"] > project.planned(*select)["train"]


def test_profiles_that_come_with_the_project_are_plain_but_for_the_lines_that_are_explained():
    """A profile is code: what this project's own say is known."""
    profiles = sorted((ROOT / "profiles").glob("*/config.yaml"))
    assert len(profiles) >= 4
    for path in profiles:
        values = yaml.safe_load(path.read_text())
        if path.parent.name == "default":
            assert values.pop("__use_yte__") is True and len(values.pop("__definitions__")) == 2
        assert not [key for key in values if key.startswith("__")]
        assert not re.search(
            r"^\s*[\w-]+:\s*[\"']?\?|\?(if|for|else|elif)\b", path.read_text(), re.MULTILINE
        )
    for path in sorted((ROOT / "profiles").glob("*/params.yaml")):
        compose(path)


@pytest.mark.nightly
def test_an_opening_of_the_report_is_no_template(project):
    page = project.folder / "results/papers/opening.rst"
    page.parent.mkdir(parents=True)
    for text in (
        ".. raw:: html\n\n   {{ cycler.__init__.__globals__.os.mknod('canary') }}\n",
        ".. raw:: html\n   :file: /etc/hostname\n\n   x\n",
        ".. raw:: html\n\n   x\n\n.. include:: /etc/hostname\n",
        "x",
        "",
    ):
        page.write_text(text)
        assert "delete it" in refusal(
            project, file="results/papers/opening.rst: is not as this workflow writes it"
        )
    page.write_text(".. raw:: html\n\n   <p>fine</p>\n\n   <p>x</p>\n")
    assert "train" in project.planned()


def test_sources_of_the_workflow_name_no_reader_of_snakemakes():
    """`configfile:` hands a file to a template engine."""
    for path in [ROOT / "Snakefile", *(ROOT / "workflow").rglob("*.smk")]:
        assert not re.search(
            r"^\s*(configfile|pepfile|module)\b.*:", path.read_text(), re.MULTILINE
        ), path


def test_yaml_is_read_in_one_place():
    readers = [
        path.name
        for path in (ROOT / "src").rglob("*.py")
        if re.search(r"yaml\.(safe_load|load|compose)|YAML\(", path.read_text())
    ]
    assert readers == ["yaml_lines.py"]


def test_dvc_reads_parameters_and_runs_nothing(project):
    """It looks for changes in params.yaml before Snakemake is called."""
    (project.folder / "params.yaml").write_text(
        "extra: !!python/object/apply:os.mknod [canary]\n" + RUNS_CODE
    )
    project.git("init", "-q")
    project.dvc("init", "-q")
    project.dvc("params", "diff", check=False)
    project.dvc("repro", "prepare", check=False)
    assert project.status != 0 and not list(project.folder.rglob("canary"))


def test_recommend_reads_a_folder_by_the_same_reader(tmp_path):
    (tmp_path / "params.yaml").write_text(RUNS_CODE)
    command = [sys.executable, "-m", "confide.cli", "recommend", str(tmp_path)]
    environment = os.environ | {"PYTHONPATH": str(ROOT / "src")}
    done = subprocess.run(command, cwd=tmp_path, env=environment, capture_output=True, text=True)
    assert (
        done.returncode == 2
        and "params.yaml:1: __use_yte__: makes a file a template" in done.stderr
    )
    assert done.stderr.count("\n") == 1 and not Path(tmp_path / "canary").exists()


@pytest.mark.slow
def test_a_locked_folder_says_so_and_how_it_is_unlocked(fresh, tmp_path):
    """With `--quiet all` Snakemake itself ends without a word."""
    project = fresh.copy(tmp_path / "project")
    locks = project.folder / ".snakemake/locks"
    locks.mkdir(parents=True, exist_ok=True)
    (locks / "0.output.lock").write_text("data/work/public-turn/points.jsonl\n")
    asked = ("-c1", "-q", "all", "--", "data/work/public-turn/points.jsonl")
    said = project.snakemake(*asked, check=False)
    assert project.status == 1
    assert f"{project.folder}: is locked" in said
    assert f"`snakemake -d {project.folder} --unlock` unlocks it" in said
    project.snakemake("--unlock", "-q", "all")
    assert not locks.exists() or not list(locks.iterdir())
