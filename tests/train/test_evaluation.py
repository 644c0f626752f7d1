"""Scores of one pass against a loop over points; reference perplexities by a loop over tokens; what
evaluate.json says.
"""

import json
import math
from collections import Counter
from pathlib import Path

import numpy as np
import pytest
import torch

from confide import models
from confide.data.partition_files import write_partitions
from confide.errors import InputError
from confide.files.io import read_json, sha256
from confide.specs import EvaluateSpec, LSTMSpec
from confide.stages.evaluate import TRAINED, evaluate
from confide.train.evaluation import (
    backoff,
    by_author,
    evaluate_points,
    reference_points,
    score,
    some_of,
    summary,
)
from confide.train.pools import share_of
from confide.types import Partition, View

VOCAB = 20
END = 1


def view() -> View:
    source = np.random.default_rng(0)
    starts = np.concatenate([[0], source.integers(1, 6, 12).cumsum()])
    return View(
        source.integers(2, 9, starts[-1]).astype(np.int32), starts, source.random(starts[-1]) < 0.3
    )


def lstm() -> torch.nn.Module:
    torch.manual_seed(0)
    return models.build(LSTMSpec(kind="lstm", embedding=4, hidden=4, dropout=0.5), VOCAB, END)


@torch.no_grad()
def one_by_one(
    model: torch.nn.Module, view: View, points: np.ndarray
) -> list[tuple[int, int, float, bool]]:
    """(point, place, loss, hit) of every target, a point at a time and without padding."""
    rows = []
    for point in points.tolist():
        ids = torch.tensor([END, *view[point].tolist(), END])
        logits = model.eval()(ids[None, :-1])[0]
        for position, (own, target) in enumerate(
            zip(logits.double(), ids[1:].tolist(), strict=True)
        ):
            place = int(view.starts[point]) + position if position < len(view[point]) else -1
            rows.append(
                (point, place, float(own.logsumexp(0) - own[target]), int(own.argmax()) == target)
            )
    return rows


def test_one_pass_scores_every_token_as_a_loop_over_points_does() -> None:
    some_view = view()
    points = np.array([7, 2, 9, 4])
    model = lstm().train()
    found = score(model, some_view, points)
    assert model.training  # and yet nothing was dropped out
    expected = sorted(one_by_one(model, some_view, points))
    for (point, place, loss, hit), own in zip(
        expected, sorted(zip(*found, strict=True)), strict=True
    ):
        assert (point, place, hit) == (own[0], own[1], own[3]) and own[2] == pytest.approx(
            loss, rel=1e-4
        )
    marks = found.marked(some_view.private)
    assert marks.sum() == sum(
        some_view.private[some_view.starts[i] : some_view.starts[i + 1]].sum() for i in points
    )
    metrics = summary(found, marks)
    secret = [loss for _, place, loss, _ in expected if place >= 0 and some_view.private[place]]
    assert metrics["ppl_private"] == pytest.approx(math.exp(np.mean(secret)), rel=1e-4)
    assert metrics["accuracy"] == np.mean([hit for *_, hit in expected]) and metrics[
        "tokens"
    ] == len(expected)
    assert metrics == evaluate_points(model, some_view, some_view.private, points)


def test_parts_of_one_pass_are_passes_over_parts() -> None:
    """Authors: points with text on both sides alone, in the order of their numbers."""
    some_view = view()
    model = lstm()
    owner = np.array([3, 0, 0, 1, 3, 0, -1, 5, 0, 3, 1, -1], np.int32)
    train = np.arange(7)
    test = np.arange(7, 12)
    found = by_author(score(model, some_view, test), owner, train)
    assert [(row["author"], row["train_points"], row["points"]) for row in found] == [
        (0, 3, 1),
        (1, 1, 1),
        (3, 2, 1),
    ]
    for row in found:
        alone = evaluate_points(
            model, some_view, some_view.private, test[owner[test] == row["author"]]
        )
        assert (
            row["ppl"] == pytest.approx(alone["ppl"], rel=1e-5) and row["tokens"] == alone["tokens"]
        )
    assert by_author(score(model, some_view, test), np.full(12, -1, np.int32), train) == []


def test_no_points_have_no_metrics() -> None:
    none = evaluate_points(lstm(), view(), view().private, np.zeros(0, np.int64))
    assert none["tokens"] == 0 and none["ppl"] is None is none["accuracy_private"]


def test_few_training_points_are_scored_and_of_many_the_same() -> None:
    assert some_of(np.arange(5), TRAINED, np.random.default_rng(0)).tolist() == [0, 1, 2, 3, 4]
    chosen = some_of(np.arange(10_000), TRAINED, np.random.default_rng(0))
    assert (
        len(set(chosen.tolist())) == 2000 == len(chosen)
        and (np.diff(chosen) > 0).all()
        and chosen.max() > 9000
    )
    assert chosen.tolist() == some_of(np.arange(10_000), TRAINED, np.random.default_rng(0)).tolist()


