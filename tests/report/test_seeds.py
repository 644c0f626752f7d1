"""Intervals and tests over seeds are those of scipy.stats, and hold what they promise in
simulations; figures show each seed.
"""

import math

import numpy as np
import pytest
from scipy import stats

from confide.report.figures.registry import FIGURES
from confide.report.seeds import (
    against_zero,
    all_below,
    detectable,
    half_width,
    holm,
    over_seeds,
    power,
)


@pytest.mark.parametrize("seeds", [2, 3, 5, 20])
def test_intervals_are_students(seeds):
    values = np.random.default_rng(seeds).normal(3, 2, seeds).tolist()
    low, high = stats.t.interval(0.95, seeds - 1, loc=np.mean(values), scale=stats.sem(values))
    found = over_seeds(values)
    assert found.numbers == pytest.approx((np.mean(values), low, high))
    assert found.each == tuple(values)


def test_one_seed_equal_seeds_and_infinite_ones_have_no_width():
    assert over_seeds([3.0]).numbers == (3.0, 3.0, 3.0)
    assert half_width([0.1, 0.1, 0.1]) == 0.0
    assert over_seeds([math.inf] * 3).numbers == (math.inf,) * 3
    assert over_seeds([1.0, math.inf]).value == math.inf


def test_intervals_of_three_seeds_hold_the_mean_in_95_of_100_cases_and_bootstrap_ones_do_not():
    rng = np.random.default_rng(0)
    draws = rng.normal(size=(2000, 3))
    held = [low <= 0 <= high for _, low, high in (over_seeds(row).numbers for row in draws)]
    assert np.mean(held) == pytest.approx(0.95, abs=0.015)
    again = draws[np.arange(2000)[:, None, None], rng.integers(3, size=(2000, 500, 3))].mean(2)
    low, high = np.quantile(again, [0.025, 0.975], axis=1)
    assert np.mean((low <= 0) & (high >= 0)) < 0.85


@pytest.mark.parametrize("seeds", [2, 3, 5])
def test_the_test_is_scipys_and_knows_its_side(seeds):
    values = np.random.default_rng(seeds).normal(-1, 1, seeds).tolist()
    expected = stats.ttest_1samp(values, 0.0)
    found = against_zero(values)
    assert found.p == pytest.approx(expected.pvalue) and found.below == (expected.statistic < 0)
    assert against_zero([-0.1] * seeds) == (True, float(seeds == 2))
    assert against_zero([0.0] * seeds) == (False, 1.0)


def test_a_claim_of_parts_needs_all_of_them_and_falls_with_one():
    sure = [-1.0, -1.1, -0.9]
    unsure = [-1.0, 0.4, 0.1]
    against = [1.0, 1.1, 0.9]
    assert all_below([sure, unsure]) == (True, against_zero(unsure).p)
    assert all_below([sure, against]) == (False, 2 * against_zero(against).p)


def test_holm_is_the_step_down_of_the_definition():
    values = [0.01, 0.04, 0.03, 0.005]
    assert holm(values) == pytest.approx([0.03, 0.06, 0.06, 0.02])
    assert holm([0.9, 0.8]) == [1.0, 1.0] and holm([]) == []
    rng = np.random.default_rng(1)
    wrong = [min(holm(rng.random(20).tolist())) < 0.05 for _ in range(2000)]
    assert np.mean(wrong) == pytest.approx(0.05, abs=0.015)


@pytest.mark.parametrize(("seeds", "effect"), [(3, 3.0), (5, 1.5)])
def test_power_is_that_of_a_simulation(seeds, effect):
    draws = np.random.default_rng(2).normal(-effect, 1, (3000, seeds))
    tests = [against_zero(row.tolist()) for row in draws]
    shown = np.mean([test.below and test.p < 0.05 for test in tests])
    assert power(seeds, effect) == pytest.approx(shown, abs=0.025)
    assert power(seeds, detectable(seeds, 0.01), 0.01) == pytest.approx(0.8)


def dots(drawn) -> list[tuple[list[float], list[float]]]:
    """Places of the small dots of a figure, one group for each mean."""
    return [
        (list(line.get_xdata()), list(line.get_ydata()))
        for axes in drawn.axes
        for line in axes.lines
        if line.get_markersize() == 3 and line.get_linestyle() == "None"
    ]


@pytest.mark.parametrize(
    ("name", "metric"), [("utility", "ppl"), ("tradeoff", None), ("membership", "auc")]
)
def test_figures_show_every_seed_and_say_how_many(study, results, settings, name, metric):
    spec = study[1]
    drawn = FIGURES[name](spec, results)
    assert "2 seeds" in " ".join(drawn.caption.split())
    places = dots(drawn)
    assert places and all(len(x) == 2 for x, _ in places)
    if metric == "ppl":
        own = {
            result.evaluation["ppl"]
            for result in results
            if result.run.name == "crt" and result.run.gamma == 0.1
        }
        assert any(set(x) == own for x, _ in places)
    one = [result for result in results if result.run.seed == 0]
    drawn = FIGURES[name](spec, one)
    assert not dots(drawn) and "n = 1" in " ".join(drawn.caption.split())


def test_captions_tell_rows_with_fewer_seeds(study, results, settings):
    fewer = [r for r in results if r.run.name != "dpsgd" or r.run.seed == 0]
    assert "1 to 2 seeds" in " ".join(FIGURES["utility"](study[1], fewer).caption.split())
