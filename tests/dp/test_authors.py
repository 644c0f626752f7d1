"""Authors as units: who has which points, which of them are read, and batches that never divide
one.
"""

import math
from dataclasses import replace

import numpy as np
import pytest
import torch
from scipy import stats

from confide.dp.mechanism.authors import authors_of, drawn, packed
from confide.dp.mechanism.randomness import Stream
from confide.errors import InputError
from confide.types import POOLS, Partition, View


def partition(
    owner: list[int], private: list[bool] | None = None, split: list[int] | None = None
) -> Partition:
    """Points of three tokens."""
    count = len(owner)
    view = View(
        np.arange(3 * count, dtype=np.int32),
        np.arange(count + 1) * 3,
        np.repeat(private or [False] * count, 3),
    )
    flags = {"private": np.array(private or [False] * count), "copy": np.zeros(count, bool)}
    flags |= {
        "split": np.array(split or [0] * count, np.uint8),
        "domain": np.full(count, -1, np.int32),
    }
    return Partition(view, view, view.private, **flags, owner=np.array(owner, np.int32))


def test_points_of_each_author_by_pool() -> None:
    data = partition(
        [2, 0, 2, 0, 5, 0], [True, False, True, True, False, False], [0, 0, 0, 0, 0, 1]
    )
    found = {
        name: [points.tolist() for points in authors] for name, authors in authors_of(data).items()
    }
    assert found["all"] == [[1, 3], [0, 2], [4]]  # by number; the last point is not for training
    assert found["private"] == found["marked"] == [[3], [0, 2]] and found["public"] == [[1], [4]]
    for name in POOLS:  # the same by a loop
        pool = data.pool(name).tolist()
        assert found[name] == [
            [p for p in pool if data.owner[p] == a] for a in sorted({data.owner[p] for p in pool})
        ]
    none = replace(data, private=np.zeros(6, bool))
    assert authors_of(none)["private"] == []


def test_a_training_point_of_nobody_is_refused_and_others_may_be_nobodys() -> None:
    with pytest.raises(
        InputError, match=r"privacy\.unit = 'author': .* every training point, and 2 have none"
    ):
        authors_of(partition([0, -1, 3, -1]))
    assert len(authors_of(partition([0, -1, 3], split=[0, 1, 0]))["all"]) == 2


def test_an_author_gives_all_points_or_some_uniformly_without_replacement() -> None:
    authors = [np.arange(5), np.arange(5, 17), np.array([20])]
    rounds = 3000
    most = 4
    whole = drawn(authors, torch.tensor([1, 2]), None, Stream(0, "points"))
    assert [points.tolist() for points in whole] == [list(range(5, 17)), [20]]
    source = Stream(0, "points")
    seen = np.zeros((rounds, 12), bool)
    for row in seen:
        small, large, single = drawn(authors, torch.tensor([0, 1, 2]), most, source)
        assert len(set(small.tolist())) == len(set(large.tolist())) == most and single.tolist() == [
            20
        ]
        row[large - 5] = True
    counts = seen.sum(0)
    law = stats.binom(rounds, most / 12)
    assert (np.abs(counts - law.mean()) < 4 * law.std()).all()
    pairs = (seen[:, :-1] & seen[:, 1:]).mean()  # of without replacement: 4 * 3 / (12 * 11)
    assert abs(pairs - 12 / 132) < 4 * math.sqrt(0.0909 * 0.91 / rounds)
    assert len({tuple(row) for row in seen.tolist()}) > 400  # of 495


@pytest.mark.parametrize("size", [1, 4, 7, 100])
def test_batches_keep_authors_whole(size: int) -> None:
    source = np.random.default_rng(0)
    authors = np.split(source.permutation(40), [3, 4, 10, 12, 24, 25, 26])
    lengths = source.integers(1, 9, 40)
    found = {}
    for number, (points, units) in enumerate(packed(authors, lengths, size)):
        assert units.tolist() == sorted(units.tolist()) and set(units.tolist()) == set(
            range(int(units.max()) + 1)
        )
        assert len(points) == len(units) and (len(points) <= size or int(units.max()) == 0)
        for point, unit in zip(points.tolist(), units.tolist(), strict=True):
            found.setdefault((number, unit), []).append(point)
    assert sorted(found.values()) == sorted(points.tolist() for points in authors)
    assert list(packed([], lengths, size)) == []
