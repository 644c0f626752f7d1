"""The tab attack: beam search against all continuations, real sentences against a loop, and the
controls.
"""

import random
from itertools import product

import numpy as np
import pytest
import torch
from planted_words import (
    KINDS,
    WORDS,
    a_model,
    no_word_of,
    point,
    sentence,
    some,
    word_tokenizer,
    written,
)

from confide import cli, models
from confide.attacks.authorship.authors import Sample
from confide.attacks.exposure.beam import continued
from confide.attacks.exposure.tab import hardest, regenerated
from confide.attacks.registry import ATTACKS
from confide.attacks.target import Target
from confide.errors import InputError
from confide.files.io import read_json, write_json
from confide.specs import TabSpec, TrajectorySpec
from confide.stages.trajectory import trajectory
from confide.text.tokenizer import save
from confide.train import snapshots

SPEC = TabSpec(kind="tab")
BANNED = (0, 1)
SMALL = 12  # tokens


@pytest.fixture(scope="module")
def tokenizer():
    return word_tokenizer()


@torch.no_grad()
def all_continuations(model, first: int, steps: int) -> tuple[np.ndarray, np.ndarray]:
    """Every continuation (R, steps) without banned tokens, and its log-probability (R,)."""
    tails = np.array(list(product([t for t in range(SMALL) if t not in BANNED], repeat=steps)))
    rows = torch.from_numpy(np.concatenate([np.tile([1, first], (len(tails), 1)), tails], 1))
    logs = model(rows[:, :-1]).double().log_softmax(-1).gather(2, rows[:, 1:, None])[:, 1:, 0]
    return tails, logs.sum(1).numpy()


@torch.no_grad()
def naive_beam(model, first: int, steps: int, width: int) -> list[int]:
    """Beam search that reads every hypothesis from its beginning."""
    beams = [((), 0.0)]
    for _ in range(steps):
        longer = []
        for tail, score in beams:
            logs = model(torch.tensor([[1, first, *tail]]))[0, -1].double().log_softmax(-1)
            longer += [
                ((*tail, token), score + logs[token].item())
                for token in range(SMALL)
                if token not in BANNED
            ]
        beams = sorted(longer, key=lambda one: -one[1])[:width]
    return list(beams[0][0])


@pytest.mark.parametrize("kind", KINDS)
def test_beam_search_is_that_of_a_loop_and_a_wide_beam_finds_the_best_of_all(kind):
    firsts = torch.tensor([2, 3, 7, 11, 5])
    differ = 0
    for seed in range(4):
        model = a_model(kind, seed=seed, vocab=SMALL).double()
        for width in (1, 2, 5):
            found = continued(model, firsts, 4, width, BANNED)
            assert found.tolist() == [
                naive_beam(model, first, 4, width) for first in firsts.tolist()
            ]
            differ += int((found != continued(model, firsts, 4, 1, BANNED)).any())
        wide = continued(model, firsts, 3, 100, BANNED)
        for first, tail in zip(firsts.tolist(), wide.tolist(), strict=True):
            tails, scores = all_continuations(model, first, 3)
            assert tails[scores.argmax()].tolist() == tail
    assert differ  # a beam finds what greedy does not


def test_what_is_asked_together_is_what_is_asked_alone(monkeypatch):
    model = a_model(vocab=SMALL).double()
    firsts = torch.arange(2, 12)
    whole = continued(model, firsts, 4, 3)
    monkeypatch.setattr("confide.attacks.exposure.beam.CELLS", 1)
    assert torch.equal(whole, continued(model, firsts, 4, 3))


def test_matched_tokens_are_counted_up_to_the_first_wrong_one():
    model = a_model(vocab=SMALL).double()
    (right,) = continued(model, torch.tensor([4]), 5, 1).tolist()
    wrong = [(token + 1) % SMALL for token in right]
    sentences = [
        [4, *right[:4]],
        [4, *right[:2], wrong[2], *right[3:5]],
        [4, wrong[0], *right[1:2]],
    ]
    found = regenerated(model, sentences, 1)
    assert found.greedy == found.beam == [True, False, False] and found.matched == [4, 2, 0]


