"""Correlated noise, against dense matrices, exact mixtures and every way to break its ledger."""

import math
from dataclasses import replace
from fractions import Fraction
from itertools import product
from pathlib import Path

import numpy as np
import pytest
import torch
from scipy import stats
from scipy.linalg import toeplitz

from confide.dp.accounting import banded
from confide.dp.accounting.calibration import calibrate
from confide.dp.accounting.cross_check import google
from confide.dp.accounting.curves import gaussian_curve, pld_curve
from confide.dp.accounting.price import agree, epsilon, group, mechanisms_of
from confide.dp.ledger import Ledger, parse_release
from confide.dp.mechanism.correlated import Correlated
from confide.dp.mechanism.randomness import Stream
from confide.dp.mechanism.sampling import dealt
from confide.errors import InputError
from confide.types import Correlation, Step
from tests.releases import noised

NAME = "5" * 64
STATE = "7" * 64
DELTA = 1e-5


def correlation(bands, separation=None, sequence=NAME):
    return Correlation(
        coefficients=banded.inverse_root(bands),
        separation=separation or bands,
        sequence=sequence,
    )


def updates(bands, count, separation=None, rate=1.0, sigma=3.0, sequence=NAME):
    release = noised(rate=rate, sigma=sigma, count=count, view="original", pool="all")
    return replace(release, correlation=correlation(bands, separation, sequence))


def dense(coefficients, rows):
    """C (rows, rows) float64."""
    column = np.zeros(rows)
    column[: len(coefficients)] = coefficients[:rows]
    return toeplitz(column, np.zeros(rows))


def test_coefficients_are_those_of_the_inverse_root():
    ways = [Fraction(math.comb(2 * place, place), 4**place) for place in range(60)]
    assert banded.inverse_root(60) == pytest.approx([float(way) for way in ways], rel=1e-14)
    # jax_privacy's first ones; with all bands C C sums up
    assert banded.inverse_root(5) == (1.0, 0.5, 0.375, 0.3125, 0.2734375)
    whole = dense(banded.inverse_root(9), 9)
    assert np.allclose(whole @ whole, np.tril(np.ones((9, 9))), atol=1e-14)


@pytest.mark.parametrize("bands", [1, 2, 5])
def test_noise_is_independent_noise_behind_the_dense_inverse(bands):
    size = 33
    rows = 40
    deviation = 1.7
    noise = Correlated(Stream(4, "noise"), banded.inverse_root(bands))
    begun = torch.linspace(-1, 1, size, dtype=torch.float64)
    found = torch.stack([noise.add(begun.clone(), deviation) - begun for _ in range(rows)])
    again = Stream(4, "noise")
    drawn = [again.add(torch.zeros(size, dtype=torch.float64), deviation) for _ in range(rows)]
    wanted = np.linalg.inv(dense(banded.inverse_root(bands), rows)) @ torch.stack(drawn).numpy()
    assert np.abs(found.numpy() - wanted).max() < 1e-10
    assert torch.equal(noise.get_state(), again.get_state())
    if bands == 1:
        assert np.array_equal(found.numpy() + begun.numpy(), begun.numpy() + wanted)


def test_its_covariance_is_that_of_the_inverse():
    rows = 6
    size = 200_000
    noise = Correlated(Stream(1, "noise"), banded.inverse_root(3))
    drawn = [noise.add(torch.zeros(size, dtype=torch.float64), 2.0) for _ in range(rows)]
    found = np.cov(torch.stack(drawn).numpy())
    inverse = np.linalg.inv(dense(banded.inverse_root(3), rows))
    wanted = 4.0 * inverse @ inverse.T
    spread = np.sqrt((wanted**2 + np.outer(wanted.diagonal(), wanted.diagonal())) / size)
    assert (np.abs(found - wanted) < 5 * spread).all()
    assert abs(wanted[1, 0]) > 100 * spread[1, 0]


def test_noise_of_another_size_is_no_row_of_the_same_matrix():
    noise = Correlated(Stream(1, "noise"), banded.inverse_root(2))
    noise.add(torch.zeros(4, dtype=torch.float64), 1.0)
    with pytest.raises(ValueError, match="cannot go on"):
        noise.add(torch.zeros(4, dtype=torch.float64), 0.5)


