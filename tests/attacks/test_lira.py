"""The likelihood-ratio attack: its formulas against scipy and enumeration, shadow models, and the
controls.
"""

from dataclasses import replace
from itertools import combinations
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy.stats import norm

from confide.attacks.membership import shadows
from confide.attacks.membership.lira import (
    calibrated,
    distance,
    epsilon_heuristic,
    leave_one_out,
    lira,
    log_ratio,
    moments,
    roc,
)
from confide.attacks.membership.shadows import assignment, holders
from confide.attacks.registry import ATTACKS
from confide.attacks.statistics.metrics import tpr_at_fpr
from confide.attacks.target import Target
from confide.errors import InputError
from confide.files.io import write_jsonl
from confide.specs import LiraSpec, ShadowsSpec
from confide.stages.gather_shadows import gather_shadows
from confide.stages.shadows import compact, training_set
from confide.stages.shadows import shadows as stage
from confide.text.tokenizer import save
from confide.types import View

SPEC = LiraSpec(
    kind="lira", shadows="tiny", label="order", limit=40, group=8, bootstrap=100, seed=3
)
SHADOWS = ShadowsSpec(
    label="order",
    limit=40,
    models=16,
    embedding=16,
    hidden=32,
    epochs=40,
    lr=0.03,
    batch_size=16,
    background=0.1,
    seed=3,
)


def rows(held: int = 40, word: str = "has") -> list[dict]:
    """40 points of train and some of test, each with an order number that no other has, and some
    without.
    """
    numbers = np.random.default_rng(0).permutation(9000)[: 40 + held] + 1000
    found = [
        {"key": f"{n}:0", "text": f"Ann {word} {n} now", "split": "train" if i < 40 else "test"}
        for i, n in enumerate(numbers)
    ]
    for row in found:
        row["gold"] = [[5 + len(word), 9 + len(word), "order", 1.0]]
    return found + [
        {
            "key": f"call {i}:0",
            "text": f"call me {i}",
            "split": "train" if i < 20 else "valid",
            "gold": [],
        }
        for i in range(30)
    ]


@pytest.fixture(scope="module")
def made(tmp_path_factory, digit_tokenizer):
    """A corpus, its tokenizer, and the file of its shadow models."""
    folder = tmp_path_factory.mktemp("shadows")
    write_jsonl(folder / "points.jsonl", rows())
    save(digit_tokenizer, folder / "tokenizer.json")
    stage(
        SHADOWS,
        points=folder / "points.jsonl",
        tokenizer=folder / "tokenizer.json",
        output=folder / "shadows.safetensors",
    )
    return folder


@pytest.fixture
def target(made, make_model, digit_tokenizer):
    model = make_model("lstm that memorises", digit_tokenizer, scale=1.0, double=False)
    return Target(
        model, digit_tokenizer, made / "points.jsonl", shadows=made / "shadows.safetensors"
    )


def test_every_candidate_is_seen_by_half_of_the_models_with_and_without_a_pair():
    seen = assignment(8, 30, np.random.default_rng(0))
    assert (seen.sum(0) == 4).all() and (seen.sum(1) == 15).all()
    for pair in range(4):
        assert (np.delete(seen, [2 * pair, 2 * pair + 1], axis=0).sum(0) == 3).all()
    assert len({tuple(row) for row in seen}) == 8
    assert np.array_equal(seen, assignment(8, 30, np.random.default_rng(0)))


def test_who_learns_what():
    """A text with a candidate: who saw it; with two: who saw both; others: everybody or nobody."""
    seen = assignment(4, 2, np.random.default_rng(0))
    found = [
        ("a", True, [0]),
        ("b", False, [1]),
        ("c", True, [0, 1]),
        ("d", True, []),
        ("e", False, []),
        ("f", True, []),
    ]
    texts, learns = training_set(found, seen, 1.0, np.random.default_rng(0))
    assert texts == ["a", "b", "c", "d", "f"]
    assert np.array_equal(
        learns.T, [seen[:, 0], seen[:, 1], seen[:, 0] & seen[:, 1], [True] * 4, [True] * 4]
    )
    assert training_set(found, seen, 0.5, np.random.default_rng(0))[0] in (
        ["a", "b", "c", "d"],
        ["a", "b", "c", "f"],
    )
    assert training_set(found, seen, 0.0, np.random.default_rng(0))[0] == ["a", "b", "c"]


