"""Exposure within a budget of model evaluations: branch and bound against scipy's ranks of all
candidates, intervals by simulation, and the model's calls counted.
"""

import math
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from scipy.stats import binomtest, rankdata
from torch import nn

from confide import models
from confide.attacks.exposure import budget, sequence_samples, sequence_search, tree
from confide.attacks.exposure.budget import Space, affordable, estimated, ranking
from confide.attacks.exposure.candidates import Sentence
from confide.attacks.exposure.ranking import MARGIN, Census
from confide.attacks.exposure.sequence_search import search
from confide.attacks.exposure.words import Space as Words
from confide.attacks.registry import ATTACKS
from confide.attacks.statistics.scoring import row_log_probs
from confide.attacks.target import Target
from confide.errors import InputError
from confide.files.io import write_json
from confide.specs import CausalLMSpec, ExposureSpec, GameSpec
from confide.text.tokenizer import Tokenizer, from_folder
from tests.families import folder_of

SENTENCE = Sentence("My ID is: ", "", 3)
TOKENIZERS = ("digit_tokenizer", "merging_tokenizer")
PLANTED = ["3417", "0082", "9650", "5129", "7734"]


class Counted:
    """A model, and how many tokens it reads."""

    def __init__(self, model: nn.Module, monkeypatch: pytest.MonkeyPatch):
        self.model = model
        self.read = 0
        advance = model.advance

        def counting(state: Any, tokens: torch.Tensor) -> Any:
            self.read += len(tokens)
            return advance(state, tokens)

        monkeypatch.setattr(model, "advance", counting)


@pytest.fixture(scope="module")
def llama(tmp_path_factory: pytest.TempPathFactory) -> tuple[nn.Module, Tokenizer]:
    folder = folder_of("llama", tmp_path_factory.mktemp("llama"))
    words = from_folder(folder, source="llama")
    spec = CausalLMSpec(kind="causal_lm", pretrained=str(folder))
    return models.build(spec, words.vocab_size, words.bos_id).eval(), words


@pytest.mark.parametrize("name", TOKENIZERS)
@pytest.mark.parametrize("suffix", ["", "7 ok"])
def test_ranks_within_any_budget_are_those_of_brute_force_or_bound_them(
    request: pytest.FixtureRequest,
    make_model: Callable[..., nn.Module],
    brute_force: Callable[..., np.ndarray],
    monkeypatch: pytest.MonkeyPatch,
    name: str,
    suffix: str,
) -> None:
    tokenizer = request.getfixturevalue(name)
    model = make_model("lstm", tokenizer)
    slow = brute_force(model, tokenizer, SENTENCE.prefix, suffix, 3, np.arange(1000))
    secrets = np.concatenate([(-slow).argsort()[[0, 1, 6, 40]], [3, 800]])
    expected = rankdata(-slow)[secrets]
    sentence = SENTENCE._replace(suffix=suffix)
    counted = Counted(model, monkeypatch)
    reached = []
    held = []
    for most in (np.inf, 400, 100, 70, 50):
        for seed in range(3):
            counted.read = 0
            space = Space(model, tokenizer, sentence, chunk=20, most=most)
            found, sizes = ranking(space, secrets, seed)
            assert sizes["candidates"] == 1000
            assert counted.read == space.evaluations.count <= most
            for values in found[:3]:
                np.testing.assert_array_equal(values[found.exact], expected[found.exact])
            assert (found.low <= found.rank).all() and (found.rank <= found.high).all()
            estimates = ~found.exact
            held += ((found.low <= expected) & (expected <= found.high))[estimates].tolist()
        reached.append(int(found.exact.sum()))
    assert reached[:2] == [len(secrets)] * 2 and reached == sorted(reached, reverse=True)
    assert reached[-1] < len(secrets) and np.mean(held) > 0.9
    assert name == "digit_tokenizer" or reached[-1] > 0


