"""Figures draw the numbers of the files: axes, null bands, places of infinite and zero epsilon; and
the same bytes twice.
"""

import math
from dataclasses import replace
from functools import cache
from itertools import combinations, pairwise

import numpy as np
import pytest
from matplotlib.text import Text
from scipy.stats import gamma, hypergeom

from confide.report.figures import style
from confide.report.figures.amplification import rows
from confide.report.figures.frontier import Point, apart, audited, together
from confide.report.figures.registry import FIGURES
from confide.report.figures.series import chosen_gamma, group
from confide.report.results import load
from confide.specs import AmplificationSpec
from tests.nightly import nightly

pytestmark = pytest.mark.usefixtures("settings")


@pytest.fixture(scope="module")
def spec(study):
    return study[1].model_copy(update={"amplification": AmplificationSpec(epsilons=(1.0,))})


@pytest.fixture(scope="module")
def shown(spec, results, domain_study, author_study):
    """Specification and results of a study that a figure is for."""
    found = {}
    for (root, own), names in (
        (domain_study, ("leak", "domain_epsilon", "domain_roc")),
        (author_study, ("author_exposure", "tab", "subgroups", "train_time", "author_inference")),
    ):
        found |= dict.fromkeys(names, (own, load(own.runs, root / "results", root / "models")))
    return lambda name: found.get(name, (spec, results))


@pytest.fixture(scope="module")
def figure_of(shown):
    """A study's figure by its name, drawn once: tests may lay it out and change nothing else."""
    return cache(lambda name: FIGURES[name](*shown(name)))


def xy(axes, color):
    return [np.column_stack(line.get_data()) for line in axes.lines if line.get_color() == color]


def finals(axes):
    """Colours of the large markers."""
    return {line.get_color() for line in axes.lines if line.get_markersize() == 10}


def bands(axes):
    """Heights of the grey rectangles."""
    return [patch.get_bbox().intervaly for patch in axes.patches]


@pytest.mark.parametrize(
    "name", [name if name == "exposure" else nightly(name) for name in FIGURES]
)
def test_same_bytes_twice_and_nothing_of_the_day(name, shown, tmp_path):
    for folder in ("first", "second"):
        (tmp_path / folder).mkdir()
        style.save(FIGURES[name](*shown(name)), tmp_path / folder / name)
    for ending in ("png", "svg"):
        first, second = (
            (tmp_path / folder / f"{name}.{ending}").read_bytes() for folder in ("first", "second")
        )
        assert first == second
        assert len(first) > 10_000
    assert b"<dc:date>" not in (tmp_path / "first" / f"{name}.svg").read_bytes()


@pytest.mark.parametrize("name", FIGURES)
def test_heading_and_caption_stand_beside_every_figure_and_axes_have_names(name, shown, figure_of):
    spec, _ = shown(name)
    figure = figure_of(name)
    assert figure._suptitle is None and figure._supxlabel is None
    written = " ".join(text.get_text() for text in figure.findobj(Text))
    assert spec.title not in written and figure.get_figwidth() == style.WIDTH
    assert spec.title in figure.heading and len(figure.caption) > 80
    assert any(axes.get_xlabel() for axes in figure.axes) and figure.dpi >= 150


def test_exposure_band_is_the_closed_form_and_ceiling_is_log_candidates(spec, results):
    mean, largest = FIGURES["exposure"](spec, results).axes
    law = gamma(10, scale=1 / (10 * math.log(2)))
    assert bands(mean)[0] == pytest.approx([law.ppf(0.025), law.ppf(0.975)], abs=1e-6)
    assert bands(largest)[0] == pytest.approx(
        [-math.log2(1 - p**0.1) for p in (0.025, 0.975)], abs=1e-6
    )
    levels = {
        round(float(line.get_ydata()[0]), 3)
        for line in mean.lines
        if len(set(line.get_ydata())) == 1
    }
    assert {round(1 / math.log(2), 3), round(math.log2(10_000), 3)} <= levels