def test_bands_of_any_number_stay_stable():
    """What is taken back dies out: no float grows over thousands of updates."""
    for bands in (2, 16, 100):
        reached = np.linalg.inv(dense(banded.inverse_root(bands), 600))[:, 0]
        assert np.abs(reached[1:]).max() <= 0.5 + 1e-12 and np.abs(reached[300:]).max() < 1e-3


@pytest.mark.parametrize("bands", [1, 2, 3])
@pytest.mark.parametrize("separation", [3, 4])
@pytest.mark.parametrize("count", [1, 2, 3, 5, 8, 9, 11])
def test_a_unit_of_any_group_sees_no_more_than_the_first(bands, separation, count):
    """Every group, and every direction of a unit's contributions, by the dense C."""
    found = sorted(
        length
        for length, many in banded.blocks(correlation(bands, separation), count)
        for _ in range(many)
    )
    matrix = dense(banded.inverse_root(bands), count)
    worst = 0.0
    for first in range(min(separation, count)):
        columns = matrix[:, first::separation]
        for signs in product((-1.0, 1.0), repeat=columns.shape[1]):
            worst = max(worst, float(np.linalg.norm(columns @ np.array(signs))))
        lengths = sorted(np.linalg.norm(columns, axis=0))
        least = [0.0] * (len(found) - len(lengths)) + lengths
        assert all(a <= b + 1e-12 for a, b in zip(least, found, strict=True))
    assert math.sqrt(sum(length**2 for length in found)) == pytest.approx(worst, rel=1e-12)


@pytest.mark.parametrize("relation", ["add_or_remove", "replace_one"])
def test_whole_groups_cost_a_gaussian_with_the_sensitivity_of_c(relation):
    release = updates(4, 50, separation=8, sigma=9.0)
    # Theorem 2 of 2405.13763, as libraries compute it: columns 8 apart, summed
    summed = dense(banded.inverse_root(4), 50)[:, ::8].sum(1)
    shift = 2 if relation == "replace_one" else 1
    curve = gaussian_curve(shift * float(np.linalg.norm(summed)) / 9.0)
    low = 0.0
    high = 50.0
    for _ in range(60):
        middle = (low + high) / 2
        if curve.log_delta(middle) > math.log(DELTA):
            low = middle
        else:
            high = middle
    found = epsilon([release], DELTA, relation)
    assert high <= found <= high * 1.002
    assert agree([release], DELTA, relation)["pld"] == found


def exact_delta(release, value, rounds, source, replaced):
    """delta at an epsilon by definition: mixtures over who is drawn, of the whole output.

    One unit of the first group adds 1 (-1 where it is replaced) to each update that draws it.
    """
    rows = release.count
    matrix = dense(release.correlation.coefficients, rows)
    columns = matrix[:, :: release.correlation.separation]
    chances = np.array(list(product((0, 1), repeat=columns.shape[1])))
    rate = release.sample_rate
    sigma = release.noise_multiplier
    weights = rate ** chances.sum(1) * (1 - rate) ** (chances.shape[1] - chances.sum(1))
    means = chances @ columns.T

    def density(seen, sign):
        exponents = [
            math.log(weight) - ((seen - sign * mean) ** 2).sum(1) / (2 * sigma**2)
            for weight, mean in zip(weights, means, strict=True)
            if weight > 0
        ]
        return np.logaddexp.reduce(exponents)

    other = -1.0 if replaced else 0.0
    chosen = source.choice(len(weights), size=rounds, p=weights)
    seen = means[chosen] + sigma * source.normal(size=(rounds, rows))
    loss = density(seen, 1.0) - density(seen, other)
    lost = np.maximum(0.0, -np.expm1(value - loss))
    return lost.mean(), lost.std() / math.sqrt(rounds)


@pytest.mark.parametrize("replaced", [False, True])
@pytest.mark.parametrize(
    ("bands", "separation", "count", "rate"),
    [(2, 2, 4, 0.4), (2, 2, 5, 0.4), (3, 3, 6, 0.7), (1, 1, 3, 0.3), (2, 3, 6, 1.0)],
)
def test_the_price_is_that_of_the_outputs_themselves(bands, separation, count, rate, replaced):
    release = updates(bands, count, separation, rate, sigma=1.3)
    curve = pld_curve(mechanisms_of([release]), "replace_one" if replaced else "add_or_remove")
    source = np.random.default_rng(3)
    for value in (0.3, 1.0, 2.0):
        found, error = exact_delta(release, value, 100_000, source, replaced)
        claimed = math.exp(curve.log_delta(value))
        assert found <= claimed + 4 * error
        assert claimed <= found * 1.01 + 4 * error


