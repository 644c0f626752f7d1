"""Access: what a process makes is its owner's alone, and folders that stand open are closed."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from confide.errors import InputError
from confide.files import permissions

SRC = Path(permissions.__file__).parents[2]


@pytest.mark.parametrize("umask", [0o000, 0o022])
def test_commands_write_for_their_owner_whatever_the_umask(tmp_path, umask):
    (tmp_path / "corpus.txt").write_text("one line\nanother line\n" * 30)
    spec = '{"corpus": {"reader": "lines", "path": "corpus.txt"}}'
    command = [
        sys.executable,
        "-m",
        "confide.cli",
        "split",
        "--spec",
        spec,
        "--output",
        "a/b/points.jsonl",
    ]
    subprocess.run(
        command, cwd=tmp_path, env=os.environ | {"PYTHONPATH": str(SRC)}, umask=umask, check=True
    )
    modes = [(tmp_path / name).stat().st_mode & 0o777 for name in ("a", "a/b", "a/b/points.jsonl")]
    assert modes == [0o700, 0o700, 0o600]


def test_open_folders_are_closed_and_others_left_alone(tmp_path):
    for name in ("data", "models", "mine"):
        (tmp_path / name).mkdir()
        (tmp_path / name).chmod(0o755)
    (tmp_path / "logs").write_text("no folder")
    permissions.shut(tmp_path)
    modes = {path.name: path.stat().st_mode & 0o777 for path in tmp_path.iterdir() if path.is_dir()}
    assert modes == {"data": 0o700, "models": 0o700, "mine": 0o755}


def test_a_folder_that_cannot_be_closed_is_an_error(tmp_path, monkeypatch):
    (tmp_path / "data").mkdir()
    (tmp_path / "data").chmod(0o755)

    def refused(*_):
        raise PermissionError(1, "Operation not permitted")

    monkeypatch.setattr(Path, "chmod", refused)
    with pytest.raises(
        InputError, match="data: cannot be closed to other users: Operation not permitted"
    ):
        permissions.shut(tmp_path)


def test_processes_of_one_model_import_nothing_from_the_folder_that_they_work_in(tmp_path):
    """It may be somebody else's: `snakemake -d FOLDER`. torchrun starts them by `python -m`, which
    looks there first.
    """
    for name in ("confide", "torch", "orjson", "numpy"):
        (tmp_path / f"{name}.py").write_text("open('canary', 'w').close()\n")
    code = (
        "import sys; from confide.files import permissions; from confide.runtime import "
        "launch; permissions.private(); sys.exit(launch.launch(2, 1, ['--help']))"
    )
    environment = os.environ | {"PYTHONPATH": str(SRC), "PYTHONSAFEPATH": ""}
    command = [sys.executable, "-P", "-c", code]  # -P: of this process alone
    done = subprocess.run(command, cwd=tmp_path, env=environment, capture_output=True, text=True)
    assert done.returncode == 0 and done.stdout.count("usage: confide COMMAND") == 2, done.stderr
    assert not (tmp_path / "canary").exists()


def test_a_folder_of_dvcs_that_another_user_wrote_to_is_refused(tmp_path):
    state = tmp_path / ".dvc-state/repo/0"
    state.mkdir(parents=True)
    (state / "cache.db").touch()
    permissions.shut(tmp_path)
    assert (tmp_path / ".dvc-state").stat().st_mode & 0o777 == 0o700
    permissions.refuse_planted(tmp_path / ".dvc-state", {os.geteuid()})
    with pytest.raises(
        InputError, match="belongs to another user, and DVC runs what it holds: delete"
    ):
        permissions.refuse_planted(tmp_path / ".dvc-state", {os.geteuid() + 1})
