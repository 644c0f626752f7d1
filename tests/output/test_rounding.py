"""Shares in per cent promise no more than they are."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from confide.output.rounding import percent, percent_down, percent_up


@pytest.mark.parametrize(("share", "words"), [(0.95, "95%"), (0.996, "99.6%"), (1.0, "100%")])
def test_a_share_is_not_rounded(share, words):
    assert percent(share) == percent(np.float64(share)) == words


@given(st.floats(0, 1))
def test_bounds_are_rounded_against_what_they_promise(share):
    above = float(percent_up(share).removesuffix("%"))
    below = float(percent_down(share).removesuffix("%"))
    assert below <= 100 * share * (1 + 1e-12) and 100 * share * (1 - 1e-12) <= above
    assert above - 100 * share < 0.1 + 1e-9 and 100 * share - below < 1


def test_bounds_that_round_to_the_nearest_would_say_less():
    assert percent_up(0.12349) == percent_up(np.float64(0.12349)) == "12.4%"
    assert percent_down(0.4951) == "49%" and percent_up(0.123) == "12.3%"
