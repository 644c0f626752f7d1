"""Figures and columns of domain privacy: rates, intervals, reference lines and C are those of the
files.
"""

import csv
import io
import json
import math
from dataclasses import replace

import numpy as np
import pytest
from matplotlib.colors import to_hex
from scipy.integrate import quad

from confide.errors import InputError
from confide.methods.schedule import SCHEDULES
from confide.output.escaping import table_of
from confide.report.figures import style
from confide.report.figures.domain_epsilon import domain_epsilon
from confide.report.figures.domain_roc import domain_roc
from confide.report.figures.domains import (
    Question,
    false_alarms,
    judges,
    questions,
    rate,
    real_text,
)
from confide.report.figures.leak import leak, point
from confide.report.figures.schedules import noised, schedules
from confide.report.results import load
from confide.report.tables import table as tables

pytestmark = pytest.mark.usefixtures("settings")

AIR = Question("AIRLINE", ("MEDIA", "INSURANCE"))
COLOUR = {
    name: style.look(name).color
    for name in ("nonprivate", "redacted", "dpsgd", "jft", "schedule", "domain_only")
}


@pytest.fixture(scope="module")
def results(domain_study):
    root, spec = domain_study
    return load(spec.runs, root / "results", root / "models")


@pytest.fixture(scope="module")
def spec(domain_study):
    return domain_study[1]


def of(results, method):
    return [result for result in results if result.run.method == method]


def changed(result, key, edit):
    """The result with one attack's file edited."""
    metrics = json.loads(json.dumps(result.attacks[key]))
    edit(metrics)
    return replace(result, attacks=result.attacks | {key: metrics})


def marks(axes, size):
    """Colour -> (x, y) of markers of a size that stand alone."""
    return {
        line.get_color(): line.get_xydata()[0]
        for line in axes.lines
        if line.get_markersize() == size
    }


def test_an_attack_with_prompts_of_one_domain_asks_for_all_others_at_once(results):
    assert questions(results) == [AIR, Question("MEDIA", ("AIRLINE", "INSURANCE"))]
    assert judges(results) == ["keywords", "classifier", "gold"]
    one = results[0].attacks["leak AIRLINE"]
    assert rate(results[0], AIR, "gold").numbers == (
        one["gold_rate"],
        one["gold_low"],
        one["gold_high"],
    )
    assert rate(results[0], Question("INSURANCE", ("MEDIA",)), "gold") is None


def test_an_attack_with_prompts_of_several_domains_is_asked_pair_by_pair(results):
    def joined(metrics):
        metrics["pairs"] += results[0].attacks["leak MEDIA"]["pairs"]

    whole = changed(results[0], "leak AIRLINE", joined)
    whole = replace(
        whole, attacks={key: value for key, value in whole.attacks.items() if key != "leak MEDIA"}
    )
    pairs = whole.attacks["leak AIRLINE"]["pairs"]
    asked = questions([whole])
    assert asked == [
        Question(pair["prompt"], (pair["target"],)) for pair in pairs if pair["judge"] == "gold"
    ]
    (pair,) = [
        pair
        for pair in pairs
        if (pair["prompt"], pair["target"], pair["judge"]) == ("MEDIA", "AIRLINE", "keywords")
    ]
    assert rate(whole, Question("MEDIA", ("AIRLINE",)), "keywords").numbers == (
        pair["rate"],
        pair["low"],
        pair["high"],
    )


def test_false_alarms_of_several_targets_lie_between_the_largest_and_the_sum(results):
    pairs = [
        pair
        for pair in results[0].attacks["leak AIRLINE"]["pairs"]
        if pair["judge"] == "classifier"
    ]
    low, high = false_alarms(results, AIR, "classifier")
    assert low == max(pair["floor_low"] for pair in pairs) and high == pytest.approx(
        sum(pair["floor_high"] for pair in pairs)
    )
    full = changed(
        results[0],
        "leak AIRLINE",
        lambda metrics: [pair.update(floor_high=0.9) for pair in metrics["pairs"]],
    )
    assert false_alarms([full], AIR, "classifier")[1] == 1
    bare = changed(
        results[0], "leak AIRLINE", lambda metrics: metrics["pairs"][0].update(floor_rate=None)
    )
    assert (
        false_alarms([bare], AIR, "keywords") is None
        and false_alarms([bare], AIR, "gold") is not None
    )
    assert real_text(results, AIR, "classifier") == {
        pair["target"]: pair["ceiling_rate"] for pair in pairs
    }


