"""Quoted numbers: the file says what it must, and a report quotes what its study names."""

import csv
import math

import pytest

from confide.errors import InputError
from confide.methods import METHODS
from confide.report import published
from confide.report.figures import style
from confide.report.figures.schedules import noised
from confide.report.published import Quote, quotes
from confide.report.tables import table as tables
from confide.stages.study import study as report

NAMED = (
    "crt_f3",
    "crt_f6",
    "sdp_t2_wikitext",
    "sdp_t2_customersim",
    "sdp_t3",
    "sdp_f3",
    "sdp_f4",
    "sdp_f5",
    "sdp_f6",
    "sdp_f8",
    *(f"dpt_f{number}" for number in range(1, 10)),
    *("dpt_t1", "dpt_t2", "dpt_t3"),
    *("pr_f2", "pr_f3", "pr_f4", "pr_t1", "pr_data"),
)


def test_every_row_says_where_it_stands_what_it_is_and_what_is_printed():
    rows = published.all_quotes()
    assert {*NAMED, "sdp_results"} <= {row.source for row in rows}
    for row in rows:
        assert row.where and row.quantity and row.value
        assert row.method == "" or row.method in METHODS or row.method in style.METHODS
        assert not any("|" in cell or "\n" in cell for cell in row)
    assert len({(row.source, row.where, row.method, row.quantity) for row in rows}) == len(rows)


def test_numbers_that_follow_from_others():
    (six,) = [row for row in quotes(["crt_f6"]) if row.value == "0.12"]
    assert f"{math.log1p(0.1 * math.expm1(1)):.3f}" in six.note
    (upper,) = [word for word in six.note.split() if word.startswith("(0.2")]
    assert float(upper.lstrip("(")) == pytest.approx(math.log1p(0.142 * math.expm1(1)), abs=6e-4)
    (four,) = [row for row in quotes(["sdp_f4"]) if "1.2 and 0.2" in row.value]
    ranks = [
        int(word.strip(",()").replace(",", ""))
        for word in four.value.split()
        if word.strip("(),").count(",")
    ]
    assert [round(math.log2(10**6 / rank), 1) for rank in ranks] == [1.2, 0.2]
    (found,) = [row for row in quotes(["crt_f3"]) if row.method == "crt"]
    assert (
        f"{sum(1 / i for i in range(1, 11)) / math.log(2):.2f}" in found.note
    )  # mean of the largest of ten
    assert (
        all("19.93" in row.quantity for row in quotes(["sdp_f6"]))
        and f"{math.log2(10**6):.2f}" == "19.93"
    )
    (gap,) = [row for row in quotes(["dpt_f2"]) if row.method == "schedule"]
    assert f"{100 * noised('exp_concave', 15):.1f} %" in gap.note
    assert [round(100 * (1 - spent / 8)) in range(33, 39) for spent in (5.0, 5.3)] == [
        True,
        True,
    ] and "5.0 to 5.3" in gap.note


def test_numbers_of_privacy_regularisation_that_follow_from_others():
    (planted,) = [row for row in quotes(["pr_f2"]) if row.value == "5 / 14 / 195"]
    copies = [*range(1, 11), 20, 30, 40, 50]
    assert (len(copies), sum(copies)) == (
        14,
        195,
    ) and f"{5 * math.log2(40_000):.1f} bits" in planted.note
    (pairs,) = [row for row in quotes(["pr_f3"]) if "24 pairs" in row.note]
    assert round(math.comb(100 * 14, 2) / 40_000) == 24 and "1,400" in pairs.note
    (size,) = [row for row in quotes(["pr_data"]) if row.value == "55M"]
    # with biases
    layers = 2 * (4 * 550 * (550 + 550) + 8 * 550) + 40_000
    words = 40_000 * 550
    assert f"{(layers + 2 * words) / 1e6:.1f}M, or {(layers + words) / 1e6:.1f}M" in size.note
    below = [row for row in quotes(["pr_t1"]) if float.__gt__(*map(float, row.value.split(" / ")))]
    assert len(below) == 7 and all(
        "test below training text" in row.note for row in below
    )  # 6 of 9 mitigated, and Reddit


def test_sources_are_quoted_in_the_order_asked_for_and_once():
    found = quotes(["sdp_f8", "crt_f3", "sdp_f8"])
    assert [row.source for row in found] == ["sdp_f8", "crt_f3"] and isinstance(found[0], Quote)
    assert quotes([]) == []


def test_an_unknown_source_is_refused_with_those_that_there_are():
    with pytest.raises(InputError, match=r"published = 'sdp_f99'.*crt_f3.*sdp_results"):
        quotes(["crt_f3", "sdp_f99"])


def test_reports_quote_what_the_study_names_and_nothing_else(study, tmp_path):
    root, spec = study
    where = {"results": root / "results", "models": root / "models"}
    some = spec.model_copy(update={"runs": spec.runs[:2], "published": ["sdp_t3", "sdp_f5"]})
    report(some, output=tmp_path / "some", **where)
    with (tmp_path / "some/published.csv").open(newline="") as lines:
        assert [Quote(**row) for row in csv.DictReader(lines)] == quotes(["sdp_t3", "sdp_f5"])
    text = (tmp_path / "some/table.md").read_text().split("## What the papers print")[1]
    assert (
        "| Selective DP-SGD, Table 3 (GPT-2) | dpsgd | perplexity / ε | 27.05 / 2.58 |" in text
        and "Figure 3" not in text
    )
    report(some.model_copy(update={"published": []}), output=tmp_path / "none", **where)
    assert not (tmp_path / "none/published.csv").exists()
    assert "What the papers print" not in (tmp_path / "none/table.md").read_text()
    with pytest.raises(InputError, match="sdp_t9"):
        report(some.model_copy(update={"published": ["sdp_t9"]}), output=tmp_path / "bad", **where)
    assert not (tmp_path / "bad").exists()


def test_markdown_has_no_section_of_quotes_unless_asked(study):
    table = [{column.name: None for column in tables.COLUMNS} | {"name": "crt", "gamma": 0.1}]
    assert "papers" not in tables.markdown(study[1], table)
    assert "papers print" in tables.markdown(
        study[1].model_copy(update={"published": ["crt_f3"]}), table
    )
