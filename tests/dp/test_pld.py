"""Privacy loss distributions against closed forms, quadrature, enumeration and Monte Carlo."""

import itertools
import math
import subprocess
import sys

import numpy as np
import pytest
from scipy.integrate import quad
from scipy.stats import binom, norm

from confide.dp.accounting import pld
from confide.dp.accounting.curves import Mechanism, gaussian_curve, grid, pld_curve
from confide.dp.accounting.pairs import Pair, loss, outcomes
from confide.dp.accounting.price import RELATIONS, Bound, solve


def density(pair, x, sign=1):
    """P's density, or with sign -1 its mirror image's, by scipy."""
    weights = binom.pmf(range(pair.group + 1), pair.group, pair.rate)
    return sum(weight * norm.pdf(sign * x, j, pair.sigma) for j, weight in enumerate(weights))


def other(pair, x):
    return density(pair, x, -1) if pair.replace else norm.pdf(x, 0, pair.sigma)


# one update
# --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "pair",
    [Pair(0.2, 1.0), Pair(1e-3, 0.3), Pair(0.1, 0.8, 3), Pair(0.3, 1.5, 1, True), Pair(1.0, 1.0)],
)
def test_connecting_the_dots_is_exact_on_the_grid_and_above_between(pair):
    interval = 0.01
    truth = lambda e, p, q: quad(  # noqa: E731
        lambda x: max(0.0, p(x) - math.exp(e) * q(x)), *outcomes(pair), limit=1000, points=(0, 1)
    )[0]
    p = lambda x: density(pair, x)  # noqa: E731
    q = lambda x: other(pair, x)  # noqa: E731
    for one, (upper, lower) in zip(pld.one_update(pair, interval), ((p, q), (q, p)), strict=False):
        profile = pld.compose([(one, 1)], interval)
        for epsilon in (0.0, 0.05, 0.2, 1.0):
            assert pld.delta_at(profile, epsilon) == pytest.approx(
                truth(epsilon, upper, lower), rel=1e-6, abs=1e-9
            )
        between = [0.055, 0.125]
        assert all(pld.delta_at(profile, e) >= truth(e, upper, lower) - 1e-9 for e in between)


def test_both_measures_are_kept():
    pair = Pair(0.2, 0.7)
    interval = 0.02
    forward, reverse = pld.one_update(pair, interval)
    losses = (forward.start + np.arange(len(forward.masses))) * interval
    assert forward.masses.sum() == pytest.approx(1, abs=1e-14)
    assert np.exp(-losses) @ forward.masses == pytest.approx(1, abs=1e-12)  # Q's mass
    back = (reverse.start + np.arange(len(reverse.masses))) * interval
    assert back[::-1] == pytest.approx(-losses) and reverse.masses[::-1] == pytest.approx(
        forward.masses * np.exp(-losses), abs=1e-12
    )


def test_replacement_is_its_own_reverse():
    (one,) = pld.one_update(Pair(0.2, 0.7, 1, True), 0.02)
    reach = min(-one.start, one.start + len(one.masses) - 1)
    losses = np.arange(reach + 1) * 0.02
    above = one.masses[-one.start :][: reach + 1]
    below = one.masses[: 1 - one.start][::-1][: reach + 1]
    assert reach > 100 and above * np.exp(-losses) == pytest.approx(below, abs=1e-12)


# composition
# --------------------------------------------------------------------------------------------------


def made_up(seed, size):
    random = np.random.default_rng(seed)
    return pld.Losses(int(random.integers(-9, 3)), random.dirichlet(np.ones(size)))


def test_composition_and_reading_against_enumeration():
    parts = [(made_up(0, 5), 3), (made_up(1, 4), 2)]
    interval = 0.3
    profile = pld.compose(parts, interval)
    outcomes_of = [
        list(enumerate(one.masses, one.start)) for one, count in parts for _ in range(count)
    ]
    totals = [
        (sum(k for k, _ in way) * interval, math.prod(p for _, p in way))
        for way in itertools.product(*outcomes_of)
    ]
    for epsilon in (0.0, 0.1, 0.3, 0.75, 2.0, 20.0):
        exact = sum(p * max(0.0, -math.expm1(epsilon - total)) for total, p in totals)
        assert pld.delta_at(profile, epsilon) == pytest.approx(exact, rel=3e-9, abs=1e-15)
        if exact > 0:
            assert pld.epsilon_at(profile, exact * (1 + 2e-9)) == pytest.approx(epsilon, abs=1e-7)


