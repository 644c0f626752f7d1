"""Studies of authors: moments at a perplexity level, means over authors, and figures that draw the
numbers of the files.
"""

import csv
import io
import json
import math
from dataclasses import replace

import numpy as np
import pytest
from authored import AUTHORS, BITS, COPIES, EPOCHS, LEVELS, ROWS, SECONDS, TRAIN, ppl, write_authors
from edited import in_each_epoch
from scipy.stats import gamma

from confide.attacks.exposure.null import null_band
from confide.output.escaping import table_of
from confide.report.figures import style
from confide.report.figures.authors import (
    Change,
    baseline,
    by_copies,
    changes,
    difference,
    ends,
    exposure_curve,
    gap,
    mean_over,
    quantiles,
)
from confide.report.figures.levels import Moment, epoch_words, heading, levels, moment, moments
from confide.report.figures.registry import FIGURES
from confide.report.figures.tab import rate
from confide.report.figures.train_time import ratio
from confide.report.results import load
from confide.report.tables import table as tables
from confide.specs import ReportSpec
from confide.stages.study import study as report

pytestmark = pytest.mark.usefixtures("settings")
FIGURE_NAMES = ("author_exposure", "tab", "subgroups", "train_time", "author_inference")


@pytest.fixture(scope="module")
def spec(author_study):
    return author_study[1]


@pytest.fixture(scope="module")
def found(author_study):
    root, spec = author_study
    return load(spec.runs, root / "results", root / "models")


def of(found, row):
    return [result for result in found if result.run.name == row]


def file(author_study, run, name):
    return json.loads((author_study[0] / "results/runs" / run / f"{name}.json").read_text())


# Levels
# --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("row", ROWS)
@pytest.mark.parametrize("level", LEVELS)
def test_a_level_takes_the_epoch_whose_perplexity_is_nearest(found, row, level):
    expected = min(
        range(1, EPOCHS + 1), key=lambda n: max(ppl(row, n) / level, level / ppl(row, n))
    )
    one = moment(of(found, row)[0], level, "tab")
    assert (one.epoch, one.ratio) == (expected, pytest.approx(ppl(row, expected) / level))
    assert one.near == (0.9 <= ppl(row, expected) / level <= 1.1)


def test_some_runs_come_near_a_level_and_some_never_do(found):
    near = {row: moment(of(found, row)[0], 12.0, "tab").near for row in ROWS}
    assert near == {
        "plain": True,
        "dp": False,
        "dp_author": False,
        "clip": True,
        "adversarial": True,
        "triplet": True,
    }


def test_the_final_model_needs_no_level_and_the_others_a_trajectory(found):
    last = moment(of(found, "dp")[0], None, "tab")
    assert (last.epoch, last.ratio, last.near) == (EPOCHS, None, True)
    still = [replace(result, trajectory={}) for result in found]
    assert moment(still[0], 12.0, "tab") is None and moment(still[0], None, "tab") is not None
    assert moment(still[0], None, "leak") is None
    spec = ReportSpec(study="x", title="x", runs=[found[0].run], ppl_levels=[12.0])
    assert levels(spec, still, "tab") == [None] and levels(spec, found, "tab") == [12.0, None]


def test_moments_are_told_with_their_epochs_and_the_ratio_to_the_level():
    one = Moment(3, 41.0, 40.0, {})
    assert (
        epoch_words([one]) == "epoch 3, ×1.02"
        and epoch_words([one._replace(level=None)]) == "epoch 3"
    )
    assert epoch_words([one, Moment(5, 39.0, 40.0, {})]) == "epochs 3–5, ×1.00"
    assert epoch_words([one, Moment(5, 60.0, 40.0, {})]) == "epochs 3–5, ×1.26 †"


# Numbers over authors
# ------------------------------------------------------------------------------------------------


def test_exposure_is_a_mean_over_authors_of_their_means_over_seeds(found, author_study):
    files = [file(author_study, f"plain/g0-s{seed}", "words")["canaries"] for seed in (0, 1)]
    curve = exposure_curve(moments(of(found, "plain"), None, "sequence_exposure"))
    assert tuple(curve) == COPIES
    for copies, mean in curve.items():
        rows = [
            (a, x)
            for one in files
            for c, a, x in zip(one["copies"], one["authors"], one["exposures"], strict=True)
            if c == copies
        ]
        each = [np.mean([x for a, x in rows if a == author]) for author in range(AUTHORS)]
        assert mean.value == pytest.approx(np.mean(each)) and mean.low <= mean.value <= mean.high


