"""Files of parameters as the real Snakemake gets them: a dry run plans or refuses in one line, and
runs nothing of them.
"""

import json
import os
import subprocess
import sys
from pathlib import Path

import yaml
from project import ROOT, project_in

from confide.errors import InputError

OTHER = "other.yaml"
STUDIES = "studies/tiny.yaml"  # included


def workflow(folder: Path) -> None:
    """A project with the tiny parameters as JSON, a part of them included, and all once more to be
    laid over them.
    """
    made = project_in(folder / "project", {}).folder
    params = yaml.safe_load((made / "params.yaml").read_text())
    (made / OTHER).write_text(json.dumps(params))
    in_parts(made, params)


def in_parts(folder: Path, params: dict) -> None:
    """Write parameters as JSON into params.yaml, some blocks into a file that it includes."""
    moved = {block: params.pop(block) for block in ("policies", "attacks", "studies")}
    (folder / STUDIES).parent.mkdir(exist_ok=True)
    (folder / STUDIES).write_text(json.dumps(moved))
    (folder / "params.yaml").write_text(json.dumps(params | {"include": [STUDIES]}))


def planned(folder: Path, *arguments: str) -> None:
    """Dry run of the project in a folder; InputError with what it refused in one line."""
    project = folder / "project"
    before = files_of(project)
    known = {key: value for key, value in os.environ.items() if not key.startswith("SNAKEMAKE_")}
    environment = known | {"PYTHONPATH": str(ROOT / "src"), "PYTHONDONTWRITEBYTECODE": "1"}
    command = [sys.executable, "-m", "snakemake", "-n", "-q", *arguments]
    done = subprocess.run(
        command, cwd=project, env=environment, capture_output=True, text=True, errors="replace"
    )
    appeared = files_of(project) - before
    assert not appeared, f"made by a dry run: {sorted(appeared)}"
    lines = [line for line in done.stderr.splitlines() if not line.startswith("Using ")]
    if done.returncode:
        assert done.returncode == 2 and len(lines) == 1, (
            f"status {done.returncode}: {done.stderr}{done.stdout}"
        )
        raise InputError(lines[0])


def files_of(project: Path) -> set[Path]:
    """Files of a project without Snakemake's own records."""
    found = project.rglob("*")
    return {
        path
        for path in found
        if path.is_file() and path.relative_to(project).parts[0] != ".snakemake"
    }


def as_parameters(folder: Path) -> None:
    planned(folder)


def as_layer(folder: Path) -> None:
    planned(folder, "--configfile", OTHER)


def as_named_layer(folder: Path) -> None:
    planned(folder, "--config", f"layers=[{OTHER}]")