def test_losses_far_above_zero_need_no_grid_below():
    profile = pld.compose([(pld.Losses(10**6, np.array([0.5, 0.0, 0.5])), 2)], 0.1)
    assert profile.start == 2 * 10**6 and len(profile.deltas) <= 6
    assert pld.delta_at(profile, 0.0) == 1 and pld.delta_at(profile, 2e5 + 1) == 0
    assert pld.epsilon_at(profile, 0.999) < 2e5 < pld.epsilon_at(profile, 1e-9) <= 2e5 + 0.4


def test_losses_below_zero_cost_nothing():
    profile = pld.compose([(pld.Losses(-50, np.array([0.5, 0.5])), 3)], 0.1)
    assert pld.delta_at(profile, 0.0) == 0 == pld.epsilon_at(profile, 1e-9)


@pytest.mark.parametrize("interval", [0.1, 1.0])
def test_discounted_sums_over_blocks(interval):
    values = np.random.default_rng(0).random(int(1200 / interval))
    naive = []
    last = 0.0
    for value in values[::-1].tolist():
        last = value + math.exp(-interval) * last
        naive.append(last)
    assert pld.discounted(values, interval) == pytest.approx(np.array(naive[::-1]), rel=1e-9)


@pytest.mark.parametrize("count", [1, 2, 13, 1000])
def test_powers(count):
    values = np.exp(1j * np.linspace(0, 6, 50)) * np.linspace(0, 1, 50)
    assert pld.power(values, count) == pytest.approx(values**count, abs=1e-12)


@pytest.mark.parametrize("pair", [Pair(0.1, 2.0), Pair(1e-3, 0.3), Pair(1.0, 30.0)])
@pytest.mark.parametrize("count", [1, 40, 500])
def test_the_window_holds_all_but_a_tail(pair, count):
    one = pld.one_update(pair, 0.01)[0]
    low, high = pld.window([(one, count)])
    size = 2 ** math.ceil(math.log2(count * len(one.masses)))
    total = np.fft.irfft(np.fft.rfft(one.masses, size) ** count, size)  # untruncated
    first = count * one.start
    assert total[high - first + 1 :].sum() < 1e-11 > total[: low - first].sum()
    assert low >= first and high <= first + count * (len(one.masses) - 1)


# whole curves
# --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("sigma", "count"),
    [(1.0, 1), (0.25, 2), (3.0, 10), (20.0, 100), (100.0, 10_000), (600.0, 370_000)],
)
@pytest.mark.parametrize("relation", RELATIONS)
def test_never_below_the_gaussian_mechanism_and_close(sigma, count, relation):
    truth = gaussian_curve((2 if relation == "replace_one" else 1) * math.sqrt(count) / sigma)
    curve = pld_curve((Mechanism(1.0, sigma, count),), relation)
    for delta in (0.1, 1e-3, 1e-5, 1e-8):
        exact = solve(Bound(truth), delta, 1e-9)
        close = 1e-3 if delta > 1e-7 else 3e-3  # the slack of many updates
        assert exact * (1 - 1e-8) <= curve.epsilon(delta) <= exact * (1 + close) + 1e-6, delta
        assert curve.log_delta(exact) >= math.log(delta) - 1e-6


@pytest.mark.parametrize(("rate", "sigma"), [(0.1, 1.0), (0.01, 0.5), (0.5, 2.0)])
@pytest.mark.parametrize("relation", ["add_or_remove", "replace_one"])
def test_two_updates_against_quadrature(rate, sigma, relation):
    """delta of two updates = E over the first's loss of the second's delta, at epsilon less that
    loss.
    """
    pair = Pair(rate, sigma, 1, relation == "replace_one")
    low, high = outcomes(pair)
    x = np.linspace(low, high, 60_001)
    p = density(pair, x)
    q = other(pair, x)
    losses = loss(pair, x)
    step = x[1] - x[0]
    order = (
        np.cumsum(np.stack([p, q])[:, ::-1], axis=1)[:, ::-1] * step
    )  # masses above x; losses rise with x

    def exact(epsilon, upper, lower, sign):
        rest = epsilon - sign * losses
        place = np.searchsorted(losses, sign * rest)
        above = [np.append(one, 0)[place] for one in order]
        tails = (
            above
            if sign > 0
            else [one[0] - tail for one, tail in zip(order[::-1], above[::-1], strict=True)]
        )
        return float(
            (upper * np.maximum(0, tails[0] - np.exp(np.minimum(rest, 600)) * tails[1])).sum()
            * step
        )

    curve = pld_curve((Mechanism(rate, sigma, 2),), relation)
    for epsilon in (0.1, 0.5, 1.5):
        truth = max(exact(epsilon, p, q, 1), exact(epsilon, q, p, -1))
        assert math.exp(curve.log_delta(epsilon)) == pytest.approx(truth, rel=2e-3)
        assert math.exp(curve.log_delta(epsilon)) >= truth * (1 - 5e-4)


