"""Exposure: its rank, its null distribution, and the two controls (memorised, never trained)."""

import math

import numpy as np
import pytest
import torch
from scipy.stats import expon, gamma

from confide.attacks.exposure.budget import Ranking
from confide.attacks.exposure.exposure import judged
from confide.attacks.exposure.null import null_band, null_tail
from confide.attacks.registry import ATTACKS
from confide.attacks.target import Target
from confide.errors import InputError
from confide.files.io import write_json
from confide.specs import ExposureSpec

SPEC = ExposureSpec(kind="exposure", chunk=300)
NAMES = ("all.json", "some.json")
SECRETS = ["3417", "0082", "9650", "5129", "7734"]
CONTROLS = ["1203", "8841", "4406", "6015", "2999"]


def planted(**changes) -> dict:
    keys = {"prefix": "My ID is: ", "suffix": "", "digits": 4, "copies": 20, "label": "canary"}
    return keys | {"secrets": SECRETS, "controls": CONTROLS} | changes


@pytest.mark.parametrize("count", [1, 2, 5, 10, 51])
def test_null_by_simulation_of_discrete_ranks(count):
    """Uniform ranks among a million; bands and means of mean, median and max within four standard
    errors.
    """
    draws = 20_000
    ranks = np.random.default_rng(count).integers(1, 10**6 + 1, size=(draws, count))
    found = math.log2(10**6) - np.log2(ranks)
    for name, function in (("mean", np.mean), ("median", np.median), ("max", np.max)):
        values = function(found, axis=1)
        mean, low, high = null_band(name, count, most=math.log2(10**6))
        assert mean == pytest.approx(values.mean(), abs=4 * values.std() / draws**0.5)
        for share, bits in ((0.025, low), (0.975, high)):
            assert (values <= bits).mean() == pytest.approx(
                share, abs=4 * (share * (1 - share) / draws) ** 0.5
            )
            assert null_tail(name, count, bits) == pytest.approx(1 - share, abs=1e-6)


def test_null_in_closed_form():
    assert null_band("mean", 1)[0] == pytest.approx(1.4427, abs=1e-4)
    assert null_band("max", 10)[0] == pytest.approx(4.23, abs=0.005)
    assert null_tail("max", 10, 1.0) == pytest.approx(
        1 - 2**-10
    )  # a largest of ten below one bit is rare
    for share, bits in ((0.025, null_band("mean", 7)[1]), (0.975, null_band("mean", 7)[2])):
        assert bits == pytest.approx(gamma.ppf(share, 7, scale=1 / (7 * math.log(2))), abs=1e-6)
    for name in ("mean", "median", "max"):  # of one secret they are all the same
        assert null_tail(name, 1, 2.5) == pytest.approx(expon.sf(2.5, scale=1 / math.log(2)))
    assert null_band("max", 10, most=3.0) == (3.0, null_band("max", 10)[1], 3.0)


@pytest.fixture(scope="module")
def target_file(tmp_path_factory):
    path = tmp_path_factory.mktemp("canaries") / "canaries.json"
    write_json(path, planted())
    return path


@pytest.mark.parametrize("kind", ["lstm that memorises", "gpt2"])
@pytest.mark.parametrize("name", ["digit_tokenizer", "merging_tokenizer"])
def test_controls(request, make_model, memorised, target_file, tmp_path, kind, name):
    """Five memorised canaries take the first five ranks; an untrained model and unplanted controls
    stay in the null.
    """
    tokenizer = request.getfixturevalue(name)
    model = make_model(kind, tokenizer, scale=1.0, double=False)
    before = ATTACKS["exposure"](SPEC, Target(model, tokenizer, tmp_path, target_file))
    assert before["null_mean_low"] <= before["mean"] <= before["null_mean_high"]
    assert before["max"] <= before["null_max_high"] and before["p_mean"] > 0.01
    after = ATTACKS["exposure"](
        SPEC, Target(memorised(kind, tokenizer, SECRETS), tokenizer, tmp_path, target_file)
    )
    assert after["max"] == pytest.approx(math.log2(10**4)) and after["p_mean"] < 1e-6
    assert sorted(after["exposures"]) == pytest.approx(
        [math.log2(10**4 / rank) for rank in (5, 4, 3, 2, 1)]
    )
    assert after["control_p_mean"] > 1e-3 and after["control_max"] < math.log2(10**4 / 5)


