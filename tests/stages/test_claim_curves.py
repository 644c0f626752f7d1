"""The curves of a certificate, which audits are held against: those of its finite claims, and of no
others.
"""

from itertools import pairwise

import pytest
from certified import ASKED, METHODS, certificate, number


@pytest.mark.parametrize("method", METHODS)
def test_curves_are_those_of_the_claims_and_of_no_others(tmp_path, method):
    """Each goes through its claim's epsilon at its delta, and is there wherever something finite is
    claimed.
    """
    asked = ASKED["untouched"] if method == "untouched" else {}
    value, claims = certificate(tmp_path, METHODS[method], **asked)
    names = {"record_add_or_remove_pld", "record_replace_one_pld", "secret_caught", "secret_missed"}
    assert set(value["curves"]) == {name for name in names if claims[name]["epsilon"] != "inf"}
    for name, curve in value["curves"].items():
        own = number(claims[name])
        delta = claims[name]["delta"]
        assert all(later[1] < earlier[1] for earlier, later in pairwise(curve))
        if own == 0:
            assert curve == [[0.0, 0.0]]
            continue
        before = [pair for pair in curve if pair[0] < own]
        after = [pair for pair in curve if pair[0] >= own]
        assert curve[0][0] == 0 and before[-1][1] >= delta >= after[0][1] > after[-1][1]
        assert after[-1][1] == pytest.approx(1e-9, rel=0.01)