def test_real_sentences_are_the_hardest_of_each_author(tokenizer, make_model):
    model = make_model("lstm", tokenizer)
    source = random.Random(0)
    samples = []
    for number in range(80):
        text = sentence(tuple(source.randrange(10) for _ in range(source.randrange(2, 9))))
        split = "test" if number % 10 == 0 else "train"
        samples.append(Sample(text, split, number % 5 - 1, None))
    first = {
        tuple(real.tokens) for real in hardest(samples, tokenizer, model, 4, 6)
    }  # canaries now: others are next
    samples = [
        own._replace(canary=0) if tuple(tokenizer.encode(own.text)) in first else own
        for own in samples
    ]
    best: dict[int, tuple[float, list[int]]] = {}
    for sample in samples:
        tokens = tokenizer.encode(sample.text)
        if (
            sample.split == "train"
            and sample.author >= 0
            and sample.canary is None
            and 4 <= len(tokens) <= 6
        ):
            with torch.no_grad():
                logs = model(torch.tensor([[1, *tokens]]))[0].log_softmax(-1)
            surprise = -sum(logs[i, token].item() for i, token in enumerate(tokens)) / len(tokens)
            best[sample.author] = max(best.get(sample.author, (-1.0, [])), (surprise, tokens))
    found = hardest(samples, tokenizer, model, 4, 6)
    assert [real.author for real in found] == sorted(best) == [0, 1, 2, 3] and len(first) == 4
    assert [real.tokens for real in found] == [best[real.author][1] for real in found]
    assert [real.surprise for real in found] == pytest.approx(
        [best[real.author][0] for real in found]
    )


@pytest.fixture
def corpus(tmp_path):
    """Files, the texts of the canaries and controls, and a real sentence of each of two authors."""
    texts = [sentence(places) for places in some(10, 4, 3)]
    real = [sentence((1, 2, 3, 4, 5, 6)), sentence((9, 8, 7, 6, 5, 4))]
    canaries = [(text, f"writer {number % 2}", 1) for number, text in enumerate(texts[:5])]
    rows = [point(number, text, f"writer {number}") for number, text in enumerate(real)]
    paths = written(tmp_path, canaries, texts[5:], rows)
    write_json(paths["canaries"], read_json(paths["canaries"]) | {"length": 4})
    return paths, texts, real


@pytest.mark.parametrize("kind", ["lstm that memorises", "gpt2"])
def test_controls(corpus, tokenizer, make_model, fit, kind):
    """What was learned by heart comes out, what was never seen does not, and of an untrained model
    nothing does.
    """
    paths, texts, real = corpus
    model = make_model(kind, tokenizer, scale=1.0, double=False)
    target = Target(model, tokenizer, **paths, reference=make_model("lstm", tokenizer))
    spec = SPEC.model_copy(update={"reference": "public", "real_min": 6, "real_k": 2})
    before = ATTACKS["tab"](spec, target)
    fit(model, tokenizer, texts[:5], 250)
    after = ATTACKS["tab"](spec, target)
    for group in ("canaries", "controls", "real"):
        assert (
            before[group]["rate_greedy"] == before[group]["rate_beam"] == 0
            and before[group]["rate_beam_high"] > 0.1
        )
    assert after["canaries"]["greedy"] == after["canaries"]["beam"] == [True] * 5
    assert after["canaries"]["matched"] == [3] * 5 and after["canaries"]["rate_greedy"] == 1.0
    assert after["canaries"]["rate_greedy_low"] < 1.0 == after["canaries"]["rate_greedy_high"]
    assert (
        after["controls"]["rate_greedy"] == after["controls"]["rate_beam"] == 0
        and after["controls"]["count"] == 5
    )
    assert after["canaries"]["copies"] == [1] * 5 and after["canaries"]["authors"] == [
        0,
        1,
        0,
        1,
        0,
    ]
    assert after["real"]["authors"] == [0, 1] and after["real"]["rate_greedy"] == 0
    fit(model, tokenizer, real, 250)
    again = ATTACKS["tab"](spec, target)
    assert again["real"]["greedy"] == [True, True] and again["real"]["rate_first_k"] == 1.0
    assert again == ATTACKS["tab"](spec, target) and no_word_of(
        [before, after, again], [*WORDS, "writer"]
    )