def test_leak_rates_stand_at_the_perplexity_of_the_prompts_with_their_intervals(spec, results):
    figure = leak(spec, results)
    grid = np.array(figure.axes).reshape(2, 3)
    assert "AIRLINE" in grid[0, 0].get_xlabel() and "MEDIA" in grid[1, 0].get_xlabel()
    for axes, ppl in ((grid[0, 1], lambda r: r.evaluation["domains"]["AIRLINE"]["ppl"]),):
        found = marks(axes, 9)
        assert set(found) == set(COLOUR.values()) and axes.get_xscale() == "log"
        for method, color in COLOUR.items():
            own = [result.attacks["leak AIRLINE"] for result in of(results, method)]
            y = [
                np.mean([one[f"classifier_{end}"] for one in own])
                for end in ("rate", "low", "high")
            ]
            assert found[color] == pytest.approx(
                [np.mean([ppl(result) for result in of(results, method)]), y[0]]
            )
            x = found[color][0]
            assert any(
                np.allclose(line.get_xydata(), [[x, y[1]], [x, y[2]]]) for line in axes.lines
            )
            assert axes.get_ylim()[0] < y[1] and y[2] < axes.get_ylim()[1]


def test_real_text_and_the_reference_are_lines(spec, results):
    axes = leak(spec, results).axes[1]
    (band,) = axes.patches
    assert band.get_bbox().intervaly == pytest.approx(false_alarms(results, AIR, "classifier"))
    levels = {line.get_ydata()[0] for line in axes.lines if line.get_color() == style.INK}
    assert levels == set(real_text(results, AIR, "classifier").values())
    assert all(
        f"real {name} text: {level:.2f}" in axes.texts[0].get_text()
        for name, level in real_text(results, AIR, "classifier").items()
    )
    across = [
        line.get_ydata()[0]
        for line in axes.lines
        if list(line.get_xdata()) == [0, 1] and line.get_color() != style.INK
    ]
    assert across == [marks(axes, 9)[COLOUR["domain_only"]][1]]


def test_runs_without_a_perplexity_of_the_domain_or_an_answer_are_left_out(results):
    own = of(results, "jft")
    lost = replace(own[0], evaluation=own[0].evaluation | {"domains": {}})
    mute = changed(own[1], "leak AIRLINE", lambda metrics: metrics.update(gold_rate=None))
    x, y = point([lost, own[1]], AIR, "gold", "AIRLINE")
    assert x.value == own[1].evaluation["domains"]["AIRLINE"]["ppl"] and (
        y.numbers == rate(own[1], AIR, "gold").numbers
    )
    assert (
        point([lost], AIR, "gold", "AIRLINE") is None and point([mute], AIR, "gold", None) is None
    )


def test_each_domain_has_a_row_over_epsilon_and_so_have_all(spec, results):
    figure = domain_epsilon(spec, results)
    assert len(figure.axes) == 12
    for row, domain in enumerate(("AIRLINE", "MEDIA", "INSURANCE", None)):
        zero, finite, infinite = (marks(axes, 10) for axes in figure.axes[3 * row : 3 * row + 3])
        assert set(zero) == {COLOUR["redacted"]} and set(infinite) == {
            COLOUR["nonprivate"],
            COLOUR["domain_only"],
        }
        assert set(finite) == {COLOUR[name] for name in ("dpsgd", "jft", "schedule")}
        values = [
            r.evaluation["domains"][domain]["ppl"] if domain else r.evaluation["ppl"]
            for r in of(results, "jft")
        ]
        assert finite[COLOUR["jft"]][1] == pytest.approx(np.mean(values))
        middle = figure.axes[3 * row + 1]
        assert [label.get_text() for label in middle.get_xticklabels()] == ["3"]
        assert len({x for x, _ in finite.values()}) == 3  # side by side over one epsilon
        assert (domain or "all domains") in figure.axes[3 * row + 1].get_title(loc="left")
    assert "hold for what the policy catches only" in " ".join(figure.caption.split())