def test_exposure_points_are_means_over_seeds(spec, results):
    axes = FIGURES["exposure"](spec, results).axes[0]
    expected = [
        np.mean(
            [
                r.metric("exposure", "mean")
                for r in results
                if r.run.method == "crt" and r.run.gamma == gamma
            ]
        )
        for gamma in (0, 0.1, 0.3, 0.5)
    ]
    assert any(
        len(line) == 4 and np.allclose(line[:, 1], expected)
        for line in xy(axes, style.look("crt").color)
    )


def test_membership_band_is_hypergeometric(spec, results):
    accuracy, _ = FIGURES["group_membership"](spec, results).axes
    law = hypergeom(100, 50, 50)
    assert bands(accuracy)[0] == pytest.approx([law.ppf(0.025) / 50, law.ppf(0.975) / 50])


def test_membership_names_secrets_of_several_kinds(spec, results):
    kinds = ["phone", "address"]
    several = [
        replace(
            one, attacks=one.attacks | {"membership": one.attacks["membership"] | {"label": kinds}}
        )
        for one in results
        if "membership" in one.attacks
    ]
    figure = FIGURES["membership"](spec, several)
    assert "as many non-member address, phone secrets" in figure.caption


@pytest.mark.parametrize("row", [0, 1])
def test_tradeoff_puts_zero_and_infinity_beside_the_axis(spec, results, row):
    every = FIGURES["tradeoff"](spec, results).axes
    zero, finite, infinite = every[3 * row : 3 * row + 3]
    faces = {axes: finals(axes) for axes in (zero, finite, infinite)}
    color = {
        name: style.look(name).color
        for name in ("nonprivate", "redacted", "dpsgd", "crt", "selective")
    }
    assert faces[zero] == {color["redacted"]}
    assert faces[infinite] == {color["nonprivate"], color["redacted"], color["selective"]}
    assert faces[finite] == {color["dpsgd"], color["crt"], color["selective"]}
    hollow = [
        line
        for line in finite.lines
        if line.get_markersize() == 10 and line.get_fillstyle() == "none"
    ]
    assert [line.get_color() for line in hollow] == [color["selective"]]
    said = [axes.get_xlabel() for axes in every[1::3]]
    assert said[0] == ""  # what both rows share stands below the last one
    assert all(word in said[1] for word in ("replace-one", "8e-5", "one turn of a dialogue"))


def test_what_rests_on_a_policy_that_misses_nothing_is_hollow(spec, results):
    zero, finite, _ = FIGURES["tradeoff"](spec.model_copy(update={"gamma": 0.0}), results).axes[:3]
    fillings = {
        line.get_color(): line.get_fillstyle()
        for axes in (zero, finite)
        for line in axes.lines
        if line.get_markersize() == 10
    }
    hollow = {style.look(name).color for name in ("redacted", "selective", "crt")}
    filled = {style.look("dpsgd").color}
    assert fillings == dict.fromkeys(hollow, "none") | dict.fromkeys(filled, "full")
    noised = [result for result in results if result.run.method == "dpsgd"]
    for some, told in ((results, True), (noised, False)):
        figure = FIGURES["tradeoff"](spec, some)
        said = [text.get_text() for text in figure.legends[0].get_texts()]
        assert ("only if the policy\nmisses nothing" in said) is told
        assert ("Hollow" in figure.caption) is told


def test_tradeoff_shows_all_tokens_and_public_tokens(spec, results):
    axes = FIGURES["tradeoff"](spec, results).axes
    chosen = next(result for result in results if result.run.method == "dpsgd")
    for panel, field in ((axes[1], "valid_ppl"), (axes[4], "valid_ppl_public")):
        same = [
            result
            for result in results
            if result.run.name == chosen.run.name and result.run.gamma == chosen.run.gamma
        ]
        expected = np.mean([getattr(result.epochs[-1], field) for result in same])
        ends = [line[-1, 1] for line in xy(panel, style.look("dpsgd").color) if len(line) == 1]
        assert any(end == pytest.approx(expected) for end in ends)


