"""Attack metrics against scikit-learn, enumeration and simulation."""

import itertools

import numpy as np
import pytest
from scipy.stats import norm
from sklearn.metrics import roc_auc_score, roc_curve

from confide.attacks.membership.membership import judged
from confide.attacks.statistics.metrics import (
    accuracy_null,
    auc,
    auc_interval,
    auc_null,
    balanced_accuracy,
    best_threshold,
    bootstrap,
    calibrated_accuracy,
    share_interval,
    tpr_at_fpr,
    tpr_interval,
)


def scores(
    m: int, n: int, shift: float, levels: int | None, seed: int
) -> tuple[np.ndarray, np.ndarray]:
    """Member and non-member scores; `levels` makes them coarse, so that many tie."""
    rng = np.random.default_rng(seed)
    both = rng.normal(size=m) + shift, rng.normal(size=n)
    return both if levels is None else tuple(np.round(side * levels) / levels for side in both)


@pytest.mark.parametrize(("m", "n", "levels"), [(40, 70, None), (40, 70, 2), (30, 10, 1)])
def test_auc_is_sklearns(m, n, levels):
    member, other = scores(m, n, 0.6, levels, 0)
    truth = np.repeat([1, 0], [m, n])
    assert auc(member, other) == pytest.approx(
        roc_auc_score(truth, np.concatenate([member, other])), abs=1e-12
    )


@pytest.mark.parametrize("levels", [None, 2])
@pytest.mark.parametrize("rate", [0.01, 0.05, 0.2, 1.0])
def test_tpr_at_fpr_is_the_best_attainable_threshold(levels, rate):
    member, other = scores(90, 200, 0.8, levels, 1)
    truth = np.repeat([1, 0], [90, 200])
    fpr, tpr, _ = roc_curve(truth, np.concatenate([member, other]), drop_intermediate=False)
    assert tpr_at_fpr(member, other, rate) == pytest.approx(tpr[fpr <= rate + 1e-12].max())


def test_tpr_needs_enough_non_members():
    assert tpr_at_fpr(np.ones(5), np.zeros(99), 0.01) is None
    assert tpr_at_fpr(np.ones(5), np.zeros(100), 0.01) == 1.0
    assert tpr_at_fpr(np.ones(5), np.ones(100), 0.01) == 0.0  # ties admit everybody: not attainable


def covered(inside, outside, truth, interval, runs=300):
    """Share of runs whose interval holds the truth."""
    found = 0
    for seed in range(runs):
        rng = np.random.default_rng(seed)
        low, high = interval(rng.normal(size=inside[0]) + inside[1], rng.normal(size=outside), rng)
        found += low <= truth <= high
    return found / runs


@pytest.mark.parametrize("shift", [1.0, 2.0, 3.0])
@pytest.mark.parametrize(
    ("count", "rate", "most"), [(1000, 0.01, 0.985), (200, 0.01, 1.0), (1000, 0.001, 1.0)]
)
def test_intervals_of_a_rate_cover_it_though_the_threshold_is_estimated(count, rate, most, shift):
    """With the threshold taken for known it was in half of the runs; few false positives cover more
    than is said.
    """
    truth = norm.sf(norm.isf(rate) - shift)
    found = covered(
        (count, shift),
        count,
        truth,
        lambda member, other, rng: tpr_interval(member, other, rate, rng),
    )
    assert 0.93 <= found <= most


@pytest.mark.parametrize(
    ("count", "shift"), [(20, 0.0), (20, 2.5), (20, 4.0), (50, 4.0), (300, 1.0)]
)
def test_intervals_of_auc_and_accuracy_cover_them_up_to_perfect_scores(count, shift):
    """Twenty of each that are told apart almost surely: resampling alone covered 30 %."""
    for name, truth in (("auc", norm.cdf(shift / 2**0.5)), ("acc_balanced", norm.cdf(shift / 2))):

        def interval(member, other, rng, name=name):
            kinds = np.repeat([True, False], [len(member), len(other)])
            found = judged(np.concatenate([member, other]), kinds, 60, 0, "")
            return found[f"{name}_low"], found[f"{name}_high"]

        assert covered((count, shift), count, truth, interval, runs=100) >= 0.89


def test_intervals_lie_around_their_value():
    rng = np.random.default_rng(0)
    member = rng.normal(size=1000) + 2
    other = rng.normal(size=1000)
    low, high = tpr_interval(member, other, 0.01, rng)
    assert low < tpr_at_fpr(member, other, 0.01) < high and high - low > 0.12
    assert tpr_interval(member, other[:99], 0.01, rng) is None
    assert (
        tpr_interval(member, other[:100], 0.01, rng)[0] < 0.2
    )  # the largest of a hundred scores says little
    for value, bounds in (
        (1.0, auc_interval(1.0, 20, 20)),
        (0.5, auc_interval(0.5, 20, 20)),
        (1.0, share_interval(1.0, 20)),
    ):
        assert 0 < bounds[0] < value <= bounds[1] <= 1
    assert auc_interval(0.2, 30, 50) == pytest.approx(
        [1 - end for end in auc_interval(0.8, 30, 50)[::-1]], abs=1e-5
    )


