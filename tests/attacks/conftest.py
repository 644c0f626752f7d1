"""Tokenizers and models for the attacks, small enough to check every candidate one by one."""

import math
import random
from collections.abc import Callable, Iterator

import numpy as np
import orjson
import pytest
import torch
from tokenizers import Tokenizer as Backend
from tokenizers import models, pre_tokenizers, trainers
from torch import nn

from confide.models import build
from confide.models.batches import padded, token_losses
from confide.specs import GPT2Spec, LSTMSpec
from confide.text.tokenizer import END, Tokenizer, from_vocab, train_bpe
from confide.types import View

SPECS = {
    "lstm": LSTMSpec(kind="lstm", embedding=8, hidden=12, layers=2),
    "lstm that memorises": LSTMSpec(kind="lstm", embedding=16, hidden=32),
    "gpt2": GPT2Spec(kind="gpt2", layers=2, width=12, heads=2, positions=64),
}


@pytest.fixture(scope="module", autouse=True)
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
    trainer = trainers.BpeTrainer(
        vocab_size=420, special_tokens=[END], initial_alphabet=alphabet, show_progress=False
    )
    backend.train_from_iterator(texts, trainer)
    described = orjson.loads(backend.to_str())["model"]
    return from_vocab(described["vocab"], described["merges"], source="test")


@pytest.fixture(scope="session")
def make_model() -> Callable[..., nn.Module]:
    """A model whose next-token distributions are far from uniform; float64 unless told."""

    def make(
        kind: str, tokenizer: Tokenizer, *, seed: int = 0, scale: float = 3.0, double: bool = True
    ) -> nn.Module:
        torch.manual_seed(seed)
        model = build(SPECS[kind], tokenizer.vocab_size, tokenizer.bos_id)
        with torch.no_grad():
            for parameter in model.parameters():
                parameter *= scale
        return (model.double() if double else model).eval()

    return make


@pytest.fixture(scope="session")
def fit() -> Callable[..., None]:
    """Overfit a model to a few texts, until their mean loss in nats is small enough."""

    def run(
        model: nn.Module, tokenizer: Tokenizer, texts: list[str], steps: int, enough: float = 0.0
    ) -> None:
        rows = [tokenizer.encode(text) for text in texts]
        starts = np.cumsum([0] + [len(row) for row in rows])
        view = View(np.concatenate(rows).astype(np.int32), starts, np.zeros(starts[-1], bool))
        batch = padded(view, np.arange(len(rows)), tokenizer.bos_id)
        optimizer = torch.optim.Adam(model.parameters(), lr=0.02)
        model.train()
        for _ in range(steps):
            optimizer.zero_grad()
            loss = token_losses(model, batch).sum(1).mean()
            loss.backward()
            optimizer.step()
            if loss < enough:
                break
        model.eval()

    return run


@pytest.fixture(scope="session")
def memorised(make_model, fit) -> Callable[..., nn.Module]:
    """A model that knows "My ID is: ####" for each of the given secrets by heart; fitted once."""

    fitted: dict[tuple[str, int, str], nn.Module] = {}

    def of(kind: str, tokenizer: Tokenizer, secrets: list[str]) -> nn.Module:
        key = kind, id(tokenizer), "".join(secrets)
        if key not in fitted:
            fitted[key] = make_model(kind, tokenizer, scale=1.0, double=False)
            fit(
                fitted[key],
                tokenizer,
                [f"My ID is: {secret}" for secret in secrets],
                300,
                math.log(len(secrets)) + 0.1,
            )
        return fitted[key]

    return of


@pytest.fixture(scope="session")
def totals() -> Callable[[nn.Module, list[tuple[int, ...]]], np.ndarray]:
    """Log-probabilities (n,) of n rows of tokens after their first, by forward passes over whole
    rows.
    """

    @torch.no_grad()
    def run(model: nn.Module, rows: list[tuple[int, ...]]) -> np.ndarray:
        found = np.zeros(len(rows))
        for length in {len(row) for row in rows} - {1}:
            where = [i for i, row in enumerate(rows) if len(row) == length]
            ids = torch.tensor([rows[i] for i in where])
            logs = model(ids[:, :-1]).double().log_softmax(-1).gather(2, ids[:, 1:, None])
            found[where] = logs.sum((1, 2)).numpy()
        return found

    return run


@pytest.fixture(scope="session")
def brute_force(totals) -> Callable[..., np.ndarray]:
    """Log-probabilities of candidates by forward passes over the whole of each, as far as their
    last digit reaches.
    """

    def covering(tokenizer: Tokenizer, text: str, end: int) -> list[int]:
        """Tokens of a text that begin before character `end`, by spelling them out one after the
        other.
        """
        place = 0
        kept = []
        for token in tokenizer.encode(text):
            if place < end:
                kept.append(token)
            place += len(tokenizer.decode([token]))
        return kept

    def run(
        model: nn.Module,
        tokenizer: Tokenizer,
        prefix: str,
        suffix: str,
        digits: int,
        values: np.ndarray,
    ) -> np.ndarray:
        texts = [f"{prefix}{value:0{digits}d}{suffix}" for value in values]
        rows = [
            (tokenizer.bos_id, *covering(tokenizer, text, len(prefix) + digits)) for text in texts
        ]
        return totals(model, rows)

    return run
