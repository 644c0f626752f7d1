"""The white-box audit: nearly as strong as an ideal attacker, silent where the code is right, loud
where it is not.
"""

import sys
from dataclasses import replace
from functools import cache

import numpy as np
import pytest
import torch

from confide.attacks.audits.gradients import CLAIMS, Directions, batch_of, scored
from confide.dp.accounting.audit_bounds import right_guesses
from confide.dp.accounting.audit_power import power
from confide.dp.accounting.banded import inverse_root
from confide.dp.accounting.calibration import calibrate
from confide.dp.accounting.curves import Mechanism, pld_curve
from confide.dp.accounting.pairs import Pair, loss
from confide.dp.accounting.price import mechanisms_of
from confide.dp.accounting.tradeoff import points_of
from confide.dp.mechanism.clipping import PerExampleClipper
from confide.dp.mechanism.randomness import Stream
from confide.dp.mechanism.sampling import poisson
from confide.dp.mechanism.update import noisy_gradient
from confide.runtime.memory import Budget
from confide.types import Correlation
from tests.nightly import nightly
from tests.releases import noised

RATE = 0.1
STEPS = 40
DELTA = 8e-5
COINS = 5000
RELATIONS = {name: relation for name, (relation, _) in CLAIMS.items()}


@cache
def sigma_of(epsilon):
    return calibrate(epsilon, DELTA, RATE, STEPS)


def updates(epsilon=3.0, norm=1.0, count=STEPS, **given):
    where = {"view": "original", "pool": "all"} | given
    return noised(rate=RATE, sigma=sigma_of(epsilon), norm=norm, count=count, **where)


@cache
def claimed(relation):
    """(pairs, epsilon) of the certificate of these updates."""
    curve = pld_curve((Mechanism(RATE, sigma_of(3.0), STEPS),), relation)
    epsilon = curve.epsilon(DELTA)
    return ((epsilon, DELTA), *points_of(curve)), epsilon


def flips(seed, coins=COINS):
    rng = np.random.default_rng(seed)
    return {name: rng.random(coins) < 0.5 for name in CLAIMS}


def rung(seed, releases=None):
    """Sets whose claim the audit refutes."""
    coins = flips(seed)
    scores = scored(releases or [updates()], coins, seed=seed, device="cpu")
    found = set()
    for name, relation in RELATIONS.items():
        points, epsilon = claimed(relation)
        chance = power(points, epsilon, DELTA, COINS)
        right = right_guesses(scores[name][None], coins[name][None], [chance.guesses])[0, 0]
        found |= {name} if right >= chance.fewest else set()
    return found


def test_a_record_moves_its_own_direction_alone_and_exactly_by_what_clipping_allows():
    model = Directions(21)
    count = 21
    norm = 0.25
    clipper = PerExampleClipper(model, norm)
    still = Stream(0, "still")
    for by_unit in (False, True):
        records = torch.tensor([0, 3, 10, 20])
        targets = torch.tensor([0, 1, 0, 1])
        noisy_gradient(
            clipper, batch_of(records, targets, by_unit=by_unit), 1e-9, 2.0, still, Budget(3)
        )
        expected = torch.zeros(count)
        expected[records] = torch.tensor([-1.0, 1.0, -1.0, 1.0]) * norm / 2
        assert torch.allclose(
            model.gradient(), expected, atol=1e-4
        ) and model.gradient().abs().max() <= norm / 2 * (1 + 1e-6)
    assert not list(batch_of(records[:0], targets[:0], by_unit=False))


def ideal(rng, coins, relation):
    """The log-likelihood ratios of the same mechanism, simulated without any of the engine."""
    sigma = sigma_of(3.0)
    size = len(coins)
    total = np.zeros(size)
    away = -1.0 if relation == "replace_one" else 0.0

    def ratio(x, at):
        return np.logaddexp(np.log1p(-RATE), np.log(RATE) + (2 * at * x - at**2) / (2 * sigma**2))

    for _ in range(STEPS):
        x = np.where(coins, 1.0, away) * (rng.random(size) < RATE) + sigma * rng.normal(size=size)
        total += ratio(x, 1.0) - (ratio(x, -1.0) if relation == "replace_one" else 0.0)
    return total


@pytest.mark.parametrize("name", CLAIMS)
def test_as_strong_as_an_ideal_attacker(name):
    """The share of right guesses, over 6 x 3,000 coins: the same as in a simulation of the
    mechanism, within four errors.
    """
    shares = {True: [], False: []}
    for seed in range(6):
        coins = flips(seed, 3000)
        own = scored([updates()], coins, seed=seed, device="cpu")[name]
        simulated = ideal(np.random.default_rng(seed), coins[name], RELATIONS[name])
        for real, scores in ((True, own), (False, simulated)):
            shares[real].append(right_guesses(scores[None], coins[name][None], [750])[0, 0] / 750)
    real = np.mean(shares[True])
    simulated = np.mean(shares[False])
    assert 0.6 < simulated < 0.9 and abs(real - simulated) < 4 * (2 * 0.2 / (6 * 750)) ** 0.5


def test_silent_where_the_code_is_right():
    assert sum(bool(rung(seed)) for seed in range(10)) <= 1
    assert not rung(0, [updates(norm=0.01)]) and not rung(0, [updates(unit="author")])


def half_the_noise(patch):
    finish = PerExampleClipper.finish
    patch(
        PerExampleClipper,
        "finish",
        lambda self, multiplier, *rest: finish(self, multiplier / 2, *rest),
    )


