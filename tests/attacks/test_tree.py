"""The prefix tree against forward passes over whole candidates."""

import os
import tarfile
from pathlib import Path

import numpy as np
import pytest
import torch
from tokenizers import pre_tokenizers
from torch import nn

from confide.attacks import candidates, tree
from confide.attacks.candidates import candidate_tree
from confide.attacks.exposure import exposures
from confide.attacks.tree import sequence_log_probs, tree_of
from confide.models import build
from confide.specs import GPT2Spec, LSTMSpec
from confide.tokenizer import END, Tokenizer, from_files, from_vocab

KINDS = ("lstm", "gpt2")


def covering(tokenizer: Tokenizer, text: str, end: int) -> list[int]:
    """Tokens of a text that begin before character `end`, by spelling them out one after the other."""
    ids, place, kept = tokenizer.encode(text), 0, []
    for token in ids:
        if place < end:
            kept.append(token)
        place += len(tokenizer.decode([token]))
    return kept


@torch.no_grad()
def brute_force(
    model: nn.Module, tokenizer: Tokenizer, context: tuple[int, ...], prefix: str, suffix: str, digits: int, values: np.ndarray
) -> np.ndarray:
    """Sum of log-probabilities of each candidate's tokens after the context, from forward passes over whole candidates."""
    found, rows = np.zeros(len(values)), []
    for value in values:
        text = f"{prefix}{value:0{digits}d}{suffix}"
        rows.append([tokenizer.bos_id, *covering(tokenizer, text, len(prefix) + digits)])
        assert tuple(rows[-1][: len(context)]) == context
    for length in {len(row) for row in rows}:
        where = [i for i, row in enumerate(rows) if len(row) == length]
        ids = torch.tensor([rows[i] for i in where])
        logs = model(ids[:, :-1]).double().log_softmax(-1).gather(2, ids[:, 1:, None])[..., 0]
        found[where] = logs[:, len(context) - 1 :].sum(1).numpy()
    return found


def gpt2_tokenizer() -> Tokenizer:
    with tarfile.open(Path(os.environ["CONFIDE_MIRROR"]) / "gpt2-bpe.tar.xz") as archive:
        vocab, merges = (archive.extractfile(f"gpt2-bpe/{name}").read() for name in ("vocab.json", "merges.txt"))
    return from_files(vocab, merges.decode(), source="test")


def check(model: nn.Module, tokenizer: Tokenizer, prefix: str, suffix: str, digits: int, count: int, error: float) -> None:
    """Log-probabilities within `error` and the same ranks as brute force on `count` candidates."""
    grown = candidate_tree(tokenizer, prefix, suffix, digits)
    fast = sequence_log_probs(model, grown, chunk=137)
    assert fast.shape == (10**digits,) and np.isfinite(fast).all()
    values = np.random.default_rng(0).choice(10**digits, count, replace=False)
    slow = brute_force(model, tokenizer, grown.context, prefix, suffix, digits, values)
    assert np.abs(fast[values] - slow).max() < error
    assert slow.std() > 0.1  # the comparison would notice a permutation
    some = list(range(0, count, 7))
    np.testing.assert_allclose(exposures(fast[values], some), exposures(slow, some), atol=1e-9)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize(("prefix", "suffix"), [("My ID is: ", ""), ("My ID is:", "."), ("", " ok")])
def test_single_digit_tokens(digit_tokenizer, make_model, kind, prefix, suffix):
    check(make_model(kind, digit_tokenizer), digit_tokenizer, prefix, suffix, 3, 400, 1e-9)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize(("prefix", "suffix"), [("My ID is: ", ""), ("My ID is: 1", "7 ok"), ("My ID is: ", ".")])
def test_merged_digit_tokens(merging_tokenizer, make_model, kind, prefix, suffix):
    check(make_model(kind, merging_tokenizer), merging_tokenizer, prefix, suffix, 3, 400, 1e-9)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("name", ["digit_tokenizer", "merging_tokenizer"])
def test_two_thousand_candidates_in_single_precision(request, make_model, kind, name):
    tokenizer = request.getfixturevalue(name)
    model = make_model(kind, tokenizer, double=False, scale=2.0)
    grown = candidate_tree(tokenizer, "My ID is: ", "", 4)
    fast = sequence_log_probs(model, grown, chunk=20_000)
    values = np.random.default_rng(1).choice(10_000, 2000, replace=False)
    slow = brute_force(model, tokenizer, grown.context, "My ID is: ", "", 4, values)
    assert np.abs(fast[values] - slow).max() < 1e-4


@pytest.mark.parametrize("kind", KINDS)
def test_two_thousand_candidates_have_the_ranks_of_brute_force(digit_tokenizer, make_model, kind):
    model = make_model(kind, digit_tokenizer, scale=2.0)
    grown = candidate_tree(digit_tokenizer, "My ID is: ", "", 4)
    values = np.random.default_rng(2).choice(10_000, 2000, replace=False)
    slow = brute_force(model, digit_tokenizer, grown.context, "My ID is: ", "", 4, values)
    fast = sequence_log_probs(model, grown, chunk=20_000)[values]
    assert np.array_equal(fast.argsort(), slow.argsort()) and len(np.unique(slow)) == 2000


