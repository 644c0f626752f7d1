"""Intervals of shares and of ratios of shares: published numbers, special cases, and coverage by
simulation.
"""

from math import exp, inf, isnan

import numpy as np
import pytest
from scipy.optimize import minimize_scalar
from scipy.stats import binomtest, chi2

from confide.attacks.domains.proportions import Share, koopman, ratio, share


def test_koopman_1984_example():
    found = koopman(36, 40, 16, 80)
    assert found.value == pytest.approx(4.5)
    assert (round(found.low, 2), round(found.high, 2)) == (2.94, 7.15)


@pytest.mark.parametrize(
    ("x", "m", "y", "n"),
    [(7, 34, 1, 34), (3, 50, 0, 40), (0, 50, 5, 40), (40, 40, 33, 40), (1.5, 20.5, 2.5, 33)],
)
def test_the_ends_are_where_the_test_of_that_ratio_is_at_its_level(x, m, y, n):
    """Pearson's statistic, its nuisance probability by numerical likelihood instead of the closed
    form.
    """
    found = koopman(x, m, y, n)

    def refuted_by(value: float) -> float:
        def surprise(p: float) -> float:
            q = p / value
            return -(
                x * np.log(p) + (m - x) * np.log1p(-p) + y * np.log(q) + (n - y) * np.log1p(-q)
            )

        p = minimize_scalar(
            surprise,
            bounds=(1e-9, min(1, value) - 1e-9),
            method="bounded",
            options={"xatol": 1e-12},
        ).x
        return sum(
            (k - size * one) ** 2 / (size * one * (1 - one))
            for k, size, one in ((x, m, p), (y, n, p / value))
        )

    for end in (found.low, found.high):
        if 0 < end < inf:
            assert refuted_by(end) == pytest.approx(chi2(1).ppf(0.95), rel=1e-3)
    assert (found.low == 0) == (x == 0) and (found.high == inf) == (y == 0)
    assert found.low <= found.value <= found.high


def test_ratio_turned_round_and_ratios_without_events():
    one = koopman(9, 80, 4, 60)
    other = koopman(4, 60, 9, 80)
    assert (one.low, one.high) == (pytest.approx(1 / other.high), pytest.approx(1 / other.low))
    nothing = koopman(0, 50, 0, 50)
    assert isnan(nothing.value) and (nothing.low, nothing.high) == (0, inf)
    never = koopman(20, 50, 0, 50)
    assert never.value == inf and never.low > 3 and never.high == inf
    assert koopman(10, 10, 10, 10).low < 1 < koopman(10, 10, 10, 10).high


@pytest.mark.parametrize(("p", "q", "n"), [(0.3, 0.1, 200), (0.02, 0.02, 150), (0.6, 0.5, 60)])
def test_koopman_covers_as_often_as_it_says(p, q, n):
    rng = np.random.default_rng(0)
    repeats = 1000
    counts = rng.binomial(n, (p, q), (repeats, 2)).tolist()
    covered = sum((found := koopman(x, n, y, n)).low <= p / q <= found.high for x, y in counts)
    assert binomtest(covered, repeats, 0.95, "less").pvalue > 1e-3 and covered / repeats < 0.99


def test_a_share_of_clusters_of_one_is_clopper_and_pearsons():
    flags = [True] * 3 + [False] * 37
    found = share(flags, range(40))
    exact = binomtest(3, 40).proportion_ci(0.95, "exact")
    assert found.effective == pytest.approx(
        39 / 40 * 40, rel=1e-6
    )  # of a variance that is estimated with 39 degrees of freedom
    assert found.low == pytest.approx(exact.low, abs=0.002) and found.high == pytest.approx(
        exact.high, abs=0.005
    )


