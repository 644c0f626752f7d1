"""Writes that appear whole or not at all: what is flushed before it is named, and what killed
processes have left.
"""

import os
import platform
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace

import pytest
from safetensors import SafetensorError

from confide.errors import InputError
from confide.files.io import atomic, atomic_folder, check_space, write_json

HOST = platform.node()


def ended() -> int:
    """Number of a process that is no more."""
    process = subprocess.Popen([sys.executable, "-c", ""])
    process.wait()
    return process.pid


@pytest.fixture
def order(monkeypatch) -> list[tuple[str, str]]:
    """Names of files and folders as they are flushed and renamed."""
    found = []
    sync = os.fsync
    move = os.replace

    def flushed(descriptor: int) -> None:
        found.append(("flushed", Path(os.readlink(f"/proc/self/fd/{descriptor}")).name))
        sync(descriptor)

    def renamed(source: Path, target: Path) -> None:
        found.append(("renamed", Path(target).name))
        move(source, target)

    monkeypatch.setattr(os, "fsync", flushed)
    monkeypatch.setattr(os, "replace", renamed)
    return found


def test_a_file_is_on_disk_before_it_has_its_name_and_then_so_is_the_name(tmp_path, order):
    write_json(tmp_path / "a.json", {})
    temporary = f".a.json.{HOST}.{os.getpid()}.tmp"
    assert order == [("flushed", temporary), ("renamed", "a.json"), ("flushed", tmp_path.name)]


def test_files_of_a_folder_are_on_disk_before_any_has_its_name(tmp_path, order):
    with atomic_folder(tmp_path / "study") as folder:
        for name in ("b", "a"):
            (folder / name).write_text(name)
    kinds = [
        ("flushed", "a"),
        ("flushed", "b"),
        ("renamed", "a"),
        ("renamed", "b"),
        ("flushed", "study"),
    ]
    assert order == kinds and [path.name for path in tmp_path.iterdir()] == ["study"]


def test_a_folder_keeps_what_it_had_where_the_new_fails(tmp_path):
    (tmp_path / "study").mkdir()
    (tmp_path / "study/a").write_text("old")
    with pytest.raises(ZeroDivisionError), atomic_folder(tmp_path / "study") as folder:
        (folder / "a").write_text("new")
        raise ZeroDivisionError
    assert (tmp_path / "study/a").read_text() == "old" and len(list(tmp_path.iterdir())) == 1


def test_leftovers_of_dead_processes_go_and_those_of_others_stay(tmp_path):
    dead = f".a.json.{HOST}.{ended()}.tmp"
    alive = f".a.json.{HOST}.{os.getppid()}.tmp"
    kept = {
        alive,
        f".a.json.elsewhere.{ended()}.tmp",
        f".b.json.{HOST}.{ended()}.tmp",
        f".a.json.{HOST}.x.tmp",
        f".a.json.{HOST}.{10**20}.tmp",
    }
    for name in (dead, *kept):
        (tmp_path / name).touch()
    (tmp_path / f".a.json.{HOST}.{ended()}.tmp").mkdir()  # as of a report
    write_json(tmp_path / "a.json", {})
    assert {path.name for path in tmp_path.iterdir()} == {"a.json", *kept}


def test_a_file_in_the_place_of_a_folder_is_one_line(tmp_path):
    (tmp_path / "a").touch()
    with pytest.raises(InputError, match="cannot be written: "):
        write_json(tmp_path / "a" / "b.json", {})


def full(path: Path) -> None:
    raise SafetensorError(
        "Error while serializing: I/O error: No space left on device (os error 28)"
    )  # as it words it


@pytest.mark.parametrize("write", [lambda path: Path("/dev/full").write_bytes(b"0"), full])
def test_a_full_disk_is_one_line_that_names_the_file(tmp_path, write):
    said = r"model\.safetensors: cannot be written: .*No space left"
    with (
        pytest.raises(InputError, match=said) as raised,
        atomic(tmp_path / "model.safetensors") as path,
    ):
        path.touch()
        write(path)
    assert "\n" not in str(raised.value) and list(tmp_path.iterdir()) == []


def test_a_full_disk_is_refused_by_name_and_another_is_not(tmp_path, monkeypatch):
    check_space(tmp_path)
    monkeypatch.setattr(os, "statvfs", lambda folder: SimpleNamespace(f_bavail=0))
    with pytest.raises(InputError, match=f"^{tmp_path}: no space is left on this disk$"):
        check_space(tmp_path)
