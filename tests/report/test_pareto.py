"""Pareto frontiers: what no other model beats, chance as no merit, infinity as a place, and missing
numbers as missing.
"""

import math
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from confide.report.figures import style
from confide.report.figures.pareto import pareto, unbeaten

pytestmark = pytest.mark.usefixtures("settings")

SMALL = st.sampled_from([0.0, 1.0, 2.0, 3.0, math.inf])
COLOUR = {
    name: style.look(name).color for name in ("nonprivate", "redacted", "dpsgd", "crt", "selective")
}


def best(axes):
    """Colours of the models on the frontier."""
    return {line.get_color() for line in axes.lines if line.get_markersize() == 9}


def attacked(results, method, **numbers):
    """The same results, but for some numbers of an attack on one method's models."""
    changed = {kind: lambda old, more=more: old | more for kind, more in numbers.items()}
    return [
        replace(
            r,
            attacks={
                kind: changed[kind](old) if kind in changed else old
                for kind, old in r.attacks.items()
            },
        )
        if r.run.method == method
        else r
        for r in results
    ]


@given(st.lists(st.tuples(SMALL, SMALL), max_size=9))
def test_unbeaten_points_are_those_that_no_other_is_as_good_as_and_better(points):
    beaten = {
        place
        for place, (x, y) in enumerate(points)
        if any(a <= x and b <= y and (a, b) != (x, y) for a, b in points)
    }
    found = unbeaten(points)
    assert sorted(found) == [place for place in range(len(points)) if place not in beaten]
    assert [points[place] for place in found] == sorted(points[place] for place in found)


def test_panels_hold_their_numbers_and_infinity_has_a_place(study, results):
    caught, missed, _, _ = pareto(study[1], results).axes
    for axes in (caught, missed):
        assert axes.get_yticklabels()[-1].get_text() == "∞" and all(
            map(math.isfinite, axes.get_ylim())
        )
    heights = {
        line.get_color(): line.get_ydata()[0]
        for line in missed.lines
        if line.get_markersize() in (6, 9)
    }
    assert heights[COLOUR["nonprivate"]] == heights[COLOUR["redacted"]] == missed.get_yticks()[-1]
    assert heights[COLOUR["crt"]] == pytest.approx(
        next(r for r in results if r.run.method == "crt").claim("secret_missed")
    )


def test_a_leak_within_chance_beats_no_other(study, results):
    """Only utility decides among models that leak nothing."""
    first = min(results, key=lambda r: r.evaluation["ppl_public"]).run.method
    high = results[0].metric("exposure", "null_max_high")
    quiet = results
    for method in COLOUR:
        quiet = attacked(quiet, method, exposure={"max": high * (0.2 if method != first else 0.9)})
    assert best(pareto(study[1], quiet).axes[2]) == {COLOUR[first]}
    loud = attacked(quiet, first, exposure={"max": high * 1.5})
    assert len(best(pareto(study[1], loud).axes[2])) == 2


def test_what_was_not_measured_is_said(study, results):
    bare = [replace(r, attacks={}) for r in results]
    for axes in pareto(study[1], bare).axes[2:]:
        assert [text.get_text() for text in axes.texts] == ["not measured"] and not best(axes)


def test_markers_of_one_level_that_would_touch_are_lifted_apart(study, results):
    """Twenty models of one epsilon: no two markers at nearly the same perplexity and height."""
    shape = next(r for r in results if r.run.name == "dpsgd")
    many = [
        replace(
            shape,
            run=shape.run.model_copy(update={"name": f"row{number}", "variant": str(number)}),
            evaluation=shape.evaluation | {"ppl_public": 2 + 0.02 * number},
        )
        for number in range(20)
    ]
    axes = pareto(study[1], many).axes[0]
    marks = [
        (float(line.get_xdata()[0]), float(line.get_ydata()[0]))
        for line in axes.lines
        if line.get_marker() != "None" and len(line.get_xdata()) == 1
    ]
    assert len(marks) == 20
    for place, (x, y) in enumerate(marks):
        for other_x, other_y in marks[:place]:
            assert max(x, other_x) / min(x, other_x) > 1.03 or abs(y - other_y) > 0.09
    looks = {
        (line.get_color(), line.get_fillstyle())
        for line in axes.lines
        if line.get_marker() != "None" and len(line.get_xdata()) == 1
    }
    assert len(looks) == 20
