"""Generation: against a naive loop over whole forward passes, the sampled distribution, where texts
end, what never appears.
"""

import random

import numpy as np
import orjson
import pytest
import torch
from scipy.stats import chisquare
from tokenizers import Tokenizer as Backend
from tokenizers import models, pre_tokenizers, trainers
from torch import nn

from confide.errors import InputError
from confide.models import build, generation
from confide.models.generation import (
    Ending,
    Writing,
    draw,
    ending,
    generate,
    pieces,
    uniforms,
)
from confide.specs import GPT2Spec, LSTMSpec, SamplingSpec
from confide.text.tokenizer import END, Tokenizer, from_vocab, train_bpe
from confide.types import MASK

LINES = [
    "<_soc_> <AIRLINE> USR: hello <AIRLINE> SYS: how may I help you <_eoc_>",
    "USR: ünïcode – 東京 😀 costs 12,50",
] * 20
SPECS = {
    "lstm": LSTMSpec(kind="lstm", embedding=8, hidden=12, layers=2),
    "gpt2": GPT2Spec(kind="gpt2", layers=2, width=12, heads=2, positions=48),
}
SPEC = SamplingSpec(top_k=40, max_new_tokens=20)


@pytest.fixture(scope="module", params=["ours", "gpt2's"])
def tokenizer(request) -> Tokenizer:
    if request.param == "ours":
        return train_bpe(LINES, 320)
    backend = Backend(models.BPE())
    backend.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=True)
    alphabet = pre_tokenizers.ByteLevel.alphabet()
    trainer = trainers.BpeTrainer(
        vocab_size=330, special_tokens=[END], initial_alphabet=alphabet, show_progress=False
    )
    backend.train_from_iterator(LINES, trainer)
    described = orjson.loads(backend.to_str())["model"]
    return from_vocab(described["vocab"], described["merges"], source="test")


def model_of(kind: str, tokenizer: Tokenizer, scale: float = 4.0) -> nn.Module:
    """Far from uniform, and in float64, so that no rounding decides a token."""
    torch.manual_seed(0)
    model = build(SPECS[kind], tokenizer.vocab_size, tokenizer.bos_id)
    with torch.no_grad():
        for parameter in model.parameters():
            parameter *= scale
    return model.double().eval()


def prompts_of(tokenizer: Tokenizer) -> list[list[int]]:
    """Of different lengths, one of them empty and one twice."""
    whole = tokenizer.encode(LINES[0])
    return [whole[:9], [], whole[:1], whole[:20], whole[3:12], whole[:1]]


@torch.no_grad()
def naive(
    model: nn.Module, prompt: list[int], numbers: torch.Tensor, spec: SamplingSpec, until: Ending
) -> tuple[list[int], str]:
    """Token by token, each from a forward pass over all that stands before it, with the sampling
    spelled out.
    """
    ids: list[int] = []
    for u in numbers.tolist():
        logits = model(torch.tensor([[model.bos, *prompt, *ids]]))[0, -1].double().numpy().copy()
        logits[list(until.banned)] = -np.inf
        chosen = sorted(range(len(logits)), key=lambda token: -logits[token])[: spec.top_k]
        p = np.exp(
            np.array([logits[token] for token in chosen]) / spec.temperature
            - logits.max() / spec.temperature
        )
        p /= p.sum()
        size = next(n for n in range(1, len(p) + 1) if p[:n].sum() >= spec.top_p - 1e-12)
        weights = {
            token: weight / p[:size].sum() for token, weight in zip(chosen[:size], p, strict=False)
        }
        total = 0.0
        for token in sorted(weights):
            total += weights[token]
            if total > u:
                break
        if token in until.ids:
            break
        ids.append(token)
        text = b"".join(until.pieces[token] for token in ids)
        if any(string in text for string in until.strings):
            cut = min(text.find(string) for string in until.strings if string in text)
            ends = np.cumsum([len(until.pieces[token]) for token in ids])
            return [token for token, end in zip(ids, ends, strict=True) if end <= cut], text[
                :cut
            ].decode(errors="replace")
    return ids, b"".join(until.pieces[token] for token in ids).decode(errors="replace")


