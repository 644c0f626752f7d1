"""Another user of the machine, with a number of its own: what DVC and the workflow leave behind is
out of its reach.
"""

import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

import pytest
from project import ROOT, Project

pytestmark = pytest.mark.slow

OTHER = 54321  # the number of a user that no machine has
SYSTEM = ("/var/tmp", "/var/cache", "/tmp", "/dev/shm", "/run", "/root/.cache", "/root/.config")


@pytest.fixture
def place(environment):
    """A folder that every user may look into, and environment and umask of a user who never thought
    of them.
    """
    if os.geteuid():
        pytest.skip("needs root, to act as two users")
    folder = Path(tempfile.mkdtemp(prefix="confide-", dir="/var/tmp"))
    folder.chmod(0o755)
    for name in ("home", "tmp"):
        (folder / name).mkdir()
    (folder / "tmp").chmod(0o1777)
    previous = os.umask(0o022)
    yield folder
    os.umask(previous)
    shutil.rmtree(folder)


def with_homes(place: Path, environment: dict[str, str]) -> dict[str, str]:
    known = {key: value for key, value in environment.items() if not key.startswith("XDG_")}
    return known | {"HOME": str(place / "home"), "TMPDIR": str(place / "tmp")}


def reach(place: Path, *question: str) -> list[str]:
    """What the other user finds below a folder for a question to find(1), relative to it."""
    command = ["find", str(place), *question, "-printf", "%P\\n"]
    done = subprocess.run(
        command, user=OTHER, group=OTHER, extra_groups=[], capture_output=True, text=True
    )
    return sorted(done.stdout.splitlines())


def checkout(place: Path, project: Project) -> Project:
    """What git keeps of a project, in a checkout that is its owner's alone to write to."""
    made = project.copy(place / "project")
    for name in (".dvc/config", ".dvc/.gitignore", ".dvc-state/repo/.gitignore", ".gitignore"):
        (made.folder / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(ROOT / name, made.folder / name)
    made.environment = with_homes(place, project.environment)
    made.git("init", "-q")
    made.git("add", "-A")
    made.git("add", "-f", ".dvc-state/repo/.gitignore")
    made.git("commit", "-q", "-m", "first")
    made.git("clone", "-q", str(made.folder), str(place / "clone"))
    clone = Project(place / "clone", made.environment)
    clone.umask = 0o022
    shutil.rmtree(made.folder)
    subprocess.run(["chmod", "-R", "go-w", str(clone.folder)], check=True)
    return clone


def token_of(project: Project) -> str:
    """How DVC names this project among all of the machine's."""
    (found,) = [
        path.name for path in (project.folder / ".dvc-state/repo").iterdir() if path.is_dir()
    ]
    return found


def elsewhere(token: str, project: Project) -> list[Path]:
    """Folders of the system that DVC has filled for a project."""
    folders = [path for place in SYSTEM for path in Path(place).glob(f"*/repo/{token}")]
    folders += [
        path
        for path in project.folder.parent.glob(f"*/**/{token}")
        if project.folder not in path.parents
    ]
    return folders


def test_the_judge_sees_what_stands_open(place):
    (place / "open").mkdir()
    (place / "open/file").write_text("x")
    (place / "shut").mkdir(mode=0o700)
    (place / "shut/file").write_text("x")
    assert "open/file" in reach(place, "-type", "f", "-readable") and "shut/file" not in reach(
        place, "-type", "f", "-readable"
    )
    (place / "open").chmod(0o777)
    assert "open" in reach(place, "-writable")


def test_a_first_call_of_dvc_leaves_nothing_that_others_can_write(place, fresh):
    """Nothing has been closed yet: only what git keeps protects the owner."""
    project = checkout(place, fresh)
    project.dvc("status")
    assert not elsewhere(token_of(project), project)
    assert reach(project.folder, "-writable") == []
    assert (project.folder / ".dvc-state/repo").stat().st_mode & 0o022 == 0
    assert "dvc-state" not in project.git("status", "--porcelain", "--untracked-files=all")


def test_what_dvc_keeps_is_closed_by_the_next_start(place, fresh):
    project = checkout(place, fresh)
    project.dvc("status")
    project.run(sys.executable, "-m", "dvc", "--cd", ".", "status")
    (project.folder / "docs").mkdir()
    project.run("sh", "-c", "cd docs && dvc status")
    project.snakemake("--list-rules")
    for name in (".dvc", ".dvc-state", ".snakemake", "docs/.dvc-state"):
        assert (project.folder / name).stat().st_mode & 0o777 == 0o700, name
    found = reach(project.folder, "-path", "*.dvc*", "(", "-readable", "-o", "-writable", ")")
    assert not [path for path in found if "/" in path.split(".dvc")[1] or path.endswith("cache.db")]


@pytest.mark.parametrize("folder", [".dvc-state", "workflow/.dvc-state"])
def test_what_another_user_has_planted_is_refused(place, fresh, folder):
    project = checkout(place, fresh)
    planted = project.folder / folder / "repo/0/links/cache.db"
    planted.parent.mkdir(parents=True)
    planted.write_text("x")
    os.chown(planted, OTHER, OTHER)
    output = project.snakemake("-n", check=False)
    lines = [line for line in output.splitlines() if not line.startswith("Using ")]
    assert project.status == 2 and len(lines) == 1, output
    assert lines[0].startswith(
        f"{planted}: belongs to another user, and DVC runs what it holds: delete "
        f"{planted.parents[3]}"
    )


@pytest.mark.nightly
def test_a_run_by_dvc_can_be_neither_read_nor_changed(place, fresh):
    """`dvc repro` of the data stages: text, canaries, caches, records, temporary files."""
    project = checkout(place, fresh)
    project.dvc("repro", "prepare")
    known = set(project.git("ls-files").splitlines())
    readable = set(
        reach(project.folder, "-path", "*/.git", "-prune", "-o", "-type", "f", "-readable")
    )
    assert (project.folder / ".dvc/cache/files/md5").is_dir() and (
        project.folder / "data/work/sim/points.jsonl"
    ).is_file()
    beside = {path for path in readable - known if not path.startswith(".git")}
    assert {path for path in beside if "__pycache__" not in path} <= {"dvc.lock"}  # compiled code
    assert reach(project.folder, "-writable") == []
    assert not elsewhere(token_of(project), project)
    assert reach(place / "home", "-type", "f", "-readable") == []
    assert reach(place / "tmp", "-type", "f", "-readable") == []
