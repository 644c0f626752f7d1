"""Prices of data stages: those that made the measurements, and never a negative one."""

import importlib.util
import sys
from pathlib import Path

import numpy as np
import pytest

FOLDER = Path(__file__).parents[2] / "benchmarks"


@pytest.fixture(scope="module")
def prices():
    """The script, which imports its neighbours."""
    sys.path.insert(0, str(FOLDER))
    spec = importlib.util.spec_from_file_location("prices", FOLDER / "prices.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    yield module
    sys.path.remove(str(FOLDER))


AMOUNTS = np.array(
    [[10, 200, 60], [10, 200, 0], [10, 15, 60], [10, 15, 0], [40, 800, 240], [40, 60, 0]], float
)


def test_prices_that_made_the_measurements_are_found(prices):
    made = np.array([0.5, 0.02, 0.001, 0.004])
    found, worst = prices.fitted(AMOUNTS, made[0] + AMOUNTS @ made[1:])
    assert found == pytest.approx(made)
    assert worst == pytest.approx(0, abs=1e-9)


def test_no_price_is_negative_and_the_error_is_told(prices):
    seconds = 1 + AMOUNTS @ [0.02, 0.001, -0.002]
    found, worst = prices.fitted(AMOUNTS, seconds)
    assert (found >= 0).all() and found[3] == 0
    table = np.column_stack([np.ones(len(AMOUNTS)), AMOUNTS])
    assert worst == pytest.approx(np.abs(table @ found / seconds - 1).max())
    assert worst > 0.01


@pytest.mark.parametrize("secrets", [True, False])
def test_what_is_counted_is_what_is_there(prices, tmp_path, secrets):
    size = prices.write_lines(0.01, tmp_path / "raw.jsonl", secrets=secrets)
    assert size == pytest.approx(0.01, rel=0.1)
    points = tmp_path / "points.jsonl"
    points.write_bytes((tmp_path / "raw.jsonl").read_bytes().replace(b'"spans"', b'"gold"'))
    number, found = prices.counts(points)
    assert number == len(points.read_bytes().splitlines())
    assert found == (5 * number if secrets else 0)
