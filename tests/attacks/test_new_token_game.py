"""Audit canaries of new tokens: learnt sooner than digits, never without their own text, and
refused where nothing learns.
"""

from types import SimpleNamespace

import numpy as np
import pytest
import torch

from confide import models
from confide.attacks.audits.game import new_token_scores
from confide.attacks.registry import ATTACKS
from confide.attacks.target import Target
from confide.errors import InputError
from confide.files.io import write_json
from confide.models import build
from confide.specs import GameSpec, GPT2Spec, LSTMSpec
from confide.text.tokenizer import train_bpe

SPEC = GameSpec(kind="game", chunk=3000)
COINS = 40
DIGITS = 4
STEPS = 40
TOKENIZER = train_bpe(
    ["The access code is 12", "The order code was 34"] * 20, 350, new_tokens=COINS
)


def audit(digits: int) -> dict:
    """Sentences with coins, the same ones for digits and for new tokens (digits = 0)."""
    rng = np.random.default_rng(3)
    coins = (rng.random(COINS) < 0.5).tolist()
    numbers = [f"{value:0{DIGITS}d}" for value in rng.choice(10**DIGITS, COINS, replace=False)]
    secrets = numbers if digits else list(TOKENIZER.new_tokens)
    return {
        "prefix": "The order code was ",
        "suffix": "",
        "digits": digits,
        "secrets": secrets,
        "coins": coins,
    }


def planted(one: dict) -> list[str]:
    """What stays of the sentences once the coins have fallen."""
    shown = zip(one["secrets"], one["coins"], strict=True)
    return [f"{one['prefix']}{secret}{one['suffix']}" for secret, coin in shown if coin]


def written(folder, one: dict):
    write_json(folder / "canaries.json", {"audits": {"inclusion": one}})
    return folder / "canaries.json"


def trained(
    fit, folder, one: dict, *, encode=TOKENIZER.encode_planted, kind="lstm", seed=0
) -> dict:
    """What the game finds of a small model after so many steps on the planted sentences."""
    torch.manual_seed(seed)
    specs = {
        "lstm": LSTMSpec(kind="lstm", embedding=16, hidden=32),
        "gpt2": GPT2Spec(kind="gpt2", layers=1, width=16, heads=2, positions=32),
    }
    model = build(specs[kind], TOKENIZER.vocab_size, TOKENIZER.bos_id)
    fit(model, SimpleNamespace(encode=encode, bos_id=TOKENIZER.bos_id), planted(one), STEPS)
    found = ATTACKS["game"](SPEC, Target(model, TOKENIZER, folder, written(folder, one)))
    return {
        key.removeprefix("inclusion_"): value
        for key, value in found.items()
        if key.startswith("inclusion_")
    }


def test_new_tokens_are_learnt_at_least_as_soon_as_digits(fit, tmp_path):
    tokens = trained(fit, tmp_path, audit(0))
    digits = trained(fit, tmp_path, audit(DIGITS))
    assert tokens["auc"] == 1.0 and tokens["p_value"] < 1e-6
    assert tokens["auc"] > digits["auc"] + 0.1
    assert tokens["epsilon_lower"] > digits["epsilon_lower"] + 1
    assert all(right == guesses for guesses, right in tokens["attempts"])
    assert (
        (tokens["coins"], tokens["planted"])
        == (digits["coins"], digits["planted"])
        == (COINS, sum(audit(0)["coins"]))
    )


def test_a_tied_embedding_gives_them_away_too(fit, tmp_path):
    assert trained(fit, tmp_path, audit(0), kind="gpt2")["auc"] == 1.0


def test_a_sentence_that_is_read_as_ordinary_text_gives_nothing_away(fit, tmp_path):
    """The same training, but that no new token was ever read: what is measured is the token, and
    nothing beside it.
    """
    found = [
        trained(fit, tmp_path, audit(0), encode=TOKENIZER.encode, seed=seed) for seed in range(4)
    ]
    assert (
        min(one["p_value"] for one in found) > 0.01
        and max(one["epsilon_lower"] for one in found) < 0.3
    )
    assert np.mean([one["auc"] for one in found]) == pytest.approx(0.5, abs=0.12)


def test_scores_are_the_log_probabilities_of_a_whole_forward_pass(make_model, tmp_path):
    model = make_model("lstm", TOKENIZER)
    one = audit(0)
    found = new_token_scores(Target(model, TOKENIZER, tmp_path, written(tmp_path, one)), one)
    for secret, score in zip(one["secrets"][:5], found, strict=False):
        *before, token = TOKENIZER.encode_planted(one["prefix"] + secret)
        logs = model(torch.tensor([[TOKENIZER.bos_id, *before]]))[0, -1].log_softmax(-1)
        assert score == pytest.approx(logs[token].item(), abs=1e-9)


def test_a_diverged_model_is_a_reason(make_model, tmp_path):
    model = make_model("lstm", TOKENIZER)
    with torch.no_grad():
        model.head.weight.fill_(torch.nan)
    found = ATTACKS["game"](SPEC, Target(model, TOKENIZER, tmp_path, written(tmp_path, audit(0))))
    assert found["inclusion_epsilon_lower"] is None and "finite" in found["inclusion_reason"]


def test_frozen_embeddings_are_refused(tmp_path):
    pytest.importorskip("peft")
    spec = GPT2Spec(kind="gpt2", layers=1, width=16, heads=2, positions=32, lora_rank=2)
    model = build(spec, TOKENIZER.vocab_size, TOKENIZER.bos_id)
    models.save(model, tmp_path / "m/model.safetensors", tmp_path / "m/config.json")
    place = written(tmp_path, audit(0))
    with pytest.raises(
        InputError,
        match=r"canaries.json: audits: are of new tokens, and the model's embeddings are frozen",
    ):
        ATTACKS["game"](SPEC, Target(models.load(tmp_path / "m"), TOKENIZER, tmp_path, place))
    ATTACKS["game"](
        SPEC,
        Target(models.load(tmp_path / "m"), TOKENIZER, tmp_path, written(tmp_path, audit(DIGITS))),
    )


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (
            {"secrets": ["12"] * COINS},
            r"audits.inclusion.digits = 0: exact exposure wants 1 to 8 digits",
        ),
        ({"secrets": ["\U000f0000"] * 3}, r"audits.inclusion.coins: expected a coin"),
        ({"digits": DIGITS}, r"audits.inclusion.secrets: a value is not 4 digits"),
        (
            {"secrets": ["\U000ff000"] * COINS},
            r"audits: are of new tokens that the tokenizer lacks",
        ),
    ],
)
def test_a_damaged_file_is_named(make_model, tmp_path, change, message):
    place = written(tmp_path, audit(0) | change)
    with pytest.raises(InputError, match=message):
        ATTACKS["game"](SPEC, Target(make_model("lstm", TOKENIZER), TOKENIZER, tmp_path, place))
