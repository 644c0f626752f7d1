"""Files that one job has at a time."""

import errno
import os
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from threading import Event

import pytest

from confide.errors import InputError
from confide.files import locks
from confide.files.locks import exclusive


@pytest.mark.parametrize("leave", [Path.unlink, lambda file: file.replace(file.with_name("done"))])
def test_who_waited_for_a_file_that_is_gone_holds_a_new_one(tmp_path, monkeypatch, leave):
    file = tmp_path / "folder" / "begun"
    lines = []
    waits = Event()

    def warn(line):
        lines.append(line)
        waits.set()

    def second():
        with exclusive(file):
            file.write_text("second")

    monkeypatch.setattr(locks, "warn", warn)
    with ThreadPoolExecutor(1) as pool:
        with exclusive(file):
            file.write_text("first")
            waiting = pool.submit(second)
            assert waits.wait(30)
            leave(file)
        waiting.result()
    assert file.read_text() == "second"
    assert lines == [f"{file}: another job is at work here; waiting for its end"]


def test_a_file_that_is_empty_in_the_end_is_removed(tmp_path):
    with pytest.raises(KeyboardInterrupt), exclusive(tmp_path / "begun"):
        raise KeyboardInterrupt
    with exclusive(tmp_path / "kept"):
        (tmp_path / "kept").write_text("something")
    assert [path.name for path in tmp_path.iterdir()] == ["kept"]


def test_a_folder_that_cannot_be_made_is_one_line(tmp_path):
    (tmp_path / "a").touch()
    with (
        pytest.raises(InputError, match="begun: cannot be written: "),
        exclusive(tmp_path / "a" / "begun"),
    ):
        pass


def test_a_file_system_without_locks_is_one_line(tmp_path, monkeypatch):
    def flock(opened, operation):
        raise OSError(errno.ENOLCK, os.strerror(errno.ENOLCK))

    monkeypatch.setattr(locks.fcntl, "flock", flock)
    with (
        pytest.raises(InputError, match="begun: cannot be locked: No locks available; expected a "),
        exclusive(tmp_path / "begun"),
    ):
        pass