def test_tradeoff_marks_series_that_rest_on_the_conservative_policy(spec, results):
    figure = FIGURES["tradeoff"](spec, results)
    labels = [text.get_text() for text in figure.legends[0].get_texts()]
    assert "CRT †" in labels and "DP-SGD" in labels and "†" in figure.caption


def test_tradeoff_never_mixes_meanings_on_an_axis(spec, results):
    def other(result):
        headline = result.certificate["headline"] | {"delta": 1e-6}
        return replace(result, certificate=result.certificate | {"headline": headline})

    mixed = [other(result) if result.run.method == "dpsgd" else result for result in results]
    axes = FIGURES["tradeoff"](spec, mixed).axes
    assert len(axes) == 12
    labels = [panel.get_xlabel() for panel in axes]
    assert any("8e-5" in label for label in labels) and any("1e-6" in label for label in labels)
    crt = style.look("crt").color
    dpsgd = style.look("dpsgd").color
    for panel in axes[1::3]:
        assert not {crt, dpsgd} <= finals(panel)


def test_amplification_reproduces_the_published_point():
    table = rows(AmplificationSpec(epsilons=(1.0, 3.0)))
    row = next(
        row for row in table if row["epsilon_prime"] == 1 and row["gamma"] == pytest.approx(0.1)
    )
    assert row["epsilon"] == pytest.approx(math.log(1 + 0.1 * (math.e - 1)), abs=1e-3)  # 0.159
    assert row["epsilon_scaled"] == pytest.approx(0.116, abs=1e-3)
    assert row["gamma_upper"] == pytest.approx(0.142, abs=5e-4)
    assert row["epsilon_upper"] == pytest.approx(0.218, abs=1e-3)
    ends = {row["epsilon_prime"]: row["replace_one_epsilon"] for row in table if row["gamma"] == 1}
    assert ends == pytest.approx({1: 1.7, 3: 4.1}, abs=0.06)


def test_amplification_is_zero_without_misses_and_grows_with_them():
    table = rows(AmplificationSpec(epsilons=(1.0,)))
    for column in (
        "epsilon",
        "epsilon_scaled",
        "epsilon_upper",
        "replace_one_epsilon",
        "replace_one_epsilon_upper_scaled",
    ):
        values = [row[column] for row in table]
        assert all(after >= before for before, after in pairwise(values))
    assert table[0]["gamma"] == table[0]["epsilon"] == table[0]["epsilon_scaled"] == 0
    assert all(row["epsilon_scaled"] <= row["epsilon"] + 1e-4 for row in table)


def test_looks_differ_in_grey():
    looks = list(style.METHODS.values())
    assert (
        len({look.marker for look in looks})
        == len({str(look.line) for look in looks})
        == len(looks)
    )
    assert len({look.color for look in looks}) == len(looks)


def test_models_and_ablations_of_a_method_differ(results):
    run = next(result for result in results if result.run.method == "crt")
    other = replace(run, run=run.run.model_copy(update={"name": "crt_gpt2", "model": "gpt2"}))
    without = replace(run, run=run.run.model_copy(update={"name": "crt_nodedup", "dedup": False}))
    first, second, third = group([run, other, without])
    assert (first.label, second.label, third.label) == (
        "CRT (lstm)",
        "CRT (gpt2)",
        "CRT (lstm, no dedup)",
    )
    assert len({first.fill, second.fill, third.fill}) == 3


def test_gamma_of_figures_is_that_of_the_papers_or_the_nearest(results):
    assert chosen_gamma(None, results) == 0.1
    assert chosen_gamma(0.5, results) == 0.5
    for kept, nearest in (((0, 0.3), 0.0), ((0.3, 0.5), 0.3)):
        assert chosen_gamma(None, [r for r in results if r.run.gamma in kept]) == nearest


def test_of_two_gammas_as_near_to_the_papers_a_figure_is_of_the_larger_one(results):
    moved = [
        replace(r, run=r.run.model_copy(update={"gamma": 2 * r.run.gamma}))
        for r in results
        if r.run.gamma in (0, 0.1)
    ]
    assert chosen_gamma(None, moved) == 0.2


