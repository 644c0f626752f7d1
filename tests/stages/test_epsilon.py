"""confide epsilon: the numbers of the library, rounded up, and one-line errors."""

import pytest

from confide.cli import main
from confide.dp.accounting.banded import error_of_sums, inverse_root
from confide.dp.accounting.calibration import calibrate
from confide.types import Correlation

PLAN = ["--sample_rate", "0.1", "--steps", "100", "--delta", "1e-5"]


def run(capsys, *arguments):
    status = main(["epsilon", *PLAN, *arguments])
    out, err = capsys.readouterr()
    return status, [line.split() for line in out.splitlines()], err


def row(rows, *words):
    (found,) = [cells for cells in rows if " ".join(cells).startswith(" ".join(words))]
    return [float(cell.replace(",", "").replace("∞", "inf")) for cell in found[-3:]]


def test_table(capsys):
    status, rows, _ = run(capsys, "--noise_multiplier", "2.42", "--gamma", "0.1", "--group", "2")
    assert status == 0
    assert rows[1] == ["add_or_remove", "replace_one", "zero_out"]
    assert row(rows, "epsilon, pld") == pytest.approx([1.818, 3.506, 1.818], abs=2e-3)
    assert row(rows, "epsilon, rdp", "2")[0] == pytest.approx(2.003, abs=2e-3)
    divided = row(rows, "Bayesian, gamma 0.1, read at delta / gamma")
    whole = row(rows, "Bayesian, gamma 0.1, read at delta", "0")
    classic = row(rows, "epsilon, rdp (classic")
    group = row(rows, "group of 2")
    assert all(a < b for a, b in zip(divided, whole, strict=True))
    assert all(a > b for a, b in zip(classic, row(rows, "epsilon, rdp", "2"), strict=True))
    assert all(a > b for a, b in zip(group, row(rows, "epsilon, pld"), strict=True))


def test_calibrated(capsys):
    status, rows, _ = run(capsys, "--target_epsilon", "2", "--relation", "add_or_remove")
    assert status == 0
    assert 1.996 <= row(rows, "epsilon, pld")[0] <= 2.0


WIKITEXT = ("--sample_rate", str(1 / 9994), "--steps", str(37 * 9994), "--noise_multiplier", "0.5")
CUSTOMERSIM = (
    "--sample_rate",
    str(1 / 3337),
    "--steps",
    str(50 * 3337),
    "--noise_multiplier",
    "0.7",
)


@pytest.mark.parametrize(
    ("plan", "releases", "secret", "known"),
    [  # zero-out, replacement; k private runs a batch, 3 k releases with the noised states counted
        (WIKITEXT, 1, (2.1, 2.5), (119, 387)),
        (WIKITEXT, 2, (14.6, 16.6), (212, 721)),
        (WIKITEXT, 3, (45, 51), (301, 1046)),
        (WIKITEXT, 6, (255, 279), (556, 2000)),
        (WIKITEXT, 9, (574, 607), (803, 2939)),
        (CUSTOMERSIM, 1, (1.1, 1.6), (88, 279)),
        (CUSTOMERSIM, 3, (12.7, 15.1), (218, 743)),
        (CUSTOMERSIM, 9, (211, 237), (573, 2065)),
    ],
)
def test_selective_dp_as_published_costs_more_than_printed(capsys, plan, releases, secret, known):
    """Its settings, if batches were secret, and as they are; printed are 4.91 and 2.74."""
    flags = [*plan, "--delta", "8e-5", "--releases_per_step", str(releases)]
    for more, expected in (((), secret), (("--unamplified",), known)):
        assert main(["epsilon", *flags, *more]) == 0
        _, replaced, zero_out = row(
            [line.split() for line in capsys.readouterr().out.splitlines()], "epsilon, pld"
        )
        assert (zero_out, replaced) == pytest.approx(expected, rel=0.012, abs=0.06)


def test_a_record_that_is_in_some_of_the_known_batches_is_in_one_more_than_on_average(capsys):
    """149 batches of a hundredth each: half of the records are in two."""
    flags = [
        "--sample_rate",
        "0.01",
        "--steps",
        "149",
        "--noise_multiplier",
        "1",
        "--delta",
        "1e-5",
    ]
    assert main(["epsilon", *flags, "--unamplified"]) == 0
    assert "priced as 2 steps at sample_rate 1," in capsys.readouterr().out


@pytest.mark.parametrize(
    ("printed", "rate", "sigma", "steps"),
    [
        (4.89, 1 / 9994, 0.5, 100 * 9994),  # DPSGD on WikiText
        (132.73, 1 / 9994, 0.25, 50 * 9994),
        (4.91, 1 / 9994, 0.5, round(2.75 * 37 * 9994)),  # S-DPSGD, 2.75 private updates a batch
        (2.51, 1 / 10010, 0.6, 100 * 10010),  # CustomerSim
        (2.74, 1 / 3337, 0.7, round(3.06 * 50 * 3337)),
    ],
)
def test_selective_dp_as_its_paper_counts_it(capsys, printed, rate, sigma, steps):
    flags = {"sample_rate": rate, "noise_multiplier": sigma, "steps": steps, "delta": 8e-5}
    assert (
        main(
            [
                "epsilon",
                *(part for key, value in flags.items() for part in (f"--{key}", str(value))),
            ]
        )
        == 0
    )
    rows = [line.split() for line in capsys.readouterr().out.splitlines()]
    assert row(rows, "epsilon, rdp (classic")[0] == pytest.approx(
        printed, abs=0.006, rel=6e-4
    )  # shown rounded up