@pytest.mark.parametrize("kind", list(SPECS))
@pytest.mark.parametrize(
    "settings", [{}, {"top_p": 0.6, "temperature": 1.5}, {"top_k": None, "top_p": 0.9}]
)
def test_batches_give_what_a_naive_loop_gives(kind, settings, tokenizer, monkeypatch):
    spec = SamplingSpec(**(SPEC.model_dump() | settings))
    model = model_of(kind, tokenizer)
    some = [
        tokenizer.decode([token]) for token in range(35, 96, 5)
    ]  # many texts end early, so that batches shrink
    until = ending(tokenizer, some)
    prompts = prompts_of(tokenizer)
    numbers = uniforms(len(prompts), 4, spec, torch.Generator().manual_seed(1))
    monkeypatch.setattr(
        generation, "ROWS", 3 if settings else 9
    )  # of the four samples of two prompts eight, or a part of one's
    found = generate(model, prompts, numbers, spec, until)
    alone = [
        [generate(model, [p], n[None, None], spec, until)[0][0] for n in ns]
        for p, ns in zip(prompts, numbers, strict=True)
    ]
    assert found == alone
    for prompt, row, ns in zip(prompts, found, numbers, strict=True):
        assert [(one.ids, one.text) for one in row] == [
            naive(model, prompt, n, spec, until) for n in ns
        ]
    lengths = {len(one.ids) for row in found for one in row}
    assert len(lengths) > 3 and {one.stopped for row in found for one in row} == {True, False}


def test_batches_in_single_precision_are_those_of_one_at_a_time(tokenizer):
    model = model_of("gpt2", tokenizer).float()
    prompts = prompts_of(tokenizer)
    until = ending(tokenizer)
    numbers = uniforms(len(prompts), 8, SPEC, torch.Generator().manual_seed(2))
    found = generate(model, prompts, numbers, SPEC, until)
    assert found == [
        [generate(model, [p], n[None, None], SPEC, until)[0][0] for n in ns]
        for p, ns in zip(prompts, numbers, strict=True)
    ]


def test_numbers_come_from_the_generator_alone():
    torch.manual_seed(5)
    one = uniforms(3, 2, SPEC, torch.Generator().manual_seed(1))
    torch.rand(7)
    assert torch.equal(
        one, uniforms(3, 2, SPEC, torch.Generator().manual_seed(1))
    ) and one.shape == (3, 2, 20)
    assert not torch.equal(one, uniforms(3, 2, SPEC, torch.Generator().manual_seed(2)))


@pytest.mark.parametrize("kind", list(SPECS))
def test_tokens_are_distributed_as_the_softmax_of_the_top_k(kind, tokenizer):
    spec = SamplingSpec(top_k=12, temperature=2.0, max_new_tokens=1)
    model = model_of(kind, tokenizer)
    prompt = tokenizer.encode("USR: hello")
    until = ending(tokenizer)
    numbers = uniforms(1, 4000, spec, torch.Generator().manual_seed(3))
    drawn = [
        one.ids[0] if one.ids else model.bos
        for one in generate(model, [prompt], numbers, spec, until)[0]
    ]
    with torch.no_grad():
        logits = model(torch.tensor([[model.bos, *prompt]]))[0, -1]
    logits[list(until.banned)] = -torch.inf
    top = logits.topk(12)
    assert set(drawn) <= set(top.indices.tolist())
    counts = np.array([drawn.count(token) for token in top.indices.tolist()])
    expected = 4000 * (top.values / 2).softmax(0).numpy()
    assert chisquare(counts, expected * counts.sum() / expected.sum()).pvalue > 1e-3
    assert (
        chisquare(counts, 4000 * top.values.softmax(0).numpy()).pvalue < 1e-6
    )  # the test would notice a lost temperature


def test_the_nucleus_is_the_smallest_set_of_so_much_probability():
    logits = torch.tensor([[0.4, 0.05, 0.3, 0.05, 0.2]]).log().expand(2000, -1)
    numbers = torch.rand(2000, generator=torch.Generator().manual_seed(0), dtype=torch.float64)
    for top_p, nucleus in (
        (0.3, {0}),
        (0.5, {0, 2}),
        (0.69, {0, 2}),
        (0.71, {0, 2, 4}),
        (1.0, {0, 1, 2, 3, 4}),
    ):
        spec = SamplingSpec(top_k=None, top_p=top_p)
        assert set(draw(logits, numbers, spec).tolist()) == nucleus


def test_tokens_cover_the_bytes_of_every_text(tokenizer):
    table = pieces(tokenizer)
    assert [len(piece) for piece in table] == tokenizer.lengths.tolist()
    for line in (*LINES[:2], f"a{MASK}b", "\x00\x7f\n\t­Ā"):
        assert b"".join(table[token] for token in tokenizer.encode(line)).decode() == line


