"""Canaries of words for the tests of the attacks on them: files as the corpus stage writes them,
and bare spaces.
"""

import json
import random
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import torch

from confide.attacks.exposure.words import Space
from confide.files.io import write_json, write_jsonl
from confide.models import build
from confide.specs import GPT2Spec, LSTMSpec
from confide.text.tokenizer import Tokenizer, train_bpe

WORDS = ["amber", "birch", "cedar", "delta", "ember", "flint", "grove", "heron", "islet", "jetty"]


def word_tokenizer() -> Tokenizer:
    """One in which each of the words is one token, bare and after a space."""
    return train_bpe([f"{one}, {two} {one}" for one in WORDS for two in WORDS] * 3, 400)


def sentence(places: tuple[int, ...]) -> str:
    return " ".join(WORDS[place] for place in places)


def facts(
    canaries: list[tuple[str, str, int]], controls: list[str], length: int = 3
) -> dict[str, Any]:
    """canaries.json for (text, author, copies)."""
    planted = [
        {"text": text, "author": author, "copies": copies} for text, author, copies in canaries
    ]
    head = {"kind": "words", "length": length, "vocabulary": WORDS, "label": "canary"}
    return head | {"canaries": planted, "controls": [{"text": text} for text in controls]}


def point(
    number: int, text: str, owner: str | None, split: str = "train", canary: int | None = None
) -> dict[str, Any]:
    row = {
        "key": f"d{number}:0",
        "text": text,
        "doc": f"d{number}",
        "split": split,
        "domain": None,
        "owner": owner,
    }
    return row | {"gold": [], "canary": canary}


def written(
    folder: Path,
    canaries: list[tuple[str, str, int]],
    controls: list[str],
    rows: list[dict[str, Any]],
) -> dict[str, Path]:
    """Both files; the points are `rows` and the copies of the canaries."""
    copies = [
        (index, text, owner)
        for index, (text, owner, count) in enumerate(canaries)
        for _ in range(count)
    ]
    planted = [
        point(1000 + n, text, owner, canary=index) for n, (index, text, owner) in enumerate(copies)
    ]
    write_jsonl(folder / "points.jsonl", rows + planted)
    write_json(folder / "canaries.json", facts(canaries, controls))
    return {"points": folder / "points.jsonl", "canaries": folder / "canaries.json"}


def a_space(words: int, length: int, vocab: int, seed: int) -> Space:
    """Random different tokens for a vocabulary of words."""
    tokens = np.random.default_rng(seed).permutation(np.arange(3, vocab)).astype(np.int64)
    return Space(tokens[:words], tokens[words : 2 * words], length)


def no_word_of(found: Any, texts: list[str]) -> bool:
    """Whether none of the texts is in a result."""
    return not any(text in json.dumps(found) for text in texts)


def some(count: int, length: int, seed: int) -> list[tuple[int, ...]]:
    """Different sequences of places, with different first words."""
    source = random.Random(seed)
    firsts = source.sample(range(len(WORDS)), count)
    return [(first, *(source.randrange(len(WORDS)) for _ in range(length - 1))) for first in firsts]


KINDS = {
    "lstm": LSTMSpec(kind="lstm", embedding=8, hidden=12),
    "gpt2": GPT2Spec(kind="gpt2", layers=2, width=12, heads=2, positions=16),
}
VOCAB = 60


def a_model(kind: str = "lstm", seed: int = 0, scale: float = 4.0, vocab: int = VOCAB):
    torch.manual_seed(seed)
    model = build(KINDS[kind], vocab, 1)
    with torch.no_grad():
        for parameter in model.parameters():
            parameter *= scale
    return model.eval()


def everything(space) -> np.ndarray:
    return np.array(list(product(range(len(space.first)), repeat=space.length)))


def learn(model, rows: np.ndarray, steps: int) -> None:
    """Overfit a model to rows of tokens."""
    rows = torch.from_numpy(rows)
    optimizer = torch.optim.Adam(model.parameters(), lr=0.03)
    inputs = torch.cat([torch.ones_like(rows[:, :1]), rows[:, :-1]], 1)
    for _ in range(steps):
        optimizer.zero_grad()
        torch.nn.functional.cross_entropy(model(inputs).flatten(0, 1), rows.flatten()).backward()
        optimizer.step()


def ten_by_heart():
    """A model, a space of 10^3 and ten sequences that it was trained on until it knew them."""
    model = a_model(scale=1.0, seed=1)
    space = a_space(10, 3, VOCAB, 99)
    known = np.array([(first, (3 * first + 1) % 10, (7 * first + 2) % 10) for first in range(10)])
    learn(model, space.tokens(known), 150)
    return model, space, known.tolist()
