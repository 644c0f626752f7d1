"""The discrete Gaussian: samples against the exact law, ties decided by fractions, distance, price,
and sums of integers.
"""

import math
from collections.abc import Callable
from dataclasses import replace
from decimal import Decimal, localcontext
from fractions import Fraction

import numpy as np
import pytest
import torch
from scipy import stats
from torch import Tensor, nn

from confide.dp.accounting.calibration import calibrate
from confide.dp.accounting.curves import Mechanism, pld_curve, rdp_curve
from confide.dp.accounting.price import Bound, agree, epsilon, group, mechanisms_of, solve
from confide.dp.mechanism import discrete
from confide.dp.mechanism.clipping import PerExampleClipper
from confide.dp.mechanism.discrete import (
    BITS,
    DISTANCE,
    MARGIN,
    below,
    bernoulli,
    bounds,
    discrete_gaussian,
    geometric,
)
from confide.dp.mechanism.randomness import Stream
from confide.dp.mechanism.update import discrete_gradient, in_steps
from confide.models import build
from confide.models.batches import Batch
from confide.models.head import IGNORE
from confide.specs import LSTMSpec
from confide.types import Release
from tests import releases

EVERYTHING = 2.0  # a margin within which all comparisons lie
SIGMA, BOUND, EXPECTED = 0.7, 0.05, 3.0


def words(seed: int) -> Callable[[int], np.ndarray]:
    stream = Stream(seed, "words")
    return lambda count: stream.bits(count, np.int64).numpy().view(np.uint64)


def law(sigma: float, reach: int) -> tuple[np.ndarray, np.ndarray]:
    """Integers and their probabilities, summed over all that floats can tell from zero."""
    values = np.arange(-reach, reach + 1)
    weights = np.exp(-(values**2) / (2 * sigma**2))
    return values, weights / weights.sum()


@pytest.mark.parametrize(("margin", "count"), [(MARGIN, 400_000), (EVERYTHING, 1_500)])
@pytest.mark.parametrize("bits", [0, 1, 2, 4, 6])
def test_samples_have_the_exact_law(bits: int, margin: float, count: int, monkeypatch) -> None:
    monkeypatch.setattr(discrete, "MARGIN", margin)
    values, expected = law(2**bits, 12 * 2**bits)
    found = discrete_gaussian(count, bits, words(bits))
    observed = (
        (found[:, None] == values).sum(0)
        if count < 10_000
        else np.bincount(found - values[0], minlength=len(values))
    )
    assert observed.sum() == count
    common = expected * count >= 5
    observed = np.append(observed[common], observed[~common].sum())
    expected = count * np.append(expected[common], expected[~common].sum())
    if expected[-1] < 5:
        observed, expected = (np.append(one[:-2], one[-2:].sum()) for one in (observed, expected))
    assert stats.chisquare(observed, expected).pvalue > 1e-3


def test_samples_of_the_usual_deviation_are_normal_and_independent() -> None:
    found = Stream(3, "noise").discrete(300_000, BITS)
    assert found.dtype == torch.int64
    standard = found.double() * 2.0**-BITS
    assert stats.kstest(standard.numpy(), "norm").pvalue > 1e-3
    assert abs(float(standard.mean())) < 4 / math.sqrt(len(standard))
    assert float(standard.var()) == pytest.approx(1.0, abs=5 * math.sqrt(2 / len(standard)))
    assert abs(torch.corrcoef(torch.stack([standard[1:], standard[:-1]]))[0, 1]) < 4.5 / math.sqrt(
        len(standard)
    )
    last = np.bincount(
        found.numpy() & 255, minlength=256
    )  # the low bits carry no trace of how a number was made
    assert stats.chisquare(last).pvalue > 1e-3


@pytest.mark.parametrize("margin", [MARGIN, EVERYTHING])
@pytest.mark.parametrize(
    "exponent", [Fraction(0), Fraction(1, 3), Fraction(1), Fraction(7, 2), Fraction(40)]
)
def test_events_have_probability_exp(exponent: Fraction, margin: float, monkeypatch) -> None:
    monkeypatch.setattr(discrete, "MARGIN", margin)
    count = 200_000 if margin == MARGIN else 2_000
    found = bernoulli(float(exponent), count, lambda _: exponent, words(1))
    assert stats.binomtest(int(found.sum()), count, math.exp(-exponent)).pvalue > 1e-3