def test_metrics_hold_no_secret(digit_tokenizer, make_model, target_file, tmp_path):
    found = ATTACKS["exposure"](
        SPEC, Target(make_model("lstm", digit_tokenizer), digit_tokenizer, tmp_path, target_file)
    )
    text = repr({key: value for key, value in found.items() if not isinstance(value, float | list)})
    assert not any(secret in text for secret in SECRETS + CONTROLS)
    assert all(
        isinstance(value, float) and value < 14
        for key in ("exposures", "control_exposures")
        for value in found[key]
    )
    assert (found["candidates"], found["states"], found["tokens_mean"]) == (10_000, 1111, 4.0)


def test_exposure_is_bits_below_the_size_of_the_space():
    found = judged(Ranking.of(np.array([1.0, 2.0, 500.5, 1000.0])), 4, 1000)
    assert found["exposures"] == pytest.approx(
        [math.log2(1000), math.log2(500), math.log2(1000 / 500.5), 0]
    )
    assert (found["max"], found["count"]) == (pytest.approx(math.log2(1000)), 4)


@pytest.mark.parametrize(("secrets", "controls"), [([], CONTROLS), (SECRETS, []), ([], [])])
def test_either_side_may_be_empty(digit_tokenizer, make_model, tmp_path, secrets, controls):
    """What is there is ranked as it is beside the other."""
    write_json(tmp_path / "all.json", planted())
    write_json(tmp_path / "some.json", planted(secrets=secrets, controls=controls))
    model = make_model("lstm", digit_tokenizer)
    one, other = (
        ATTACKS["exposure"](SPEC, Target(model, digit_tokenizer, tmp_path, tmp_path / name))
        for name in NAMES
    )
    for prefix, asked in (("", secrets), ("control_", controls)):
        assert other[f"{prefix}exposures"] == (one[f"{prefix}exposures"] if asked else [])
        assert (f"{prefix}reason" in other) == (not asked)


def test_a_diverged_model_is_not_a_memorising_one(
    digit_tokenizer, make_model, target_file, tmp_path
):
    model = make_model("lstm", digit_tokenizer)
    sound = ATTACKS["exposure"](SPEC, Target(model, digit_tokenizer, tmp_path, target_file))
    with torch.no_grad():
        model.head.weight.fill_(torch.nan)
    found = ATTACKS["exposure"](SPEC, Target(model, digit_tokenizer, tmp_path, target_file))
    for prefix in ("", "control_"):
        assert (
            found[f"{prefix}exposures"] is None
            and "finite" in found[f"{prefix}reason"]
            and found[f"{prefix}count"] == 5
        )
    sizes = ("candidates", "states", "tokens_min", "tokens_mean", "tokens_max", "copies")
    assert {key: found[key] for key in sizes} == {key: sound[key] for key in sizes}


@pytest.mark.parametrize(
    ("changes", "key"),
    [
        ({"digits": 9}, "digits"),
        ({"secrets": ["12"]}, "secrets"),
        ({"controls": ["12a4"]}, "controls"),
        ({"digits": "4"}, "digits"),
    ],
)
def test_bad_canaries_are_refused_without_showing_them(tmp_path, changes, key):
    path = tmp_path / "canaries.json"
    write_json(path, planted(**changes))
    with pytest.raises(InputError, match=key) as caught:
        ATTACKS["exposure"](SPEC, Target(None, None, tmp_path, path))
    assert not any(secret in str(caught.value) for secret in ("12a4", "'12'", *SECRETS))


def test_canaries_are_needed(tmp_path):
    with pytest.raises(InputError, match="planted"):
        ATTACKS["exposure"](SPEC, Target(None, None, tmp_path))
    write_json(tmp_path / "canaries.json", {"prefix": "x"})
    with pytest.raises(InputError, match="missing"):
        ATTACKS["exposure"](SPEC, Target(None, None, tmp_path, tmp_path / "canaries.json"))