def test_compact_vocabulary_renames_tokens_alike_in_all_views():
    views = [
        View(np.array(ids, np.int32), np.array([0, 2, 4]), np.zeros(4, bool))
        for ids in ([7, 2, 2, 9], [9, 7, 7, 7])
    ]
    (first, second), bos, size = compact(views, 5)
    assert (
        (bos, size) == (1, 4)
        and first.ids.tolist() == [2, 0, 0, 3]
        and second.ids.tolist() == [3, 2, 2, 2]
    )
    assert first[1].tolist() == [0, 3]


@pytest.mark.parametrize("models", [6, 64])
def test_ratio_is_that_of_two_normal_densities(models):
    source = np.random.default_rng(0)
    seen = assignment(models, 10, source)
    own = source.normal(size=10)
    scores = source.normal(size=(models, 10)) * 2 + seen
    fitted = moments(scores, seen)
    groups = [[scores[mask[:, i], i] for i in range(10)] for mask in (seen, ~seen)]
    means = [np.array([group.mean() for group in side]) for side in groups]
    if models == 64:  # a variance per candidate
        deviations = [np.array([group.std(ddof=1) for group in side]) for side in groups]
    else:  # one for all: groups of equal size, so the mean of their unbiased variances
        deviations = [np.sqrt(np.mean([group.var(ddof=1) for group in side])) for side in groups]
    expected = norm.logpdf(own, means[0], deviations[0]) - norm.logpdf(own, means[1], deviations[1])
    assert log_ratio(own, fitted) == pytest.approx(expected, abs=1e-12)
    assert norm.sf(distance(own, fitted)) == pytest.approx(norm.sf(own, means[1], deviations[1]))


def test_calibration_undoes_another_scale_and_leaves_a_shadow_model_alone():
    source = np.random.default_rng(0)
    hard = 3 * source.normal(size=2000) - 7  # how hard each secret is
    reference = hard + source.normal(size=(16, 2000))
    own = hard + source.normal(size=2000)
    assert (calibrated(own, reference) - own).std() < 0.1  # of a deviation of 3.2
    assert calibrated(3 * own + 5, reference) == pytest.approx(calibrated(own, reference))
    slope, offset = np.polyfit(reference.mean(0), own, 1)
    rest = own - offset - slope * reference.mean(0)
    assert np.corrcoef(calibrated(own, reference) - reference.mean(0), rest)[0, 1] == pytest.approx(
        1
    )
    assert calibrated(np.ones(2000), reference) == pytest.approx(reference.mean(0))


@pytest.mark.parametrize("effect", [0.0, 3.0])
def test_leave_one_out_on_drawn_scores(effect):
    """Scores that know nothing are guessed at random, even by three models a side; d' = 3 has AUC
    Phi(3 / sqrt 2) = 0.983.
    """
    source = np.random.default_rng(0)
    seen = assignment(8, 2000, source)
    found = leave_one_out(source.normal(size=(8, 2000)) + effect * seen, seen)
    assert found["shadow_auc"] == pytest.approx(
        0.5 if effect == 0 else norm.cdf(3 / 2**0.5), abs=0.015
    )


def test_four_shadow_models_cannot_be_judged_by_each_other():
    seen = assignment(4, 50, np.random.default_rng(0))
    scores = np.random.default_rng(1).normal(size=(4, 50)) + 5 * seen
    assert set(leave_one_out(scores, seen).values()) == {None}
    assert (
        log_ratio(np.full(50, 5.0), moments(scores, seen)) > 0
    ).mean() > 0.9  # but judge a target


def test_curve_has_the_rates_of_every_threshold():
    source = np.random.default_rng(0)
    inside = source.normal(size=300).round(1) + 1
    outside = source.normal(size=500).round(1)
    curve = roc(inside, outside)
    assert all(len(values) == len(curve["fpr"]) <= 200 for values in curve.values())
    assert (curve["fpr"][0], curve["fpr"][-1], curve["tpr"][-1]) == (0, 1, 1)
    for name in curve:
        assert (np.diff(curve[name]) >= 0).all()
    for fpr, tpr in zip(curve["fpr"][1:-1], curve["tpr"][1:-1], strict=True):
        assert tpr == tpr_at_fpr(inside, outside, fpr)