def test_an_author_with_many_canaries_counts_once_and_what_has_no_number_not_at_all():
    canaries = {
        "copies": [2, 2, 2, 2],
        "authors": [0, 0, 1, 1],
        "exposures": [10.0, 20.0, 3.0, None],
    }
    assert by_copies(canaries) == {2: {0: [10.0, 20.0], 1: [3.0]}}
    one = Moment(1, 1.0, None, {"sequence_exposure": {"canaries": canaries}})
    assert exposure_curve([one])[2].value == pytest.approx(9.0)
    assert by_copies(canaries | {"exposures": None}) == {}


def test_bootstrap_intervals_are_those_of_the_normal_law_for_many_authors():
    values = np.random.default_rng(0).normal(3, 2, 400)
    mean = mean_over(values.tolist())
    half = 1.96 * values.std() / 20
    assert mean.value == pytest.approx(values.mean())
    assert (mean.low, mean.high) == pytest.approx(
        (values.mean() - half, values.mean() + half), abs=0.03
    )
    both = difference(
        values.tolist(), (values + 1).tolist()
    )  # of two groups that are drawn apart: wider by sqrt 2
    assert both.value == pytest.approx(1.0)
    assert (both.high - both.low) == pytest.approx(2 * half * math.sqrt(2), rel=0.08)
    assert mean_over([5.0] * 5).numbers == (5.0, 5.0, 5.0)


def test_null_band_is_that_of_a_mean_of_exponentials():
    law = gamma(24, scale=1 / (24 * math.log(2)))
    assert null_band("mean", 24)[1:] == pytest.approx((law.ppf(0.025), law.ppf(0.975)))
    drawn = np.random.default_rng(0).exponential(1 / math.log(2), (4000, 24)).mean(1)
    _, low, high = null_band("mean", 24)
    assert ((drawn > low) & (drawn < high)).mean() == pytest.approx(0.95, abs=0.012)


def test_changes_are_against_the_non_private_run_of_the_same_seed(found, author_study):
    own, start = (
        file(author_study, f"{row}/g0-s1", "evaluate")["authors"] for row in ("dp", "plain")
    )
    (seed,) = [result for result in of(found, "dp") if result.run.seed == 1]
    assert baseline(seed, found).run.run == "plain/g0-s1"
    rows = changes([seed], found)
    assert [row.author for row in rows] == list(range(AUTHORS))  # the most text first
    assert [row.train_points for row in rows] == TRAIN.tolist()
    expected = [100 * (a["ppl"] / b["ppl"] - 1) for a, b in zip(own, start, strict=True)]
    assert [row.percent for row in rows] == pytest.approx(expected)
    assert all(row.percent == 0 for row in changes(of(found, "plain"), found))
    both = changes(of(found, "dp"), found)
    assert both[0].percent != rows[0].percent and len(both) == AUTHORS


def test_without_a_non_private_run_of_the_dataset_and_the_domains_there_is_nothing_to_compare(
    found,
):
    rest = [result for result in found if result.run.name != "plain"]
    assert changes(of(found, "dp"), rest) == [] and gap(of(found, "dp"), rest) is None
    other = [
        replace(r, run=r.run.model_copy(update={"domains": ["A"]})) for r in of(found, "plain")
    ]
    assert baseline(of(found, "dp")[0], other) is None


def test_the_gap_is_that_between_five_authors_at_either_end(found):
    rows = changes(of(found, "dp"), found)
    most, least = ends(rows)
    assert most == [row.percent for row in rows[:5]] and least == [row.percent for row in rows[-5:]]
    estimate = gap(of(found, "dp"), found)
    assert (
        estimate.value == pytest.approx(np.mean(least) - np.mean(most)) and estimate.low > 0
    )  # made to be hurt
    none = gap(of(found, "triplet"), found)
    assert none.low < 0 < none.high  # made to hurt all alike
    few = [Change(author, 10 - author, float(author)) for author in range(3)]
    assert ends(few) == ([0.0], [2.0]) and ends(few[:1]) == ([], [])


def test_quantiles_hold_every_author_once_the_least_text_first():
    rows = [Change(author, 100 - author, 0.0) for author in range(12)]
    parts = quantiles(rows)
    assert [len(part) for part in parts] == [3, 3, 2, 2, 2]
    assert [one.train_points for part in parts for one in part] == list(range(89, 101))
    assert [len(part) for part in quantiles(rows[:3])] == [1, 1, 1] and quantiles([]) == []