@pytest.mark.parametrize("margin", [MARGIN, EVERYTHING])
def test_geometric_numbers(margin: float, monkeypatch) -> None:
    monkeypatch.setattr(discrete, "MARGIN", margin)
    count = 100_000 if margin == MARGIN else 2_000
    observed = np.bincount(np.minimum(geometric(count, words(2)), 4), minlength=5)
    tail = np.exp(-np.arange(5.0))
    assert stats.chisquare(observed, count * np.append(-np.diff(tail), tail[-1])).pvalue > 1e-3


def test_fractions_decide_as_floats_do_where_these_are_sure() -> None:
    source = np.random.default_rng(0)
    for head, exponent in zip(
        source.integers(0, 2**53, 400), source.integers(0, 2**42, 400), strict=True
    ):
        exactly = Fraction(int(exponent), 2**40)
        assert below(int(head), exactly, words(0)) == (head * 2.0**-53 < math.exp(-exactly))


@pytest.mark.parametrize(
    "exponent", [Fraction(1), Fraction(1, 2**40), Fraction(123, 7), Fraction(39)]
)
def test_a_tie_of_53_bits_is_decided_by_those_that_follow(exponent: Fraction) -> None:
    with localcontext(prec=80):
        exact = (-Decimal(exponent.numerator) / Decimal(exponent.denominator)).exp()
        scaled = exact * 2**53
        head = int(scaled)
        following = int((scaled - head) * 2**64)
    for word, expected in (
        (following - 1, True),
        (following + 1, False),
        (0, True),
        (2**64 - 1, False),
    ):
        drawn = []

        def source(count: int, word: int = word, drawn: list[int] = drawn) -> np.ndarray:
            drawn.append(count)
            return np.array([word], dtype=np.uint64)

        assert below(head, exponent, source) is expected and drawn == [1]
    assert below(head - 1, exponent, words(0)) and not below(head + 1, exponent, words(0))


@pytest.mark.parametrize("exponent", [Fraction(0), Fraction(1, 7), Fraction(5), Fraction(60)])
def test_bounds_hold_the_exponential_between_them(exponent: Fraction) -> None:
    least, most = bounds(exponent, 2 * math.ceil(exponent) + 32)
    with localcontext(prec=120):
        exact = Fraction((-Decimal(exponent.numerator) / Decimal(exponent.denominator)).exp())
    assert least * (1 - Fraction(1, 10**100)) <= exact <= most * (1 + Fraction(1, 10**100))
    assert most - least <= Fraction(1, 2**50) * most


@pytest.mark.parametrize("sigma", [1, 2, 3, 4, 8, 16, 32, 64])
def test_distance_from_the_rounded_gaussian(sigma: int) -> None:
    values, discrete = law(sigma, 40 * sigma)
    tail = stats.norm.sf((np.abs(values) - 0.5) / sigma) - stats.norm.sf(
        (np.abs(values) + 0.5) / sigma
    )
    found = np.abs(discrete - tail).sum() / 2
    assert 0.016 / sigma**2 < found < 1 / (16 * sigma**2)
    assert DISTANCE == 2.0**-84  # the same at 2^40


def test_a_distance_is_added_to_delta_on_both_sides() -> None:
    usual = Mechanism(0.05, 1.2, 100)
    away = replace(usual, distance=1e-14)  # 1e-12 in all
    for curve_of in (lambda one: pld_curve((one,), "replace_one"), lambda one: rdp_curve((one,))):
        plain, moved = curve_of(usual), curve_of(away)
        for value in (0.0, 0.5, 2.0, 5.0):
            expected = math.exp(plain.log_delta(value)) + (1 + math.exp(value)) * 1e-12
            assert math.exp(moved.log_delta(value)) == pytest.approx(expected, rel=1e-9)
        values = [moved.log_delta(value) for value in (*np.linspace(0, 40, 801), 1e3, 1e15)]
        assert all(
            np.array(values) <= np.minimum.accumulate(values) + math.log(4)
        )  # else exp(40) would count
        assert values[-1] > math.log(1e-12)
        assert (
            solve(Bound(plain), 1e-5)
            < solve(Bound(moved), 1e-5)
            < solve(Bound(plain), 1e-5) * (1 + 1e-3)
        )


