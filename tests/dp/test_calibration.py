"""Noise for a budget: never above the target, close below it, and errors that name the key."""

import pytest

from confide.dp.accounting.calibration import calibrate
from confide.dp.accounting.price import RELATIONS, epsilon
from confide.errors import InputError
from tests.releases import noised


def spent(rate, sigma, steps, delta, relation):
    return epsilon([noised(rate=rate, sigma=sigma, count=steps)], delta, relation)


@pytest.mark.parametrize("relation", RELATIONS)
@pytest.mark.parametrize(
    ("target", "rate", "steps"),
    [(0.5, 0.0256, 391), (3.0, 0.0256, 391), (8.0, 0.2, 40), (2.0, 1.0, 1)],
)
def test_meets_the_target_from_below(relation, target, rate, steps):
    sigma = calibrate(target, 8e-5, rate, steps, relation)
    assert target * 0.998 <= spent(rate, sigma, steps, 8e-5, relation) <= target
    assert spent(rate, sigma * 0.99, steps, 8e-5, relation) > target


def test_replacement_needs_more_noise_than_removal():
    removal, zeroing = (
        calibrate(2.0, 8e-5, 0.05, 100, relation) for relation in ("add_or_remove", "zero_out")
    )
    assert calibrate(2.0, 8e-5, 0.05, 100, "replace_one") > removal == zeroing


def test_a_huge_target_is_not_exceeded():
    assert spent(0.1, calibrate(1e9, 1e-5, 0.1, 10), 10, 1e-5, "replace_one") <= 1e9


@pytest.mark.parametrize(
    ("arguments", "key"),
    [
        ((1.0, 1e-14, 0.1, 100), "privacy.epsilon = 1.0: cannot be reached"),  # finer than any grid
        ((0.0, 1e-5, 0.1, 100), "privacy.epsilon = 0.0"),
        ((float("nan"), 1e-5, 0.1, 100), "privacy.epsilon"),
        ((1.0, 0.0, 0.1, 100), "privacy.delta"),
        ((1.0, 1e-5, 0.0, 100), "sample_rate"),
        ((1.0, 1e-5, 1.1, 100), "sample_rate = 1.1"),
        ((1.0, 1e-5, 0.1, 0), "steps"),
        ((1.0, 1e-5, 0.1, 1, "swap"), "privacy.relation = 'swap'"),
    ],
)
def test_errors_name_the_key(arguments, key):
    with pytest.raises(InputError, match=key):
        calibrate(*arguments)
