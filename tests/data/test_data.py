"""The partition on disk: what is written is read back, and damaged files are refused by name."""

import dataclasses

import numpy as np
import pytest
from safetensors.numpy import load_file, save_file

from confide.data.partition_files import load_partition, write_partitions
from confide.errors import InputError
from confide.files.rows import Copy, Join, read_rows
from confide.types import Partition, View


def example() -> Partition:
    original = View(
        np.array([5, 6, 2, 7], np.int32),
        np.array([0, 2, 2, 4], np.int64),
        np.array([0, 1, 1, 0], bool),
    )
    redacted = View(
        np.array([5, 2, 7], np.int32), np.array([0, 2, 2, 3], np.int64), np.array([0, 1, 0], bool)
    )
    return Partition(
        original=original,
        redacted=redacted,
        secret=np.array([0, 1, 0, 0], bool),
        private=np.array([1, 0, 1], bool),
        copy=np.array([0, 0, 1], bool),
        split=np.array([0, 1, 0], np.uint8),
        domain=np.array([-1, 1, 0], np.int32),
        owner=np.array([0, -1, 0], np.int32),
        domains=("air", "mail"),
    )


@pytest.fixture
def files(tmp_path):
    write_partitions([example()], tmp_path / "original", tmp_path / "redacted")
    return tmp_path / "original", tmp_path / "redacted"


def flatten(partition):
    for field in dataclasses.fields(partition):
        value = getattr(partition, field.name)
        yield from flatten(value) if isinstance(value, View) else [np.asarray(value)]


def test_round_trip_with_types(files):
    before = list(flatten(example()))
    after = list(flatten(load_partition(*files)))
    assert all(
        np.array_equal(a, b) and a.dtype == b.dtype for a, b in zip(before, after, strict=True)
    )
    assert load_partition(*files).domains == ("air", "mail")


def test_writing_twice_gives_the_same_bytes(files, tmp_path):
    write_partitions([example()], tmp_path / "o2", tmp_path / "r2")
    assert files[0].read_bytes() == (tmp_path / "o2").read_bytes()
    assert files[1].read_bytes() == (tmp_path / "r2").read_bytes()


@pytest.mark.parametrize("which", [0, 1])
def test_truncated_file_is_refused(files, which):
    content = files[which].read_bytes()
    for size in (0, 7, len(content) // 2, len(content) - 1):
        files[which].write_bytes(content[:size])
        with pytest.raises(InputError, match=files[which].name):
            load_partition(*files)


def test_missing_file_is_refused(files):
    files[1].unlink()
    with pytest.raises(InputError, match="redacted"):
        load_partition(*files)


@pytest.mark.parametrize(
    "which, name, value",
    [
        (0, "starts", np.array([0, 2, 4], np.int64)),
        (0, "starts", np.array([0, 3, 2, 4], np.int64)),
        (0, "starts", np.array([0, 2, 2, 5], np.int64)),
        (0, "ids", np.zeros(4, np.int64)),
        (0, "secret", np.zeros(3, bool)),
        (0, "private", None),
        (1, "private_tokens", np.zeros(2, bool)),
        (1, "split", np.array([0, 1, 3], np.uint8)),
        (1, "domain", np.array([0, 1, 2], np.int32)),
        (1, "owner", np.zeros(2, np.int32)),
        (1, "copy", np.zeros((3, 1), bool)),
    ],
)
def test_arrays_that_do_not_fit_are_refused(files, which, name, value):
    arrays = load_file(files[which])
    arrays = {key: array for key, array in arrays.items() if key != name} | (
        {} if value is None else {name: value}
    )
    save_file(arrays, files[which], {"domains": '["air","mail"]'})
    with pytest.raises(InputError, match=name):
        load_partition(*files)


def test_missing_domains_are_refused(files):
    save_file(load_file(files[1]), files[1])
    with pytest.raises(InputError, match="domains"):
        load_partition(*files)


def test_rows_and_join(tmp_path):
    path = tmp_path / "rows"
    path.write_text('{"key": "a", "n": 1}\n{"key": "c", "n": 2}\n')
    assert list(read_rows(path, "key", "n")) == [("a", 1), ("c", 2)]
    with pytest.raises(InputError, match="text"):
        list(read_rows(path, "text"))
    join = Join(Copy, path)
    assert [join.take(key) for key in "abcd"] == [Copy("a"), None, Copy("c"), None]
    join.finish()
    late = Join(Copy, path)
    assert late.take("c") is None
    with pytest.raises(InputError, match="rows: a: matches no point"):
        late.finish()