def test_merges_are_there_to_test(merging_tokenizer):
    """Otherwise the general path would be tested on nothing but single digits."""
    lengths = candidate_tree(merging_tokenizer, "My ID is: ", "", 3).lengths
    assert lengths.min() < lengths.max() and lengths.mean() < 3
    joined = {tuple(merging_tokenizer.encode(f"1{value:03d}7")) for value in range(1000)}
    assert any(len(merging_tokenizer.decode([ids[-1]])) > 1 for ids in joined)  # a merge across the secret's end


def test_shortcut_is_the_general_tree(digit_tokenizer, merging_tokenizer, monkeypatch):
    """Single digits: both ways give the same levels. Merging digits: the shortcut is refused."""
    short = candidate_tree(digit_tokenizer, "My ID is: ", ".", 3)
    assert short.states == 111 and (short.lengths == 3).all()
    assert candidates._single_digits(merging_tokenizer, "My ID is: ", "", 3) is None
    monkeypatch.setattr(candidates, "_single_digits", lambda *_: None)
    general = candidate_tree(digit_tokenizer, "My ID is: ", ".", 3)
    assert general.context == short.context and len(general.levels) == len(short.levels)
    for one, other in zip(general.levels, short.levels, strict=True):
        order = np.lexsort((other.token, other.parent))
        np.testing.assert_array_equal(one.token, other.token[order])
        np.testing.assert_array_equal(one.leaf, other.leaf[order])


@pytest.mark.parametrize("kind", KINDS)
def test_pieces_do_not_matter(merging_tokenizer, make_model, kind, monkeypatch):
    model = make_model(kind, merging_tokenizer)
    grown = candidate_tree(merging_tokenizer, "My ID is: ", "", 3)
    whole = sequence_log_probs(model, grown, chunk=100_000)
    np.testing.assert_allclose(sequence_log_probs(model, grown, chunk=1), whole, atol=1e-10)
    monkeypatch.setattr(tree, "STATE_BYTES", 1)
    np.testing.assert_allclose(sequence_log_probs(model, grown, chunk=100_000), whole, atol=1e-10)


def test_every_state_is_counted(merging_tokenizer, make_model):
    grown, seen = candidate_tree(merging_tokenizer, "My ID is: ", "", 3), []
    sequence_log_probs(make_model("lstm", merging_tokenizer), grown, 50, seen.append)
    assert sum(seen) == grown.states


def test_states_are_distinct_proper_prefixes():
    sequences = np.array([[4, 5, 6], [4, 5, 7], [4, 8, -1], [9, -1, -1]])
    grown = tree_of((1,), sequences)
    assert grown.states == len({(), (4,), (4, 5)})
    np.testing.assert_array_equal(grown.lengths, [3, 3, 2, 1])


@pytest.mark.parametrize("sequences", [[[4, -1], [4, 5]], [[4, 5], [4, 5]]])
def test_a_prefix_or_a_twin_is_refused(sequences):
    with pytest.raises(AssertionError, match="prefix-free"):
        tree_of((1,), np.array(sequences))


@pytest.mark.skipif("CONFIDE_MIRROR" not in os.environ, reason="needs GPT-2's own files")
@pytest.mark.parametrize("kind", KINDS)
def test_gpt2_vocabulary(kind):
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


@pytest.mark.slow
@pytest.mark.skipif("CONFIDE_MIRROR" not in os.environ, reason="needs GPT-2's own files")
def test_gpt2_needs_16857_states_for_every_six_digit_span():
    grown = candidate_tree(gpt2_tokenizer(), "My ID is: ", "", 6)
    assert grown.states == 16_857 and grown.count == 10**6


@pytest.mark.gpu
@pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a CUDA device")
@pytest.mark.parametrize("kind", KINDS)
def test_cuda_agrees(merging_tokenizer, make_model, kind):
    model, grown = make_model(kind, merging_tokenizer), candidate_tree(merging_tokenizer, "My ID is: ", "", 3)
    here = sequence_log_probs(model, grown, 100)
    np.testing.assert_allclose(sequence_log_probs(model.cuda(), grown, 100), here, atol=1e-8)


def test_a_rare_merge_refuses_the_shortcut(monkeypatch):
    """The vocabulary decides, not the sample: one joined pair is enough."""
    alphabet = sorted(pre_tokenizers.ByteLevel.alphabet())
    vocab = {token: index for index, token in enumerate([*alphabet, END])}
    monkeypatch.setattr(candidates, "SAMPLE", 0)
    single = from_vocab(vocab, [], source="test")
    pair = from_vocab(vocab | {"77": len(vocab)}, ["7 7"], source="test")
    assert candidates._single_digits(single, "ID ", "", 3) is not None
    assert candidates._single_digits(pair, "ID ", "", 3) is None
