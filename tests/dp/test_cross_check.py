"""Our privacy loss distributions against those of dp_accounting, over a wide range of settings."""

import numpy as np
import pytest
from dp_accounting.pld import privacy_loss_distribution as google_pld
from scipy.stats import binom

from confide.dp.accounting import cross_check, curves
from confide.dp.accounting.cross_check import google
from confide.dp.accounting.curves import Mechanism, pld_curve

# sample rate, noise, updates: everyday, little noise, little sampling, epsilon > 100 (twice), next
# to 0, q = 1
SETTINGS = [
    (0.1, 2.0, 500),
    (0.0256, 0.6, 391),
    (1e-4, 0.5, 5_000),
    (1e-4, 0.25, 370_000),
    (0.1, 0.3, 50),
    (1e-4, 100.0, 100_000),
    (1.0, 3.0, 10),
]


@pytest.mark.parametrize(("rate", "sigma", "count"), SETTINGS)
@pytest.mark.parametrize("relation", ["add_or_remove", "replace_one"])
@pytest.mark.parametrize("delta", [1e-3, 1e-6])
def test_against_dp_accounting(rate, sigma, count, relation, delta):
    mechanisms = (Mechanism(rate, sigma, count),)
    theirs = google(mechanisms, relation, delta)
    ours = pld_curve(mechanisms, relation).epsilon(delta)
    assert theirs * (1 - 2e-3) <= ours <= theirs * (1 + 1e-3) + 1e-9
    assert sigma != 0.25 or ours > 80  # far out, too


@pytest.mark.parametrize(
    ("rate", "sigma", "count"), [(0.1, 2.0, 100), (0.02, 0.7, 200), (0.5, 1.0, 4)]
)
def test_above_what_dp_accounting_rounds_optimistically(rate, sigma, count):
    least = google_pld.from_gaussian_mechanism(
        sigma,
        sampling_prob=rate,
        value_discretization_interval=1e-4,
        pessimistic_estimate=False,
        use_connect_dots=False,
    ).self_compose(count)
    ours = pld_curve((Mechanism(rate, sigma, count),), "add_or_remove")
    for delta in (1e-3, 1e-6):
        assert (
            least.get_epsilon_for_delta(delta)
            <= ours.epsilon(delta)
            <= least.get_epsilon_for_delta(delta) * 1.01
        )


@pytest.mark.parametrize(("sigma", "group"), [(4.0, 2), (0.8, 5), (1.0, 32)])
def test_groups_against_dp_accounting(sigma, group):
    rate = 0.05
    count = 20
    drawn = np.arange(group + 1)
    one = google_pld.from_mixture_gaussian_mechanism(
        sigma,
        drawn,
        binom.pmf(drawn, group, rate),
        value_discretization_interval=0.02 if group > 2 else 2e-3,
    )
    mechanisms = (Mechanism(rate, sigma, count),)
    ours = pld_curve(mechanisms, "zero_out", group).epsilon(1e-5)
    theirs = one.self_compose(count).get_epsilon_for_delta(1e-5)
    assert ours == pytest.approx(theirs, rel=2e-3)


def test_the_cross_check_refuses_a_wrong_number(monkeypatch):
    mechanisms = (Mechanism(0.1, 2.42, 100),)
    assert google(mechanisms, "replace_one", 1e-5) == pytest.approx(3.506, abs=2e-3)
    assert google((), "replace_one", 1e-5) == 0
    assert (
        google((Mechanism(0.1, 1e-3, 1),), "replace_one", 1e-5)
        is google(mechanisms, "replace_one", 1e-13)
        is None
    )
    twice = (Mechanism(0.1, 2.42, 200),)
    for wrong in (curves.pld_curve(mechanisms, "zero_out"), curves.pld_curve(twice, "replace_one")):
        monkeypatch.setattr(cross_check, "pld_curve", lambda *_, wrong=wrong: wrong)
        with pytest.raises(ArithmeticError, match="dp_accounting"):
            google(mechanisms, "replace_one", 1e-5)