def test_study_without_attacks_says_so(spec, results):
    bare = [replace(result, attacks={}) for result in results]
    figure = FIGURES["exposure"](spec, bare)
    assert any("no run of this study" in text.get_text() for text in figure.texts)


def test_models_of_one_gamma_have_rows_of_their_own(spec, results):
    """Where nothing varies with gamma, names stand at the rows and bands stand upright."""
    own = [result for result in results if result.run.gamma == 0.1]
    mean, largest = FIGURES["exposure"](spec, own).axes
    names = [label.get_text() for label in mean.get_yticklabels()]
    assert names == [series.label for series in group(own)] and len(names) > 1
    law = gamma(10, scale=1 / (10 * math.log(2)))
    assert mean.patches[0].get_bbox().intervalx.tolist() == pytest.approx(
        [law.ppf(0.025), law.ppf(0.975)]
    )
    at = {
        line.get_color(): line.get_xdata()[0]
        for line in largest.lines
        if line.get_markersize() == 7
    }
    for method in {result.run.method for result in own}:
        values = [result.metric("exposure", "max") for result in own if result.run.method == method]
        assert at[style.look(method).color] == pytest.approx(np.mean(values))


@pytest.mark.parametrize("name", sorted(FIGURES))
def test_legends_lie_below_the_panels_and_words_within_the_figure(name, figure_of):
    drawn = figure_of(name)
    style.settle(drawn)
    legends = [legend.get_window_extent() for legend in drawn.legends]
    panels = [axes.get_tightbbox() for axes in drawn.axes]
    assert not any(legend.overlaps(panel) for legend in legends for panel in panels)
    assert all(legend.y0 >= 0 for legend in legends)
    right = drawn.get_window_extent().x1
    titles = [axes.title.get_window_extent() for axes in drawn.axes]
    titles += [axes._left_title.get_window_extent() for axes in drawn.axes]
    names = [axes.xaxis.label.get_window_extent() for axes in drawn.axes]
    assert all(words.x0 >= -5 and words.x1 <= right + 5 for words in titles + names)
    for one, other in combinations([words for words in names if words.width > 2], 2):
        assert not one.overlaps(other)


def test_a_panel_without_private_tokens_says_so(spec, results):
    bare = [
        replace(result, evaluation=result.evaluation | {"ppl_private": None}) for result in results
    ]
    panels = FIGURES["utility"](spec, bare).axes
    assert [text.get_text() for text in panels[2].texts] == ["no such tokens"] and not panels[
        2
    ].lines
    assert all(axes.lines for axes in panels[:2])


def test_a_figure_grows_with_its_legend(spec, results):
    drawn = style.figure(style.WIDTH, 2.0)
    style.legend(drawn, [group(results)[0].handle() for _ in range(30)])
    assert 2.2 < drawn.get_figheight() < 2.4  # one label, one entry
    handles = [group(results)[0].handle() for _ in range(30)]
    for number, handle in enumerate(handles):
        handle.set_label(f"model {number}")
    style.legend(drawn, handles)
    assert drawn.get_figheight() > 3


def test_markers_that_would_overlap_are_moved_apart_and_no_others():
    assert apart([3.0, 3.0, 3.0], 0.5, right=6) == [2.5, 3.0, 3.5]
    assert apart([1.0, 5.0, 3.0], 0.5, right=6) == [1.0, 5.0, 3.0]
    assert apart([], 0.5, right=6) == []
    assert apart([3.0] * 3, 0.5, right=3.25) == [2.25, 2.75, 3.25]  # none beyond the axis
    crowd = apart([3.0] * 40, 0.5, right=4)
    assert min(crowd) >= 0 and max(crowd) <= 4 and np.diff(crowd).min() > 0
    rng = np.random.default_rng(0)
    for _ in range(20):
        places = rng.random(6)
        found = np.array(apart(places, 0.15, right=2))
        order = np.argsort(places)
        assert (np.diff(found[order]) >= 0.15 - 1e-12).all()
        moved = ((found - places) ** 2).sum()
        for _ in range(50):  # no other places that keep the distance are nearer
            other = np.sort(rng.random(6) * 2)
            if (np.diff(other) >= 0.15).all():
                assert ((other - places[order]) ** 2).sum() >= moved


