"""A folder with the workflow in it, to run Snakemake and DVC in: what tests of the workflow and of
faults work on.
"""

import compileall
import os
import shlex
import shutil
import sqlite3
import subprocess
import sys
from pathlib import Path
from tempfile import TemporaryDirectory

from warm import OF_JOBS, warm

ROOT = Path(__file__).parents[1]
XDG = {
    "XDG_CACHE_HOME": ".cache",
    "XDG_CONFIG_HOME": ".config",
    "XDG_DATA_HOME": ".local/share",
    "XDG_STATE_HOME": ".local/state",
}
USUAL = (sys.executable, "-m")  # what runs a module
PARTS = ("Snakefile", "workflow", "profiles", "studies", "src", "dvc.yaml", ".dvcignore")


class Project:
    """A folder with the workflow in it."""

    umask = 0  # the most open one: what is closed was closed by the project

    def __init__(
        self,
        folder: Path,
        environment: dict[str, str],
        python: tuple[str, ...] = USUAL,
    ):
        self.folder = folder
        self.environment = environment
        self.python = python  # a module's name and arguments come behind it

    def run(self, *command: str, check: bool = True, **environment: str) -> str:
        """Output of a command, errors among it."""
        found = subprocess.run(
            command,
            cwd=self.folder,
            env=self.environment | {"PWD": str(self.folder)} | environment,  # as a shell has it
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            umask=self.umask,
        )
        assert not check or found.returncode == 0, found.stdout[-6000:]
        self.status = found.returncode
        return found.stdout

    def snakemake(self, *arguments: str, **options) -> str:
        return self.run(*self.python, "snakemake", *arguments, **options)

    def dvc(self, *arguments: str, **options) -> str:
        return self.run(sys.executable, "-m", "dvc", *arguments, **options)

    def git(self, *arguments: str) -> str:
        return self.run("git", "-c", "user.name=a", "-c", "user.email=a@b.c", *arguments)

    def planned(self, *arguments: str) -> dict[str, int]:
        """Number of jobs by rule that a dry run announces; the target rules left out."""
        output = self.snakemake(*arguments, "-n", "-q", "rules")
        table = output.partition("Job stats:\n")[2].partition("\n\n")[0].splitlines()[2:]
        counts = {name: int(count) for name, count in map(str.split, table)}
        return {
            name: count
            for name, count in counts.items()
            if name not in ("all", "total") and not name.endswith("_all")
        }

    def edit(self, name: str, old: str, new: str) -> None:
        path = self.folder / name
        text = path.read_text()
        assert old in text, old
        path.write_text(text.replace(old, new, 1))

    def cut_small(self) -> None:
        """Cut its little text into about eleven shards: each of three shares has some."""
        self.edit("src/confide/files/shards.py", "SIZE = 4 << 20", "SIZE = 12 << 10")

    def share(self, dataset: str, jobs: int) -> None:
        """Let so many jobs deduplicate, redact and tokenize a dataset of the tiny parameters."""
        named = f"{dataset}: {{ corpus: {dataset}, "
        self.edit("params.yaml", named, f"{named}shares: {jobs}, ")

    def copy(self, folder: Path) -> "Project":
        shutil.copytree(self.folder, folder, symlinks=True)
        database = folder / "mlflow.db"
        if database.is_file():
            move_artifacts(database, self.folder, folder)
        return Project(folder, self.environment, self.python)


def environment_in(programs: Path) -> dict[str, str]:
    """Environment of a shell with confide, snakemake and dvc of this checkout, whose scripts are
    put into a folder.
    """
    for name, module in (("confide", "confide.cli"), ("snakemake", "snakemake"), ("dvc", "dvc")):
        (programs / name).write_text(f'#!/bin/sh\nexec {sys.executable} -m {module} "$@"\n')
        (programs / name).chmod(0o755)
    known = {
        key: value
        for key, value in os.environ.items()
        if not key.startswith(("SNAKEMAKE_", "MLFLOW_", "DVC_", "PYTHONDONTWRITEBYTECODE"))
    }
    own = {
        "PATH": f"{programs}{os.pathsep}{os.environ['PATH']}",
        "PYTHONPATH": str(ROOT / "src"),
        "DVC_NO_ANALYTICS": "1",
    }
    return known | own


def homes_in(folder: Path) -> dict[str, str]:
    """Variables that give programs a home and a place for temporary files below a folder, so that
    these can be looked into.
    """
    for name in ("home", "tmp"):
        (folder / name).mkdir(exist_ok=True)
    variables = {name: str(folder / "home" / place) for name, place in XDG.items()}
    return variables | {"HOME": str(folder / "home"), "TMPDIR": str(folder / "tmp")}


def project_in(folder: Path, environment: dict[str, str]) -> Project:
    """The project with the tiny parameters and nothing built."""
    folder.mkdir()
    for name in PARTS:
        source = ROOT / name
        if source.is_dir():
            shutil.copytree(
                source, folder / name, ignore=shutil.ignore_patterns("__pycache__", "*.egg-info")
            )
        else:
            shutil.copy2(source, folder / name)
    (folder / "data/own").mkdir(
        parents=True
    )  # as in a checkout, without what its owner keeps there
    shutil.copy(ROOT / "data/own/.gitignore", folder / "data/own")
    shutil.copy(ROOT / "tests/params.tiny.yaml", folder / "params.yaml")
    compileall.compile_dir(folder / "src", quiet=1)  # once, and not by every copy of the folder
    return Project(folder, environment)


def move_artifacts(database: Path, old: Path, new: Path) -> None:
    """MLflow keeps absolute addresses: without this a copy would write into what it is copied
    from.
    """
    with sqlite3.connect(database) as connection:
        for table, column in (("experiments", "artifact_location"), ("runs", "artifact_uri")):
            connection.execute(
                f"update {table} set {column} = replace({column}, ?, ?)", (str(old), str(new))
            )


def build(project: Project, *targets: str) -> str:
    """What Snakemake says while it builds a project, whose jobs are copies of one process."""
    project.python = USUAL
    homes = homes_in(project.folder.parent)
    with (
        TemporaryDirectory() as folder,
        warm(Path(folder), OF_JOBS, project.environment) as python,
    ):
        startup = Path(folder) / "startup.sh"
        startup.write_text(f'confide() {{ {shlex.join(python)} confide.cli "$@"; }}\n')
        return project.snakemake(*targets, BASH_ENV=str(startup), **homes)