def test_null_band_of_the_curve_by_enumeration():
    """All orders of 3 members among 4 non-members are equally likely where scores know nothing."""
    hits = [[] for _ in range(4)]
    for places in combinations(range(7), 3):
        inside = np.array(places, float)
        outside = np.array([i for i in range(7) if i not in places], float)
        for false in range(4):
            hits[false].append((inside > np.sort(outside)[::-1][false]).mean())
    curve = roc(np.arange(3.0), np.arange(4.0))
    assert curve["fpr"] == [0, 0.25, 0.5, 0.75, 1]
    for false in range(4):
        cumulative = [np.mean(np.array(hits[false]) <= k / 3) for k in range(4)]
        for name, level in (("null_low", 0.025), ("null_high", 0.975)):
            assert curve[name][false] == pytest.approx(
                next(k for k in range(4) if cumulative[k] >= level - 1e-12) / 3
            )


def test_heuristic_epsilon():
    ones = np.arange(5000) + 10_000.0
    zeros = np.arange(5000) * 1.0
    assert epsilon_heuristic(ones, zeros, 1e-3) == pytest.approx(
        np.log((1 - 1e-3) / 0.01), abs=0.01
    )
    few = epsilon_heuristic(
        ones[:200], zeros[:200], 1e-3
    )  # of two false positives both may come from luck
    assert 0 < few < np.log((0.025 ** (1 / 200) - 1e-3) / 0.01)
    assert epsilon_heuristic(zeros, zeros, 0.0) == 0
    assert epsilon_heuristic(ones[:50], zeros[:50], 0.0) is None


def test_shadow_models_are_caught_by_each_other(made):
    found = shadows.read(made / "shadows.safetensors", SPEC)
    assert found.seen.shape == found.total.shape == (16, 80) and found.member.sum() == 40
    assert (
        np.array_equal(found.line, np.arange(80))
        and (found.count == 4).all()
        and found.loss.shape == (40, 16)
    )
    assert leave_one_out(found.total, found.seen)["shadow_auc"] > 0.8
    assert b"Ann" not in (made / "shadows.safetensors").read_bytes()


def test_controls(target, fit):
    """An untrained target is within the band of guessing, an overfit one is caught; the second run
    says the same.
    """
    before = ATTACKS["lira"](SPEC, target)
    fit(
        target.model,
        target.tokenizer,
        [row["text"] for row in rows() if row["split"] == "train"],
        250,
    )
    after = ATTACKS["lira"](SPEC, target)
    for prefix in ("", "total_", "offline_", "total_offline_"):
        assert (
            before[f"{prefix}auc_null_low"]
            <= before[f"{prefix}auc"]
            <= before[f"{prefix}auc_null_high"]
        )
        assert (
            after[f"{prefix}auc"] > 0.9
            and after[f"{prefix}auc_low"] > after[f"{prefix}auc_null_high"]
        )
    assert after["group_auc"] == 1 and after["plain_auc"] > 0.9
    assert (after["members"], after["non_members"], after["groups"], after["shadow_models"]) == (
        40,
        40,
        5,
        16,
    )
    assert (
        after["tpr_at_fpr_0.01"] is None
        and after["epsilon_heuristic"] is None
        and "too few" in after["reasons"]["epsilon_heuristic"]
    )
    assert after == ATTACKS["lira"](SPEC, target) and before["shadow_auc"] == after["shadow_auc"]


def test_stage_is_deterministic(made, tmp_path):
    few = SHADOWS.model_copy(update={"models": 4, "epochs": 2})
    for name in ("one", "two"):
        stage(
            few,
            points=made / "points.jsonl",
            tokenizer=made / "tokenizer.json",
            output=tmp_path / name,
        )
    assert (tmp_path / "one").read_bytes() == (tmp_path / "two").read_bytes()


MANY = SHADOWS.model_copy(update={"models": 36, "epochs": 1})  # groups of 16, 16 and 4


