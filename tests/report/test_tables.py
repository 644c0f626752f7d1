"""Tables hold the numbers of the files, infinity and absence each in the notation of the format."""

import csv
import io
import math
from dataclasses import replace
from statistics import fmean

import numpy as np
import pytest
from scipy.stats import sem, t

from confide.attacks.exposure.budget import Ranking
from confide.attacks.exposure.exposure import judged
from confide.certify.facts import AUTHOR, PART_OF_AUTHOR, TOKENS, UNITS, UNITS_OF_ANY
from confide.output.escaping import table_of
from confide.report.figures.frame import Shown
from confide.report.tables import table as tables
from confide.report.verdicts.evidence import NotMeasured, Study


@pytest.fixture(scope="module")
def table(results):
    return tables.rows(results)


def row_of(table, run):
    return next(row for row in table if row["run"] == run)


def test_rows_follow_the_specification(study, table):
    assert [row["run"] for row in table] == [run.run for run in study[1].runs]


def test_values_are_those_of_the_files(results, table):
    result = next(result for result in results if result.run.run == "crt/g0.1-s0")
    row = row_of(table, "crt/g0.1-s0")
    assert row["ppl_private"] == 4000
    assert row["epsilon_bayesian"] == pytest.approx(math.log(1 + 0.1 * (math.e**3 - 1)))
    assert row["exposure_max"] == max(result.attacks["exposure"]["exposures"])
    assert row["exposure_mean"] == pytest.approx(fmean(result.attacks["exposure"]["exposures"]))
    assert row["mia_auc"] == result.attacks["membership"]["auc"]
    assert row["seconds"] == 125 and row["peak_mb"] == 310
    assert (row["epsilon_replace_one"], row["epsilon_add_or_remove"], row["epsilon_group"]) == (
        3.0,
        1.5,
        12.0,
    )
    assert row["epsilon_group_copies"] is None and row["gamma_upper"] == pytest.approx(0.15)


def test_null_bands_are_the_closed_form(table):
    row = table[0]
    low, high = (-math.log2(1 - tail ** (1 / 10)) for tail in (0.025, 0.975))
    assert (row["exposure_null_max_low"], row["exposure_null_max_high"]) == pytest.approx(
        (low, high), abs=1e-6
    )


def test_csv_reads_back_with_infinity_as_inf(table):
    read = list(csv.DictReader(io.StringIO(table_of(table))))
    row = next(row for row in read if row["run"] == "nonprivate/g0-s0")
    assert row["epsilon_bayesian"] == "inf" and float(row["epsilon_bayesian"]) == math.inf
    assert float(row["ppl"]) == row_of(table, "nonprivate/g0-s0")["ppl"]
    assert row["variant"] == ""


def test_summary_is_flat_means_over_seeds_without_bare_infinity(table):
    found = tables.summary(table)
    ppl = [row_of(table, f"crt/g0.1-s{seed}")["ppl"] for seed in (0, 1)]
    assert found["crt.g0.1.ppl"] == pytest.approx(fmean(ppl))
    assert found["selective.g0.1.epsilon_bayesian"] == "inf"
    assert all(isinstance(value, str) or math.isfinite(value) for value in found.values())


def test_markdown_shows_infinity_absence_spread_and_published_numbers(study, table):
    spec = study[1].model_copy(update={"published": ["crt_f3", "crt_f6"]})
    text = tables.markdown(
        spec,
        table,
        ["conditional on x", "conditional on x"],
        ["one whole dialogue as one row or file has it"] * 2,
    )
    assert (
        text.count(
            "What is protected: one whole dialogue as one row or file has it, that is all that "
            "one dialogue says together"
        )
        == 1
    )
    assert text.count("conditional on x") == 1
    ppl = [row_of(table, f"crt/g0.3-s{seed}")["ppl"] for seed in (0, 1)]
    low, high = t.interval(0.95, 1, loc=fmean(ppl), scale=sem(ppl))
    assert f"{fmean(ppl):.3g} ± {(high - low) / 2:.2g}" in text
    certified = text.split("## What is certified")[1].split("##")[0]
    assert "| nonprivate | 0 | 2 | – | – | – | ∞ | ∞ |" in certified and "nan" not in text
    assert "0.116" in text and "4.23" in text


