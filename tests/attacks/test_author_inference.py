"""Author inference: the classifier against sklearn, features against single forward passes, and the
controls.
"""

import random

import numpy as np
import pytest
import torch
from planted_words import WORDS, no_word_of, point, sentence, word_tokenizer
from scipy.sparse import csr_matrix

from confide.attacks.authorship.author_inference import (
    Labelled,
    blind_features,
    last_states,
    token_counts,
    told,
)
from confide.attacks.registry import ATTACKS
from confide.attacks.statistics.probe import choose, fit, hits
from confide.attacks.target import Target
from confide.errors import InputError
from confide.files.io import write_jsonl
from confide.specs import AuthorInferenceSpec
from confide.types import View

SPEC = AuthorInferenceSpec(kind="author_inference")


@pytest.fixture(scope="module")
def tokenizer():
    return word_tokenizer()


def problem(points: int = 240, classes: int = 4, width: int = 6, seed: int = 0):
    rng = np.random.default_rng(seed)
    labels = rng.integers(classes, size=points)
    return rng.normal(size=(classes, width))[labels] + rng.normal(size=(points, width)), labels


@pytest.mark.parametrize("sparse", [False, True])
def test_the_classifier_is_sklearns(sparse):
    from sklearn.linear_model import LogisticRegression

    features, labels = problem()
    probe = fit(csr_matrix(features) if sparse else features, labels, 4, 3.0, 500, None)
    theirs = LogisticRegression(C=1 / 3.0, max_iter=2000, tol=1e-10).fit(features, labels)
    assert np.allclose(probe.weights, theirs.coef_.T, atol=2e-3)
    ours, other = (
        np.exp(z - np.logaddexp.reduce(z, 1)[:, None])
        for z in (probe.logits(features), theirs.decision_function(features))
    )
    assert np.allclose(ours, other, atol=2e-3) and probe.weights.std() > 0.1


def test_validation_chooses_the_penalty_and_equals_go_to_the_strongest():
    features, labels = problem(60, width=40, seed=1)
    valid = problem(200, width=40, seed=1)
    found = choose((features[:30], labels[:30]), valid, 4, [1e-4, 1e4, 10.0], 200)
    tried = {
        penalty: fit(features[:30], labels[:30], 4, penalty, 400, None)
        for penalty in (1e4, 10.0, 1e-4)
    }
    rates = {
        penalty: hits(probe.logits(valid[0]), valid[1]).mean() for penalty, probe in tried.items()
    }
    assert found.penalty == max(rates, key=lambda penalty: (round(rates[penalty], 2), penalty))
    plain = np.eye(4)[labels], labels
    assert choose(plain, plain, 4, [1.0, 2.0], 20).penalty == 2.0
    assert (
        choose((features, labels), (features[:0], labels[:0]), 4, [1.0, 3.0, 2.0], 5).penalty == 2.0
    )


def test_hits_count_the_classes_that_are_ahead():
    logits = np.array([[3.0, 2.0, 1.0], [3.0, 2.0, 1.0], [1.0, 1.0, 0.0], [1.0, 1.0, 1.0]])
    labels = np.array([0, 2, 1, 2])  # of equals, the first class is the guess
    assert hits(logits, labels).tolist() == [True, False, False, False]
    assert (
        hits(logits, labels, 2).tolist() == [True, False, True, False]
        and hits(logits, labels, 3).all()
    )


@pytest.mark.parametrize("kind", ["lstm", "gpt2"])
def test_states_are_those_after_the_last_token(tokenizer, make_model, kind):
    model = make_model(kind, tokenizer)
    rows = [[], [5, 6, 7], [8], list(range(3, 20)), [9, 9]]
    view = View(
        np.concatenate(rows).astype(np.int32),
        np.cumsum([0] + [len(row) for row in rows]),
        np.zeros(23, bool),
    )
    with torch.no_grad():
        expected = [
            model.hidden(torch.tensor([[tokenizer.bos_id, *row]]))[0, -1].numpy() for row in rows
        ]
    assert np.allclose(last_states(model, view), expected, atol=1e-9)
    counts = token_counts(view, tokenizer.vocab_size).toarray()
    assert np.allclose(
        counts, np.log1p([np.bincount(row, minlength=tokenizer.vocab_size) for row in rows])
    )
    assert np.array_equal(view.ids, np.concatenate(rows))  # which counting leaves as they are


def corpus(path, separable: bool, authors: int = 5, each: int = 30) -> None:
    """Texts of authors who begin and end alike; separable: each has two words of their own in the
    middle.
    """
    source = random.Random(0)
    rows = []
    for author in range(authors):
        for number in range(each):
            own = (2 * author, 2 * author + 1) if separable else range(10)
            text = sentence((3, *(source.choice(own) for _ in range(5))))
            split = (
                "test"
                if number % 3 == 0
                else "valid"
                if number % 3 == 1 and number % 2
                else "train"
            )
            rows.append(point(len(rows), text, f"writer {author}", split))
    rows += [
        point(9000 + n, sentence((n,)), "writer 0", canary=n) for n in range(9)
    ]  # canaries are left out
    rows += [point(9100, "x", None), point(9101, "y", None, "test")]
    write_jsonl(path, rows)


