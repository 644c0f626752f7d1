"""Attacks along training: points are those of the files, epoch by epoch, beside what chance gives;
files that do not fit.
"""

import json
import math
import shutil
from dataclasses import replace

import numpy as np
import pytest
from scipy.stats import gamma, hypergeom

from confide.errors import InputError
from confide.report.figures import style
from confide.report.figures.trajectory import trajectory
from confide.report.results import load

pytestmark = pytest.mark.usefixtures("settings")


def from_files(root, row, gamma, value):
    """(epochs, 2): means over the seeds of validation perplexity and of a number of the epoch's
    attacks.
    """
    found = []
    for seed in (0, 1):
        run = f"{row}/g{gamma}-s{seed}"
        ppl = [
            json.loads(line)["valid_ppl"]
            for line in (root / "models" / run / "metrics.jsonl").read_text().splitlines()
        ]
        attacks = json.loads((root / "results/runs" / run / "trajectory.json").read_text())[
            "epochs"
        ]
        found.append(np.column_stack([ppl, [value(one) for one in attacks]]))
    return np.mean(found, axis=0)


def drawn(axes):
    return [line.get_xydata() for line in axes.lines]


def kept(results, kind):
    """The same runs with one kind of attack after their epochs."""
    return [
        replace(
            r,
            trajectory={
                e: {k: v for k, v in a.items() if k == kind} for e, a in r.trajectory.items()
            },
        )
        for r in results
    ]


@pytest.mark.parametrize(
    ("row", "gammas"), [("nonprivate", ["0"]), ("redacted", ["0", "0.1", "0.3", "0.5"])]
)
def test_points_are_means_over_seeds_of_the_files_at_every_gamma(study, results, row, gammas):
    root, spec = study
    exposure, accuracy, auc = trajectory(spec, results).axes
    for each in gammas:
        for axes, value in (
            (exposure, lambda one: np.mean(one["canaries"]["exposures"])),
            (accuracy, lambda one: one["mia"]["acc_balanced"]),
            (auc, lambda one: one["mia"]["auc"]),
        ):
            expected = from_files(root, row, each, value)
            assert expected.shape == (10, 2)
            assert any(
                line.shape == (10, 2) and np.allclose(line, expected) for line in drawn(axes)
            )
            (final,) = [
                line
                for line in axes.lines
                if np.allclose(line.get_xydata(), expected[-1:]) and len(line.get_xydata()) == 1
            ]
            assert final.get_markersize() > 3.2 and final.get_markeredgecolor() == "black"


def test_every_canary_is_a_dot(study, results):
    dots = trajectory(study[1], results).axes[0].collections
    assert sum(len(one.get_offsets()) for one in dots) == 28 * 10 * 10


def test_gammas_differ_in_shade_and_size_and_stand_in_the_legend(study, results):
    figure = trajectory(study[1], results)
    finals = [
        line
        for line in figure.axes[1].lines
        if line.get_marker() == "s" and len(line.get_xydata()) == 1
    ]
    assert (
        len(finals)
        == 4
        == len({line.get_color() for line in finals})
        == len({line.get_markersize() for line in finals})
    )
    assert style.look("redacted").color in [line.get_color() for line in finals]
    labels = [text.get_text() for text in figure.legends[0].get_texts()]
    assert {"CRT, γ = 0", "CRT, γ = 0.5", "Non-private"} <= set(labels)


def test_chance_and_ceiling_are_closed_forms(study, results):
    exposure, accuracy, _ = trajectory(study[1], results).axes
    law = gamma(10, scale=1 / (10 * math.log(2)))
    assert exposure.patches[0].get_bbox().intervaly == pytest.approx(
        [law.ppf(0.025), law.ppf(0.975)], abs=1e-6
    )
    members = hypergeom(2000, 1000, 1000)
    expected = [members.ppf(0.025) / 1000, members.ppf(0.975) / 1000]
    assert accuracy.patches[0].get_bbox().intervaly == pytest.approx(expected)
    levels = [{float(y) for y in line[:, 1]} for line in drawn(exposure) + drawn(accuracy)]
    for level in (math.log2(10_000), 1 / math.log(2), 0.5, 0.515):
        assert any(len(one) == 1 and math.isclose(*one, level) for one in levels)
    assert exposure.get_xscale() == "log" and exposure.get_yscale() == "linear"


