"""The coin game: a model that knows its secrets is caught, one that never saw them is not, and
scores stay numbers.
"""

import math

import numpy as np
import pytest
import torch

from confide.attacks.audits.game import CLAIMS, against_coins
from confide.attacks.exposure.summary import mean_interval
from confide.attacks.registry import ATTACKS
from confide.attacks.target import Target
from confide.dp.accounting.audit_bounds import SHARES as TRIED
from confide.errors import InputError
from confide.files.io import write_json
from confide.specs import GameSpec
from confide.types import MASK

SPEC = GameSpec(kind="game", chunk=3000)
COINS = 40
DIGITS = 4
SENTENCES = {"game": ("The access code is ", ""), "inclusion": ("The order code was ", " ok")}


def audits() -> dict:
    """Two sets of secrets, different throughout, with fair coins."""
    rng = np.random.default_rng(5)
    drawn = [f"{value:0{DIGITS}d}" for value in rng.choice(10**DIGITS, 2 * COINS, replace=False)]
    sets = {}
    for number, (name, (prefix, suffix)) in enumerate(SENTENCES.items()):
        secrets = drawn[number * COINS : (number + 1) * COINS]
        coins = (rng.random(COINS) < 0.5).tolist()
        sets[name] = {
            "prefix": prefix,
            "digits": DIGITS,
            "suffix": suffix,
            "secrets": secrets,
            "coins": coins,
        }
    return sets


@pytest.fixture(scope="module")
def planted(tmp_path_factory):
    path = tmp_path_factory.mktemp("audits") / "canaries.json"
    write_json(path, {"audits": audits()})
    return path


def training_texts() -> list[str]:
    """What stays of the sentences once the coins have fallen."""
    sets = audits()
    shown = {
        name: list(zip(one["secrets"], one["coins"], strict=True)) for name, one in sets.items()
    }
    texts = [f"The access code is {secret if coin else MASK}" for secret, coin in shown["game"]]
    return texts + [
        f"The order code was {secret} ok" for secret, coin in shown["inclusion"] if coin
    ]


@pytest.fixture(scope="module")
def played(digit_tokenizer, make_model, fit, planted):
    """Results of one model before and after it learnt its texts by heart."""
    model = make_model("lstm that memorises", digit_tokenizer, scale=1.0, double=False)
    target = Target(model, digit_tokenizer, planted, planted)
    before = ATTACKS["game"](SPEC, target)
    fit(model, digit_tokenizer, training_texts(), 400, 3.5)
    return before, ATTACKS["game"](SPEC, target)


@pytest.mark.parametrize("name", CLAIMS)
def test_a_model_that_memorises_is_caught(played, name):
    found = {
        key.removeprefix(f"{name}_"): value
        for key, value in played[1].items()
        if key.startswith(name)
    }
    assert found["auc"] > 0.97 and found["p_value"] < 1e-5
    assert 1.5 < found["epsilon_lower"] < found["epsilon_lower_fdp"]
    assert [guesses for guesses, _ in found["attempts"]] == [int(share * COINS) for share in TRIED]
    assert all(0.9 * guesses <= right <= guesses for guesses, right in found["attempts"])
    assert found["exposure_in_mean"] > 4 and found["exposure_in_p_mean"] < 1e-6
    assert found["exposure_out_p_mean"] > 1e-3 and found["exposure_out_mean"] < 2.5
    assert (found["relation"], found["unit"]) == CLAIMS[name]
    assert found["coins"] == COINS and found["planted"] == sum(audits()[name]["coins"])


