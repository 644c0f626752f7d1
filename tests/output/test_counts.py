"""Long counts are no hits of a scan, whatever was planted; everything else stays as it is."""

import numpy as np
import orjson
import pytest

from confide.output.counts import pointed
from confide.scan.search import Searcher

SECRET = "111678"


def hits(value: object) -> int:
    """How often the secret is found in what a stage writes."""
    written = orjson.dumps(value, option=orjson.OPT_INDENT_2 | orjson.OPT_SERIALIZE_NUMPY)
    return len(list(Searcher({0: SECRET}).hits([written])))


@pytest.mark.parametrize("count", [111_678, np.int64(111_678)])
def test_a_count_is_no_secret(count: int):
    figures = {"evaluations": count, "of_domains": [{"tokens": count}]}
    assert hits(figures) == 2
    assert hits(pointed(figures)) == 0


def test_a_secret_stays_one():
    assert hits(pointed({"text": f"My ID is: {SECRET}"})) == 1


def test_other_values_stay_as_they_are():
    figures = {"exact": True, "coins": 160, "auc": 0.5, "reason": None, "attempts": [[160, 86]]}
    assert pointed(figures) == figures
    assert [type(value) for value in pointed(figures).values()] == [
        type(value) for value in figures.values()
    ]