def clipped_at_twice_the_norm(patch):
    scale = PerExampleClipper._scale
    patch(PerExampleClipper, "_scale", lambda self, norms: 2 * scale(self, norms))


def no_clipping(patch):
    patch(
        PerExampleClipper, "_scale", lambda self, norms: torch.ones_like(norms, dtype=torch.float32)
    )


def drawn_three_times_as_often(patch):
    patch(
        sys.modules[scored.__module__],
        "poisson",
        lambda size, rate, source: poisson(size, 3 * rate, source),
    )


@pytest.mark.parametrize(
    "fault",
    [
        half_the_noise,
        *map(nightly, (clipped_at_twice_the_norm, no_clipping, drawn_three_times_as_often)),
    ],
)
def test_rings_where_the_engine_is_not_what_the_ledger_says(fault, monkeypatch):
    fault(monkeypatch.setattr)
    assert all("replacement" in rung(seed) for seed in range(6))


def test_the_same_every_time():
    first, again, other = (
        scored([updates(count=5)], flips(3, 50), seed=seed, device="cpu") for seed in (3, 3, 4)
    )
    for name in CLAIMS:
        assert np.array_equal(first[name], again[name]) and not np.array_equal(
            first[name], other[name]
        )


def test_updates_with_discrete_noise_are_made_again_as_they_were(monkeypatch):
    made, coins = [replace(updates(12.0), discrete_coordinates=7)], flips(0, 600)
    monkeypatch.setattr(sys.modules[scored.__module__], "noisy_gradient", None)
    found = scored(made, coins, seed=0, device="cpu")
    usual = scored_as_usual(monkeypatch, made, coins)
    for name, own in coins.items():
        apart = [one[name][own].mean() - one[name][~own].mean() for one in (found, usual)]
        assert apart[0] == pytest.approx(apart[1], rel=0.25) and apart[0] > 1


def scored_as_usual(monkeypatch, made, coins):
    """Of the same updates with Gaussian noise."""
    monkeypatch.undo()
    return scored(
        [replace(one, discrete_coordinates=0) for one in made], coins, seed=0, device="cpu"
    )


def banded(order="sampled", count=STEPS, epsilon=3.0):
    """Updates with correlated noise, in two lines of a ledger."""
    separation, rate = (4, 4 * RATE) if order == "sampled" else (10, 1.0)
    correlation = Correlation(
        coefficients=inverse_root(4), separation=separation, sequence="5" * 64
    )
    sigma = calibrate(epsilon, DELTA, rate, count, correlation=correlation)
    whole = replace(
        updates(count=count), sample_rate=rate, noise_multiplier=sigma, correlation=correlation
    )
    return [replace(whole, count=7), replace(whole, count=count - 7)]


def rung_by(releases, seed):
    """Sets whose claim the audit refutes, of any updates."""
    coins = flips(seed)
    scores = scored(releases, coins, seed=seed, device="cpu")
    found = set()
    for name, relation in RELATIONS.items():
        curve = pld_curve(mechanisms_of(releases), relation)
        epsilon = curve.epsilon(DELTA)
        points = ((epsilon, DELTA), *points_of(curve))
        chance = power(points, epsilon, DELTA, COINS)
        right = right_guesses(scores[name][None], coins[name][None], [chance.guesses])[0, 0]
        found |= {name} if right >= chance.fewest else set()
    return found


@pytest.mark.parametrize("order", ["sampled", "cyclic"])
@pytest.mark.parametrize("name", CLAIMS)
def test_correlated_noise_is_seen_through_as_an_ideal_attacker_does(order, name):
    """By mean scores of heads and of tails, which a simulation of what a record sees has, too."""
    releases = banded(order, count=38)
    coins = flips(1, 4000)
    own = scored(releases, coins, seed=1, device="cpu")[name]
    rng = np.random.default_rng(1)
    simulated = np.zeros(len(own))
    separation = releases[0].correlation.separation
    first = rng.integers(0, separation, len(own))  # the group of each
    replace_one = RELATIONS[name] == "replace_one"
    for turn in range(38):
        mine = first == turn % separation
        rows = releases[0].correlation.coefficients[: 38 - turn]
        sigma = releases[0].noise_multiplier / np.linalg.norm(rows)
        rate = releases[0].sample_rate
        sign = np.where(coins[name], 1.0, -1.0 if replace_one else 0.0)
        drawn = rng.random(len(own)) < rate
        x = sign * drawn + sigma * rng.normal(size=len(own))
        simulated += np.where(mine, loss(Pair(rate, sigma, replace=replace_one), x), 0.0)
    for side in (coins[name], ~coins[name]):
        error = np.hypot(own[side].std(), simulated[side].std()) / side.sum() ** 0.5
        assert abs(own[side].mean() - simulated[side].mean()) < 4 * error
        assert abs(np.log(own[side].std() / simulated[side].std())) < 0.1


@pytest.mark.parametrize("order", ["sampled", "cyclic"])
def test_silent_where_correlated_noise_is_right(order):
    assert sum(bool(rung_by(banded(order), seed)) for seed in range(3)) == 0


@pytest.mark.parametrize("order", ["sampled", "cyclic"])
def test_rings_where_correlated_noise_is_half_of_what_the_ledger_says(order, monkeypatch):
    half_the_noise(monkeypatch.setattr)
    assert all("replacement" in rung_by(banded(order), seed) for seed in range(2))
