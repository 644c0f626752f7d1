"""Reference perplexities: by a loop over tokens, and beside those of a model in evaluate.json."""

import math
from collections import Counter
from pathlib import Path

import numpy as np
import pytest
import torch

from confide import models
from confide.data import write_partition
from confide.evaluation import backoff, reference_points, share_of
from confide.io import read_json
from confide.specs import EvaluateSpec, LSTMSpec
from confide.stages.evaluate import evaluate
from confide.types import Partition, View

VOCAB, END = 20, 1


def view() -> View:
    source = np.random.default_rng(0)
    starts = np.concatenate([[0], source.integers(1, 6, 12).cumsum()])
    return View(source.integers(2, 9, starts[-1]).astype(np.int32), starts, source.random(starts[-1]) < 0.3)


def test_unigram_perplexity_is_that_of_a_loop() -> None:
    some, train, test = view(), np.arange(8), np.arange(8, 12)
    seen = Counter(range(VOCAB))
    for point in train:
        seen.update([*some[point].tolist(), END])
    total = sum(seen.values())
    losses = {"": [], "_public": [], "_private": []}
    for point in test:
        marks = [*some.private[some.starts[point] : some.starts[point + 1]].tolist(), False]
        for token, private in zip([*some[point].tolist(), END], marks, strict=True):
            for suffix in ("", "_private" if private else "_public"):
                losses[suffix].append(-math.log(seen[token] / total))
    found = reference_points(some, some.private, train, test, VOCAB, END)
    assert found.pop("ppl_uniform") == VOCAB
    expected = {f"ppl_unigram{suffix}": math.exp(sum(own) / len(own)) for suffix, own in losses.items()}
    assert found == pytest.approx(expected) and 1 < found["ppl_unigram"] < VOCAB


def test_a_share_without_tokens_is_none_and_no_training_text_is_uniform() -> None:
    some, none = view(), np.zeros(0, np.int64)
    found = reference_points(some, np.zeros(len(some.ids), bool), none, np.arange(3), VOCAB, END)
    assert found["ppl_unigram_private"] is None
    assert found["ppl_unigram"] == pytest.approx(VOCAB) and found["ppl_unigram_public"] == pytest.approx(VOCAB)


def test_references_stand_beside_a_model_that_has_learned_nothing(tmp_path: Path) -> None:
    some, none = view(), np.full(12, -1, np.int32)
    split = np.where(np.arange(12) < 8, 0, 2).astype(np.uint8)
    domain = np.where(np.arange(12) < 3, 1, 0).astype(np.int32)
    data = Partition(some, some, some.private, some.marked(), np.zeros(12, bool), split, domain, none, ("a", "b"))
    paths = {name: tmp_path / f"{name}.safetensors" for name in ("original", "redacted")}
    write_partition(data, **paths)
    torch.manual_seed(0)
    model = models.build(LSTMSpec(kind="lstm", embedding=4, hidden=4), VOCAB, END)
    with torch.no_grad():
        model.head.weight.zero_()
        model.head.bias.zero_()
    models.save(model, tmp_path / "model.safetensors", tmp_path / "config.json")
    evaluate(EvaluateSpec(run="a/g0-s0"), model=tmp_path / "model.safetensors", **paths, output=tmp_path / "out.json")
    found = read_json(tmp_path / "out.json")
    assert found["ppl"] == pytest.approx(found["ppl_uniform"]) == VOCAB
    assert found["ppl_unigram"] < VOCAB and found["ppl_unigram_private"] is not None
    assert found["ppl_marked"] == pytest.approx(VOCAB)
    # here the masks of the redacted view are the marked tokens themselves: each is guessed twice
    assert found["ppl_marked_backoff"] == pytest.approx(VOCAB**2)
    assert found["domains"]["a"]["ppl"] == pytest.approx(VOCAB) and set(found["domains"]) == {"a"}  # b is not in this split
    train = slice(0, some.starts[8])
    assert found["marked_share"] == pytest.approx(some.private[train].mean())


def test_text_behind_a_mask_costs_the_mask_once_and_a_guess_for_each_of_its_tokens() -> None:
    masked = {"ppl_private": 5.0, "tokens_private": 2}  # two masks, for seven tokens in all
    expected = math.exp((2 * math.log(5) + 7 * math.log(VOCAB)) / 7)
    assert backoff(masked, 7, VOCAB) == pytest.approx(expected)
    assert backoff(masked, 0, VOCAB) is None and backoff({"ppl_private": None}, 7, VOCAB) is None


def test_share_of_marked_tokens_counts_the_given_points_alone() -> None:
    some = view()
    tokens = np.concatenate([some.private[some.starts[i] : some.starts[i + 1]] for i in (2, 5)])
    assert share_of(some, np.array([2, 5])) == pytest.approx(tokens.mean())
    assert share_of(some, np.zeros(0, np.int64)) is None