@pytest.mark.parametrize("separable", [True, False])
def test_controls(tokenizer, make_model, tmp_path, separable):
    """Authors with words of their own are told apart, by the model's state and without it; others
    are not.
    """
    path = tmp_path / "points.jsonl"
    corpus(path, separable)
    found = ATTACKS["author_inference"](
        SPEC, Target(make_model("lstm that memorises", tokenizer, scale=1.0), tokenizer, path)
    )
    assert (found["authors"], found["points"], found["train_points"]) == (5, 50, 75) and found[
        "chance"
    ] == 0.2
    assert found["majority"] == 0.2 and found["authors_untrained"] == 0
    if separable:
        assert (
            found["accuracy"] > 0.9
            and found["blind"] > 0.9
            and found["accuracy_low"] > found["chance"]
        )
    else:
        assert (
            found["accuracy_low"] <= 0.2 <= found["accuracy_high"]
            and found["blind_accuracy_low"] <= 0.2 <= found["blind_accuracy_high"]
        )
    assert found["accuracy_top"] == 1.0  # five of five
    assert found == ATTACKS["author_inference"](
        SPEC, Target(make_model("lstm that memorises", tokenizer, scale=1.0), tokenizer, path)
    )
    assert no_word_of(found, [*WORDS, "writer"])


def test_a_model_that_ignores_the_text_tells_nothing_though_the_text_does(
    tokenizer, make_model, tmp_path
):
    path = tmp_path / "points.jsonl"
    corpus(path, True)
    model = make_model("lstm", tokenizer, scale=0.0)
    found = ATTACKS["author_inference"](SPEC, Target(model, tokenizer, path))
    assert found["accuracy"] <= 0.2 and found["blind"] > 0.9


def test_authors_without_training_text_are_left_out_and_others_refused(
    tokenizer, make_model, tmp_path
):
    path = tmp_path / "points.jsonl"
    model = make_model("lstm", tokenizer)

    def attack(**changes):
        return ATTACKS["author_inference"](
            SPEC.model_copy(update=changes), Target(model, tokenizer, path)
        )

    ours = [
        point(n, sentence((n % 10, 1)), f"writer {n % 2}", split)
        for n in range(8)
        for split in ("train", "test")
    ]
    late = [point(100 + n, "amber", "writer late", "test") for n in range(3)]
    write_jsonl(path, ours + late)
    found = attack()
    assert (found["authors"], found["points"], found["authors_untrained"]) == (2, 8, 1)
    assert attack(limit=5)["train_points"] == 5
    write_jsonl(path, [row for row in ours if row["owner"] == "writer 0"] + late)
    with pytest.raises(InputError, match="fewer than two"):
        attack()
    write_jsonl(path, [row for row in ours if row["split"] == "train"] + late)
    with pytest.raises(InputError, match="test texts"):
        attack()
    write_jsonl(path, [row | {"owner": None} for row in ours])
    with pytest.raises(InputError, match="no authors") as error:
        attack()
    assert "points.jsonl" in str(error.value)


def test_a_diverged_model_is_a_reason(tokenizer, make_model, tmp_path):
    corpus(tmp_path / "points.jsonl", True)
    model = make_model("lstm", tokenizer, scale=float("nan"))
    found = ATTACKS["author_inference"](SPEC, Target(model, tokenizer, tmp_path / "points.jsonl"))
    assert found["accuracy"] is None and "finite" in found["reason"] and found["blind"] > 0.9


def test_tokens_that_no_training_text_has_change_nothing():
    """The classifier of all counts is that of the counts that are left."""
    rng = np.random.default_rng(0)
    lengths = rng.integers(3, 12, 60)
    ids = np.concatenate(
        [rng.integers(20 * (n % 3), 20 * (n % 3) + 40, size) for n, size in enumerate(lengths)]
    )
    split = np.repeat([0, 1, 2], [36, 12, 12])
    view = View(ids.astype(np.int32), np.cumsum([0, *lengths]), np.zeros(len(ids), bool))
    texts = Labelled(view, np.arange(60) % 3, split, authors=3, untrained=0)
    few = blind_features(texts, 5000)
    assert few.shape[1] == len(np.unique(ids[: lengths[:36].sum()])) < 80
    whole, ours = (told(found, texts, SPEC, "") for found in (token_counts(view, 5000), few))
    assert whole == pytest.approx(ours) and ours["accuracy"] > 0.4
