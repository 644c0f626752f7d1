"""Perplexity on the policy's tokens: each model at its certified epsilon, training on masked text
twice, guesses as lines.
"""

import math
from dataclasses import replace

import numpy as np
import pytest

from confide.report.figures import style
from confide.report.figures.private_ppl import private_ppl
from confide.report.seeds import over_seeds

COLOUR = {
    name: style.look(name).color for name in ("nonprivate", "redacted", "dpsgd", "crt", "selective")
}


pytestmark = pytest.mark.usefixtures("settings")


def models(axes):
    """(colour, hollow) -> (x, y) of the large markers."""
    marks = [line for line in axes.lines if line.get_markersize() == 10]
    return {
        (line.get_color(), line.get_fillstyle() == "none"): tuple(line.get_xydata()[0])
        for line in marks
    }


def mean(results, method, gamma, field):
    return np.mean(
        [r.evaluation[field] for r in results if (r.run.method, r.run.gamma) == (method, gamma)]
    )


def test_training_on_masked_text_stands_twice_at_zero(study, results):
    for zero in private_ppl(study[1], results).axes[::3]:
        found = models(zero)
        assert set(found) == {
            (COLOUR[name], hollow) for name in ("redacted", "crt") for hollow in (False, True)
        }
        for name in ("redacted", "crt"):
            assert found[COLOUR[name], True][1] == pytest.approx(
                mean(results, name, 0.1, "ppl_marked")
            )
            assert found[COLOUR[name], False][1] == pytest.approx(
                mean(results, name, 0.1, "ppl_marked_backoff")
            )
        assert found[COLOUR["redacted"], False][0] != found[COLOUR["crt"], False][0]


def test_without_the_fair_score_only_the_published_one_is_drawn(study, results):
    old = [replace(r, evaluation=r.evaluation | {"ppl_marked_backoff": None}) for r in results]
    assert set(models(private_ppl(study[1], old).axes[0])) == {
        (COLOUR[name], True) for name in ("redacted", "crt")
    }


def test_epsilons_of_different_meaning_have_rows_of_their_own(study, results):
    axes = private_ppl(study[1], results).axes
    assert len(axes) == 6
    assert models(axes[1]) == {
        (COLOUR["dpsgd"], False): (0.0, pytest.approx(mean(results, "dpsgd", 0, "ppl_marked")))
    }
    assert [label.get_text() for label in axes[1].get_xticklabels()] == ["3"]
    assert models(axes[4]) == {
        (COLOUR["selective"], False): (
            0.0,
            pytest.approx(mean(results, "selective", 0.1, "ppl_marked")),
        )
    }
    assert (
        "one secret within one turn" in axes[1].get_xlabel()
        and "one secret's tokens" in axes[4].get_xlabel()
    )
    for infinite in axes[2::3]:
        assert set(models(infinite)) == {(COLOUR["nonprivate"], False)}


def test_training_that_nothing_certifies_stands_at_infinity(study, results):
    def unbounded(result):
        claims = [claim | {"epsilon": "inf"} for claim in result.certificate["claims"]]
        return replace(result, certificate=result.certificate | {"claims": claims})

    figure = private_ppl(
        study[1], [unbounded(r) if r.run.method == "selective" else r for r in results]
    )
    assert len(figure.axes) == 3
    assert set(models(figure.axes[2])) == {
        (COLOUR[name], False) for name in ("nonprivate", "selective")
    }


def test_guesses_are_lines_in_every_panel_and_named(study, results):
    figure = private_ppl(study[1], results)
    for axes in figure.axes:
        levels = {
            float(line.get_ydata()[0]) for line in axes.lines if line.get_color() == style.INK
        }
        assert levels == {50_258.0, 3000.0} and axes.get_yscale() == "log"
    caption = " ".join(figure.caption.split())
    assert (
        "A model above that line has learned nothing of secrets" in caption and "γ = 0.1" in caption
    )


def test_a_study_without_these_numbers_says_so(study, results):
    bare = [
        replace(r, evaluation={k: v for k, v in r.evaluation.items() if "marked" not in k})
        for r in results
    ]
    assert any(
        "no run of this study" in text.get_text() for text in private_ppl(study[1], bare).texts
    )


def test_perplexity_of_one_model_lies_within_its_whisker(study, results):
    axes = private_ppl(study[1], results).axes[1]
    values = [r.evaluation["ppl_marked"] for r in results if r.run.method == "dpsgd"]
    over = over_seeds(values)
    assert any(
        np.allclose(line.get_xydata(), [[0.0, over.low], [0.0, over.high]]) for line in axes.lines
    )
    assert len(values) == 2 and not math.isclose(*values)