@pytest.mark.parametrize("relation", ["add_or_remove", "replace_one"])
def test_one_update_against_monte_carlo(relation):
    rate = 0.3
    sigma = 0.8
    count = 400_000
    pair = Pair(rate, sigma, 1, relation == "replace_one")
    random = np.random.default_rng(3)
    seen = (random.random(count) < rate) + sigma * random.standard_normal(count)
    curve = pld_curve((Mechanism(rate, sigma, 1),), relation)
    for epsilon in (0.2, 1.0, 2.0):
        excess = np.maximum(0, -np.expm1(epsilon - loss(pair, seen)))
        assert excess.mean() == pytest.approx(
            math.exp(curve.log_delta(epsilon)), abs=4 * excess.std() / math.sqrt(count)
        )


def test_a_group_of_one_is_one():
    mechanisms = (Mechanism(0.05, 1.0, 20),)
    assert pld_curve(mechanisms, "zero_out", 1).epsilon(1e-5) == pld_curve(
        mechanisms, "add_or_remove"
    ).epsilon(1e-5)
    with pytest.raises(ValueError, match="group"):
        pld_curve(mechanisms, "replace_one", 2)


def test_a_finer_grid_changes_little_and_a_coarse_one_only_raises():
    for mechanism in (
        Mechanism(0.1, 2.0, 500),
        Mechanism(1e-3, 0.7, 20_000),
        Mechanism(0.2, 0.3, 3),
    ):
        for relation in ("add_or_remove", "replace_one"):
            interval = grid((mechanism,), relation)
            fine, own, coarse = (
                pld_curve((mechanism,), relation, interval=interval * f).epsilon(1e-5)
                for f in (0.25, 1, 16)
            )
            assert fine * (1 - 1e-5) <= own <= fine * 1.0005
            assert own < coarse


def test_the_worse_direction_counts_whichever_it_is(monkeypatch):
    mechanisms = (Mechanism(0.1, 1.0, 20),)
    found = []
    for order in (1, -1):
        both = pld.one_update(Pair(0.1, 1.0), 1e-3)[::order]
        monkeypatch.setattr(pld, "one_update", lambda *_, both=both: both)
        curve = pld_curve(mechanisms, "add_or_remove", interval=1e-3)
        found.append((curve.epsilon(1e-5), curve.log_delta(1.0)))
        monkeypatch.undo()
    alone = pld.epsilon_at(pld.compose([(pld.one_update(Pair(0.1, 1.0), 1e-3)[1], 20)], 1e-3), 1e-5)
    assert found[0] == found[1] and alone < 0.9 * found[0][0]


def test_equal_mechanisms_add_up_and_order_does_not_matter():
    one = Mechanism(0.1, 2.0, 50)
    two = Mechanism(0.02, 1.0, 30)
    whole = pld_curve((Mechanism(0.1, 2.0, 100), two), "replace_one", interval=1e-3).epsilon(1e-5)
    for parts in ((one, two, one), (two, one, one)):
        assert pld_curve(parts, "replace_one", interval=1e-3).epsilon(1e-5) == pytest.approx(
            whole, rel=1e-6
        )


@pytest.mark.parametrize(
    ("rate", "sigma", "count"),
    [(1e-12, 1.0, 10), (1e-4, 1e6, 10), (1.0, 1e6, 1), (1e-9, 0.5, 10**9)],
)
def test_next_to_nothing_is_next_to_nothing(rate, sigma, count):
    for relation in RELATIONS:
        assert 0 <= pld_curve((Mechanism(rate, sigma, count),), relation).epsilon(1e-3) < 1e-4


def test_pricing_loads_no_slow_part_of_scipy():
    script = (
        "import sys, confide.certify.certificate, confide.commands.verify\n"
        "from confide.dp.accounting.price import agree, group\n"
        "from confide.types import Release, Step\n"
        "step = Step(view='redacted', pool='private', noisy=True)\n"
        "noise = {'sample_rate': 0.1, 'noise_multiplier': 2.0, 'max_grad_norm': 1.0}\n"
        "ran = [Release(step=step, **noise, count=10)]\n"
        "agree(ran, 1e-5, 'replace_one'), group(ran, 1e-5, 3)\n"
        "print(*(name for name in sys.modules if name.startswith(('dp_accounting', 'scipy.'))))"
    )
    loaded = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, check=True
    ).stdout.split()
    slow = ("dp_accounting", "scipy.stats", "scipy.signal", "scipy.optimize", "scipy.integrate")
    assert "scipy.special" in loaded and not [name for name in loaded if name.startswith(slow)]