def exact_delta(
    bits: int, shift: int, rate: float, relation: str, count: int, value: float
) -> float:
    """delta of `count` Poisson-sampled sums with discrete noise of deviation 2^bits, summed over
    all outcomes.
    """
    values, mass = law(2**bits, 14 * 2**bits + 2 * shift)
    shifted = {place: np.interp(values - place, values, mass) for place in (-shift, 0, shift)}
    one = (1 - rate) * shifted[0] + rate * shifted[shift]
    other = (
        (1 - rate) * shifted[0] + rate * shifted[-shift]
        if relation == "replace_one"
        else shifted[0]
    )
    for _ in range(count - 1):
        one, other = (
            np.multiply.outer(side, first).ravel() for side, first in ((one, one), (other, other))
        )
    excess = (np.maximum(p - math.exp(value) * q, 0).sum() for p, q in ((one, other), (other, one)))
    return float(max(excess))


@pytest.mark.parametrize("relation", ["add_or_remove", "replace_one"])
@pytest.mark.parametrize(("bits", "shift"), [(2, 4), (4, 16), (4, 20), (5, 16)])
@pytest.mark.parametrize(("rate", "count"), [(1.0, 1), (0.2, 1), (0.2, 2)])
def test_the_price_bounds_what_the_discrete_mechanism_tells(
    bits: int, shift: int, rate: float, count: int, relation: str
) -> None:
    mechanism = Mechanism(rate, 2**bits / shift, count, 1 / (16 * 4**bits))
    curve, usual = (
        pld_curve((one,), relation) for one in (mechanism, replace(mechanism, distance=0.0))
    )
    for value in (0.0, 0.3, 1.0, 2.0):
        exact = exact_delta(bits, shift, rate, relation, count, value)
        assert exact <= math.exp(curve.log_delta(value))
        assert exact == pytest.approx(
            math.exp(usual.log_delta(value)), rel=0.3, abs=0.02
        )  # and it is of that size


def noised(coordinates: int, count: int = 400) -> list[Release]:
    release = releases.noised(rate=0.02, sigma=0.9, count=count)
    return [replace(release, discrete_coordinates=coordinates)]


@pytest.mark.parametrize("relation", ["add_or_remove", "replace_one"])
def test_discrete_noise_costs_hardly_more_and_never_less(relation: str) -> None:
    usual, found = (agree(noised(size), 8e-5, relation) for size in (0, 10**9))
    for name, value in usual.items():
        assert value <= found[name] < value * (1 + 1e-6)
    several = [group(noised(size), 8e-5, 3, relation)[0] for size in (0, 10**6)]
    assert several[0] <= several[1] < several[0] * (1 + 1e-3)


def test_a_price_is_infinite_where_the_distance_is_not_small_beside_delta() -> None:
    assert epsilon(noised(10**9), 1e-5) < math.inf
    for huge in (10**22, 10**26):
        assert agree(noised(huge), 1e-5, "replace_one") == {"pld": math.inf, "rdp": math.inf}
    (mechanism,) = mechanisms_of(noised(7))
    assert mechanism.distance == 7 * DISTANCE


def test_calibration_pays_for_the_distance() -> None:
    given = (3.0, 8e-5, 0.02, 400)
    sigma = calibrate(*given, coordinates=10**17)
    assert sigma > calibrate(*given)
    release = replace(noised(10**17)[0], noise_multiplier=sigma)
    assert 2.99 < epsilon([release], 8e-5) <= 3.0


@pytest.fixture
def model() -> nn.Module:
    torch.manual_seed(0)
    return build(LSTMSpec(kind="lstm", embedding=8, hidden=8), 20, bos=1)


def units(count: int = 6) -> list[Batch]:
    """Batches of one example each, of different lengths."""
    source = torch.Generator().manual_seed(3)
    found = []
    for length in range(3, 3 + count):
        ids = torch.randint(0, 20, (1, length), generator=source)
        found.append(Batch(ids, ids.roll(-1, 1)))
    return found