STOPS = ("<_eoc_>", "<AIRLINE>", "USR:", "SYS:")


@pytest.mark.parametrize("seed", range(12))
def test_a_text_ends_before_the_first_stop_wherever_tokens_begin(tokenizer, seed):
    source = random.Random(seed)
    words = [
        "hello",
        "<",
        "AIR",
        "<AIRLINE",
        "US",
        "costs",
        "12",
        "東京",
        "S",
        ":",
        "help you",
        " ",
    ]
    text = "".join(source.choice(words) for _ in range(source.randrange(12)))
    writing = Writing(ending(tokenizer, STOPS))
    whole = text + source.choice(STOPS) + " USR: more"
    expected = min(whole.find(one) for one in STOPS if one in whole)
    ids = (
        tokenizer.encode(whole)
        if seed % 2
        else [token for letter in whole for token in tokenizer.encode(letter)]
    )
    for token in ids:
        writing.add(token)
    found = writing.written()
    assert found.stopped and found.text == whole[:expected]
    assert found.ids == ids[: len(found.ids)] and whole.startswith(tokenizer.decode(found.ids))
    following = tokenizer.decode(ids[: len(found.ids) + 1])
    assert len(following) > expected or "\ufffd" in following  # no token that would fit is missing


def test_a_text_ends_at_the_end_token_and_is_otherwise_cut_off(tokenizer):
    model = model_of("lstm", tokenizer)
    numbers = uniforms(1, 3, SPEC, torch.Generator().manual_seed(0))
    with torch.no_grad():
        model.head.bias[tokenizer.bos_id] = 1e4
    assert generate(model, [[]], numbers, SPEC, ending(tokenizer)) == [
        [generation.Generation([], "", True)] * 3
    ]
    with torch.no_grad():
        model.head.bias[tokenizer.bos_id] = -1e4
    assert [
        (len(one.ids), one.stopped)
        for one in generate(model, [[]], numbers, SPEC, ending(tokenizer))[0]
    ] == [(20, False)] * 3


@pytest.mark.parametrize("top_k", [1, 5, None])
def test_banned_tokens_never_appear(tokenizer, top_k):
    model = model_of("lstm", tokenizer)
    spec = SamplingSpec(top_k=top_k, max_new_tokens=30)
    numbers = uniforms(1, 20, spec, torch.Generator().manual_seed(0))
    with torch.no_grad():
        model.head.bias[[tokenizer.mask_id, tokenizer.pad_id]] = 1e3
    free = Ending(pieces(tokenizer))
    assert {token for one in generate(model, [[]], numbers, spec, free)[0] for token in one.ids} & {
        tokenizer.mask_id,
        tokenizer.pad_id,
    }
    drawn = {
        token
        for one in generate(model, [[]], numbers, spec, ending(tokenizer))[0]
        for token in one.ids
    }
    assert drawn and not drawn & {tokenizer.mask_id, tokenizer.pad_id}


def test_a_prompt_without_room_and_a_broken_model_are_refused(tokenizer):
    model = model_of("gpt2", tokenizer)
    numbers = uniforms(1, 1, SPEC, torch.Generator())
    assert (
        len(generate(model, [[65] * 27], numbers, SPEC, ending(tokenizer))[0]) == 1
    )  # 1 + 27 + 20 positions
    with pytest.raises(InputError, match="29 tokens.*48 positions"):
        generate(model, [[65] * 28], numbers, SPEC, ending(tokenizer))
    with torch.no_grad():
        model.network.transformer.ln_f.weight[0] = float("nan")
    with pytest.raises(FloatingPointError):
        generate(model, [[65]], numbers, SPEC, ending(tokenizer))


@pytest.mark.gpu
@pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a CUDA device")
@pytest.mark.parametrize("kind", list(SPECS))
def test_a_gpu_writes_what_the_cpu_writes(kind, tokenizer):
    prompts = prompts_of(tokenizer)
    until = ending(tokenizer, ("e", "s"))
    numbers = uniforms(len(prompts), 8, SPEC, torch.Generator().manual_seed(1))
    here, there = (
        generate(model_of(kind, tokenizer).to(name), prompts, numbers, SPEC, until)
        for name in ("cpu", "cuda")
    )
    assert here == there


def test_nothing_to_do(tokenizer):
    assert (
        generate(
            model_of("gpt2", tokenizer),
            [],
            uniforms(0, 3, SPEC, torch.Generator()),
            SPEC,
            ending(tokenizer),
        )
        == []
    )
