"""Columns of more bytes than 32 bits count are refused: Arrow itself would give other texts."""

from collections.abc import Callable

import numpy as np
import pytest

from confide.files import arrays, columns

MILLION = "x" * (1 << 20)
BEYOND = np.array([0, 1 << 31])

TOO_LARGE: dict[str, Callable[[], object]] = {
    "between": lambda: arrays.between(b"", BEYOND),
    "binaries_between": lambda: arrays.binaries_between(b"", BEYOND),
    "slices": lambda: arrays.slices(b"", BEYOND[1:], BEYOND[1:] + 1),
    "slices that begin again": lambda: arrays.slices(b"", BEYOND[1:] * 2, BEYOND[1:] * 2 + 1),
    "lists": lambda: arrays.lists(BEYOND, arrays.texts([])),
    "taken": lambda: arrays.taken(arrays.texts([MILLION]), np.zeros(2048, np.int64)),
    "joined": lambda: arrays.joined(MILLION, arrays.texts([""] * 2048)),
}


@pytest.mark.parametrize("name", TOO_LARGE)
def test_what_a_column_cannot_hold_is_no_column(name: str) -> None:
    """Whoever reads columns then reads row by row."""
    with pytest.raises(columns.Unlike, match="bytes"):
        TOO_LARGE[name]()


def test_texts_are_taken_as_often_as_they_are_asked_for() -> None:
    texts = arrays.texts(["a", "é", ""]).slice(1)
    assert arrays.taken(texts, np.array([1, 0, 0])).to_pylist() == ["", "é", "é"]
    assert arrays.taken(texts, np.array([], np.int64)).to_pylist() == []


def test_lists_hold_the_texts_between_edges() -> None:
    lists = arrays.lists(np.array([0, 2, 2, 3]), arrays.texts(["a", "b", "c"]))
    assert lists.to_pylist() == [["a", "b"], [], ["c"]]