def test_another_implementation_agrees():
    release = updates(4, 64, rate=0.2, sigma=2.0)
    for relation in ("add_or_remove", "replace_one"):
        theirs = google(mechanisms_of([release]), relation, DELTA)
        assert theirs == pytest.approx(epsilon([release], DELTA, relation), rel=5e-3)


def test_one_band_is_independent_noise():
    alone = replace(updates(1, 30, rate=0.1), correlation=None)
    assert epsilon([updates(1, 30, rate=0.1)], DELTA) == epsilon([alone], DELTA)


def test_sequences_are_added_up_not_run_together():
    """Two updates each of two sequences of ten groups: a unit is read twice, not once."""
    both = [updates(2, 2, separation=10), updates(2, 2, separation=10, sequence="6" * 64)]
    once = [updates(2, 4, separation=10)]
    assert epsilon(both, DELTA) > 1.2 * epsilon(once, DELTA)
    halves = [updates(2, 2, separation=10), updates(2, 2, separation=10)]
    assert epsilon(halves, DELTA) == epsilon(once, DELTA)


def test_several_records_are_priced_one_by_one():
    release = updates(2, 20, rate=0.3)
    value, way = group([release], DELTA, 3)
    assert "mixture" not in way and value > epsilon([release], DELTA)
    with pytest.raises(ValueError, match="in turns"):
        pld_curve(mechanisms_of([release]), "zero_out", 3)
    # two records of two groups, whole groups read: lengths add up at most
    pair = updates(2, 4, separation=2, sigma=8.0)
    columns = dense(banded.inverse_root(2), 4)
    meeting = np.linalg.norm(columns.sum(1))
    together = gaussian_curve(2 * float(meeting) / 8.0)
    claimed = group([pair], DELTA, 2)[0]
    assert together.log_delta(claimed) <= math.log(DELTA)


def test_calibration_meets_its_target():
    given = correlation(4)
    sigma = calibrate(3.0, DELTA, 0.2, 64, correlation=given)
    spent = epsilon([updates(4, 64, rate=0.2, sigma=sigma)], DELTA)
    assert 3.0 * (1 - 1e-3) <= spent <= 3.0


@pytest.mark.parametrize("bands", [1, 3, 30])
def test_the_error_of_sums_is_that_of_dense_matrices(bands):
    inverse = np.linalg.inv(dense(banded.inverse_root(bands), 30))
    squares = (np.tril(np.ones((30, 30))) @ inverse) ** 2
    wanted = math.sqrt(squares.sum() / 30)
    assert banded.error_of_sums(correlation(bands), 30) == pytest.approx(wanted, rel=1e-12)


def test_few_passes_over_much_text_gain_by_it_and_many_passes_lose():
    """At equal epsilon: noise in sums of updates, relative to independent noise."""

    def against(bands, rate, count, target):
        found = []
        for wide in (bands, 1):
            given = correlation(wide)
            sigma = calibrate(target, 8e-5, rate * wide, count, correlation=given)
            found.append(sigma * banded.error_of_sums(given, count))
        return found[0] / found[1]

    assert against(4, rate=128 / 5525, count=60, target=3.0) < 0.87
    assert against(4, rate=256 / 2149, count=84, target=1.0) > 1.1


def test_everyone_is_dealt_by_himself_and_evenly():
    source = Stream(2, "groups")
    chosen = dealt(30_000, 7, source)
    assert source.place == 0 and torch.equal(chosen, dealt(30_000, 7, source))
    assert stats.chisquare(chosen.bincount(minlength=7)).pvalue > 1e-4
    assert torch.equal(dealt(29_990, 7, source), chosen[:29_990])


def bad(**changes):
    release = updates(3, 4, separation=5, rate=0.5)
    return replace(release, correlation=replace(release.correlation, **changes))


GOOD = bad()


