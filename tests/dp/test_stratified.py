"""The bound on a total against enumerations of all samples and the exact interval."""

from collections import Counter
from itertools import combinations, product

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from confide.dp.accounting.bounds import clopper_pearson
from confide.dp.accounting.stratified import Stratum, divergence, mean_upper, total_upper


def bound(ranges, values, chosen, confidence):
    """The bound from some points of each stratum; `chosen`: their places."""
    strata = [
        Stratum(
            points=len(room),
            drawn=len(picked),
            ranges=Counter(room),
            values=Counter(value[place] for place in picked),
        )
        for room, value, picked in zip(ranges, values, chosen, strict=True)
    ]
    return total_upper(strata, confidence)


@pytest.mark.parametrize(
    ("ranges", "values", "draws"),
    [
        ([[1] * 12], [[1] * 3 + [0] * 9], [6]),
        ([[9, 1, 1, 1, 1, 1, 1, 1, 1, 1]], [[9, 0, 0, 0, 0, 0, 0, 0, 0, 0]], [5]),
        ([[5, 2, 2, 2, 2, 2], [1] * 7], [[5, 0, 2, 0, 0, 0], [1, 1, 0, 0, 0, 0, 0]], [3, 4]),
        ([[3] * 6, [2] * 5], [[3, 3, 0, 0, 0, 0], [0, 0, 0, 0, 2]], [4, 2]),
    ],
)
@pytest.mark.parametrize("confidence", [0.6, 0.8, 0.95])
def test_no_more_samples_than_allowed_are_misled(ranges, values, draws, confidence):
    """All samples of small populations, each as likely as any other."""
    truth = sum(map(sum, values))
    every = [
        bound(ranges, values, chosen, confidence) < truth - 1e-9
        for chosen in product(
            *(combinations(range(len(room)), n) for room, n in zip(ranges, draws, strict=True))
        )
    ]
    assert np.mean(every) <= 1 - confidence


def test_where_everything_was_read_the_total_is_known():
    assert bound([[5, 2, 2]], [[1, 0, 2]], [range(3)], 0.95) == 3
    assert bound([[5, 2, 2]], [[1, 0, 2]], [[]], 0.95) == 9  # nothing was read
    assert total_upper([], 0.95) == 0
    assert bound([[0] * 50], [[0] * 50], [range(5)], 0.95) == 0  # there is no room


def test_no_event_gives_the_bound_that_nothing_can_beat():
    """Of points with at most one secret: the exact interval without events. Of others: the worst
    corpus that a sample without events allows has them in its largest points.
    """
    found = bound([[1] * 1000], [[0] * 1000], [range(100)], 0.95)
    assert found == pytest.approx(1000 * clopper_pearson(0, 100, 0.95))
    room = [*[40] * 29, *[1] * 971]
    found = bound([room], [[0] * 1000], [range(100)], 0.95)
    share = 1000 * clopper_pearson(0, 100, 0.95)
    assert found == pytest.approx(29 * 40 + (share - 29))


@given(st.integers(0, 60), st.integers(60, 300), st.floats(0.6, 0.999))
def test_the_bound_of_a_mean_is_wider_than_the_exact_one_and_solves_its_equation(
    events, draws, confidence
):
    found = mean_upper(events / draws, draws, confidence)
    assert found >= clopper_pearson(events, draws, confidence) - 1e-9
    if found < 1:
        assert divergence(events / draws, found) == pytest.approx(
            -np.log(1 - confidence) / draws, rel=1e-6
        )


@given(
    st.lists(st.tuples(st.integers(0, 9), st.integers(0, 9)), min_size=2, max_size=40),
    st.integers(1, 39),
    st.data(),
)
def test_a_text_that_was_not_read_makes_no_bound_better(pairs, draws, data):
    room = [max(pair) for pair in pairs]
    value = [min(pair) for pair in pairs]
    picked = range(min(draws, len(pairs)))
    unread = data.draw(st.sampled_from(picked))
    worse = [room[one] if one == unread else value[one] for one in range(len(pairs))]
    assert bound([room], [worse], [picked], 0.9) >= bound([room], [value], [picked], 0.9) - 1e-9