def test_balanced_accuracy_averages_over_tie_breaking():
    """All ways of breaking ties at the cut, enumerated."""
    member = np.array([3.0, 2.0, 2.0, 1.0])
    other = np.array([2.0, 2.0, 1.0, 0.0])
    values = np.concatenate([member, other])
    kinds = np.repeat([1, 0], 4)
    found = []
    for order in itertools.permutations(range(8)):
        called = sorted(range(8), key=lambda i, order=order: (-values[i], order[i]))[:4]
        hits = kinds[called].sum()
        found.append((hits / 4 + 1 - (4 - hits) / 4) / 2)
    assert balanced_accuracy(member, other) == pytest.approx(np.mean(found), abs=1e-12)


def test_balanced_accuracy_is_the_median_rule():
    member, other = scores(50, 50, 0.7, None, 2)
    median = np.median(np.concatenate([member, other]))
    assert balanced_accuracy(member, other) == pytest.approx(
        ((member > median).mean() + (other <= median).mean()) / 2
    )
    assert balanced_accuracy(np.zeros(9), np.zeros(9)) == 0.5
    assert balanced_accuracy(np.ones(9), np.zeros(9)) == 1.0


@pytest.mark.parametrize(("levels", "shift"), [(None, 0.7), (2, 0.7), (1, 0.0)])
def test_the_best_threshold_is_that_of_all_thresholds(levels, shift):
    member, other = scores(30, 17, shift, levels, 3)

    def accuracy(bar: float) -> float:
        return (
            sum(score > bar for score in member) / 30 + sum(score <= bar for score in other) / 17
        ) / 2

    assert accuracy(best_threshold(member, other)) == pytest.approx(
        max(map(accuracy, [-np.inf, *member, *other]))
    )
    assert (
        best_threshold(np.array([1.0, 3.0, 5.0]), np.array([0.0, 2.0, 4.0])) == 2.5
    )  # as good as 0.5 and 4.5


def test_calibrated_accuracy_judges_those_that_the_threshold_was_not_chosen_on():
    """Nothing known gives 0.5 on average, where the best threshold in hindsight gives more; ties
    give exactly 0.5.
    """
    found = []
    hindsight = []
    for seed in range(400):
        member, other = scores(20, 20, 0.0, None, seed)
        bar = best_threshold(member, other)
        hindsight.append(((member > bar).mean() + (other <= bar).mean()) / 2)
        found.append(calibrated_accuracy(member, other, np.random.default_rng(seed)))
    assert (
        np.mean(found) == pytest.approx(0.5, abs=4 * np.std(found) / 20)
        and np.mean(hindsight) > 0.58
    )
    rng = np.random.default_rng(0)
    assert calibrated_accuracy(np.full(9, 2.0), np.full(8, 2.0), rng) == 0.5
    assert calibrated_accuracy(np.arange(20, 30.0), np.arange(10.0), rng) == 1.0
    assert calibrated_accuracy(np.arange(10.0), np.arange(20, 30.0), rng) == pytest.approx(
        0.5
    )  # never below all: not turned


def test_calibrated_accuracy_in_closed_form():
    """By hand: 3 and 0 give 1.5, 5 and 2 give 3.5, and 2 and 3 are then wrong; the other split
    gives 2.5 twice, no error.
    """
    member = np.array([3.0, 5.0])
    other = np.array([0.0, 2.0])
    assert {
        calibrated_accuracy(member, other, np.random.default_rng(seed)) for seed in range(20)
    } == {0.5, 1.0}
    member, other = scores(4000, 4000, 1.0, None, 5)
    assert calibrated_accuracy(member, other, np.random.default_rng(0)) == pytest.approx(
        0.6915, abs=0.02
    )  # Phi(1 / 2)


def test_bootstrap_covers_and_repeats():
    """The 95 % interval contains the true AUC about 95 times in 100."""
    # Phi(1 / sqrt 2)
    truth = 0.7602
    inside = 0
    for seed in range(80):
        member, other = scores(60, 60, 1.0, None, seed)
        low, high = bootstrap(auc, member, other, 200, np.random.default_rng(seed))
        inside += low <= truth <= high
    assert 69 <= inside <= 79
    assert (low, high) == bootstrap(auc, member, other, 200, np.random.default_rng(79))
    assert (low, high) != bootstrap(auc, member, other, 200, np.random.default_rng(0))


@pytest.mark.parametrize(("m", "n"), [(50, 50), (30, 80)])
def test_null_bands_by_simulation(m, n):
    rng = np.random.default_rng(3)
    draws = [(rng.normal(size=m), rng.normal(size=n)) for _ in range(4000)]
    for metric, band in ((auc, auc_null(m, n)), (balanced_accuracy, accuracy_null(m, n))):
        values = np.array([metric(*draw) for draw in draws])
        np.testing.assert_allclose(np.quantile(values, [0.025, 0.975]), band, atol=0.025)
        assert 0.93 < ((values >= band[0] - 1e-9) & (values <= band[1] + 1e-9)).mean() < 0.99