def test_time_is_over_the_median_epoch_of_the_non_private_run(found, author_study):
    root = author_study[0] / "models"
    wall = {
        (row, seed): [
            json.loads(line)["seconds"]
            for line in (root / f"{row}/g0-s{seed}/metrics.jsonl").read_text().splitlines()
        ]
        for row in ("dp", "plain")
        for seed in (0, 1)
    }
    expected = np.concatenate(
        [np.array(wall["dp", seed]) / np.median(wall["plain", seed]) for seed in (0, 1)]
    )
    own = ratio(of(found, "dp"), found, "seconds")
    assert own.numbers == pytest.approx(tuple(np.quantile(expected, [0.5, 0.25, 0.75])))
    assert own.value == pytest.approx(SECONDS["dp"][0] / SECONDS["plain"][0], rel=0.1)
    bare = [in_each_epoch(r, cpu_seconds=None) for r in found]
    assert (
        ratio(of(bare, "dp"), bare, "cpu_seconds") is None
        and ratio(of(bare, "dp"), bare, "seconds") == own
    )


# Figures
# --------------------------------------------------------------------------------------------------


def test_exposure_panels_draw_each_run_at_each_level_hollow_where_it_is_not_reached(spec, found):
    drawn = FIGURES["author_exposure"](spec, found)
    panels = drawn.axes
    assert len(panels) == len(LEVELS) + 1
    for axes, level in zip(panels, (*LEVELS, None), strict=True):
        assert axes.get_xscale() == "log"
        lines = {
            line.get_color(): line for line in axes.lines if len(line.get_xdata()) == len(COPIES)
        }
        assert len(lines) == len(ROWS)
        own = moments(of(found, "plain"), level, "sequence_exposure")
        line = lines[style.look("nonprivate").color]
        assert line.get_ydata() == pytest.approx(
            [mean.value for mean in exposure_curve(own).values()]
        )
        assert (line.get_fillstyle() == "none") == (not all(one.near for one in own))
        assert {
            round(float(line.get_ydata()[0]), 3)
            for line in axes.lines
            if len(line.get_ydata()) == 2
        } >= {BITS, 37.0}
        assert axes.patches[0].get_bbox().intervaly == pytest.approx(null_band("mean", AUTHORS)[1:])
        of_panel = drawn.caption.partition(f"{heading(level)}: ")[2]
        assert of_panel.startswith(f"Non-private {epoch_words(own)}, ")
    hollow = [
        line.get_fillstyle() for line in panels[1].lines if len(line.get_xdata()) == len(COPIES)
    ]
    assert hollow.count("none") == 2  # those that stay above the level


def test_tab_bars_are_the_rates_of_the_files_with_their_intervals(spec, found):
    axes = FIGURES["tab"](spec, found).axes[-1]
    own = moments(of(found, "plain"), None, "tab")
    expected = [rate(own, name, "greedy") for name in ("canaries", "real", "controls")]
    bars = [bar.get_width() for bar in axes.patches][:3]
    assert bars == pytest.approx([value for value, _, _ in expected]) == [86 / 144, 0.3, 0.0]
    whiskers = [line.get_xdata() for line in axes.lines if len(line.get_xdata()) == 2][:3]
    assert np.allclose(whiskers, [[low, high] for _, low, high in expected])
    assert len({bar.get_hatch() for bar in axes.patches}) == 3  # told apart in grey
    marks = [
        (line.get_marker(), float(line.get_xdata()[0]))
        for line in axes.lines
        if len(line.get_xdata()) == 1
    ][:4]
    assert marks == [
        ("d", 92 / 144),
        ("d", 0.31),
        ("o", 0.4),
        ("d", 0.0),
    ]  # of real text its beginnings, too
    assert [text.get_text() for text in axes.texts] == ["epoch 8"] * len(ROWS)
    assert rate(own, "nobody", "greedy") is None


def test_tab_bars_are_white_where_the_level_is_not_reached(spec, found):
    axes = FIGURES["tab"](spec, found).axes[1]
    faces = [bar.get_facecolor()[:3] for bar in axes.patches]
    white = [all(value == 1.0 for value in face) for face in faces]
    assert white == [row in ("dp", "dp_author") for row in ROWS for _ in range(3)]
    assert sum("†" in text.get_text() for text in axes.texts) == 2