def test_a_pretrained_model_within_a_budget(
    llama: tuple[nn.Module, Tokenizer],
    fit: Callable[..., None],
    brute_force: Callable[..., np.ndarray],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """One that was trained on two codes, a third of which it has seen the beginning."""
    model, words = llama
    fit(model, words, ["my code is 417", "my code is 530"], 40)
    sentence = Sentence("my code is ", "", 3)
    slow = brute_force(model, words, sentence.prefix, "", 3, np.arange(1000))
    secrets = np.array([417, 530, 418, 962])
    ranks = rankdata(-slow)[secrets]
    assert sorted(ranks[:2]) == [1, 2]
    counted = Counted(model, monkeypatch)
    space = Space(model, words, sentence, chunk=50, most=80)
    found, _ = ranking(space, secrets, seed=1)
    assert counted.read == space.evaluations.count <= 80
    assert found.exact.tolist() == [True, True, False, False]
    np.testing.assert_array_equal(found.rank[:2], ranks[:2])
    assert ((found.low <= ranks) & (ranks <= found.high)).all()
    monkeypatch.setattr(tree, "STATE_BYTES", 4096)  # one state at a time: nothing else changes
    again, _ = ranking(Space(model, words, sentence, chunk=50, most=80), secrets, seed=1)
    np.testing.assert_array_equal(again.exact, found.exact)
    np.testing.assert_array_equal(again.rank[:2], found.rank[:2])


@pytest.mark.parametrize("name", TOKENIZERS)
def test_memorised_secrets_are_exact_in_a_few_evaluations(
    request: pytest.FixtureRequest,
    memorised: Callable[..., nn.Module],
    tmp_path: Path,
    name: str,
) -> None:
    tokenizer = request.getfixturevalue(name)
    model = memorised("lstm that memorises", tokenizer, PLANTED)
    controls = ["1203", "8841", "4406", "6015", "2999"]
    planted = {"prefix": "My ID is: ", "suffix": "", "digits": 4, "copies": 20, "label": "canary"}
    path = tmp_path / "canaries.json"
    write_json(path, planted | {"secrets": PLANTED, "controls": controls})
    target = Target(model, tokenizer, tmp_path, path)
    spec = ExposureSpec(kind="exposure", published=True)
    whole = ATTACKS["exposure"](spec, target)
    assert whole["exact"] and whole["low"] == whole["high"] == whole["exposures"]
    few = ATTACKS["exposure"](spec.model_copy(update={"evaluations": 400}), target)
    assert few["exact"] and few["evaluations"] <= 400
    assert few["exposures"] == pytest.approx(whole["exposures"]) and few["mean"] == whole["mean"]
    assert not few["control_exact"] and 0 < few["control_estimated_share"] <= 1
    for low, value, high, true in zip(
        *(few[f"control_{key}"] for key in ("low", "exposures", "high")),
        whole["control_exposures"],
        strict=True,
    ):
        assert low <= value <= high and low <= true <= high
    for key in ("mean", "median", "max"):
        low = few[f"control_{key}_estimated_low"]
        high = few[f"control_{key}_estimated_high"]
        assert low <= few[f"control_{key}"] <= high and few[f"control_p_{key}"] > 0.01
    assert few["published_exposures"] is None and "budget" in few["published_reason"]
    with pytest.raises(InputError, match="evaluations = 9: does not reach"):
        ATTACKS["exposure"](spec.model_copy(update={"evaluations": 9}), target)


def test_intervals_hold_what_they_say() -> None:
    """Scores of ten thousand candidates with ties and near misses, drawn from a thousand times: of
    one secret, and of several together.
    """
    rng = np.random.default_rng(0)
    size = 10_000
    scores = rng.integers(0, 4000, size) * (MARGIN / 3)
    secrets = np.concatenate([(-scores).argsort()[[0, 3, 100]], rng.integers(size, size=5)])
    true = rankdata(-scores)[secrets]
    held = np.zeros(len(secrets))
    together = 0
    values = []
    runs = 1000
    for _ in range(runs):
        drawn = rng.integers(size, size=300)
        found = estimated(scores[drawn], drawn, secrets, scores[secrets], size)
        covers = (found.low <= true) & (true <= found.high)
        together += int(covers.all())
        alone = [
            estimated(scores[drawn], drawn, secrets[i : i + 1], scores[secrets[i : i + 1]], size)
            for i in range(len(secrets))
        ]
        held += [one.low[0] <= rank <= one.high[0] for one, rank in zip(alone, true, strict=True)]
        values.append(found.rank)
    least = 0.95 - 3 * math.sqrt(0.05 * 0.95 / runs)
    assert together / runs > least and (held / runs > least).all()
    assert (held / runs).min() < 0.995  # they are not wide for nothing
    assert np.mean(values, 0) == pytest.approx((300 * true + size) / 301, rel=0.1)


def test_an_estimate_is_no_better_than_its_draws() -> None:
    """As a p-value it is at most a with probability a, for a secret that was never seen."""
    rng = np.random.default_rng(1)
    size = 100_000
    scores = rng.normal(size=size)
    shares = []
    for _ in range(4000):
        drawn = rng.integers(size, size=200)
        secret = rng.integers(size, size=1)
        found = estimated(scores[drawn], drawn, secret, scores[secret], size)
        shares.append(found.rank[0] / size)
    assert min(shares) >= 1 / 201
    for share in (0.01, 0.05, 0.2):
        error = 3 * math.sqrt(share / len(shares))
        assert (np.array(shares) <= share).mean() <= share + error


@pytest.mark.parametrize(("hits", "count"), [(0, 7), (3, 7), (7, 7), (12, 5000)])
def test_interval_is_that_of_clopper_and_pearson(hits: int, count: int) -> None:
    """So many of the candidates drawn are likelier than a secret, of as many more secrets."""
    size = 10**6
    scores = np.where(np.arange(count) < hits, 1.0, -1.0)
    for secrets in (1, 10):
        asked = np.full(secrets, size)
        found = estimated(scores, np.arange(count), asked, np.zeros(secrets), size)
        theirs = binomtest(hits, count).proportion_ci(1 - 0.05 / secrets, "exact")
        assert found.low[0] == pytest.approx(min(size, 1 + size * theirs.low))
        assert found.high[0] == pytest.approx(min(size, 1 + size * theirs.high))


@pytest.mark.parametrize("name", TOKENIZERS)
def test_as_many_draws_as_there_are_evaluations_for(
    request: pytest.FixtureRequest, make_model: Callable[..., nn.Module], name: str
) -> None:
    """Whichever are drawn, they cost no more."""
    tokenizer = request.getfixturevalue(name)
    model = make_model("lstm", tokenizer, double=False)
    census = Census()
    for block in Space(model, tokenizer, SENTENCE, chunk=50).blocks():
        census.add(block)
    rng = np.random.default_rng(0)
    for left in (30, 60, 100):
        count = affordable(census, left)
        assert count > 5
        for _ in range(5):
            space = Space(model, tokenizer, SENTENCE, chunk=50, most=left)
            space.apart(rng.integers(1000, size=count))


def test_candidates_are_not_the_canaries_again() -> None:
    """Canaries may come from a generator of the same seed: their stream is another one."""
    ours = np.random.default_rng([0, budget.DRAWS]).integers(10**6, size=50)
    assert not np.isin(ours, np.random.default_rng(0).integers(10**6, size=50)).any()


def test_a_game_within_a_budget_says_so(
    digit_tokenizer: Tokenizer, memorised: Callable[..., nn.Module], tmp_path: Path
) -> None:
    """Coins of memorised secrets are still told; no mean of estimates is shown."""
    model = memorised("lstm that memorises", digit_tokenizer, PLANTED)
    others = ["1203", "8841", "4406", "6015", "2999"]
    audit = {
        "prefix": "My ID is: ",
        "suffix": "",
        "digits": 4,
        "secrets": [*PLANTED, *others],
        "coins": [True] * 5 + [False] * 5,
    }
    path = tmp_path / "canaries.json"
    planted = {"prefix": "x ", "suffix": "", "digits": 4, "copies": 1, "secrets": []}
    write_json(path, planted | {"controls": [], "label": "canary", "audits": {"game": audit}})
    spec = GameSpec(kind="game", evaluations=300)
    found = ATTACKS["game"](spec, Target(model, digit_tokenizer, tmp_path, path))
    assert not found["game_exact"] and found["game_evaluations"] <= 300
    assert found["game_auc"] == 1 and "game_exposure_in_mean" not in found
    whole = ATTACKS["game"](GameSpec(kind="game"), Target(model, digit_tokenizer, tmp_path, path))
    assert whole["game_exact"] and whole["game_exposure_in_mean"] > 10


def test_states_that_grow_are_held_in_bounded_memory(
    llama: tuple[nn.Module, Tokenizer], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whatever a context keeps of each token, one level has no more than it may."""
    model, _ = llama
    most = 20 * 5 * model.cache_bytes
    monkeypatch.setattr(sequence_search, "STATE_BYTES", most)
    monkeypatch.setattr(sequence_samples, "STATE_BYTES", most)
    held = []
    advance = model.advance

    def watched(state: Any, tokens: torch.Tensor) -> Any:
        hidden, after = advance(state, tokens)
        held.append(sum(part.nbytes for layer in after for part in layer))
        return hidden, after

    space = Words(np.arange(20, 32), np.arange(40, 52), 4)
    targets = row_log_probs(model, space.tokens(np.array([[1, 2, 3, 4]])))
    free = search(model, space, targets, chunk=4096, budget=np.inf)
    monkeypatch.setattr(model, "advance", watched)
    found = search(model, space, targets, chunk=4096, budget=np.inf)
    assert (found.ranks == free.ranks).all() and 0 < max(held) <= most
    held.clear()
    sequence_samples.draw(model, space, count=300, chunk=4096, seed=0)
    assert 0 < max(held) <= most