def test_releases_that_share_a_draw_are_calibrated_together(capsys):
    found = {}
    for k in (1, 4):
        _, rows, _ = run(capsys, "--target_epsilon", "2", "--releases_per_step", str(k))
        found[k] = float(rows[0][1].rstrip(","))
        assert 1.996 <= row(rows, "epsilon, pld")[1] <= 2.0
    assert found[4] == pytest.approx(2 * found[1], rel=1e-3)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ((), "noise_multiplier: give either"),
        (
            ("--noise_multiplier", "1", "--target_epsilon", "1"),
            "noise_multiplier = 1.0: give either",
        ),
        (("--noise_multiplier", "-1"), "noise_multiplier = -1.0: must be positive"),
        (("--noise_multiplier", "nan"), "noise_multiplier = nan: must be positive"),
        (("--noise_multiplier", "1e200"), "noise_multiplier = 1e+200: must lie between 1e-06"),
        (("--noise_multiplier", "1e-200"), "noise_multiplier = 1e-200: must lie between"),
        (("--noise_multiplier", "1", "--steps", "10000000000000"), "must be at most 1,000,000,000"),
        (("--noise_multiplier", "1", "--group", "1000001"), "group = 1000001: must be at most"),
        (("--noise_multiplier", "1", "--delta", "1e-100"), "two accountants do not agree"),
        (("--noise_multiplier", "1", "--gamma", "1.5"), "gamma = 1.5: must lie between 0 and 1"),
        (("--noise_multiplier", "1", "--delta2", "-1"), "delta2 = -1.0"),
        (("--noise_multiplier", "1", "--group", "0"), "group = 0"),
        (("--noise_multiplier", "1", "--releases_per_step", "0"), "releases_per_step = 0"),
        (("--noise_multiplier", "1", "--delta", "2"), "privacy.delta = 2.0"),
        (("--noise_multiplier", "1", "--sample_rate", "0"), "sample_rate = 0.0"),
        (("--noise_multiplier", "1", "--steps", "0"), "steps = 0"),
        (("--target_epsilon", "1", "--relation", "swap"), "privacy.relation = 'swap'"),
        (("--target_epsilon", "1", "--delta", "1e-14"), "privacy.epsilon = 1.0: cannot be reached"),
    ],
)
def test_bad_values_are_one_line(capsys, arguments, message):
    status, rows, err = run(capsys, *arguments)
    assert (status, rows) == (2, [])
    assert err.startswith("confide epsilon: error: ") and err.count("\n") == 1
    assert message in err


FEW = ["--sample_rate", "0.025", "--steps", "60", "--delta", "8e-5", "--target_epsilon", "8"]


@pytest.mark.parametrize(("order", "rate"), [("sampled", 0.1), ("cyclic", 1.0)])
def test_correlated_noise(capsys, order, rate):
    assert main(["epsilon", *FEW, "--bands", "4", "--order", order]) == 0
    rows = [line.split() for line in capsys.readouterr().out.splitlines()]
    groups = 4 if order == "sampled" else 40
    given = Correlation(coefficients=inverse_root(4), separation=groups, sequence="0" * 64)
    sigma = calibrate(8.0, 8e-5, rate, 60, correlation=given)
    assert float(rows[0][1].rstrip(",")) == pytest.approx(sigma, rel=1e-3)
    assert 7.98 <= row(rows, "epsilon, pld")[1] <= 8.0
    independent = calibrate(8.0, 8e-5, 0.025, 60) * error_of_sums(
        Correlation(coefficients=(1.0,), separation=1, sequence="0" * 64), 60
    )
    wanted = sigma * error_of_sums(given, 60) / independent
    (said,) = [cells for cells in rows if cells[:2] == ["noise", "in"]]
    assert float(said[5]) == pytest.approx(wanted, rel=5e-3)
    assert (wanted < 0.8) is (order == "sampled")


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--bands", "41"], "bands = 41: must lie between 1 and the 40 steps"),
        (["--bands", "0"], "bands = 0"),
        (["--order", "cyclic"], "order = 'cyclic'"),
        (["--bands", "2", "--order", "poisson"], "is sampled or cyclic"),
        (["--bands", "2", "--unamplified"], "leave out"),
    ],
)
def test_correlated_noise_that_no_recipe_has(capsys, arguments, message):
    assert main(["epsilon", *FEW, *arguments]) != 0
    assert message in capsys.readouterr().err