def test_unigram_perplexity_is_that_of_a_loop() -> None:
    some = view()
    train = np.arange(8)
    test = np.arange(8, 12)
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
    expected = {
        f"ppl_unigram{suffix}": math.exp(sum(own) / len(own)) for suffix, own in losses.items()
    }
    assert found == pytest.approx(expected) and 1 < found["ppl_unigram"] < VOCAB


def test_a_share_without_tokens_is_none_and_no_training_text_is_uniform() -> None:
    some = view()
    none = np.zeros(0, np.int64)
    found = reference_points(some, np.zeros(len(some.ids), bool), none, np.arange(3), VOCAB, END)
    assert found["ppl_unigram_private"] is None
    assert found["ppl_unigram"] == pytest.approx(VOCAB) and found[
        "ppl_unigram_public"
    ] == pytest.approx(VOCAB)


def evaluated(folder: Path, data: Partition, model: torch.nn.Module, docs: list[str]) -> dict:
    """evaluate.json of a model, with points of these documents."""
    paths = {name: folder / f"{name}.safetensors" for name in ("original", "redacted")}
    write_partitions([data], **paths)
    points = folder / "points.jsonl"
    weights = folder / "model.safetensors"
    rows = [{"key": f"{doc}:0", "text": "x" * number} for number, doc in enumerate(docs)]
    points.write_text("".join(json.dumps(row) + "\n" for row in rows))
    models.save(model, weights, folder / "config.json")
    evaluate(
        EvaluateSpec(run="a/g0-s0"),
        model=weights,
        points=points,
        **paths,
        output=folder / "out.json",
    )
    assert read_json(folder / "out.json")["weights"] == sha256(weights)
    return read_json(folder / "out.json")


def corpus() -> Partition:
    some_view = view()
    owner = np.array([0, 1, 0, 1, 0, 0, 1, 1, 0, 0, 1, -1], np.int32)
    split = np.where(np.arange(12) < 8, 0, 2).astype(np.uint8)
    domain = np.where(np.arange(12) < 3, 1, 0).astype(np.int32)
    copy = np.arange(12) == 5
    return Partition(
        some_view,
        some_view,
        some_view.private,
        some_view.marked(),
        copy,
        split,
        domain,
        owner,
        ("a", "b"),
    )


def test_references_stand_beside_a_model_that_has_learned_nothing(tmp_path: Path) -> None:
    some_view = view()
    model = lstm()
    with torch.no_grad():
        model.head.weight.zero_()
        model.head.bias.zero_()
    found = evaluated(tmp_path, corpus(), model, ["d"] * 12)
    assert found["ppl"] == pytest.approx(found["ppl_uniform"]) == VOCAB
    characters = 8 + 9 + 10 + 11  # of the test points
    bits = found["tokens"] * math.log2(VOCAB) / characters
    assert found["bits_per_character"] == pytest.approx(bits)
    assert found["ppl_unigram"] < VOCAB and found["ppl_unigram_private"] is not None
    assert found["ppl_marked"] == pytest.approx(VOCAB)
    # here the masks of the redacted view are the marked tokens themselves: each is guessed twice
    assert found["ppl_marked_backoff"] == pytest.approx(VOCAB**2)
    assert found["domains"]["a"]["ppl"] == pytest.approx(VOCAB) and set(found["domains"]) == {
        "a"
    }  # b is not in this split
    assert found["marked_share"] == pytest.approx(some_view.private[: some_view.starts[8]].mean())


def test_planted_points_count_neither_for_authors_nor_for_the_perplexity_of_training_text(
    tmp_path: Path,
) -> None:
    data = corpus()
    model = lstm()
    docs = ["a", "b", "canary-0-3", "b", "a", "a", "audit-game-7", "canary trip", *["a"] * 4]
    found = evaluated(tmp_path, data, model, docs)
    assert [(row["author"], row["train_points"], row["points"]) for row in found["authors"]] == [
        (0, 3, 2),
        (1, 3, 1),
    ]
    kept = np.array([0, 1, 3, 4, 7])  # neither planted nor a later copy
    expected = evaluate_points(model, data.original, data.secret, kept)["ppl"]
    assert found["ppl_train"] == pytest.approx(expected)
    without = evaluated(tmp_path, data, model, ["a"] * 12)
    assert [row["train_points"] for row in without["authors"]] == [4, 4] and without[
        "ppl_train"
    ] != found["ppl_train"]
    with pytest.raises(InputError, match="has 11 points, the partition 12"):
        evaluated(tmp_path, data, model, docs[:-1])


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