def test_roc_and_precision_are_those_of_the_files(spec, results):
    grid = np.array(domain_roc(spec, results).axes).reshape(4, 3)
    own = [
        result.attacks["domain_lira AIRLINE"]["ranked"]["classifier"]
        for result in of(results, "nonprivate")
    ]
    (line,) = [line for line in grid[0, 1].lines if line.get_color() == COLOUR["nonprivate"]]
    assert len(own) == 2
    for place, found in zip(line.get_xdata(), line.get_ydata(), strict=True):
        reached = [
            max(t for f, t in zip(one["roc"]["fpr"], one["roc"]["tpr"], strict=True) if f <= place)
            for one in own
        ]
        assert found == pytest.approx(np.mean(reached))
    (line,) = [line for line in grid[2, 1].lines if line.get_color() == COLOUR["nonprivate"]]
    expected = [np.mean([one["precision"][top] for one in own]) for top in ("10", "50", "100")]
    assert line.get_ydata() == pytest.approx(
        [*expected, np.mean([one["flagged"] / one["of"] for one in own])]
    )
    whisker, seeds, mean = [
        line
        for line in grid[1, 1].lines
        if COLOUR["nonprivate"] in (line.get_color(), line.get_markeredgecolor())
    ]
    ends = [np.mean([one[end] for one in own]) for end in ("auc_low", "auc_high")]
    assert whisker.get_xdata() == pytest.approx(ends)
    assert seeds.get_xdata() == pytest.approx([one["auc"] for one in own])
    assert mean.get_xdata() == pytest.approx([np.mean([one["auc"] for one in own])])


def test_a_ratio_that_cannot_be_told_has_no_curve(spec, results):
    curves, areas = np.array(domain_roc(spec, results).axes).reshape(4, 3)[:2, 2]
    assert (
        of(results, "domain_only")[0].attacks["domain_lira AIRLINE"]["ranked"]["gold"]["auc"]
        is None
    )
    for axes in (curves, areas):
        assert COLOUR["domain_only"] not in {line.get_color() for line in axes.lines}


def test_a_judge_who_finds_nothing_has_no_panels(spec, results):
    def silenced(*judges):
        def edit(metrics):
            metrics["pairs"] = [
                pair | ({"c": None} if pair["judge"] in judges else {}) for pair in metrics["pairs"]
            ]

        return [changed(result, "domain_lira AIRLINE", edit) for result in results]

    found = domain_roc(spec, silenced("gold"))
    assert len(found.axes) == 8 and not any(
        "gold" in axes.get_title(loc="left") for axes in found.axes
    )
    assert "No panels for gold" in " ".join(found.caption.split())
    (words,) = domain_roc(spec, silenced("gold", "keywords", "classifier")).texts
    assert words.get_text().startswith("no text that a model wrote")


