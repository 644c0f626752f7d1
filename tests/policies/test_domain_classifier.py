"""A domain classifier as a policy: windows and spans against a rule that is known, networks against
plain forward passes.
"""

import json
import random
import shutil

import numpy as np
import pytest
import torch
from safetensors import safe_open
from safetensors.torch import load_file, save_file
from transformers import (
    BertConfig,
    BertForSequenceClassification,
    PreTrainedTokenizerFast,
    RobertaConfig,
    RobertaForSequenceClassification,
)

from confide.data.redaction import batch_finder_of
from confide.errors import InputError
from confide.policies import batched, policy
from confide.policies.batches import closed
from confide.policies.classifier_training import drawn, train
from confide.policies.domain_classifier import (
    Classifier,
    cut,
    finder,
    from_file,
    load,
    probabilities,
    save,
)
from confide.specs import ClassifierFitSpec, ClassifierPolicySpec, RedactSpec, parse
from confide.text.tokenizer import train_bpe

DOMAINS = ("AIRLINE", "MEDIA")
WORDS = {"AIRLINE": ["seat", "flight", "boarding"], "MEDIA": ["cable", "data", "internet"]}
SHARED = ["i", "want", "to", "know", "my", "please", "ok"]


def utterance(domain, draw):
    return " ".join(
        draw.sample([*SHARED, draw.choice(WORDS[domain]), draw.choice(WORDS[domain])], 9)
    )


def texts(count, seed):
    draw = random.Random(seed)
    return {
        domain: {str(one): [utterance(domain, draw)] for one in range(count)} for domain in DOMAINS
    }


SMALL = {"layers": 1, "width": 32, "heads": 2, "vocab_size": 320, "batch_size": 16, "lr": 0.003}
FIT = ClassifierFitSpec(kind="classifier", start=None, min_length=20, epochs=12, **SMALL)


@pytest.fixture(scope="module")
def trained(tmp_path_factory):
    """A classifier of two domains that a word or two tell apart, on disk."""
    path = tmp_path_factory.mktemp("trained") / "two.safetensors"
    save(train(FIT, texts(150, 0))._replace(threshold=0.9), path)
    return path


def spec(model, **fields):
    return parse(ClassifierPolicySpec, {"kind": "classifier", "model": str(model)} | fields)


# Windows and spans
# --------------------------------------------------------------------------------------------------


def rule(texts):
    """AIRLINE where a window has "seat", MEDIA where it has "cable", neither else; both where it
    has both.
    """
    return np.array(
        [[0.9 * ("seat" in text.split()), 0.8 * ("cable" in text.split())] for text in texts]
    ).reshape(-1, 2)


def naive(text, words, threshold, column):
    """Characters of the words of every window that the rule gives a higher probability than the
    threshold.
    """
    found = set()
    places = []
    end = 0
    for word in text.split():
        start = text.index(word, end)
        end = start + len(word)
        places.append((start, end))
    for first in range(max(1, len(places) - words + 1)):
        window = places[first : first + words]
        if window and rule([" ".join(text[a:b] for a, b in window)])[0, column] > threshold:
            found |= set(range(window[0][0], window[-1][1]))
    return found


@pytest.mark.parametrize(
    ("threshold", "column"), [(0.5, 0), (0.5, 1), (0.85, 0), (0.85, 1), (0.8, 1)]
)
def test_spans_are_those_of_all_windows_above_the_threshold(threshold, column):
    draw = random.Random(1)
    some = 0
    many = [
        "  ".join(
            draw.choices(
                ["seat", "cable", "a", "bb", "seats"], [1, 1, 9, 9, 3], k=draw.randint(0, 30)
            )
        )
        for _ in range(150)
    ]
    found = finder(rule, DOMAINS, [column], threshold, 5)(many)
    for text, spans in zip(many, found, strict=True):
        characters = [place for span in spans for place in range(span.start, span.end)]
        assert set(characters) == naive(text, 5, threshold, column) and len(characters) == len(
            set(characters)
        )
        assert {span.label for span in spans} <= {DOMAINS[column]}
        some += bool(spans)
    assert (some > 50) == ((threshold, column) not in ((0.85, 1), (0.8, 1))) and some < 150