def test_clusters_that_agree_within_count_as_one_each():
    flags = np.repeat([True, False, False, True, False] * 8, 25)
    clusters = np.repeat(np.arange(40), 25)
    found = share(flags, clusters.tolist())
    assert found.rate == 0.4 and 35 < found.effective < 40 and found.n == 1000
    apart = share(flags, range(1000))
    assert apart.effective > 990 and apart.high - apart.low < (found.high - found.low) / 4


def test_without_events_each_cluster_counts_once_and_one_cluster_says_nothing():
    none = share([False] * 60, [0, 1, 2] * 20)
    assert (none.rate, none.low, none.effective) == (0, 0, 3)
    assert none.high == pytest.approx(1 - 0.025 ** (1 / 3))
    every = share([True] * 60, [0, 1, 2] * 20)
    assert (every.low, every.high) == (pytest.approx(1 - none.high), 1)
    alone = share([True, False] * 30, [0] * 60)
    assert alone.effective == 1 and alone.high - alone.low > 0.9


def test_a_variance_that_few_clusters_show_is_not_believed():
    clusters = np.repeat(np.arange(10), 20).tolist()
    for flagged in (2, 4):  # of 20 texts one each, as if they were independent
        flags = np.zeros((10, 20), dtype=bool)
        flags[:flagged, 0] = True
        assert share(flags.ravel(), clusters).effective <= 10
        assert share(~flags.ravel(), clusters).effective <= 10
    flags[:5, 0] = True
    assert share(flags.ravel(), clusters).effective > 100


def clustered(rng, rates: np.ndarray) -> Share:
    """A hundred texts of each dialogue, at these rates of the dialogues."""
    flags = rng.random((len(rates), 100)) < rates[:, None]
    return share(flags.ravel().tolist(), np.repeat(np.arange(len(rates)), 100).tolist())


@pytest.mark.parametrize(
    ("rate", "alike", "dialogues"),
    [
        (0.05, 0.5, 10),
        (0.1, 0.8, 10),
        (0.05, 0.2, 10),
        (0.02, 0.3, 10),
        (0.05, 0.3, 5),
        (0.02, 0.5, 40),
    ],
)
def test_coverage_of_rare_events(rate, alike, dialogues):
    """Rates of dialogues are beta distributed; `alike`: the correlation of texts of a dialogue."""
    rng = np.random.default_rng(1)
    shape = (1 - alike) / alike
    found = [
        clustered(rng, rng.beta(rate * shape, (1 - rate) * shape, dialogues)) for _ in range(300)
    ]
    covered = sum(one.low <= rate <= one.high for one in found)
    assert binomtest(covered, len(found), 0.95, "less").pvalue > 1e-3


def test_coverage_where_dialogues_differ():
    """Rates of dialogues are beta distributed, with a deviation of 0.23 around 0.2; a ratio is of
    rates that rise together.
    """
    rng = np.random.default_rng(1)
    repeats = 400
    covered = np.zeros(3)
    for _ in range(repeats):
        rates = rng.beta(0.4, 1.6, 10)
        one = clustered(rng, rates)
        other = clustered(rng, rates / 2)
        found = ratio(one, other)
        naive = binomtest(one.flagged, one.n).proportion_ci(0.95, "exact")
        covered += [
            one.low <= 0.2 <= one.high,
            found.low <= 2 <= found.high,
            naive.low <= 0.2 <= naive.high,
        ]
    one, other, naive = covered / repeats
    assert one > 0.93 and other > 0.95 and naive < 0.4


def test_ratio_of_shares_takes_the_effective_sizes():
    rng = np.random.default_rng(0)
    one = clustered(rng, rng.beta(0.4, 1.6, 10))
    other = clustered(rng, np.full(10, 0.1))
    found = ratio(one, other)
    assert found == koopman(
        one.rate * one.effective, one.effective, other.rate * other.effective, other.effective
    )
    plain = koopman(one.flagged, one.n, other.flagged, other.n)
    assert (
        found.value == pytest.approx(plain.value)
        and found.high / found.low > exp(0.5) * plain.high / plain.low
    )