UNIT = [*UNITS_OF_ANY.values(), *UNITS["dialogues"].values(), *UNITS["documents"].values()]


@pytest.mark.parametrize("unit", [*UNIT, AUTHOR, PART_OF_AUTHOR, TOKENS])
def test_every_unit_is_said_in_plain_words(study, table, unit):
    line = f"What is protected: {unit}, that is "
    assert f"{line}a secret within it" not in (text := tables.markdown(study[1], table, [], [unit]))
    assert line in text


def test_settings_of_the_noise_and_scores_of_marked_tokens_are_columns(results, table):
    noised = row_of(table, "dpsgd/g0-s0")
    exact = row_of(table, "redacted/g0-s0")
    assert (noised["noise_multiplier"], noised["max_grad_norm"]) == (0.7, 0.005)
    assert (exact["noise_multiplier"], exact["max_grad_norm"]) == (None, None)
    own = next(result for result in results if result.run.run == "redacted/g0-s0").evaluation
    for name in ("marked_share", "ppl_marked", "ppl_marked_backoff"):
        assert exact[name] == own[name] is not None
    assert exact["mia_lowercase_auc"] is None


def test_markdown_tells_variants_of_a_method_apart(study, results):
    assert "| name | γ simulated |" in tables.markdown(study[1], tables.rows(results))
    told = [
        replace(r, run=r.run.model_copy(update={"variant": "C = 1e-3"}))
        if r.run.method == "selective"
        else r
        for r in results
    ]
    certified = tables.markdown(study[1], tables.rows(told)).split("## What is certified")[1]
    assert "| name | variant | γ simulated | n |" in certified
    assert (
        "| selective | C = 1e-3 | 0.1 | 2 |" in certified and "| crt | – | 0.1 | 2 |" in certified
    )


def test_markdown_marks_what_was_not_measured(study, results):
    lacking = [
        replace(result, attacks={}) if result.run.method == "crt" else result for result in results
    ]
    text = tables.markdown(study[1], tables.rows(lacking))
    remembered = text.split("canaries\n")[1]
    assert "| crt | 0.1 | 2 | – |" in remembered


@pytest.mark.parametrize(
    ("value", "shown"),
    [
        (math.inf, "∞"),
        (0.0, "0"),
        (0.12345, "0.123"),
        (12345.6, "12,346"),
        (8e-5, "8e-05"),
        (3.0, "3"),
    ],
)
def test_show(value, shown):
    assert tables.show(value) == shown


def test_epoch_rows_match_price_and_perplexity_by_number(results):
    rows = tables.epoch_rows(results)
    own = [row for row in rows if row["run"] == "dpsgd/g0-s1"]
    assert [row["epoch"] for row in own] == list(range(1, 11))
    assert own[-1]["bayesian_epsilon"] == 3.0 and own[0]["bayesian_epsilon"] < 1


def test_estimates_are_never_shown_as_exact_ranks(study, results, table):
    """Columns, captions and verdicts know them; where all is exact, nothing changes."""
    spec = study[1]
    ranks = np.arange(1, 11) * 100.0
    found = Ranking(ranks, ranks / 2, ranks * 2, np.arange(10) == 0)
    metrics = judged(found, 10, 10_000)
    place = next(number for number, one in enumerate(results) if one.run.run == "crt/g0.1-s0")
    exposure = results[place].attacks["exposure"] | metrics
    changed = replace(results[place], attacks=results[place].attacks | {"exposure": exposure})
    mixed = [*results[:place], changed, *results[place + 1 :]]
    row = row_of(tables.rows(mixed), "crt/g0.1-s0")
    assert row["exposure_estimated"] == 0.9
    most = math.log2(10_000 / 100)
    assert row["exposure_max_estimated_low"] == pytest.approx(most - 1)
    assert row["exposure_max_estimated_high"] == pytest.approx(most + 1)
    assert all(each["exposure_estimated"] is None for each in table)
    assert "exposure_estimated" not in tables.markdown(spec, table)
    assert "exposure_max_estimated 95 %" in tables.markdown(spec, tables.rows(mixed))
    assert Shown(spec, results).estimated() == ""
    assert "In 1 runs some ranks are estimates" in Shown(spec, mixed).estimated()
    alone = Study(spec.model_copy(update={"runs": [changed.run]}), [changed])
    assert Study(spec, mixed).number("crt", "exposure_max", 0.1) == pytest.approx(
        row_of(table, "crt/g0.1-s1")["exposure_max"]
    )
    with pytest.raises(NotMeasured):
        alone.number("crt", "exposure_max", 0.1)