def steps_of(clipper: PerExampleClipper, unit: Batch) -> Tensor:
    step = SIGMA * BOUND * 2.0**-BITS
    return in_steps(clipper, unit, noise_multiplier=SIGMA, step=step, half=False)


def updated(clipper: PerExampleClipper, batches: list[Batch], seed: int = 0) -> Tensor:
    discrete_gradient(clipper, batches, SIGMA, EXPECTED, Stream(seed, "noise"))
    return torch.cat([parameter.grad.flatten() for parameter in clipper.model.parameters()])


def test_an_update_is_a_function_of_an_exact_sum_of_integers(model: nn.Module) -> None:
    clipper, batches = PerExampleClipper(model, BOUND), units()
    own = torch.stack([steps_of(clipper, unit) for unit in batches])
    total = own.sum(0) + Stream(0, "noise").discrete(own.shape[1], BITS)
    expected = (total.double() * (SIGMA * BOUND * 2.0**-BITS) / EXPECTED).float()
    assert torch.equal(updated(clipper, batches), expected)
    assert torch.equal(
        updated(clipper, batches[::-1]), expected
    )  # in any order, and beside other numbers of units
    assert torch.equal(steps_of(clipper, batches[2]), own[2])
    exact = sum(int(number) ** 2 for number in own[0])
    assert 0.999 < exact * (SIGMA / 2**BITS) ** 2 <= 1  # clipped: of length C, in integers


def test_a_contribution_is_the_clipped_gradient_but_for_less_than_a_millionth(
    model: nn.Module,
) -> None:
    clipper = PerExampleClipper(model, 5.0)
    for unit in units():
        found = in_steps(
            clipper, unit, noise_multiplier=SIGMA, step=SIGMA * 5.0 * 2.0**-BITS, half=False
        )
        loss = nn.functional.cross_entropy(model(unit.inputs).flatten(0, 1), unit.targets.flatten())
        wanted = torch.cat(
            [grad.flatten() for grad in torch.autograd.grad(loss, list(model.parameters()))]
        )
        torch.testing.assert_close(
            (found.double() * (SIGMA * 5.0 * 2.0**-BITS)).float(), wanted, rtol=1e-4, atol=1e-6
        )


def test_what_is_too_long_or_not_finite_adds_nothing(
    model: nn.Module, monkeypatch: pytest.MonkeyPatch
) -> None:
    clipper, (unit, *_) = PerExampleClipper(model, BOUND), units()
    assert steps_of(clipper, unit).any()
    scale = PerExampleClipper._scale
    monkeypatch.setattr(PerExampleClipper, "_scale", lambda self, norms: 1.001 * scale(self, norms))
    assert not steps_of(clipper, unit).any()
    monkeypatch.undo()
    nn.init.constant_(model.head.weight, math.nan)
    assert not steps_of(clipper, unit).any() and int(clipper.nonfinite) == 1


def test_no_units_give_noise_alone(model: nn.Module) -> None:
    found = updated(PerExampleClipper(model, BOUND), []).double() * EXPECTED / (SIGMA * BOUND)
    assert float(found.var()) == pytest.approx(1.0, rel=0.2)


def test_a_unit_of_several_examples_is_clipped_as_a_whole(model: nn.Module) -> None:
    clipper, count = PerExampleClipper(model, BOUND), 7
    ids = torch.randint(0, 20, (count, 6), generator=torch.Generator().manual_seed(1))
    targets = ids.roll(-1, 1)
    targets[0, 3:] = IGNORE
    author = Batch(ids, targets, units=torch.zeros(count, dtype=torch.int64))
    own = steps_of(clipper, author)
    assert float(torch.linalg.vector_norm(own.double())) * SIGMA / 2**BITS == pytest.approx(
        1.0, rel=1e-4
    )
    total = own + Stream(0, "noise").discrete(len(own), BITS)
    expected = (total.double() * (SIGMA * BOUND * 2.0**-BITS) / EXPECTED).float()
    assert torch.equal(updated(clipper, [author]), expected)
