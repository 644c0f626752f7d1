"""Canaries of words (privacy regularisation, appendix A.5): each is of one author.

It is `length` random words. Words are whole tokens, both at the start of a text and after a space,
so that every canary has `length` tokens and the space of all that it could have been is exactly W
** length for W words. First words all differ: an attack that is given the first word alone then
knows which canary it asks for. Everything is drawn from the spec's seed; the tokenizer is made of
public text.
"""

import re
from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np

from confide.errors import InputError
from confide.files.rows import read_rows
from confide.specs import WordCanarySpec
from confide.text.planted import canary_doc, planted_point
from confide.text.tokenizer import Tokenizer

SHORTEST = 3  # letters of a word that is drawn


def one_token(tokenizer: Tokenizer, word: str) -> bool:
    """Whether a word is one token at the start of a text, and one after a space."""
    return len(tokenizer.encode(word)) == 1 == len(tokenizer.encode(f" {word}"))


def whole_words(tokenizer: Tokenizer) -> list[str]:
    """Words of lower-case ASCII letters, three or more, that are one token either way; sorted."""
    return sorted(
        token
        for token in tokenizer.backend.get_vocab()
        if re.fullmatch(f"[a-z]{{{SHORTEST},}}", token) and one_token(tokenizer, token)
    )


def vocabulary(spec: WordCanarySpec, tokenizer: Tokenizer, rng: np.random.Generator) -> list[str]:
    """The words that canaries are made of, sorted.

    InputError for one that is no single token, or if there are too few.
    """
    if spec.words is not None:
        for word in spec.words:
            if not (word.isascii() and word.isalpha() and one_token(tokenizer, word)):
                message = "is no word of one token at the start of a text and after a space"
                raise InputError(message, key="words", value=word)
        if len(set(spec.words)) < len(spec.words):
            raise InputError("a word is listed twice", key="words")
        return sorted(spec.words)
    known = whole_words(tokenizer)
    if len(known) < spec.vocabulary:
        few = f"the tokenizer has {len(known)} words of one token either way"
        message = f"{few}: train it on more words, or ask for fewer"
        raise InputError(message, key="vocabulary", value=spec.vocabulary)
    drawn = np.sort(rng.choice(len(known), spec.vocabulary, replace=False))
    return [known[index] for index in drawn]


def chosen_authors(spec: WordCanarySpec, points: Path, rng: np.random.Generator) -> list[str]:
    """Authors who get canaries: drawn from those with training points, sorted by name.

    InputError if there are too few.
    """
    counts = Counter(
        owner
        for owner, split in read_rows(points, "owner", "split")
        if split == "train" and owner is not None
    )
    if not counts:
        message = "no training point has an owner, as canaries of words need one"
        raise InputError(message, file=points, key="owner")
    if spec.authors is None:
        return sorted(counts)
    if spec.authors > len(counts):
        message = f"only {len(counts)} have training points"
        raise InputError(message, file=points, key="authors", value=spec.authors)
    return sorted(rng.choice(sorted(counts), spec.authors, replace=False).tolist())


def draw(
    spec: WordCanarySpec, words: list[str], authors: list[str], rng: np.random.Generator
) -> dict[str, Any]:
    """The content of canaries.json: canaries author by author, then controls, which nobody plants.

    All but first words are independent and uniform. InputError if there are fewer words than first
    words are needed.
    """
    owners = [(author, copies) for author in authors for copies in spec.copies]
    total = len(owners) + spec.controls
    if total > len(words):
        need = f"{total} canaries and controls need first words of their own"
        message = f"{need}, and there are {len(words)} words"
        raise InputError(message, key="vocabulary")
    first = rng.choice(len(words), total, replace=False)
    rest = rng.integers(len(words), size=(total, spec.length - 1))
    places = np.column_stack([first, rest]).tolist()
    texts = [" ".join(words[index] for index in row) for row in places]
    planted = [
        {"text": text, "author": author, "copies": copies}
        for text, (author, copies) in zip(texts, owners, strict=False)
    ]
    controls = [{"text": text} for text in texts[len(owners) :]]
    facts = {"kind": "words", "length": spec.length, "vocabulary": words, "label": spec.label}
    return facts | {"canaries": planted, "controls": controls}


def canary_point(facts: dict[str, Any], index: int, copy: int) -> dict[str, Any]:
    """Fields of one planted point; all of its text is gold."""
    canary = facts["canaries"][index]
    gold = [(0, len(canary["text"]), facts["label"], 1.0)]
    doc = canary_doc(index, copy)
    return planted_point(doc, canary["text"], gold, owner=canary["author"], canary=index)
