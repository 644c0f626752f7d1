"""Exposure as published against a loop over all candidates, one forward pass each."""

import math

import numpy as np
import pytest
import torch

from confide.attacks.exposure import published
from confide.attacks.exposure.candidates import Sentence
from confide.attacks.exposure.published import mean_log_probs, ordinal_ranks, published_ranks
from confide.attacks.registry import ATTACKS
from confide.attacks.target import Target
from confide.files.io import write_json
from confide.specs import ExposureSpec

SPEC = ExposureSpec(kind="exposure", chunk=300, published=True)
SECRETS = ["341", "008", "965"]
CONTROLS = ["120", "999"]


@pytest.fixture
def attacked(tmp_path):
    """Metrics of the attack on a model, by template."""

    def run(model, tokenizer, prefix="My ID is: ", suffix="", spec=SPEC) -> dict:
        keys = {"prefix": prefix, "suffix": suffix, "digits": 3, "copies": 20, "label": "canary"}
        write_json(tmp_path / "canaries.json", keys | {"secrets": SECRETS, "controls": CONTROLS})
        return ATTACKS["exposure"](
            spec, Target(model, tokenizer, tmp_path, tmp_path / "canaries.json")
        )

    return run


@torch.no_grad()
def loop(model, tokenizer, prefix, suffix) -> list[float]:
    """Mean log-probability of all tokens but the first of every sentence, one at a time."""
    found = []
    for value in range(1000):
        ids = tokenizer.encode(f"{prefix}{value:03d}{suffix}")
        logs = model(torch.tensor([[tokenizer.bos_id, *ids]]))[0].log_softmax(-1)
        scored = [logs[i, ids[i]].item() for i in range(1, len(ids))]
        found.append(sum(scored) / len(scored))
    return found


@pytest.mark.parametrize(
    ("kind", "name", "prefix", "suffix"),
    [
        ("lstm", "merging_tokenizer", "My ID is: ", ""),
        (
            "lstm",
            "merging_tokenizer",
            "",
            "4 is it.",
        ),  # the first token and the suffix's depend on the candidate
        (
            "lstm",
            "digit_tokenizer",
            "My ID is: ",
            " then.",
        ),  # and with equally many tokens the suffix counts
        ("gpt2", "merging_tokenizer", "ID ", "."),
    ],
)
def test_ranks_are_those_of_a_loop(request, make_model, attacked, kind, name, prefix, suffix):
    tokenizer = request.getfixturevalue(name)
    model = make_model(kind, tokenizer)
    slow = loop(model, tokenizer, prefix, suffix)
    np.testing.assert_allclose(
        mean_log_probs(model, tokenizer, Sentence(prefix, suffix, 3), 300), slow, rtol=0, atol=1e-9
    )
    metrics = attacked(model, tokenizer, prefix, suffix)
    for group, secrets in (("", SECRETS), ("control_", CONTROLS)):
        ranks = [1 + sum(score > slow[int(secret)] for score in slow) for secret in secrets]
        expected = [math.log2(1000 / rank) for rank in ranks]
        assert metrics[f"{group}published_exposures"] == pytest.approx(expected)
        assert metrics[f"{group}published_mean"] == pytest.approx(sum(expected) / len(expected))
        assert metrics[f"{group}published_max"] == pytest.approx(max(expected))
        assert metrics[f"{group}exposures"] != pytest.approx(
            expected
        )  # the honest ones rank by the digits' total


def test_equally_many_tokens_are_not_ranked_twice(
    digit_tokenizer, make_model, attacked, monkeypatch
):
    model = make_model("lstm", digit_tokenizer)
    scores = mean_log_probs(model, digit_tokenizer, Sentence("My ID is: ", "", 3), 300)
    monkeypatch.setattr(published, "mean_log_probs", None)
    metrics = attacked(model, digit_tokenizer)
    assert metrics["published_exposures"] == metrics["exposures"]
    assert metrics["published_exposures"] == pytest.approx(
        [math.log2(1000 / (scores >= scores[int(s)]).sum()) for s in SECRETS]
    )
    assert (metrics["published_mean"], metrics["published_max"]) == (
        metrics["mean"],
        metrics["max"],
    )


def test_ties_are_in_numeric_order():
    scores = np.random.default_rng(0).integers(0, 5, 200) / 3
    which = np.arange(0, 200, 7)
    order = sorted(range(200), key=lambda value: -scores[value])  # stable, as in the authors' code
    assert ordinal_ranks(scores, which).tolist() == [order.index(value) + 1 for value in which]


@pytest.mark.parametrize("name", ["digit_tokenizer", "merging_tokenizer"])
def test_memorised_canaries_come_first_here_too(request, memorised, attacked, name):
    tokenizer = request.getfixturevalue(name)
    metrics = attacked(memorised("lstm that memorises", tokenizer, SECRETS), tokenizer)
    assert sorted(metrics["published_exposures"], reverse=True) == pytest.approx(
        [math.log2(1000 / rank) for rank in (1, 2, 3)]
    )
    assert metrics["control_published_max"] < math.log2(1000 / 3)


def test_off_unless_asked_for(digit_tokenizer, make_model, attacked):
    metrics = attacked(
        make_model("lstm", digit_tokenizer), digit_tokenizer, spec=ExposureSpec(kind="exposure")
    )
    assert not [key for key in metrics if "published" in key]


def test_reasons_instead_of_numbers(merging_tokenizer, make_model, attacked, tmp_path):
    model = make_model("lstm", merging_tokenizer)
    sentence = Sentence("My ID is: ", "", 7)
    sizes = {"tokens_min": 2.0, "tokens_max": 5.0}
    target = Target(model, merging_tokenizer, tmp_path)
    assert published_ranks(target, sentence, np.array([1]), np.array([1.0]), sizes, 300) == (
        None,
        "more than 6 digits",
    )
    with torch.no_grad():
        model.head.weight.fill_(torch.nan)
    metrics = attacked(model, merging_tokenizer)
    assert metrics["published_exposures"] is None and "finite" in metrics["published_reason"]
