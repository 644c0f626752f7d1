"""confide epsilon: the numbers of the library, rounded up, and one-line errors."""

import pytest

from confide.cli import main

PLAN = ["--sample_rate", "0.1", "--steps", "100", "--delta", "1e-5"]


def run(capsys, *arguments):
    status = main(["epsilon", *PLAN, *arguments])
    out, err = capsys.readouterr()
    return status, [line.split() for line in out.splitlines()], err


def row(rows, *words):
    (found,) = [cells for cells in rows if " ".join(cells).startswith(" ".join(words))]
    return [float(cell) for cell in found[-3:]]


def test_table(capsys):
    status, rows, _ = run(capsys, "--noise_multiplier", "2.42", "--gamma", "0.1", "--group", "2")
    assert status == 0
    assert rows[1] == ["add_or_remove", "replace_one", "zero_out"]
    assert row(rows, "epsilon, pld") == pytest.approx([1.818, 3.506, 1.818], abs=2e-3)
    assert row(rows, "epsilon, rdp", "2")[0] == pytest.approx(2.003, abs=2e-3)
    divided, whole = (
        row(rows, "Bayesian, gamma 0.1, read at delta / gamma"),
        row(rows, "Bayesian, gamma 0.1, read at delta", "0"),
    )
    classic, group = row(rows, "epsilon, rdp (classic"), row(rows, "group of 2")
    assert all(a < b for a, b in zip(divided, whole, strict=True))
    assert all(a > b for a, b in zip(classic, row(rows, "epsilon, rdp", "2"), strict=True))
    assert all(a > b for a, b in zip(group, row(rows, "epsilon, pld"), strict=True))


def test_calibrated(capsys):
    status, rows, _ = run(capsys, "--target_epsilon", "2", "--relation", "add_or_remove")
    assert status == 0
    assert 1.996 <= row(rows, "epsilon, pld")[0] <= 2.0


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ((), "noise_multiplier: give either"),
        (("--noise_multiplier", "1", "--target_epsilon", "1"), "noise_multiplier = 1.0: give either"),
        (("--noise_multiplier", "-1"), "noise_multiplier = -1.0: must be positive"),
        (("--noise_multiplier", "nan"), "noise_multiplier = nan: must be positive"),
        (("--noise_multiplier", "1", "--gamma", "1.5"), "gamma = 1.5: must lie between 0 and 1"),
        (("--noise_multiplier", "1", "--delta2", "-1"), "delta2 = -1.0"),
        (("--noise_multiplier", "1", "--group", "0"), "group = 0"),
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