def test_windows_end_with_their_utterance_and_control_tokens_are_never_flagged():
    text = "<_soc_> <AIRLINE> USR: my seat <AIRLINE> SYS: a cable and <MEDIA> USR: ok <_eoc_>"
    spans = finder(rule, DOMAINS, [0, 1], 0.5, 16)([text])[0]
    assert [(text[span.start : span.end], span.label, span.score) for span in spans] == [
        ("my seat", "AIRLINE", 0.9),
        ("a cable and", "MEDIA", 0.8),
    ]
    assert finder(rule, DOMAINS, [1], 0.5, 16)([text, ""]) == [[spans[1]], []]


def test_a_probability_that_is_no_number_fails_its_text_alone():
    def broken(texts):
        return np.array([[float("nan") if "x" in text else 0.0] for text in texts]).reshape(-1, 1)

    assert closed(finder(broken, ["A"], [0], 0.5, 4))(["a b", "c x", "d"]) == [[], None, []]


# Networks
# --------------------------------------------------------------------------------------------------


def test_two_domains_that_a_word_tells_apart_are_learnt(trained):
    model = load(str(trained))
    unseen = texts(100, 1)
    for label, domain in enumerate(DOMAINS):
        found = probabilities(
            model, [text for points in unseen[domain].values() for text in points]
        )
        assert (found.argmax(1) == label).mean() > 0.95
    shuffled = {
        domain: {key: unseen[DOMAINS[int(key) % 2]][key] for key in unseen[domain]}
        for domain in DOMAINS
    }
    guess = train(FIT.model_copy(update={"epochs": 2}), shuffled)
    found = probabilities(
        guess, [text for points in texts(100, 2)["MEDIA"].values() for text in points]
    )
    assert found.max(1).mean() < 0.8  # negative control: labels that mean nothing


def test_the_policy_flags_windows_of_its_domains(trained):
    text = (
        "<AIRLINE> USR: please my flight seat boarding <MEDIA> USR: please my cable internet "
        "data <MEDIA> USR: ok"
    )
    found = [(span.label, text[span.start : span.end]) for span in policy(spec(trained))(text)]
    assert [label for label, _ in found] == ["AIRLINE", "MEDIA"] and found[0][
        1
    ] == "please my flight seat boarding"
    (one,) = policy(spec(trained, domains=["MEDIA"]))(text)
    assert one.label == "MEDIA" and policy(spec(trained, threshold=1.0))(text) == []
    assert len(policy(spec(trained, threshold=None))(text)) == 2  # its own, 0.9


def test_what_is_found_does_not_depend_on_what_stands_beside_it(trained):
    draw = random.Random(3)
    many = [
        " ".join(utterance(draw.choice(DOMAINS), draw) for _ in range(draw.randint(1, 4)))
        for _ in range(60)
    ]
    one = policy(spec(trained))
    together = batched(spec(trained))
    assert (
        together([*many, ""])
        == [*(one(text) for text in many), []]
        == [*together(many[::-1])[::-1], []]
    )


def test_a_conservative_sibling_flags_no_less(trained):
    draw = random.Random(4)
    redaction = RedactSpec(policy=spec(trained), conservative=spec(trained, threshold=0.5))
    found = batch_finder_of(redaction)(
        [utterance(domain, draw) for domain in DOMAINS for _ in range(30)]
    )
    assert any(one["spans"] for one in found if one) and all(
        one["conservative"] for one in found if one and one["spans"]
    )


def test_probabilities_are_those_of_plain_forward_passes(trained):
    model = load(str(trained))
    many = ["seat", "my cable please", "", "seat " * 150 + "cable " * 150, "ünïcode 12"]
    found = probabilities(model, many)
    for row, text in zip(found, many, strict=True):
        pieces = cut(model, model.tokenizer.encode(text, add_special_tokens=False).ids)
        with torch.no_grad():
            alone = [
                model.network(torch.tensor([piece])).logits.double().softmax(1)[0].numpy()
                for piece in pieces
            ]
        assert row == pytest.approx(np.max(alone, axis=0), abs=2e-4)
    assert found[3].min() > 0.9  # each of the two domains in a piece of its own
    assert len(cut(model, list(range(300)))) > 1  # nothing of a long text is cut off
    assert [token for piece in cut(model, list(range(300))) for token in piece[1:-1]] == list(
        range(300)
    )


