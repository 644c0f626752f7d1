"""The estimate of a rank: its weights, its interval against all of a small space; the fit."""

import math

import numpy as np
import pytest
from planted_words import KINDS, VOCAB, a_model, a_space, ten_by_heart
from scipy.stats import chi2, norm, skewnorm

from confide.attacks.exposure.sequence_exposure import extrapolated, log_share_below
from confide.attacks.exposure.sequence_samples import Samples, draw, estimate, fay_feuer, heaviest
from confide.attacks.exposure.sequence_search import search
from confide.attacks.statistics.scoring import row_log_probs


@pytest.fixture(scope="module")
def memorising():
    return ten_by_heart()


@pytest.mark.parametrize("kind", KINDS)
def test_weights_add_up_to_the_size_of_any_part(kind):
    """Importance weights are unbiased: their sum over samples is the number of sequences, of the
    space and of its halves.
    """
    model = a_model(kind)
    space = a_space(8, 3, VOCAB, 4)
    samples = draw(model, space, 20_000, 4096, 5)
    scores = row_log_probs(model, space.tokens(samples.places[:500]))
    assert np.allclose(scores, samples.score[:500], atol=1e-4)
    assert samples.weight.sum() == pytest.approx(512, rel=0.02)
    for word in range(8):
        for step in range(3):
            assert samples.weight[samples.places[:, step] == word].sum() == pytest.approx(
                64, rel=0.15
            )
    assert samples.uniform.sum() == samples.each == 4000
    for score in np.quantile(samples.score, [0.1, 0.5, 0.99]):
        assert samples.weight[samples.score >= score].max() <= heaviest(
            samples.each, space, score
        ) * (1 + 1e-6)


def test_the_heaviest_weight_is_that_of_equally_likely_words():
    """There every temperature is the uniform distribution: five times `each` samples stand for the
    whole space.
    """
    space = a_space(8, 3, VOCAB, 4)
    assert heaviest(7, space, -math.log(512)) == pytest.approx(512 / 35)
    assert heaviest(7, space, 0.0) < 1 / 7 < heaviest(7, space, -3.0)


def test_draws_depend_on_the_seed_and_not_on_the_chunk():
    model = a_model()
    space = a_space(8, 3, VOCAB, 4)
    one, again, other = (draw(model, space, 500, *rest) for rest in ((4096, 1), (33, 1), (4096, 2)))
    assert np.array_equal(one.places, again.places) and np.allclose(one.weight, again.weight)
    assert not np.array_equal(one.places, other.places)


def test_intervals_hold_the_exact_value(memorising):
    """Over 100 trials in all, with a model that knows ten sequences by heart and with fixed random
    ones.
    """
    held = []
    widths = []
    for number in range(100):
        model, space, known = (
            memorising
            if number % 2
            else (a_model(seed=number, scale=6.0), a_space(10, 3, VOCAB, number), [])
        )
        rng = np.random.default_rng(number)
        places = np.array([*known, *rng.integers(len(space.first), size=(10, 3))])
        targets = row_log_probs(model, space.tokens(places))
        found = estimate(draw(model, space, 1000, 4096, number), space, targets, places)
        exact = search(model, space, targets, 4096, np.inf).ranks - 1
        held.append((found.low <= exact + 1e-9) & (exact <= found.high + 1e-9))
        widths.append(np.log2((1 + found.high) / (1 + found.low)).mean())
    each = np.concatenate(held)
    assert (
        len(each) >= 1000
        and each.mean() >= 0.97
        and np.mean([own.mean() >= 0.9 for own in held]) >= 0.95
    )
    assert np.mean(widths) < 2.5  # bits: not all that they could be


def test_the_interval_of_a_sum_of_weights():
    """With equal weights it is the exact Poisson interval of Garwood; it is not empty where nothing
    was hit.
    """
    low, high = fay_feuer(7 * 0.5, 7 * 0.25, 0.5)
    assert low == pytest.approx(0.5 * chi2.ppf(0.025, 14) / 2) and high == pytest.approx(
        0.5 * chi2.ppf(0.975, 16) / 2
    )
    assert fay_feuer(0, 0, 2.0) == (0.0, pytest.approx(2 * chi2.ppf(0.975, 2) / 2))
    rng = np.random.default_rng(0)
    missed = 0
    for _ in range(1000):
        weights = rng.choice([0.1, 3.0], size=rng.poisson(12), p=[0.8, 0.2])
        low, high = fay_feuer(weights.sum(), (weights**2).sum(), 3.0)
        missed += not low <= 12 * (0.08 + 0.6) <= high
    assert missed <= 50


def test_the_published_fit_is_that_of_a_skew_normal_distribution():
    for shape in (-3.0, 0.0, 2.0):
        for z in (-2.0, -0.5, 0.7, 3.0):
            assert log_share_below(shape, z) == pytest.approx(
                math.log(skewnorm.cdf(z, shape)), rel=1e-5, abs=1e-9
            )
    assert log_share_below(0.0, -40.0) == pytest.approx(
        norm.logcdf(-40.0), rel=1e-6
    )  # far below what a float can hold
    scores = -norm.rvs(30, 2, size=4000, random_state=0)
    samples = Samples(np.zeros((4000, 1)), scores, np.ones(4000), np.ones(4000, bool), 4000)
    found = extrapolated(samples, np.array([-30.0, -24.0]))
    assert np.allclose(found, [1.0, -norm.logsf(3) / math.log(2)], atol=0.7)
