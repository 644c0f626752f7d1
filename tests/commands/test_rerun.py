"""Chains run on neighbouring corpora: a side door is found, a clean chain has none, and the bound
on epsilon holds.
"""

import math
from dataclasses import replace

import numpy as np
import orjson
import pytest

from confide.commands import rerun as module
from confide.commands.rerun import best_bound, bound, rerun
from confide.errors import InputError
from confide.files.io import read_json
from confide.specs import (
    LSTMSpec,
    PartitionSpec,
    PrivacySpec,
    RecipeSpec,
    RedactSpec,
    RerunSpec,
    TokenizerSpec,
    TrainSpec,
)
from confide.train.forecast import Forecast
from tests.terms import TERMS

SECRET = "QXJZVKWW"
REDACT = RedactSpec(
    policy={"kind": "regex", "patterns": {"code": r"\b[A-Z]{8}\b"}},
    conservative={"kind": "regex", "patterns": {"capitals": r"[A-Z]{4}"}},
)
MISSING = REDACT.model_copy(update={"miss_rate": 1.0})
RECIPE = RecipeSpec(lr=0.01, batch_size=8, noisy_batch_size=8, epochs=1, physical_batch_size=16)
TRAIN = TrainSpec(
    data=TERMS,
    run="a/g0-s0",
    method="crt",
    model=LSTMSpec(kind="lstm", embedding=4, hidden=4),
    recipe=RECIPE,
    privacy=PrivacySpec(noise_multiplier=2.0, delta=1e-3),
)


def row(index, text, split="train"):
    start = text.find(SECRET)
    gold = [[start, start + len(SECRET), "code", 1.0]] if start >= 0 else []
    return {
        "key": f"d:{index}",
        "text": text,
        "split": split,
        "domain": None,
        "owner": None,
        "gold": gold,
    }


@pytest.fixture
def files(tmp_path):
    """Confidential points with one secret, and public ones in which it does not occur."""
    public = [f"please wait {n} minutes, thank you" for n in range(30)]
    private = [f"the code was {chr(65 + n % 26) * 8}, thanks" for n in range(14)] + [
        f"the code was {SECRET}, thanks"
    ]
    corpora = {"public": public, "points": [*public, *private]}
    for name, texts in corpora.items():
        rows = [
            row(index, text, "valid" if index % 10 == 9 else "train")
            for index, text in enumerate(texts)
        ]
        (tmp_path / name).write_bytes(b"".join(orjson.dumps(line) + b"\n" for line in rows))
    return {name: tmp_path / name for name in corpora}


def run(files, public=True, values=None, **changes):
    settings = {
        "tokenizer": TokenizerSpec(kind="bpe", vocab_size=400),
        "redact": REDACT,
        "train": TRAIN,
        "repetitions": 2,
    }
    given = {"points": files["points"], "public": files["public"] if public else None}
    output = files["points"].with_name("rerun.json")
    rerun(RerunSpec(**settings | changes), **given, values=values, output=output)
    assert sorted(path.name for path in output.parent.iterdir()) == [
        "points",
        "public",
        "rerun.json",
    ]
    assert SECRET.encode() not in output.read_bytes()
    return read_json(output)


def test_a_clean_chain_shows_nothing_of_a_secret_that_the_policy_finds(files):
    """Not even the weights: with the same noise they are equal, byte for byte."""
    found = run(files)
    assert found["side_doors"] == found["not_reproducible"] == []
    assert (found["outcome"], found["certified"], found["epsilon_lower"]) == ("same", 0, 0)


def test_values_of_public_text_in_place_of_masks_show_nothing_either(files, tmp_path_factory):
    values = tmp_path_factory.mktemp("public") / "values"
    values.write_text('[["was", "ABCDEFGH", ","]]')
    train = TRAIN.model_copy(update={"method": "jft"})
    changes = {"train": train, "partition": PartitionSpec(fill="public")}
    found = run(files, values=values, **changes)
    assert found["side_doors"] == found["not_reproducible"] == []
    with pytest.raises(InputError, match="values = 'public': is missing, which fill asks for"):
        run(files, **changes)


def test_a_missed_secret_changes_weights_and_no_more(files):
    found = run(files, redact=MISSING)
    assert found["side_doors"] == found["not_reproducible"] == []
    assert (found["outcome"], found["points_that_differ"]) == ("private", 1)
    assert 0 < found["certified"] < 20