def test_panels_that_no_run_has_are_left_out(study, results):
    assert len(trajectory(study[1], results).axes) == 3
    figure = trajectory(study[1], kept(results, "exposure"))
    assert [axes.get_ylabel() for axes in figure.axes] == ["exposure (bits)"]
    assert "Membership" not in figure.caption and "10 canaries planted 20 times" in figure.caption
    other = [
        replace(r, run=r.run.model_copy(update={"dataset": "wikitext"}))
        for r in kept(results, "membership")
    ]
    shown = [
        axes.get_visible() for axes in trajectory(study[1], kept(results, "exposure") + other).axes
    ]
    assert shown == [True, False, False, False, True, True]


def test_a_study_without_attacks_after_epochs_says_so(study, results):
    figure = trajectory(study[1], [replace(result, trajectory={}) for result in results])
    assert any("no run of this study" in text.get_text() for text in figure.texts)


def test_epochs_that_an_attack_could_not_tell_are_left_out(study, results):
    def blinded(result):
        none = {"attack": "membership", "auc": None, "acc_balanced": None, "reason": "not finite"}
        return replace(result, trajectory=result.trajectory | {3: {"membership": none}})

    axes = trajectory(
        study[1], [blinded(r) if r.run.method == "dpsgd" else r for r in results]
    ).axes[1]
    lengths = {
        line.get_marker(): len(line.get_xydata())
        for line in axes.lines
        if len(line.get_xydata()) > 2
    }
    assert lengths["^"] == 9 and lengths["X"] == 10


def test_caption_says_who_is_asked_about(study, results):
    assert "non-members in held-out text only" in trajectory(study[1], results).caption
    for result in (changed := kept(results, "membership")):
        for attacks in result.trajectory.values():
            attacks["membership"] = attacks["membership"] | {"non_members_from": "random"}
    caption = " ".join(trajectory(study[1], changed).caption.split())
    assert "random strings of spaces and digits" in caption and "held-out" not in caption


@pytest.fixture
def one(study, tmp_path):
    """Files of a single run, and its specification."""
    root, spec = study
    for folder in ("results/runs", "models"):
        shutil.copytree(root / folder / "crt/g0.1-s0", tmp_path / folder / "crt/g0.1-s0")
    return tmp_path, [run for run in spec.runs if run.run == "crt/g0.1-s0"]


def test_trajectory_is_read_only_where_the_run_has_one(one):
    root, runs = one
    path = root / "results/runs/crt/g0.1-s0/trajectory.json"
    (found,) = load(runs, root / "results", root / "models")
    assert set(found.trajectory) == set(range(1, 11)) and set(found.trajectory[1]) == {
        "exposure",
        "membership",
    }
    assert found.along("exposure", "nothing of the kind") == []
    path.unlink()
    with pytest.raises(InputError, match=r"crt/g0\.1-s0/trajectory\.json"):
        load(runs, root / "results", root / "models")
    bare = [run.model_copy(update={"trajectory": []}) for run in runs]
    assert load(bare, root / "results", root / "models")[0].trajectory == {}


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda rows: rows[4].pop("mia"), r"trajectory\.json: mia: is missing"),
        (lambda rows: rows[4]["mia"].pop("attack"), r"trajectory\.json: attack: is missing"),
        (lambda rows: rows[4].update(epoch=77), r"trajectory\.json: epochs = 77: is no epoch"),
    ],
)
def test_a_trajectory_that_does_not_fit_is_refused(one, change, message):
    root, runs = one
    path = root / "results/runs/crt/g0.1-s0/trajectory.json"
    content = json.loads(path.read_text())
    change(content["epochs"])
    path.write_text(json.dumps(content))
    with pytest.raises(InputError, match=message):
        load(runs, root / "results", root / "models")