def test_the_same_seed_gives_the_same_bytes_and_another_does_not(tmp_path):
    few = FIT.model_copy(update={"epochs": 1})
    for name, seed in (("a", 0), ("b", 0), ("c", 1)):
        save(
            train(few.model_copy(update={"seed": seed}), texts(20, 0))._replace(threshold=0.5),
            tmp_path / name,
        )
        torch.rand(3)
    assert (
        (tmp_path / "a").read_bytes()
        == (tmp_path / "b").read_bytes()
        != (tmp_path / "c").read_bytes()
    )
    usual = torch.get_rng_state()
    train(few, texts(20, 0))
    from_file(tmp_path / "a")
    assert torch.equal(torch.get_rng_state(), usual)  # nobody else's random numbers move


def test_training_spans_are_as_long_as_asked_and_begin_where_asked():
    draw = random.Random(0)
    text = "abcdefghijklmnopqrstuvwxyz"
    first = [drawn(text, 0, 10, draw) for _ in range(300)]
    assert {len(span) for span in first} == set(range(10, 27)) and all(
        text.startswith(span) for span in first
    )
    anywhere = [drawn(text, None, 10, draw) for _ in range(2000)]
    assert {text.index(span) for span in anywhere} == set(range(17)) and min(
        map(len, anywhere)
    ) == 10
    assert {text.index(drawn(text, 3, 10, draw)) for _ in range(300)} == {0, 1, 2, 3}
    assert drawn("short", None, 10, draw) == "short" and drawn("", 0, 10, draw) == ""


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """A RoBERTa classifier as transformers keeps it, with labels of its own."""
    where = tmp_path_factory.mktemp("others")
    words = train_bpe([text for points in texts(30, 0)["MEDIA"].values() for text in points], 300)
    PreTrainedTokenizerFast(
        tokenizer_object=words.backend, pad_token="<pad>", bos_token="<bos>", eos_token="<bos>"
    ).save_pretrained(where)
    config = RobertaConfig(
        vocab_size=words.vocab_size,
        hidden_size=16,
        num_hidden_layers=1,
        num_attention_heads=2,
        intermediate_size=16,
        max_position_embeddings=40,
        pad_token_id=0,
        bos_token_id=1,
        eos_token_id=1,
        id2label={0: "MEDIA", 1: "FINANCE"},
    )
    torch.manual_seed(0)
    RobertaForSequenceClassification(config).save_pretrained(where)
    return where


def test_a_classifier_of_transformers_is_loaded_from_its_folder(folder):
    model = load(str(folder))
    assert model.labels == ("MEDIA", "FINANCE") and model.threshold is None
    (best,) = probabilities(model, ["my cable"])
    find = policy(spec(folder, domains=["FINANCE"], threshold=best[1] - 0.01))
    assert [tuple(span)[:3] for span in find("my cable")] == [(0, 8, "FINANCE")]
    assert policy(spec(folder, domains=["FINANCE"], threshold=best[1] + 0.01))("my cable") == []


def test_a_pretrained_network_is_trained_with_a_new_head(folder):
    model = train(FIT.model_copy(update={"pretrained": str(folder), "epochs": 1}), texts(20, 0))
    assert model.labels == DOMAINS and model.network.config.hidden_size == 16
    assert model.tokenizer.to_str() == load(str(folder)).tokenizer.to_str()


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        (
            {"domains": ["AIRLINE"]},
            "is a classifier with other labels: no AIRLINE among MEDIA, FINANCE",
        ),
        (
            {},
            "domains: are needed for a model that was not trained here; its labels: MEDIA, FINANCE",
        ),
        (
            {"domains": ["MEDIA"], "threshold": None},
            "threshold: is needed: the model has none of its own",
        ),
    ],
)
def test_labels_that_are_not_the_domains_are_refused(folder, fields, message):
    with pytest.raises(InputError, match=message):
        policy(spec(folder, **fields))