@pytest.mark.parametrize(
    "wrong",
    [
        bad(separation=2),
        bad(separation=5.0),
        bad(separation=True),
        bad(separation=0),
        bad(coefficients=()),
        bad(coefficients=(1, 0.5)),
        bad(coefficients=(1.0, 1.5)),
        bad(coefficients=(0.5, 0.25)),
        bad(coefficients=(2.0, 0.5)),
        bad(coefficients=(1.0, -0.5)),
        bad(coefficients=(1.0, math.nan)),
        bad(coefficients=(1.0, 0.5, 0.1, 0.2)),
        bad(coefficients=(1.0,) + (0.1,) * 5),
        bad(sequence="secret"),
        bad(sequence=3),
        replace(GOOD, discrete_coordinates=5),
        replace(
            GOOD,
            step=Step(view="original", pool="all", noisy=True, tokens="private", state="published"),
        ),
        replace(
            GOOD,
            step=Step(view="original", pool="all", noisy=False),
            sample_rate=0.0,
            noise_multiplier=0.0,
            max_grad_norm=0.0,
        ),
    ],
)
def test_what_could_not_be_priced_is_no_event(wrong):
    Ledger().append(GOOD, STATE)
    with pytest.raises(ValueError):
        Ledger().append(wrong, STATE if wrong.noisy else None)
    with pytest.raises(ValueError):
        epsilon([wrong], DELTA)


@pytest.mark.parametrize(
    "later",
    [
        replace(GOOD, noise_multiplier=2.0),
        replace(GOOD, sample_rate=0.4),
        replace(GOOD, max_grad_norm=2.0),
        replace(GOOD, step=Step(view="original", pool="private", noisy=True)),
        bad(separation=4),
        bad(coefficients=(1.0, 0.5)),
    ],
)
def test_a_sequence_goes_on_as_it_began(later, tmp_path):
    ledger = Ledger()
    ledger.append(GOOD, "1" * 64)
    ledger.epoch(1)
    with pytest.raises(ValueError, match="other settings"):
        ledger.append(later, "2" * 64)
    ledger.append(replace(later, correlation=replace(later.correlation, sequence=STATE)), "3" * 64)
    # a forged ledger: the same, with a chain of its own
    forged = Ledger()
    forged._go_on = lambda _: None
    forged.append(GOOD, "1" * 64)
    forged.append(later, "2" * 64)
    path = tmp_path / "ledger.jsonl"
    path.write_text(forged.dump())
    with pytest.raises(InputError, match=":2: .*other settings"):
        Ledger.from_file(path)


def test_a_ledger_comes_back_as_it_was():
    ledger = Ledger()
    ledger.append(GOOD, "1" * 64)
    ledger.append(GOOD, "2" * 64)
    again = Ledger.load(ledger.dump())
    assert again.releases() == [replace(GOOD, count=8)] and again.sequences() == [NAME]
    again.append(GOOD, "3" * 64)
    ledger.append(GOOD, "3" * 64)
    assert again.dump() == ledger.dump()
    line = ledger.lines()[0]["release"]
    for key in ("coefficients", "separation", "sequence"):
        cut = {name: part for name, part in line["correlation"].items() if name != key}
        with pytest.raises((KeyError, TypeError)):
            Ledger()._go_on(parse_release(line | {"correlation": cut}))
    with pytest.raises(TypeError):
        parse_release(line | {"correlation": line["correlation"] | {"amplified": True}})
    with pytest.raises(TypeError):
        parse_release(line | {"correlation": None})


def test_the_table_of_the_page_is_what_comes_out():
    """Every number of docs/correlated.md, row by row."""
    page = Path(__file__).parents[2].joinpath("docs/correlated.md").read_text()
    rows = [
        line.strip("| ").split(" | ")
        for line in page.splitlines()
        if line.startswith(("| 5,525", "| 2,149"))
    ]
    assert len(rows) == 5
    counts = {
        "5,525, 128, 1.4": (5525, 128, 60),
        "5,525, 512, 8": (5525, 512, 86),
        "2,149, 256, 10": (2149, 256, 84),
    }
    for setting, target, *cells in rows:
        points, batch, count = counts[setting]
        groups = math.ceil(points / batch)
        ways = [(bands, bands, batch * bands / points) for bands in (1, 2, 4, 8)]
        sizes = []
        for bands, separation, rate in [*ways, (groups, groups, 1.0)]:
            given = correlation(bands, separation)
            sigma = calibrate(float(target), 8e-5, rate, count, correlation=given)
            sizes.append(sigma * banded.error_of_sums(given, count))
        shown = [f"{size / sizes[0]:.2f}" for size in sizes[1:]]
        assert shown == [cell.strip("*") for cell in cells]