@pytest.mark.parametrize(
    ("c", "low", "high", "arrows"),
    [(2.0, 1.5, 3.0, 0), ("inf", 0.7, "inf", 1), (0.0, 0.0, 4.0, 1), (None, 0.0, "inf", 2)],
)
def test_intervals_of_c_end_where_they_do_or_in_arrows(spec, results, c, low, high, arrows):
    def edit(metrics):
        metrics["pairs"] = [
            pair | {"c": c, "c_low": low, "c_high": high} for pair in metrics["pairs"][:1]
        ]

    edited = changed(of(results, "jft")[0], "domain_lira AIRLINE", edit)
    axes = np.array(domain_roc(spec, [edited, *of(results, "nonprivate")]).axes).reshape(4, -1)[
        3, 0
    ]
    assert axes.get_xscale() == "log" and "→ MEDIA" in axes.get_yticklabels()[0].get_text()
    assert (
        sum(to_hex(text.arrow_patch.get_edgecolor()) == COLOUR["jft"] for text in axes.texts)
        == arrows
    )
    (line,) = [
        line
        for line in axes.lines
        if line.get_color() == COLOUR["jft"] and len(line.get_xdata()) == 2
    ]
    left, right = axes.get_xlim()
    assert line.get_xdata() == pytest.approx([max(left, float(low)), min(right, float(high))])
    points = [
        line
        for line in axes.lines
        if line.get_color() == COLOUR["jft"] and len(line.get_xdata()) == 1
    ]
    assert len(points) == (c is not None)
    for one in points:
        assert one.get_xdata()[0] == pytest.approx(min(max(left, float(c)), right))
        assert (one.get_fillstyle() == "none") == (float(c) in (0, math.inf))


def test_only_a_joint_reference_is_said_to_differ_from_the_definition(spec, results):
    assert "Definition 4.1 leaves out one" in " ".join(domain_roc(spec, results).caption.split())

    def single(metrics):
        metrics["pairs"] = [pair for pair in metrics["pairs"] if pair["target"] == "MEDIA"]

    alone = [changed(result, "domain_lira AIRLINE", single) for result in results]
    assert "Definition 4.1" not in domain_roc(spec, alone).caption


@pytest.mark.parametrize("draw", [leak, domain_epsilon, domain_roc])
def test_a_study_without_domains_says_so(draw, spec, results):
    bare = [
        replace(result, attacks={}, evaluation=result.evaluation | {"domains": {}})
        for result in results
    ]
    assert any("no run of this study" in text.get_text() for text in draw(spec, bare).texts)


@pytest.mark.parametrize("draw", [leak, domain_roc])
def test_models_that_could_not_be_asked_do_not_break_a_figure(draw, spec, results):
    failed = {"leak": {"attack": "leak", "pairs": [], "reason": "not finite"}}
    failed |= {
        "domain_lira": {"attack": "domain_lira", "pairs": [], "ranked": {}, "reason": "not finite"}
    }
    broken = replace(of(results, "dpsgd")[0], attacks=failed)
    for axes in draw(spec, [*of(results, "jft"), broken]).axes:
        assert COLOUR["dpsgd"] not in {line.get_color() for line in axes.lines}
    assert tables.rows([*of(results, "jft"), broken])[-1]["leak.AIRLINE.gold"] is None


def test_curves_of_the_schedules_are_those_of_the_method(spec):
    figure = schedules(spec, [])
    assert [axes.get_title(loc="left")[:6] for axes in figure.axes] == ["η = 15", "η = 1 "]
    for axes, eta in zip(figure.axes, (15, 1), strict=True):
        assert len(axes.lines) == len(SCHEDULES)
        for line, formula in zip(
            axes.lines, (lambda t: 1 - t / 10, lambda t: float(t < 5)), strict=False
        ):
            assert line.get_ydata() == pytest.approx(
                [formula(t) for t in line.get_xdata()], abs=1e-12
            )
        concave = axes.lines[-1]
        assert concave.get_ydata() == pytest.approx(
            1 - np.exp(eta / 10 * (concave.get_xdata() - 10))
        )


def test_share_of_noised_updates_is_the_integral_above_the_curve():
    assert noised("exp_concave", 15) == pytest.approx((1 - math.exp(-15)) / 15, abs=1e-6)
    assert noised("linear", 15) == pytest.approx(0.5) == pytest.approx(noised("step", 15), abs=1e-4)
    assert noised("exp_convex", 1) == pytest.approx(
        quad(lambda x: 1 - math.exp(-10 * x), 0, 1)[0], abs=1e-6
    )
    assert noised("staircase", 1) == pytest.approx(0.55, abs=1e-4)