def test_seeds_are_one_marker_whose_line_begins_at_the_largest_bound():
    """So that a line begins in the red region wherever one of them would refute its claim."""

    def point(certified, measured, low, high, gamma=0.1):
        numbers = {"by_rdp": certified + 1, "ppl": 4.0, "marks": {}, "seeds": (measured,)}
        return Point(
            certified=certified, measured=measured, low=low, high=high, gamma=gamma, **numbers
        )

    (one,) = together([point(3.0, 0.5, 0.25, 1.0), point(3.0, 1.5, 0.125, 2.0)])
    assert (one.certified, one.measured, one.low, one.high) == (3.0, 1.0, 0.25, 2.0)
    assert one.seeds == (0.5, 1.5)
    apart_still = [point(3.0, 0, 0, 1), point(3.0, 0, 0, 1, gamma=0.5), point(math.inf, 0, 0, 1)]
    assert len(together([*apart_still, point(0.0, 0, 0, 1)])) == 4


def test_a_caught_secret_has_the_looser_price_of_caught_ones(results):
    """And not that of the record, which is infinite where exact updates read the rest of it."""
    prices = {
        "secret_caught": 3.0,
        "caught_replace_one_rdp": 4.0,
        "secret_missed": "inf",
        "record_replace_one_rdp": "inf",
    }
    claims = [{"name": name, "epsilon": epsilon} for name, epsilon in prices.items()]
    result = next(r for r in results if r.run.method == "selective")

    def drawn(different):
        planted = {"secrets": 9, "sampled": 9, "different": different, "exposed": 0}
        own = {"claims": claims, "policy": {"planted": planted}}
        (point,) = audited([replace(result, certificate=result.certificate | own)], "game")
        return point.certified, point.by_rdp

    assert drawn(different=0) == (3.0, 4.0)
    assert drawn(different=1) == (math.inf, math.inf)


def test_texts_stand_at_their_models_epsilon_and_at_their_worth(spec, results):
    """Perplexity is that of the student, not of the model; what costs nothing is a line."""
    finite, infinite = FIGURES["worth"](spec, results).axes  # no panel for 0, which none has
    placed = {
        line.get_color(): (axes, float(line.get_ydata()[0]))
        for axes in (finite, infinite)
        for line in axes.lines
        if line.get_markersize() == 10
    }
    sides = {"nonprivate": infinite, "dpsgd": finite, "crt": finite, "redacted": infinite}
    for method, panel in sides.items():
        axes, bits = placed[style.look(method).color]
        (value,) = {
            result.metric("worth", "synthetic_bits_per_character")
            for result in results
            if result.run.method == method
        }
        assert axes is panel and bits == pytest.approx(value)
    flat = {
        round(float(line.get_ydata()[0]), 9)
        for line in finite.lines
        if len(set(line.get_ydata())) == 1
    }
    assert {1.6, 1.8, 3.0} <= flat
    bare = [replace(result, attacks={}) for result in results]
    empty = FIGURES["worth"](spec, bare)
    assert "synthesis" in empty.caption and not empty.axes


def test_names_of_ticks_do_not_touch():
    with style.settings():
        drawn, ((axes,),) = style.panels(1.6, 2.0)
        axes.plot([10, 200_000], [0, 1])
        style.plain_log(axes, "x")
        limits = axes.get_xlim()
        axes.set_xticks([100, 10_000, 100_000], ["100", "10,000", "100,000"])
        axes.set_xlim(limits)
        style.settle(drawn)
        boxes = [label.get_window_extent() for label in axes.get_xticklabels()]
    assert [label.get_text() for label in axes.get_xticklabels()] == ["100", "10,000"]
    assert boxes[0].x1 < boxes[1].x0 and axes.get_xlim() == limits
