"""The prefix tree against forward passes over whole candidates."""

import os
import tarfile
from pathlib import Path

import numpy as np
import pytest
import torch
from tokenizers import pre_tokenizers
from torch import nn

from confide.attacks.exposure import candidates, tree
from confide.attacks.exposure.candidates import Sentence, candidate_blocks
from confide.attacks.exposure.tree import PAD, Tree, sequence_log_probs, tree_of
from confide.models import build
from confide.specs import GPT2Spec, LSTMSpec
from confide.text.tokenizer import END, Tokenizer, from_files, from_vocab

KINDS = ("lstm", "gpt2")


def whole(tokenizer: Tokenizer, prefix: str, suffix: str, digits: int) -> Tree:
    """All candidates in one tree."""
    (grown,) = candidate_blocks(tokenizer, Sentence(prefix, suffix, digits), block=digits)
    return grown


def spelled(grown: Tree) -> list[tuple[int, ...]]:
    """Tokens of every sequence with its context, by following the levels down."""
    paths = [grown.context]
    found = {}
    for level in grown.levels:
        parents = np.repeat(np.arange(len(paths)), np.diff(level.first))
        paths = [
            (*paths[parent], int(token)) for parent, token in zip(parents, level.token, strict=True)
        ]
        found |= {
            leaf: path for leaf, path in zip(level.leaf.tolist(), paths, strict=True) if leaf >= 0
        }
    return [found[leaf] for leaf in range(grown.count)]


def prefixes(grown: Tree) -> set[tuple[int, ...]]:
    """Proper prefixes of all sequences from the context on."""
    return {
        sequence[:end]
        for sequence in spelled(grown)
        for end in range(len(grown.context), len(sequence))
    }


def gpt2_tokenizer() -> Tokenizer:
    with tarfile.open(Path(os.environ["CONFIDE_MIRROR"]) / "gpt2-bpe.tar.xz") as archive:
        vocab, merges = (
            archive.extractfile(f"gpt2-bpe/{name}").read() for name in ("vocab.json", "merges.txt")
        )
    return from_files(vocab, merges.decode(), source="test")


@pytest.fixture(scope="session")
def check(brute_force):
    """Log-probabilities within `error` and in the same order as brute force's, on `count`
    candidates.
    """

    def run(
        model: nn.Module,
        tokenizer: Tokenizer,
        prefix: str,
        suffix: str,
        digits: int,
        count: int,
        error: float,
    ) -> None:
        fast = sequence_log_probs(model, whole(tokenizer, prefix, suffix, digits), chunk=137)
        assert fast.shape == (10**digits,) and np.isfinite(fast).all()
        values = np.random.default_rng(0).choice(10**digits, count, replace=False)
        slow = brute_force(model, tokenizer, prefix, suffix, digits, values)
        assert np.abs(fast[values] - slow).max() < error
        assert slow.std() > 0.1  # the comparison would notice a permutation
        if error < 1e-6:
            assert (
                np.array_equal(fast[values].argsort(), slow.argsort())
                and len(np.unique(slow)) == count
            )

    return run


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize(
    ("prefix", "suffix"), [("My ID is: ", ""), ("My ID is:", "."), ("", " ok")]
)
def test_single_digit_tokens(digit_tokenizer, make_model, check, kind, prefix, suffix):
    check(make_model(kind, digit_tokenizer), digit_tokenizer, prefix, suffix, 3, 400, 1e-9)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize(
    ("prefix", "suffix"), [("My ID is: ", ""), ("My ID is: 1", "7 ok"), ("My ID is: ", ".")]
)
def test_merged_digit_tokens(merging_tokenizer, make_model, check, kind, prefix, suffix):
    check(make_model(kind, merging_tokenizer), merging_tokenizer, prefix, suffix, 3, 400, 1e-9)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("name", ["digit_tokenizer", "merging_tokenizer"])
@pytest.mark.parametrize(("double", "error"), [(True, 1e-9), (False, 1e-4)])
def test_two_thousand_of_ten_thousand_candidates(
    request, make_model, check, kind, name, double, error
):
    tokenizer = request.getfixturevalue(name)
    check(
        make_model(kind, tokenizer, double=double, scale=2.0),
        tokenizer,
        "My ID is: ",
        "",
        4,
        2000,
        error,
    )