def test_columns_of_domains_and_judges_are_found_in_the_data(spec, results):
    table = tables.rows(results)
    row = table[0]
    own = results[0]
    for end in ("rate", "low", "high"):
        suffix = "" if end == "rate" else f"_{end}"
        assert (
            row[f"leak.MEDIA.gold{suffix}"] == own.attacks["leak MEDIA"][f"gold_{end}"] is not None
        )
    for pair in own.attacks["leak MEDIA"]["pairs"]:
        name = f"{pair['prompt']}.{pair['target']}.{pair['judge']}"
        assert (row[f"leak_pair.{name}_low"], row[f"leak_false_alarms.{name}"]) == (
            pair["low"],
            pair["floor_rate"],
        )
    ranked = own.attacks["domain_lira AIRLINE"]["ranked"]["keywords"]
    assert row["domain_lira_auc.AIRLINE.keywords"] == ranked["auc"]
    assert row["domain_lira_precision.AIRLINE.keywords.50"] == ranked["precision"]["50"]
    assert (
        row["ppl.INSURANCE"] == own.evaluation["domains"]["INSURANCE"]["ppl"]
        and row["ppl_private.MEDIA"] is None
    )
    (pair,) = [
        p
        for p in own.attacks["domain_lira AIRLINE"]["pairs"]
        if (p["target"], p["judge"]) == ("MEDIA", "gold")
    ]
    assert row["domain_c.AIRLINE.MEDIA.gold"] == float(pair["c"]) == math.inf
    read = list(csv.DictReader(io.StringIO(table_of(table))))
    assert read[0]["domain_c.AIRLINE.MEDIA.gold"] == "inf" and list(read[0]) == list(row)
    assert tables.summary(table)["nonprivate.g0.leak.MEDIA.gold"] == pytest.approx(
        np.mean([result.attacks["leak MEDIA"]["gold_rate"] for result in of(results, "nonprivate")])
    )


def test_markdown_explains_what_was_found_and_leaves_out_what_was_not(spec, results):
    text = tables.markdown(spec, tables.rows(results))
    said = text.split("## What it says of other domains")[1].split("\n## ")[0]
    head = said.split("\n")[2]
    assert (
        "| leak.AIRLINE.keywords | leak.AIRLINE.keywords 95 % |" in head and "domain_c" not in text
    )
    assert said.count("- `") == 1 and "- `leak.PROMPTS.JUDGE`: share of continuations" in said
    ratios = text.split("## Whether likelihood ratios")[1].split("\n## ")[0]
    assert "| domain_lira_precision.AIRLINE.gold.100 |" in ratios and ratios.count("- `") == 2
    assert (
        "ppl.MEDIA" in text.split("## What the model is worth")[1].split("##")[0]
        and "ppl_private.MEDIA" not in text
    )
    bare = [replace(result, attacks={}, evaluation={"ppl": 2.0}) for result in results]
    assert list(tables.rows(bare)[0]) == [column.name for column in tables.COLUMNS]
    assert "other domains" not in tables.markdown(spec, tables.rows(bare))


def test_a_run_may_have_leak_attacks_for_several_domains_but_not_two_for_one(
    domain_study, tmp_path
):
    root, spec = domain_study
    run = spec.runs[0]
    assert len(load([run], root / "results", root / "models")[0].all_of("leak")) == 2
    folder = tmp_path / "runs" / run.run
    folder.mkdir(parents=True)
    for path in (root / "results/runs" / run.run).iterdir():
        (folder / path.name).write_bytes(path.read_bytes())
    (folder / "leak_MEDIA.json").write_bytes((folder / "leak_AIRLINE.json").read_bytes())
    with pytest.raises(InputError, match=r"leak_MEDIA\.json.*two attacks of one kind"):
        load([run], tmp_path, root / "models")
    for name in ("leak_AIRLINE", "leak_MEDIA"):
        (folder / f"{name}.json").write_text(
            '{"attack": "leak", "pairs": [], "reason": "not finite"}'
        )
    assert questions(load([run], tmp_path, root / "models")) == []
