"""Learning curves: means and ranges over seeds of what training wrote, one curve per row of the
sample sheet.
"""

import json
from dataclasses import replace

import numpy as np
import pytest
from edited import in_each_epoch

from confide.report.figures import style
from confide.report.figures.learning import PANELS, learning

pytestmark = pytest.mark.usefixtures("settings")


def test_curves_are_means_and_shades_ranges_of_the_files(study, results):
    root, spec = study
    figure = learning(spec, results)
    for axes, field in zip(figure.axes, PANELS, strict=True):
        assert axes.get_yscale() == "log"
        for place, row in enumerate(
            ("nonprivate/g0", "redacted/g0.1", "dpsgd/g0", "crt/g0.1", "selective/g0.1")
        ):
            files = [
                (root / "models" / f"{row}-s{seed}" / "metrics.jsonl").read_text().splitlines()
                for seed in (0, 1)
            ]
            values = np.array([[json.loads(line)[field] for line in lines] for lines in files])
            assert axes.lines[place].get_xdata().tolist() == list(range(1, 11))
            assert axes.lines[place].get_ydata() == pytest.approx(values.mean(0))
            corners = axes.collections[place].get_paths()[0].vertices
            third = corners[corners[:, 0] == 3, 1]
            assert (third.min(), third.max()) == pytest.approx(
                (values[:, 2].min(), values[:, 2].max())
            )
    assert "Lines: mean over 2 seeds; shaded: from the least to the largest" in " ".join(
        figure.caption.split()
    )


def test_variants_of_a_method_differ_in_colour_filling_and_label(study, results):
    own = [result for result in results if result.run.method == "selective"]
    told = [
        replace(result, run=result.run.model_copy(update={"name": name, "variant": name}))
        for name in ("C = 1e-2", "C = 1e-3", "C = 1e-4")
        for result in own
    ]
    figure = learning(study[1], told)
    lines = figure.axes[0].lines
    assert (
        len(lines)
        == 3
        == len({line.get_color() for line in lines})
        == len({line.get_fillstyle() for line in lines})
    )
    assert {line.get_marker() for line in lines} == {style.look("selective").marker}
    assert lines[0].get_color() == style.look("selective").color
    labels = [text.get_text() for text in figure.legends[0].get_texts()]
    assert labels == [f"Selective DP-SGD ({name})" for name in ("C = 1e-2", "C = 1e-3", "C = 1e-4")]


def test_shares_without_tokens_say_so(study, results):
    bare = [in_each_epoch(r, valid_ppl_private=None) for r in results]
    panels = learning(study[1], bare).axes
    assert [len(axes.lines) for axes in panels] == [5, 5, 0]
    assert [text.get_text() for text in panels[2].texts] == ["no such tokens"]


def test_shades_mix_with_black_and_white():
    assert style.shade("#ff0000", 0.0) == "#ff0000"
    assert style.shade("#ff0000", 0.5) == "#800000" and style.shade("#ff0000", -0.5) == "#ff8080"