def of_share(made: Path, output: Path, share: str | None, **changed: Any) -> Path:
    """Train a share of MANY, or with other options."""
    files = {"points": made / "points.jsonl", "tokenizer": made / "tokenizer.json"}
    processes = changed.pop("processes", 1)
    spec = MANY.model_copy(update=changed)
    stage(spec, **files, output=output, share=share, processes=processes)
    return output


@pytest.fixture(scope="module")
def many(made: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    return of_share(made, tmp_path_factory.mktemp("many") / "whole", None, processes=2)


@pytest.mark.parametrize("count", [1, 2, 3])
def test_shares_give_the_bytes_of_one_job(
    made: Path, many: Path, tmp_path: Path, count: int
) -> None:
    names = [f"{number + 1}-of-{count}" for number in range(count)]
    shares = [of_share(made, tmp_path / name, name) for name in names]
    gather_shadows(shares=shares, output=tmp_path / "output")
    assert (tmp_path / "output").read_bytes() == many.read_bytes()


def test_shares_that_do_not_belong_together_are_refused(
    made: Path, many: Path, tmp_path: Path
) -> None:
    first, second = (of_share(made, tmp_path / name, f"{name}-of-2") for name in "12")
    other = of_share(made, tmp_path / "other", "2-of-2", lr=0.5)
    refusals = {
        "each of 36 models once": [[first], [first, first], [second, first], [many, second]],
        "is of other shadow models": [[first, other]],
        "expected at least one file": [[]],
    }
    for message, lists in refusals.items():
        for shares in lists:
            with pytest.raises(InputError, match=message):
                gather_shadows(shares=shares, output=tmp_path / "output")
    assert not (tmp_path / "output").exists()
    with pytest.raises(InputError, match="holds 16 of 36 shadow models"):
        shadows.read(first, SPEC)
    with pytest.raises(InputError, match="share = '1-of-4': no shadow models fall to it"):
        of_share(made, tmp_path / "none", "1-of-4")


def test_shadows_of_other_candidates_are_refused(target, tmp_path, merging_tokenizer):
    for key, value in (("limit", 30), ("label", "phone"), ("seed", 4)):
        with pytest.raises(InputError, match=f"{key} = .*trained for") as caught:
            lira(SPEC.model_copy(update={key: value}), target)
        assert "shadows.safetensors" in str(caught.value)
    write_jsonl(tmp_path / "points.jsonl", rows()[1:])
    with pytest.raises(InputError, match="another dataset"):
        lira(SPEC, replace(target, points=tmp_path / "points.jsonl"))
    write_jsonl(tmp_path / "points.jsonl", [rows()[-1], *rows()])
    with pytest.raises(InputError, match="another dataset"):
        lira(SPEC, replace(target, points=tmp_path / "points.jsonl"))
    with pytest.raises(InputError, match="another tokenizer"):
        lira(SPEC, replace(target, tokenizer=merging_tokenizer))


def test_missing_and_foreign_files_are_refused(target, made, tmp_path):
    with pytest.raises(InputError, match="needs shadow models"):
        lira(SPEC, replace(target, shadows=None))
    for path in (made / "points.jsonl", tmp_path / "none"):
        with pytest.raises(InputError, match="not a file of shadow models"):
            lira(SPEC, replace(target, shadows=path))


def test_too_few_candidates_are_refused(made, tmp_path):
    write_jsonl(tmp_path / "points.jsonl", rows(held=9))
    with pytest.raises(InputError, match="fewer than 10"):
        stage(
            SHADOWS,
            points=tmp_path / "points.jsonl",
            tokenizer=made / "tokenizer.json",
            output=tmp_path / "x",
        )
    assert not (tmp_path / "x").exists()


def test_later_copies_of_a_candidate_follow_it(tmp_path):
    """All points that hold the secret are in or out together."""
    from confide.attacks.membership.members import first_occurrences

    write_jsonl(tmp_path / "points.jsonl", [*rows(), rows()[0]])
    chosen = list(first_occurrences(tmp_path / "points.jsonl", ["order"]))
    held = [held for _, _, held in holders(tmp_path / "points.jsonl", "order", chosen)]
    assert held[0] == held[-1] == [0] and held[1] == [1]