def test_merges_are_there_to_test(merging_tokenizer):
    """Otherwise the general path would be tested on nothing but single digits."""
    endings = whole(merging_tokenizer, "My ID is: ", "", 3).endings
    assert sum(endings) == 1000 and sum(count > 0 for count in endings) > 1 and endings[-1] < 1000
    joined = {tuple(merging_tokenizer.encode(f"1{value:03d}7")) for value in range(1000)}
    assert any(
        len(merging_tokenizer.decode([ids[-1]])) > 1 for ids in joined
    )  # a merge across the secret's end


def test_shortcut_is_the_general_tree(digit_tokenizer, merging_tokenizer, monkeypatch):
    """Single digits: both ways spell the same sequences. Merging digits: the shortcut is
    refused.
    """
    short = whole(digit_tokenizer, "My ID is: ", ".", 3)
    assert short.states == 111 and short.endings == (0, 0, 1000)
    assert candidates._single_digits(merging_tokenizer, Sentence("My ID is: ", "", 3)) is None
    monkeypatch.setattr(candidates, "_single_digits", lambda *_: None)
    general = whole(digit_tokenizer, "My ID is: ", ".", 3)
    assert (general.context, general.states) == (short.context, short.states)
    assert spelled(general) == spelled(short)


@pytest.mark.parametrize("name", ["digit_tokenizer", "merging_tokenizer"])
@pytest.mark.parametrize("tokens", [1 << 24, 200])
def test_blocks_are_all_candidates_in_order(request, monkeypatch, name, tokens):
    """However small the blocks: each candidate once, as the tokenizer encodes it."""
    tokenizer = request.getfixturevalue(name)
    monkeypatch.setattr(candidates, "TOKENS", tokens)
    monkeypatch.setattr(candidates, "BATCH", 37)
    blocks = list(candidate_blocks(tokenizer, Sentence("My ID is: ", "", 3), block=2))
    assert len(blocks) == (100 if name == "merging_tokenizer" and tokens == 200 else 10)
    expected = [
        (tokenizer.bos_id, *tokenizer.encode(f"My ID is: {value:03d}")) for value in range(1000)
    ]
    assert [sequence for block in blocks for sequence in spelled(block)] == expected


@pytest.mark.parametrize("kind", KINDS)
def test_pieces_do_not_matter(merging_tokenizer, make_model, kind, monkeypatch):
    model = make_model(kind, merging_tokenizer)
    grown = whole(merging_tokenizer, "My ID is: ", "", 3)
    once = sequence_log_probs(model, grown, chunk=100_000)
    np.testing.assert_allclose(sequence_log_probs(model, grown, chunk=1), once, atol=1e-10)
    monkeypatch.setattr(tree, "STATE_BYTES", 1)
    np.testing.assert_allclose(sequence_log_probs(model, grown, chunk=100_000), once, atol=1e-10)


@pytest.mark.parametrize("kind", KINDS)
def test_a_context_is_read_once(digit_tokenizer, make_model, kind):
    """Blocks take up where another left off, and nothing of a shared state is overwritten."""
    model = make_model(kind, digit_tokenizer)
    roots = {}
    blocks = list(candidate_blocks(digit_tokenizer, Sentence("My ID is: ", "", 3), block=1))
    found = np.concatenate([sequence_log_probs(model, block, 50, roots=roots) for block in blocks])
    prefix = len(digit_tokenizer.encode("My ID is: ")) + 1
    assert len(roots) == prefix + 10 + 100
    once = sequence_log_probs(model, whole(digit_tokenizer, "My ID is: ", "", 3), 50)
    np.testing.assert_allclose(found, once, atol=1e-10)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("name", ["digit_tokenizer", "merging_tokenizer"])
