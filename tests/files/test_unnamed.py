"""Files without a name: what they are given stands in them whole, or is refused."""

import io
import os
import tempfile

import numpy as np
import pytest

from confide.errors import InputError
from confide.files.buckets import KEYED, Buckets, Offsets
from confide.files.unnamed import Unnamed, write_whole


def test_what_the_system_takes_in_parts_is_written_whole():
    class Slow(io.BytesIO):
        def write(self, data):
            return super().write(data[:3])

    file = Slow()
    assert write_whole(file, np.arange(5, dtype=np.int32)) == 20
    assert write_whole(file, np.empty(0, np.int32)) == 0
    assert write_whole(file, b"abcd") == 4
    assert write_whole(file, np.ones(2, np.bool_)) == 2
    assert file.getvalue() == np.arange(5, dtype=np.int32).tobytes() + b"abcd\1\1"


def test_places_are_filled_whole(tmp_path, monkeypatch):
    usual = os.pwrite
    monkeypatch.setattr(os, "pwrite", lambda file, data, at: usual(file, data[:2], at))
    file = Unnamed(tmp_path)
    assert file.put(b"abcde", 3) == 8
    assert os.pread(file.file.fileno(), 9, 0) == b"\0\0\0abcde"
    assert list(tmp_path.iterdir()) == []


@pytest.fixture
def full(monkeypatch):
    """A disk on which there is no space."""
    with open("/dev/full", "r+b", buffering=0) as file:
        monkeypatch.setattr(tempfile, "TemporaryFile", lambda **_: file)
        yield


def test_a_full_disk_is_named(tmp_path, full):
    file = Unnamed(tmp_path)
    records = np.zeros(3, KEYED)
    held = f"{tmp_path}: cannot hold temporary files: No space left on device"
    for write in (
        lambda: file.append(b"a"),
        lambda: Buckets(tmp_path, 0, KEYED).add(records),
        lambda: Offsets(tmp_path).extend(np.arange(3)),
    ):
        with pytest.raises(InputError) as refused:
            write()
        assert str(refused.value) == held


def test_a_folder_that_cannot_be_made_is_named(tmp_path):
    (tmp_path / "file").touch()
    with pytest.raises(InputError, match="file: cannot hold temporary files"):
        Unnamed(tmp_path / "file")
