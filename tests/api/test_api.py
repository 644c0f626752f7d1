"""What a user calls from Python: `import confide`."""

import json
import shutil
from pathlib import Path

import pytest
import torch

import confide
from confide import models
from confide.commands.generate import is_certified
from confide.dp.accounting.calibration import calibrate
from confide.errors import InputError
from confide.files.io import sha256
from confide.specs import LSTMSpec
from confide.text.tokenizer import save, train_bpe
from tests.stages.certified import ASKED, METHODS, certificate

PROMPTS = ["my code", "", "the order"]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A model as a release has it: with its tokenizer beside it."""
    place = tmp_path_factory.mktemp("model")
    words = train_bpe(["my code is 4711", "the order of my code"], 270)
    save(words, place / "tokenizer.json")
    torch.manual_seed(0)
    model = models.build(LSTMSpec(kind="lstm", embedding=8, hidden=8), words.vocab_size, 1)
    models.save(model, place / models.WEIGHTS, place / models.CONFIG)
    return place


def test_a_model_is_loaded_and_asked(folder: Path) -> None:
    model, tokenizer = confide.load(folder)
    assert not model.training and model.vocab_size == tokenizer.vocab_size
    texts = confide.generate(model, tokenizer, PROMPTS, count=3, max_new_tokens=5)
    assert [len(some) for some in texts] == [3, 3, 3]
    assert texts == confide.generate(model, tokenizer, PROMPTS, count=3, max_new_tokens=5)
    assert texts != confide.generate(model, tokenizer, PROMPTS, count=3, max_new_tokens=5, seed=1)
    others = confide.generate(model, tokenizer, ["my code", "x", "y"], count=3, max_new_tokens=5)
    assert texts[0] == others[0], "a text depends on what stands beside it"


def test_a_certificate_of_other_weights_says_nothing_of_texts(folder: Path, tmp_path: Path) -> None:
    place = tmp_path / "model"
    shutil.copytree(folder, place)
    assert not is_certified(place)
    for weights, expected in (("0" * 64, False), (sha256(place / models.WEIGHTS), True)):
        (place / "certificate.json").write_text(json.dumps({"weights": weights}))
        assert is_certified(place) is expected
    (place / "certificate.json").write_text("[]")
    assert not is_certified(place)


def test_greedy_texts_are_what_the_model_finds_likeliest(folder: Path) -> None:
    model, tokenizer = confide.load(folder)
    ((text,),) = confide.generate(model, tokenizer, ["my code"], top_k=1, max_new_tokens=1)
    ids = torch.tensor([[tokenizer.bos_id, *tokenizer.encode("my code")]])
    with torch.no_grad():
        logits = model(ids)[0, -1]
    logits[[tokenizer.mask_id, tokenizer.pad_id]] = -torch.inf
    best = int(logits.argmax())
    assert text == ("" if best == tokenizer.bos_id else tokenizer.decode([best]))


def test_a_price_is_that_which_noise_is_calibrated_to() -> None:
    noise = calibrate(3.0, 1e-5, 0.01, 500, "replace_one")
    terms = {"noise_multiplier": noise, "sample_rate": 0.01, "steps": 500, "delta": 1e-5}
    assert 2.99 <= confide.price(**terms) <= 3.0
    assert confide.price(**terms, relation="add_or_remove") < 2.5


def test_a_certificate_is_verified(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    certificate(tmp_path, METHODS["crt"], **ASKED["crt"])
    found = confide.verify(tmp_path / "certificate.json")
    assert found["headline"]["record_epsilon"] > 0
    (tmp_path / "model").write_text("another")
    with pytest.raises(InputError, match="other bytes"):
        confide.verify(tmp_path / "certificate.json")


@pytest.mark.parametrize(
    ("call", "says"),
    [
        (lambda folder: confide.load(folder / "none"), "tokenizer.json"),
        (lambda folder: confide.load(folder, folder / "config.json"), "not a tokenizer"),
        (lambda folder: confide.generate(*confide.load(folder), count=0), "count"),
        (lambda folder: confide.generate(*confide.load(folder), temperature=-1), "temperature"),
        (
            lambda _: confide.price(noise_multiplier=0, sample_rate=0.1, steps=1, delta=1e-5),
            "noise_multiplier",
        ),
    ],
)
def test_a_user_s_error_is_one_line(call, says: str, folder: Path) -> None:
    with pytest.raises(InputError, match=says) as error:
        call(folder)
    assert "\n" not in str(error.value)


def test_other_names_are_none_of_it() -> None:
    assert {"load", "generate", "price", "verify"} <= set(dir(confide))
    with pytest.raises(AttributeError, match="nothing"):
        confide.nothing  # noqa: B018
