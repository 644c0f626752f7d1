"""Streamed and pruned ranks against scipy's of all candidates, each scored by whole forward
passes.
"""

import tracemalloc

import numpy as np
import pytest
import torch
from scipy.stats import rankdata
from torch import nn
from tqdm import tqdm

from confide.attacks.exposure import ranking
from confide.attacks.exposure.candidates import Sentence, candidate_blocks
from confide.attacks.exposure.ranking import MARGIN, Ranks, log_probs_apart, ranks_among
from confide.attacks.exposure.tree import Tree
from confide.text.tokenizer import Tokenizer

KINDS = ("lstm", "gpt2")
TOKENIZERS = ("digit_tokenizer", "merging_tokenizer")
PLANTED = ["3417", "0082", "9650", "5129", "7734"]


def search(
    model: nn.Module,
    tokenizer: Tokenizer,
    secrets: np.ndarray,
    prefix: str = "My ID is: ",
    suffix: str = "",
    **options: int,
) -> tuple[np.ndarray | None, dict[str, float]]:
    """Ranks and sizes; options: digits, block, chunk, prune."""
    digits = options.get("digits", 3)
    block = options.get("block", 6)
    chunk = options.get("chunk", 50)
    sentence = Sentence(prefix, suffix, digits)
    apart = log_probs_apart(model, tokenizer, sentence, secrets, chunk=chunk)
    blocks = candidate_blocks(tokenizer, sentence, block)
    with tqdm(total=10**digits, disable=True) as bar:
        return ranks_among(
            model, blocks, secrets, apart, chunk, bar, bool(options.get("prune", True))
        )


def likeliest(scores: np.ndarray, ranks: list[int]) -> np.ndarray:
    """Candidates at given places of the order, from 0."""
    return (-scores).argsort()[ranks]


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("name", TOKENIZERS)
@pytest.mark.parametrize(("prefix", "suffix"), [("My ID is: ", ""), ("My ID is: 1", "7 ok")])
def test_blocks_and_pruning_give_the_ranks_of_brute_force(
    request, make_model, brute_force, kind, name, prefix, suffix
):
    tokenizer = request.getfixturevalue(name)
    model = make_model(kind, tokenizer)
    slow = brute_force(model, tokenizer, prefix, suffix, 3, np.arange(1000))
    secrets = np.concatenate(
        [likeliest(slow, [0, 1, 500, 998, 999]), np.random.default_rng(0).choice(1000, 20)]
    )
    expected = rankdata(-slow)
    whole = None
    for block, prune in ((6, False), (6, True), (2, False), (2, True)):
        found, sizes = search(model, tokenizer, secrets, prefix, suffix, block=block, prune=prune)
        np.testing.assert_array_equal(found, expected[secrets])
        whole = whole or sizes
        assert all(
            sizes[key] == whole[key]
            for key in ("candidates", "tokens_min", "tokens_mean", "tokens_max")
        )
        assert sizes["states_visited"] == sizes["states"] or prune
        assert name == "merging_tokenizer" or sizes["states"] == 111
    for top in (1, 3):  # the likeliest alone: little is looked at
        found, sizes = search(
            model, tokenizer, likeliest(slow, list(range(top))), prefix, suffix, block=2
        )
        np.testing.assert_array_equal(found, np.arange(1, top + 1))


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("name", TOKENIZERS)
def test_single_precision_is_wrong_only_among_equals(request, make_model, brute_force, kind, name):
    tokenizer = request.getfixturevalue(name)
    model = make_model(kind, tokenizer, double=False, scale=2.0)
    slow = brute_force(model.double(), tokenizer, "My ID is: ", "", 3, np.arange(1000))
    secrets = likeliest(slow, [0, 3, 40, 200, 500, 998])
    equals = np.array([(np.abs(slow - slow[secret]) < 1e-4).sum() - 1 for secret in secrets])
    expected = rankdata(-slow)[secrets]
    for block, prune in ((6, False), (6, True), (2, True)):
        found, _ = search(model.float(), tokenizer, secrets, block=block, prune=prune)
        assert (np.abs(found - expected) <= equals).all() and equals.max() < 5


@pytest.mark.parametrize("name", TOKENIZERS)
@pytest.mark.parametrize("block", [6, 1])
def test_a_model_that_knows_nothing_ties_at_the_middle(request, make_model, name, block):
    """Not first and not last, whatever the noise of another batch; with merges, short candidates
    are likelier.
    """
    tokenizer = request.getfixturevalue(name)
    model = make_model("lstm", tokenizer, double=False)
    with torch.no_grad():
        model.head.weight.zero_()
        model.head.bias.zero_()
    secrets = np.arange(0, 1000, 37)
    found, _ = search(model, tokenizer, secrets, block=block)
    lengths = np.array([len(tokenizer.encode(f"My ID is: {value:03d}")) for value in range(1000)])
    np.testing.assert_array_equal(found, rankdata(lengths)[secrets])
    assert name == "merging_tokenizer" or (found == 500.5).all()