def test_a_tokenizer_trained_on_the_private_text_is_a_side_door(files):
    found = run(files, public=False)
    assert {"tokenizer.json", "model.safetensors"} & set(
        found["side_doors"]
    ) and "tokenizer.json" in found["side_doors"]


def test_a_pool_size_that_depends_on_the_secret_is_a_side_door(files):
    silent = RedactSpec(
        policy={"kind": "regex", "patterns": {"x": "xyz"}},
        conservative=REDACT.conservative.model_copy(),
    )
    silent = silent.model_copy(update={"conservative": silent.policy})
    wanted = TRAIN.model_copy(
        update={"recipe": RECIPE.model_copy(update={"noisy_batch_size": 1}), "method": "dpsgd"}
    )
    found = run(files, redact=silent, train=wanted)
    assert (
        found["outcome"] == "exposed"
        and "pool sizes" in found["side_doors"]
        and found["certified"] == "inf"
    )


def test_training_that_draws_on_the_clock_is_not_taken_for_a_side_door(files, monkeypatch):
    calls = iter(range(100))
    usual = module.look

    def look(*arguments):
        ran = usual(*arguments)
        return ran._replace(public=ran.public | {"clock": next(calls)})

    monkeypatch.setattr(module, "look", look)
    found = run(files)
    assert (found["side_doors"], found["not_reproducible"]) == ([], ["clock"])


def test_a_warm_start_needs_both_name_and_weights(files):
    with pytest.raises(InputError, match="train.init"):
        run(files, train=TRAIN.model_copy(update={"init": "public/g0-s0"}))


def test_a_missed_secret_shows_where_there_is_no_noise(files):
    """Positive control: ordinary training on redacted text tells D from D' as surely as 16 runs
    each can.
    """
    found = run(
        files, redact=MISSING, train=TRAIN.model_copy(update={"method": "redacted"}), repetitions=16
    )
    assert (found["side_doors"], found["certified"]) == ([], "inf")
    assert (
        found["epsilon_lower"] == found["epsilon_lower_at_most"] == bound(8, 0, 8, 1e-3, 0.95) > 0.5
    )


def test_a_secret_that_is_not_there(files):
    with pytest.raises(InputError, match="secret = 7"):
        run(files, secret=7)


def test_bound_in_closed_form():
    """All of n against none: log of (a - delta) / (1 - a) with a = (alpha / 2) ** (1 / n)."""
    least = 0.025 ** (1 / 40)
    assert bound(40, 0, 40, 0.0, 0.95) == pytest.approx(math.log(least / (1 - least)))
    assert bound(40, 0, 40, 1e-2, 0.95) == pytest.approx(math.log((least - 1e-2) / (1 - least)))
    assert (
        bound(20, 20, 40, 0.0, 0.95)
        == bound(0, 40, 40, 0.0, 0.95)
        == bound(0, 0, 0, 0.0, 0.95)
        == 0
    )


def sides(first, second):
    return [[{"one": float(value), "other": 0.0} for value in values] for values in (first, second)]


def test_best_bound_finds_a_difference_whatever_its_direction():
    random = np.random.default_rng(0)
    for shift in (-4, 4):
        found = best_bound(
            sides(random.normal(size=200), random.normal(size=200) + shift), 1e-5, 0.95
        )
        assert (
            found["scalar"] == "one"
            and 2 < found["epsilon_lower"] <= found["epsilon_lower_at_most"]
        )


def test_best_bound_holds_for_randomized_response():
    """Values 0 and 1 with odds e: epsilon is 1; the bound exceeds it in at most 5 % of the runs,
    and comes near.
    """
    random = np.random.default_rng(1)
    truth = 1.0
    share = math.e / (1 + math.e)
    lower = []
    for _ in range(200):
        values = sides(random.random(400) < share, random.random(400) >= share)
        lower.append(best_bound(values, 0.0, 0.95)["epsilon_lower"])
    assert np.mean(np.array(lower) > truth) <= 0.05
    assert np.median(lower) > 0.4


def test_the_memory_that_others_leave_free_is_no_side_door():
    needs = Forecast(weights=int(3e7), sums=int(5e7), states=0, piece=int(7e9), evaluation=0)
    lines = [needs.line(free) for free in (9_300_000_000, 12_000_000_000, 900_000_000)]
    assert len({module.NUMBERS.sub("#", line) for line in lines}) == 1
    other = replace(needs, weights=int(4e7)).line(9_300_000_000)
    assert module.NUMBERS.sub("#", other) != module.NUMBERS.sub("#", lines[0])