def test_subgroups_leave_out_the_run_that_they_compare_with(spec, found):
    first, second, third = FIGURES["subgroups"](spec, found).axes
    labels = [label.get_text() for label in first.get_yticklabels()]
    assert labels[0] == "DP-SGD" and len(labels) == len(ROWS) - 1 and "Non-private" not in labels
    gaps = [gap(of(found, row), found) for row in ROWS if row != "plain"]
    marks = [float(line.get_xdata()[0]) for line in second.lines if len(line.get_xdata()) == 1]
    written = np.array(
        [text.get_text().strip("]").replace(" [", ", ").split(", ") for text in second.texts], float
    )
    assert marks == pytest.approx([one.value for one in gaps]) and np.allclose(
        written, [one.numbers for one in gaps], rtol=4e-3, atol=0.051
    )
    line = next(line for line in third.lines if len(line.get_xdata()) == 5)
    parts = quantiles(changes(of(found, "dp"), found))
    assert line.get_ydata() == pytest.approx(
        [np.mean([one.percent for one in part]) for part in parts]
    )
    least = [one.train_points for one in parts[0]]
    assert third.get_xticklabels()[0].get_text() == f"{least[0]}–{least[-1]}"


def test_time_and_probe_have_a_mark_for_every_run(spec, found):
    (times,) = FIGURES["train_time"](spec, found).axes
    marks = [float(line.get_xdata()[0]) for line in times.lines if len(line.get_xdata()) == 1]
    expected = [
        ratio(of(found, row), found, clock).value
        for row in ROWS
        for clock in ("seconds", "cpu_seconds")
    ]
    assert marks == pytest.approx(expected)
    (probes,) = FIGURES["author_inference"](spec, found).axes
    marks = [float(line.get_xdata()[0]) for line in probes.lines if len(line.get_xdata()) == 1]
    assert marks == pytest.approx([0.1 + 0.3 * ROWS[row][2] for row in ROWS])
    still = {
        round(float(line.get_xdata()[0]), 4)
        for line in probes.lines
        if list(line.get_ydata()) == [0, 1]
    }
    assert still == {round(1 / AUTHORS, 4), 0.12, 0.35}


@pytest.mark.parametrize("name", FIGURE_NAMES)
def test_a_study_without_authors_says_so(name, study, results):
    bare = [in_each_epoch(r, seconds=None) for r in results]
    assert any(
        "no run of this study" in text.get_text() for text in FIGURES[name](study[1], bare).texts
    )


# Tables
# --------------------------------------------------------------------------------------------------


def test_table_has_the_columns_of_authors_where_there_are_any(spec, found, results):
    table = tables.rows(found)
    row = next(row for row in table if row["run"] == "dp/g0-s0")
    own = of(found, "dp")[0]
    assert (
        row["ppl_train"] == own.evaluation["ppl_train"]
        and row["sequence_exposure"] == own.attacks["sequence_exposure"]["canaries"]["mean"]
    )
    assert (row["author_gap"], row["author_gap_low"]) == pytest.approx(gap([own], found)[:2])
    fitted = own.attacks["sequence_exposure"]["canaries"]["fitted"]
    assert (row["tab_real_first_k"], row["sequence_exposure_fitted"]) == pytest.approx(
        (0.1, np.mean(fitted))
    )
    assert table[0]["author_gap"] is None and table[0]["author_inference_blind"] == 0.35
    assert not [
        name for name in tables.rows(results)[0] if name.startswith(("author", "tab", "sequence"))
    ]
    text = tables.markdown(spec, table)
    assert (
        "`author_gap 95 %`" in text and "| plain |" in text.split("## What it says of authors")[1]
    )
    assert tables.summary(table)["dp.g0.author_gap"] > 50
    read = list(csv.DictReader(io.StringIO(table_of(table))))
    assert float(read[2]["author_gap"]) == row["author_gap"]


def test_the_report_of_authors_is_written_whole(tmp_path):
    own = write_authors(tmp_path, figures=("tab",), rows=("plain", "triplet"))
    report(own, results=tmp_path / "results", models=tmp_path / "models", output=tmp_path / "out")
    assert {"tab.png", "tab.svg", "table.csv"} <= {
        path.name for path in (tmp_path / "out").iterdir()
    }