@pytest.mark.parametrize("noise", [0.0, 0.9])
def test_ranks_by_counting_are_scipys(noise):
    """Scores full of ties and of near misses, in pieces of any size, with secrets scored apart a
    little differently.
    """
    rng = np.random.default_rng(0)
    scores = rng.integers(0, 300, size=5000) * (MARGIN / 10) + rng.choice(
        [0.0, 1.0, 7.0], size=5000
    )
    secrets = rng.choice(5000, 40, replace=False)
    found = Ranks(secrets, scores[secrets] + noise * MARGIN * rng.uniform(-1, 1, size=40))
    for piece in np.split(scores, np.sort(rng.choice(5000, 12))):
        found.add(piece)
    np.testing.assert_array_equal(found.result(), rankdata(-scores)[secrets])


def test_more_noise_than_the_margin_allows_is_an_error():
    found = Ranks(np.array([1]), np.array([-2.0 + 2 * MARGIN]))
    found.add(np.array([-1.0, -2.0]))
    with pytest.raises(AssertionError, match="margin"):
        found.result()


@pytest.mark.parametrize("kind", ["lstm that memorises", "gpt2"])
@pytest.mark.parametrize("name", TOKENIZERS)
def test_memorised_secrets_are_found_in_a_few_states(request, memorised, kind, name):
    tokenizer = request.getfixturevalue(name)
    model = memorised(kind, tokenizer, PLANTED)
    secrets = np.array([int(secret) for secret in PLANTED])
    everything, whole = search(
        model, tokenizer, secrets, digits=4, block=3, prune=False, chunk=2000
    )
    found, sizes = search(model, tokenizer, secrets, digits=4, block=3, chunk=2000)
    np.testing.assert_array_equal(found, everything)
    assert sorted(found) == [1, 2, 3, 4, 5]
    assert whole["states_visited"] == whole["states"] == sizes["states"]
    assert sizes["states_visited"] < 0.1 * sizes["states"]


def test_memory_does_not_grow_with_the_number_of_blocks(digit_tokenizer, monkeypatch):
    """Peak of numpy's memory at 10^4 and at 10^6 candidates in blocks of 10^3; all at once takes
    100 times as much.
    """

    def scores(model: None, tree: Tree, **_: object) -> np.ndarray:
        return np.random.default_rng(tree.context[-1]).normal(size=tree.count)

    def peak(digits: int, block: int) -> int:
        secrets = np.array([5, 6])
        sentence = Sentence("", "", digits)
        apart = scores(None, next(candidate_blocks(digit_tokenizer, sentence, block)))[[5, 6]]
        tracemalloc.start()
        with tqdm(total=10**digits, disable=True) as bar:
            ranks_among(
                None,
                candidate_blocks(digit_tokenizer, sentence, block),
                secrets,
                apart,
                50,
                bar,
            )
        most = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
        return most

    monkeypatch.setattr(ranking, "sequence_log_probs", scores)
    few = peak(4, 3)
    many = peak(6, 3)
    once = peak(6, 6)
    assert many < 2 * few + 500_000 and once > 10 * many


def test_an_endless_search_asks_the_model_for_little_at_once(
    merging_tokenizer, make_model, monkeypatch
):
    """The largest batch that a model sees is the chunk, and the largest tree a block."""
    model = make_model("lstm", merging_tokenizer)
    batches = []
    trees = []
    advance = model.advance
    walk = ranking.sequence_log_probs
    monkeypatch.setattr(
        model,
        "advance",
        lambda state, tokens: batches.append(len(tokens)) or advance(state, tokens),
    )

    def seen(model, tree, chunk, **options):
        trees.append(tree.count)
        return walk(model, tree=tree, chunk=chunk, **options)

    monkeypatch.setattr(ranking, "sequence_log_probs", seen)
    search(model, merging_tokenizer, np.array([1, 2]), digits=4, block=2, chunk=20, prune=False)
    assert max(batches) <= 20 and trees == [2, *[100] * 100]


def test_nobody_asked(digit_tokenizer):
    found, sizes = search(None, digit_tokenizer, np.zeros(0, dtype=np.int64), block=2)
    assert len(found) == 0 and (sizes["candidates"], sizes["states"], sizes["states_visited"]) == (
        1000,
        111,
        0,
    )


@pytest.mark.parametrize("poison", ["head", "one digit", "bias"])
def test_probabilities_that_are_not_finite_are_no_ranks(digit_tokenizer, make_model, poison):
    """Wherever in the space they are; sizes are counted all the same."""
    model = make_model("lstm", digit_tokenizer)
    with torch.no_grad():
        if poison == "head":
            model.head.weight.fill_(torch.nan)
        elif poison == "one digit":  # no secret has it
            model.embedding.weight[digit_tokenizer.encode("7")] = torch.nan
        else:
            model.head.bias[digit_tokenizer.encode("7")] = torch.inf
    found, sizes = search(model, digit_tokenizer, np.array([12, 345]), block=1, prune=False)
    assert found is None and (sizes["candidates"], sizes["states"], sizes["tokens_max"]) == (
        1000,
        111,
        3,
    )