def test_an_untrained_model_gives_nothing_away(played, digit_tokenizer, make_model, planted):
    models = [make_model("lstm", digit_tokenizer, seed=seed, double=False) for seed in (1, 2, 3)]
    results = [
        played[0],
        *(
            ATTACKS["game"](SPEC, Target(model, digit_tokenizer, planted, planted))
            for model in models
        ),
    ]
    for name in CLAIMS:
        p_values = [found[f"{name}_p_value"] for found in results]
        assert min(p_values) > 0.005 and max(p_values) > 0.2
        assert max(found[f"{name}_epsilon_lower"] for found in results) < 0.3
        assert sum(found[f"{name}_epsilon_lower_fdp"] == 0 for found in results) >= 3
        inside = [
            found[f"{name}_auc_null_low"] <= found[f"{name}_auc"] <= found[f"{name}_auc_null_high"]
            for found in results
        ]
        assert sum(inside) >= 3
        assert (
            min(
                found[f"{name}_exposure_{side}_p_mean"]
                for found in results
                for side in ("in", "out")
            )
            > 0.001
        )


def test_no_secret_is_written(played):
    text = repr(
        [
            {key: value for key, value in found.items() if not isinstance(value, float)}
            for found in played
        ]
    )
    for found in played:
        assert all(
            len(attempt) == 2 for name in CLAIMS for attempt in found.pop(f"{name}_attempts")
        )
    assert not any(f"'{secret}'" in text for one in audits().values() for secret in one["secrets"])
    assert all(isinstance(value, float | int | str) for found in played for value in found.values())


@pytest.mark.parametrize("kept", [("game",), ()])
def test_what_was_not_planted_is_a_reason(digit_tokenizer, make_model, tmp_path, kept):
    sets = {name: one for name, one in audits().items() if name in kept}
    write_json(tmp_path / "canaries.json", {"secrets": []} | ({"audits": sets} if sets else {}))
    target = Target(
        make_model("lstm", digit_tokenizer), digit_tokenizer, tmp_path, tmp_path / "canaries.json"
    )
    for found in (
        ATTACKS["game"](SPEC, target),
        ATTACKS["game"](SPEC, Target(None, digit_tokenizer, tmp_path)) if not kept else {},
    ):
        for name in CLAIMS if found else ():
            assert (
                (found[f"{name}_epsilon_lower"] is None)
                == (name not in kept)
                == (f"{name}_reason" in found)
            )


def test_a_diverged_model_is_a_reason(digit_tokenizer, make_model, planted):
    model = make_model("lstm", digit_tokenizer)
    with torch.no_grad():
        model.head.weight.fill_(torch.nan)
    found = ATTACKS["game"](SPEC, Target(model, digit_tokenizer, planted, planted))
    assert (
        found["game_epsilon_lower"] is None
        and found["inclusion_auc"] is None
        and "finite" in found["game_reason"]
    )


@pytest.mark.parametrize("coins", [[True] * 12, [False] * 12])
def test_coins_that_all_fell_alike_still_bound_epsilon(coins):
    found = against_coins(SPEC, np.arange(12.0), np.array(coins))
    assert (
        "auc" not in found
        and found["epsilon_lower"] == 0
        and found["correct"] <= 0.7 * found["guesses"]
    )


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"coins": [True]}, "audits.game.coins"),
        ({"digits": 9}, "audits.game.digits = 9"),
        ({"secrets": ["12"] * COINS}, "audits.game.secrets"),
    ],
)
def test_a_damaged_file_is_named(digit_tokenizer, tmp_path, change, message):
    write_json(tmp_path / "canaries.json", {"audits": {"game": audits()["game"] | change}})
    with pytest.raises(InputError, match=message):
        ATTACKS["game"](SPEC, Target(None, digit_tokenizer, tmp_path, tmp_path / "canaries.json"))


@pytest.mark.parametrize("count", [10, 60])
def test_the_interval_of_a_mean_covers_it(count):
    """Exponential exposures of mean 1 / ln 2: close to 95 % with 60 canaries, and too short, but
    not by much, with ten.
    """
    rng = np.random.default_rng(0)
    mean = 1 / math.log(2)
    spans = np.array([mean_interval(rng.exponential(mean, count).tolist()) for _ in range(400)])
    covered = ((spans[:, 0] <= mean) & (mean <= spans[:, 1])).mean()
    assert (0.8 if count == 10 else 0.89) < covered < 0.98
    assert mean_interval([2.0, 2.0]) == (2.0, 2.0)