def test_one_seed_has_no_interval_and_the_table_says_so(study, results):
    one = [result for result in results if result.run.seed == 0]
    text = tables.markdown(study[1], tables.rows(one))
    assert "One seed of each model (n = 1)" in text and "±" not in text
    assert "| crt | 0.1 | 1 |" in text
    assert "Student's t" in tables.markdown(study[1], tables.rows(results))


def test_a_cell_says_where_a_number_is_of_fewer_seeds_than_the_row():
    group = [{"ppl": 2.0}, {"ppl": 2.0}, {"ppl": None}]
    assert tables.cell(group, "ppl") == "2 (n = 2)"


def test_of_what_is_promised_the_largest_of_the_seeds_stands_rounded_up(study, results):
    group = [{"epsilon_group": 2.994, "delta": 8.001e-5}, {"epsilon_group": 3.001, "delta": 8e-5}]
    assert tables.cell(group, "epsilon_group") == "3.01"
    assert tables.cell(group, "delta") == "8.01e-5"
    assert tables.of_seeds("epsilon_group", [2.994, 3.001]) == 3.001
    assert tables.of_seeds("gamma_measured", [0.1, 0.2]) == pytest.approx(0.15)
    few = tables.rows(result for result in results if result.run.name == "dpsgd")
    few[0] |= {"epsilon_replace_one": 2.5001}
    few[1] |= {"epsilon_replace_one": 2.5}
    certified = cells_of(tables.markdown(study[1], few))["What is certified"]
    own = next(cells for cells in certified if "epsilon_replace_one" in cells[0])
    assert own[1] == "2.51"
    assert tables.summary(few)["dpsgd.g0.epsilon_replace_one"] == 2.5001


def cells_of(text: str) -> dict[str, list[list[str]]]:
    """The rows of the table below each heading."""
    return {
        part.splitlines()[0]: [
            [cell.strip() for cell in line.strip("|").split(" | ")]
            for line in part.splitlines()
            if line.startswith("|") and not line.startswith("| ---")
        ]
        for part in text.split("\n## ")[1:]
    }


def test_a_few_experiments_have_a_column_each_with_the_same_numbers(study, results, monkeypatch):
    """What every line then says of itself is what stands below a table that is not turned."""
    names = ("nonprivate", "crt")
    few = [result for result in results if result.run.name in names]
    few = [result for result in few if result.run.gamma == few[0].run.gamma]
    table = tables.rows(few)
    assert 2 <= len(tables.groups(table)) <= tables.MOST_TURNED
    turned = tables.markdown(study[1], table)
    monkeypatch.setattr(tables, "MOST_TURNED", 0)
    usual = tables.markdown(study[1], table)
    for words, rows in cells_of(usual).items():
        if words == "What the papers print":
            continue
        on_end = list(map(list, zip(*rows, strict=True)))
        found = cells_of(turned)[words]
        assert [row[1:] for row in found] == [row[1:] for row in on_end]
        for row, (column, *_) in zip(found, on_end, strict=True):
            assert column in row[0] or row[0] == "measured"
            meaning = row[0].partition(": ")[2].replace("\\", "")
            assert meaning in usual