def test_domains_that_the_trained_one_does_not_know_are_refused(trained):
    with pytest.raises(
        InputError, match=r"is a classifier with other labels: no FINANCE among AIRLINE, MEDIA"
    ):
        policy(spec(trained, domains=["MEDIA", "FINANCE"]))


def test_a_missing_model_says_how_to_fetch_it(tmp_path):
    with pytest.raises(
        InputError,
        match=r"model = 'someone/nothing': cannot be loaded: hf download someone/nothing \(",
    ):
        policy(spec("someone/nothing"))
    BertForSequenceClassification(
        BertConfig(
            vocab_size=10,
            hidden_size=8,
            num_hidden_layers=1,
            num_attention_heads=2,
            intermediate_size=8,
        )
    ).save_pretrained(tmp_path / "bert")
    with pytest.raises(InputError, match=r"cannot be loaded \(a bert, not a roberta\)"):
        policy(spec(tmp_path / "bert"))


@pytest.mark.parametrize(
    "changes", [{"num_hidden_layers": 3_000_000}, {"vocab_size": 1 << 40}, {"hidden_size": "x"}]
)
def test_sizes_that_the_weights_do_not_have_are_refused_before_anything_is_built(
    folder, tmp_path, changes
):
    config = shutil.copytree(folder, tmp_path / "copy") / "config.json"
    config.write_text(json.dumps(json.loads(config.read_text()) | changes))
    with pytest.raises(InputError, match=r"cannot be loaded \("):
        policy(spec(tmp_path / "copy", domains=["MEDIA"]))


@pytest.mark.parametrize(
    "key", ["roberta.encoder.layer.0.output.dense.weight", "classifier.out_proj.bias"]
)
def test_weights_that_are_missing_are_no_noise(folder, tmp_path, key):
    copy = shutil.copytree(folder, tmp_path / "copy")
    weights = {
        name: weight
        for name, weight in load_file(folder / "model.safetensors").items()
        if name != key
    }
    save_file(weights, copy / "model.safetensors", {"format": "pt"})
    with pytest.raises(InputError, match=f"its weights lack {key}"):
        policy(spec(copy, domains=["MEDIA"]))
    if key.startswith("classifier"):  # which is new where it is trained
        assert (
            train(
                FIT.model_copy(update={"pretrained": str(copy), "epochs": 1}), texts(20, 0)
            ).labels
            == DOMAINS
        )


@pytest.mark.parametrize("length", [0, 5, 5000, -1])
def test_a_truncated_file_is_named(trained, tmp_path, length):
    path = tmp_path / "half.safetensors"
    path.write_bytes(trained.read_bytes()[:length])
    with pytest.raises(InputError, match=r"half\.safetensors: is no classifier of this project's"):
        policy(spec(path))


@pytest.mark.parametrize(
    "change",
    [
        {"num_hidden_layers": 1 << 64},  # would be built before its weights are missed
        {"vocab_size": -1},
        {"hidden_size": 8.0},
        {"layer_norm_eps": "x"},
        {"chunk_size_feed_forward": "x"},  # transformers would take it, and fail on the first text
    ],
)
def test_a_configuration_that_is_not_ours_is_refused(trained, tmp_path, change):
    with safe_open(trained, "pt") as file:
        values = json.loads(file.metadata()["classifier"])
        weights = {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118
    values["config"] |= change
    save_file(weights, tmp_path / "changed.safetensors", {"classifier": json.dumps(values)})
    with pytest.raises(
        InputError, match=r"changed\.safetensors: is no classifier of this project's"
    ):
        policy(spec(tmp_path / "changed.safetensors"))


def test_a_file_of_something_else_is_named(trained, tmp_path):
    save_file({"x": torch.zeros(1)}, tmp_path / "other.safetensors", {"classifier": "{}"})
    save_file({"x": torch.zeros(1)}, tmp_path / "bare.safetensors")
    model = load(str(trained))
    save(
        Classifier(model.network, model.tokenizer, model.labels, None),
        tmp_path / "untuned.safetensors",
    )
    for name in ("other", "bare", "untuned"):
        with pytest.raises(
            InputError, match=rf"{name}\.safetensors: is no classifier of this project's"
        ):
            policy(spec(tmp_path / f"{name}.safetensors"))