@pytest.mark.parametrize("share", [0.0, 0.5, 1.0])
def test_a_floor_changes_only_what_lies_below_it(request, make_model, totals, kind, name, share):
    """The other scores stay, and exactly the prefixes above the floor are evaluated."""
    tokenizer = request.getfixturevalue(name)
    model = make_model(kind, tokenizer)
    grown = whole(tokenizer, "My ID is: ", "", 3)
    everything = sequence_log_probs(model, grown, 50)
    seen = []
    floor = float(np.quantile(everything, share))
    found = sequence_log_probs(model, grown, 50, floor - 1e-9, seen.append)
    above = everything >= floor
    np.testing.assert_allclose(found[above], everything[above], atol=1e-10)
    assert (found[~above] < floor).all()
    assert sum(seen) == (totals(model, sorted(prefixes(grown)))[1:] >= floor).sum()


def test_every_state_is_counted(merging_tokenizer, make_model):
    grown = whole(merging_tokenizer, "My ID is: ", "", 3)
    seen = []
    sequence_log_probs(make_model("lstm", merging_tokenizer), grown, 50, report=seen.append)
    assert grown.states == 1 + sum(seen) == len(prefixes(grown))


def test_states_are_distinct_proper_prefixes():
    sequences = np.array([[4, 5, 6], [4, 5, 7], [4, 8, PAD], [9, PAD, PAD]])
    grown = tree_of((1,), sequences)
    assert grown.states == len({(), (4,), (4, 5)})
    assert grown.endings == (1, 1, 2)
    assert spelled(grown) == [(1, 4, 5, 6), (1, 4, 5, 7), (1, 4, 8), (1, 9)]


@pytest.mark.parametrize("sequences", [[[4, -1], [4, 5]], [[4, 5], [4, 5]]])
def test_a_prefix_or_a_twin_is_refused(sequences):
    with pytest.raises(AssertionError, match="prefix-free"):
        tree_of((1,), np.array(sequences))


@pytest.mark.skipif("CONFIDE_MIRROR" not in os.environ, reason="needs GPT-2's own files")
@pytest.mark.parametrize("kind", KINDS)
def test_gpt2_vocabulary(check, kind):
    tokenizer = gpt2_tokenizer()
    specs = {
        "lstm": LSTMSpec(kind="lstm", embedding=8, hidden=8),
        "gpt2": GPT2Spec(kind="gpt2", layers=1, width=8, heads=2, positions=32),
    }
    torch.manual_seed(0)
    model = build(specs[kind], tokenizer.vocab_size, tokenizer.bos_id).eval()
    with torch.no_grad():
        for parameter in model.parameters():
            parameter *= 3
    check(model, tokenizer, "My ID is: ", "", 4, 300, 1e-4)


@pytest.mark.nightly
@pytest.mark.slow
@pytest.mark.skipif("CONFIDE_MIRROR" not in os.environ, reason="needs GPT-2's own files")
def test_gpt2_needs_16857_states_for_every_six_digit_span():
    grown = whole(gpt2_tokenizer(), "My ID is: ", "", 6)
    assert grown.states == 16_857 and grown.count == 10**6


@pytest.mark.gpu
@pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a CUDA device")
@pytest.mark.parametrize("kind", KINDS)
def test_cuda_agrees(merging_tokenizer, make_model, kind):
    model = make_model(kind, merging_tokenizer)
    grown = whole(merging_tokenizer, "My ID is: ", "", 3)
    here = sequence_log_probs(model, grown, 100)
    np.testing.assert_allclose(sequence_log_probs(model.cuda(), grown, 100), here, atol=1e-8)


def test_a_rare_merge_refuses_the_shortcut(monkeypatch):
    """The vocabulary decides, not the sample: one joined pair is enough."""
    alphabet = sorted(pre_tokenizers.ByteLevel.alphabet())
    vocab = {token: index for index, token in enumerate([*alphabet, END])}
    monkeypatch.setattr(candidates, "SAMPLE", 0)
    single = from_vocab(vocab, [], source="test")
    pair = from_vocab(vocab | {"77": len(vocab)}, ["7 7"], source="test")
    assert candidates._single_digits(single, Sentence("ID ", "", 3)) is not None
    assert candidates._single_digits(pair, Sentence("ID ", "", 3)) is None