def test_without_a_reference_or_with_one_that_diverged(corpus, tokenizer, make_model):
    paths, _, _ = corpus
    model = make_model("lstm", tokenizer)
    broken = make_model("lstm", tokenizer, scale=float("nan"))
    found = ATTACKS["tab"](SPEC, Target(model, tokenizer, **paths))
    assert found["real"] == {"count": 0, "reason": "no reference model to choose them"}
    asked = SPEC.model_copy(update={"reference": "public"})
    with pytest.raises(InputError, match="reference"):
        ATTACKS["tab"](asked, Target(model, tokenizer, **paths))
    assert (
        "finite"
        in ATTACKS["tab"](asked, Target(model, tokenizer, **paths, reference=broken))["real"][
            "reason"
        ]
    )
    diverged = ATTACKS["tab"](SPEC, Target(broken, tokenizer, **paths))
    assert "finite" in diverged["canaries"]["reason"] and "rate_greedy" not in diverged["canaries"]
    long = asked.model_copy(update={"real_min": 15, "real_max": 16})
    assert (
        "15 to 16"
        in ATTACKS["tab"](long, Target(model, tokenizer, **paths, reference=model))["real"][
            "reason"
        ]
    )
    with pytest.raises(InputError, match="real_min"):
        ATTACKS["tab"](SPEC.model_copy(update={"real_min": 30}), Target(model, tokenizer, **paths))


def test_from_the_stage_and_after_every_epoch(corpus, tokenizer, make_model, tmp_path):
    """All three attacks on canaries and authors, from the command line twice, and along
    training.
    """
    paths, texts, _ = corpus
    model = make_model("lstm", tokenizer, double=False)
    models.save(model, tmp_path / "m/model.safetensors", tmp_path / "m/config.json")
    save(tokenizer, tmp_path / "tokenizer.json")
    rows = [
        point(50 + n, sentence((n % 10, n % 3)), f"writer {n % 2}", split)
        for n in range(8)
        for split in ("train", "test")
    ]
    canaries = read_json(paths["canaries"])["canaries"]
    paths = written(
        tmp_path, [(row["text"], row["author"], 1) for row in canaries], texts[5:], rows
    )
    write_json(paths["canaries"], read_json(paths["canaries"]) | {"length": 4})
    paths |= {"model": tmp_path / "m/model.safetensors", "tokenizer": tmp_path / "tokenizer.json"}
    kinds = ("sequence_exposure", "tab", "author_inference")
    flags = [part for name, path in paths.items() for part in (f"--{name}", str(path))]
    once = {}
    for kind in kinds:
        for name in ("one", "two"):
            job = [
                "attack",
                "--spec",
                f'{{"run": "r", "attack": {{"kind": "{kind}"}}, "device": "cpu"}}',
                *flags,
            ]
            assert cli.main([*job, "--output", str(tmp_path / f"{name}.json")]) == 0
        found, again = (
            {
                key: value
                for key, value in read_json(tmp_path / f"{name}.json").items()
                if key not in ("run", "seconds")
            }
            for name in ("one", "two")
        )
        assert found == again and found["attack"] == kind
        once[kind] = found
    snapshots.write(tmp_path, 1, model)
    snapshots.join(tmp_path, 1, tmp_path / "epochs.safetensors")
    spec = TrajectorySpec.model_validate(
        {"run": "r", "attacks": {kind: {"kind": kind} for kind in kinds}, "device": "cpu"}
    )
    trajectory(
        spec, epochs=tmp_path / "epochs.safetensors", **paths, output=tmp_path / "along.json"
    )
    (row,) = read_json(tmp_path / "along.json")["epochs"]
    apart = {
        kind: {key: value for key, value in once[kind].items() if key != "weights"}
        for kind in kinds
    }
    assert all(len(found["weights"]) == 64 for found in once.values())
    assert {
        kind: {key: value for key, value in row[kind].items() if key != "weights"} for kind in kinds
    } == apart
    assert no_word_of(row, [*WORDS, "writer"])
