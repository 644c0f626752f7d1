"""Planted canaries of words as tokens, and the space of all that one of them could have been.

A sequence is `length` words of a known vocabulary, joined by spaces: the first as a bare word, the
others after a space, each one token. canaries.json of kind "words" says which were planted for
which author, and how often; controls never were.
"""

from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import torch
from torch import Tensor

from confide.errors import InputError
from confide.files.io import read_file, read_json
from confide.specs.files import WordsFile
from confide.text.tokenizer import Tokenizer

GROUPS = ("canaries", "controls")


class Space(NamedTuple):
    """All V^length sequences of words."""

    first: np.ndarray  # (V,) int64: token of each word at the start of a text
    after: np.ndarray  # (V,) int64: token of the same word after a space
    length: int

    @property
    def size(self) -> int:
        return len(self.first) ** self.length

    def tokens(self, places: np.ndarray) -> np.ndarray:
        """Tokens (n, length) of sequences given as places (n, length) in the vocabulary."""
        return np.concatenate([self.first[places[:, :1]], self.after[places[:, 1:]]], axis=1)

    def vocabularies(self, device: torch.device) -> list[Tensor]:
        """Tokens (V,) of the words at each place of a sequence."""
        first, after = (torch.from_numpy(tokens).to(device) for tokens in self[:2])
        return [first, *[after] * (self.length - 1)]


class Planted(NamedTuple):
    """Sequences of a space that were planted, or not."""

    space: Space
    canaries: np.ndarray  # (n, length) int64 places in the vocabulary
    controls: np.ndarray  # (m, length) int64
    copies: list[int]  # (n,)
    authors: list[int]  # (n,) numbers, -1: none


def read_words(
    path: Path | None, tokenizer: Tokenizer, numbers: dict[str, int], attack: str
) -> Planted:
    """The planted words, their authors numbered by `numbers`.

    InputError, which never quotes a canary, if they do not fit.
    """
    if path is None:
        raise InputError("needs a corpus with planted canaries", key="attack", value=attack)
    facts = read_json(path)
    if not isinstance(facts, dict) or facts.get("kind") != "words":
        raise InputError(f"has no canaries of words, which {attack} attacks", file=path, key="kind")
    facts = read_file(path, WordsFile)
    space = Space(*_tokens(facts["vocabulary"], tokenizer, path), facts["length"])
    place = {word: number for number, word in enumerate(facts["vocabulary"])}
    canaries, controls = (_places(facts[key], place, space.length, path, key) for key in GROUPS)
    copies = []
    authors = []
    for index, row in enumerate(facts["canaries"]):
        if not row.keys() >= {"copies", "author"}:
            raise InputError("needs copies and author", file=path, key=f"canaries.{index}")
        if row["author"] not in numbers:
            message = "is none of the authors of the points"
            raise InputError(message, file=path, key=f"canaries.{index}.author")
        copies.append(row["copies"])
        authors.append(numbers[row["author"]])
    return Planted(space, canaries, controls, copies, authors)


def _tokens(words: list[str], tokenizer: Tokenizer, path: Path) -> tuple[np.ndarray, np.ndarray]:
    """Token of each word alone and after a space."""
    if len(set(words)) < len(words):
        raise InputError("expected different words", file=path, key="vocabulary")
    tokens = np.zeros((2, len(words)), dtype=np.int64)
    for index, word in enumerate(words):
        bare = tokenizer.encode(word)
        spaced = tokenizer.encode(f" {word}")
        if len(bare) != 1 or len(spaced) != 1:
            message = "is not one token with this tokenizer"
            raise InputError(message, file=path, key=f"vocabulary.{index}")
        tokens[:, index] = bare[0], spaced[0]
    return tokens[0], tokens[1]


def _places(
    rows: list[dict[str, Any]], place: dict[str, int], length: int, path: Path, key: str
) -> np.ndarray:
    """Each sentence as places (n, length) in the vocabulary."""
    places = np.zeros((len(rows), length), dtype=np.int64)
    for index, row in enumerate(rows):
        words = row["text"].split(" ")
        if len(words) != length or not place.keys() >= set(words):
            message = f"is not {length} words of the vocabulary"
            raise InputError(message, file=path, key=f"{key}.{index}")
        places[index] = [place[word] for word in words]
    return places
