"""Vectors written in pieces: the bytes of safetensors itself."""

import shutil

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from safetensors.numpy import save_file

from confide.data.partition_files import ORIGINAL, REDACTED
from confide.data.vectors import Columns, laid
from confide.errors import InputError


@given(
    st.sampled_from([ORIGINAL, REDACTED, {"one": np.uint8}]),
    st.lists(st.integers(0, 5), max_size=4),
    st.sampled_from([None, {"domains": '["ü","\\n\\"","\u2028"]'}]),
)
def test_pieces_give_the_bytes_of_safetensors(tmp_path_factory, types, sizes, metadata):
    folder = tmp_path_factory.mktemp("c")
    rng = np.random.default_rng(0)
    columns = Columns(folder / "pieces", types)
    whole = {name: [np.empty(0, dtype)] for name, dtype in types.items()}
    for size in sizes:
        for place, (name, dtype) in enumerate(types.items()):
            piece = rng.integers(0, 2, size + place).astype(dtype)
            whole[name].append(piece)
            columns.add(**{name: piece})
    columns.write(metadata)
    save_file(
        {name: np.concatenate(pieces) for name, pieces in whole.items()}, folder / "whole", metadata
    )
    assert (folder / "pieces").read_bytes() == (folder / "whole").read_bytes()
    assert {path.name for path in folder.iterdir()} == {"pieces", "whole"}

    lengths = {name: sum(map(len, pieces)) for name, pieces in whole.items()}
    with laid(folder / "laid", types, lengths, metadata) as vectors:
        for name, pieces in reversed(whole.items()):  # in any order
            for piece in pieces:
                vectors.add(**{name: piece})
    assert (folder / "laid").read_bytes() == (folder / "whole").read_bytes()


@pytest.mark.parametrize(("length", "words"), [(2, "longer"), (4, "shorter")])
def test_a_vector_of_another_length_than_was_said_leaves_no_file(tmp_path, length, words):
    lengths = {"one": length, "two": 3}
    with (
        pytest.raises(InputError, match=f"one: is {words} than its parts said"),
        laid(tmp_path / "views", {"one": np.int32, "two": np.uint8}, lengths) as vectors,
    ):
        vectors.add(two=np.ones(3), one=np.ones(3))
    assert not list(tmp_path.iterdir())


def test_a_vector_leaves_the_disk_before_the_next_one_is_copied(tmp_path, monkeypatch):
    columns = Columns(tmp_path / "views", {"one": np.uint8, "two": np.uint8, "three": np.uint8})
    columns.add(one=np.ones(3), two=np.ones(3), three=np.ones(3))
    still_held = []

    def copy(pieces, out, length):
        still_held.append(sum(not file.file.closed for file in columns.files.values()))
        out.write(pieces.read())

    monkeypatch.setattr(shutil, "copyfileobj", copy)
    columns.write()
    assert still_held == [3, 2, 1]


def test_a_folder_that_cannot_be_written_is_named(tmp_path):
    (tmp_path / "file").write_bytes(b"")
    with pytest.raises(InputError, match="file"):
        Columns(tmp_path / "file" / "views", {"one": np.uint8})
