"""The curve of the likelihood-ratio attack: what is drawn is what was measured."""

from dataclasses import replace

import numpy as np
import pytest
from scipy.stats import betabinom

from confide.report.figures import style
from confide.report.figures.roc import roc

pytestmark = pytest.mark.usefixtures("settings")


def test_curves_are_means_over_seeds_at_the_chosen_gamma(study, results):
    for axes, prefix in zip(roc(study[1], results).axes, ("", "plain_"), strict=True):
        for method, gamma in (("nonprivate", 0.0), ("redacted", 0.1)):
            found = [
                r.metric("lira", f"{prefix}roc")
                for r in results
                if (r.run.method, r.run.gamma) == (method, gamma)
            ]
            assert len(found) == 2
            (line,) = [line for line in axes.lines if line.get_color() == style.look(method).color]
            assert line.get_xdata() == pytest.approx(found[0]["fpr"][1:])
            expected = np.mean([one["tpr"] for one in found], axis=0)[1:]
            assert line.get_ydata() == pytest.approx(np.maximum(expected, 0.5 / 200))


def test_axes_are_logarithmic_from_one_false_positive_and_the_band_is_the_exact_one(study, results):
    axes = roc(study[1], results).axes[0]
    assert axes.get_xscale() == axes.get_yscale() == "log" and axes.get_xlim() == (1 / 200, 1)
    (band,) = axes.collections
    corners = band.get_paths()[0].vertices
    left = corners[corners[:, 0] == 1 / 200, 1]
    assert (
        left.max() == pytest.approx(betabinom(200, 2, 199).ppf(0.975) / 200)
        and corners[:, 1].max() == 1
    )


def test_a_study_without_shadow_models_says_so(study, results):
    figure = roc(study[1], [replace(result, attacks={}) for result in results])
    assert any("no run of this study" in text.get_text() for text in figure.texts)
