"""The commit of a folder: git's own word in a repository, nothing outside one."""

import subprocess

import pytest

from confide.provenance.commit import commit_of, is_changed


def git(folder, *arguments: str) -> str:
    own = ("-c", "user.name=a", "-c", "user.email=a@b.c")
    command = ["git", "-C", str(folder), *own, *arguments]
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout.strip()


@pytest.fixture
def repository(tmp_path):
    """Two commits, of which the first touched `code`; beside it lies an ignored folder."""
    git(tmp_path, "init", "-q")
    for name in ("code", "ignored"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "a.py").write_text("A = 1\n")
    (tmp_path / ".gitignore").write_text("ignored\n")
    git(tmp_path, "add", "-A")
    git(tmp_path, "commit", "-q", "-m", "code")
    (tmp_path / "README").touch()
    git(tmp_path, "add", "-A")
    git(tmp_path, "commit", "-q", "-m", "words")
    return tmp_path


def test_the_last_commit_that_touched_the_folder(repository):
    assert commit_of(repository / "code") == git(repository, "rev-parse", "HEAD~1")
    assert not is_changed(repository / "code")
    (repository / "README").write_text("more\n")
    assert not is_changed(repository / "code")
    (repository / "code/a.py").write_text("A = 2\n")
    assert is_changed(repository / "code")


def test_nothing_is_said_of_what_git_does_not_know(repository, tmp_path_factory, monkeypatch):
    assert commit_of(repository / "ignored") is None
    elsewhere = tmp_path_factory.mktemp("elsewhere")
    assert commit_of(elsewhere) is None and not is_changed(elsewhere)
    monkeypatch.setenv("PATH", str(elsewhere))
    assert commit_of(repository / "code") is None
