"""Tokenizers and models for the attacks, small enough to check every candidate one by one."""

import random
from collections.abc import Callable, Iterator

import numpy as np
import orjson
import pytest
import torch
from tokenizers import Tokenizer as Backend
from tokenizers import models, pre_tokenizers, trainers
from torch import nn

from confide.batches import padded, token_losses
from confide.models import build
from confide.specs import GPT2Spec, LSTMSpec
from confide.tokenizer import END, Tokenizer, from_vocab, train_bpe
from confide.types import View

SPECS = {
    "lstm": LSTMSpec(kind="lstm", embedding=8, hidden=12, layers=2),
    "lstm that memorises": LSTMSpec(kind="lstm", embedding=16, hidden=32),
    "gpt2": GPT2Spec(kind="gpt2", layers=2, width=12, heads=2, positions=64),
}


@pytest.fixture(scope="session", autouse=True)
def one_thread() -> Iterator[None]:
    """Models this small only lose time to a second thread."""
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(threads)


@pytest.fixture(scope="session")
def digit_tokenizer() -> Tokenizer:
    """Ours: every digit one token."""
    return train_bpe(["My ID is: 12", "I live at 5 Oak Street, call me"] * 20, 300)


@pytest.fixture(scope="session")
def merging_tokenizer() -> Tokenizer:
    """GPT-2's kind: digits merge with each other and with the space before them."""
    source = random.Random(0)
    texts = [f"My ID is: {source.randrange(10 ** source.randrange(1, 6))}" for _ in range(3000)]
    backend = Backend(models.BPE())
    backend.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=True)
    alphabet = pre_tokenizers.ByteLevel.alphabet()
    trainer = trainers.BpeTrainer(vocab_size=420, special_tokens=[END], initial_alphabet=alphabet, show_progress=False)
    backend.train_from_iterator(texts, trainer)
    described = orjson.loads(backend.to_str())["model"]
    return from_vocab(described["vocab"], described["merges"], source="test")


@pytest.fixture(scope="session")
def make_model() -> Callable[..., nn.Module]:
    """A model whose next-token distributions are far from uniform; float64 unless told."""

    def make(kind: str, tokenizer: Tokenizer, *, seed: int = 0, scale: float = 3.0, double: bool = True) -> nn.Module:
        torch.manual_seed(seed)
        model = build(SPECS[kind], tokenizer.vocab_size, tokenizer.bos_id)
        with torch.no_grad():
            for parameter in model.parameters():
                parameter *= scale
        return (model.double() if double else model).eval()

    return make


@pytest.fixture(scope="session")
def fit() -> Callable[..., None]:
    """Overfit a model to a few texts."""

    def run(model: nn.Module, tokenizer: Tokenizer, texts: list[str], steps: int) -> None:
        rows = [tokenizer.encode(text) for text in texts]
        starts = np.cumsum([0] + [len(row) for row in rows])
        view = View(np.concatenate(rows).astype(np.int32), starts, np.zeros(starts[-1], bool))
        inputs, targets = padded(view, np.arange(len(rows)), tokenizer.bos_id)
        optimizer = torch.optim.Adam(model.parameters(), lr=0.02)
        model.train()
        for _ in range(steps):
            optimizer.zero_grad()
            token_losses(model, inputs, targets).sum(1).mean().backward()
            optimizer.step()
        model.eval()

    return run
