"""The candidate set R of exposure: every value that a canary's secret could have had, as tokens.

Each candidate is encoded in its context (prefix, digits, suffix), since a merge may join the
prefix's end to the first digit or the last digit to the suffix. Read are the tokens up to the last
one that holds a digit. Candidates come in blocks of neighbours, so that memory does not grow with
their number.
"""

from collections.abc import Iterator
from dataclasses import replace
from itertools import chain, product
from math import log10
from typing import NamedTuple

import numpy as np

from confide.attacks.exposure.blocks import BLOCK
from confide.attacks.exposure.tree import PAD, Tree, regular_tree, tree_of
from confide.text.sentencepiece import SPELLED
from confide.text.tokenizer import Tokenizer

TOKENS = 1 << 24  # most tokens of a block that has to be encoded
BATCH = 50_000  # texts encoded at once
SAMPLE = 1_000  # candidates on which the shortcut is checked
DIGITS = frozenset("0123456789")


class Sentence(NamedTuple):
    """Where a canary's secret stands, and how many digits it has."""

    prefix: str
    suffix: str
    digits: int

    def texts(self, values: np.ndarray) -> list[str]:
        """The candidates with the given numeric values."""
        width = f"0{self.digits}d"
        return [f"{self.prefix}{value:{width}}{self.suffix}" for value in values.tolist()]


def candidate_blocks(
    tokenizer: Tokenizer,
    sentence: Sentence,
    block: int | None = None,
    among: range | None = None,
) -> Iterator[Tree]:
    """Prefix trees of all 10^digits candidates in numeric order, at most 10^block in each.

    `block`: None: as many as several jobs share out, 10^BLOCK.
    `among`: these values alone, from the first of a block to the last of one. Where every digit is
    a token, all blocks are one tree below different digits, and nothing is encoded.
    """
    digits = sentence.digits
    block = min(BLOCK if block is None else block, digits)
    wanted = range(10**digits) if among is None else among
    single = _single_digits(tokenizer, sentence)
    if single is not None:
        context, tokens = single
        tree = regular_tree(tokens, block)
        for number, leading in enumerate(product(tokens.tolist(), repeat=digits - block)):
            if number * 10**block in wanted:
                yield replace(tree, context=(tokenizer.bos_id, *context, *leading))
        return
    width = encoded(tokenizer, sentence, np.zeros(1, dtype=np.int64)).shape[1]
    block = min(block, int(log10(TOKENS / width)))
    for start in wanted[:: 10**block]:
        values = np.arange(start, start + 10**block)
        yield distinct_tree(tokenizer.bos_id, encoded(tokenizer, sentence, values))


def encoded(tokenizer: Tokenizer, sentence: Sentence, values: np.ndarray) -> np.ndarray:
    """Token ids (n, L), padded with -1, of the candidates with the given values (n,).

    Tokens of the suffix alone are left out.
    """
    batches = (
        sentence.texts(values[start : start + BATCH]) for start in range(0, len(values), BATCH)
    )
    suffix = len(sentence.suffix.encode())
    pieces = [encode(tokenizer, batch, suffix) for batch in batches]
    width = max(piece.shape[1] for piece in pieces)
    return np.concatenate(
        [
            np.pad(piece, ((0, 0), (0, width - piece.shape[1])), constant_values=PAD)
            for piece in pieces
        ]
    )


def distinct_tree(bos: int, sequences: np.ndarray) -> Tree:
    """Tree of candidates (R, L), padded with -1, from the first token in which they differ."""
    common = int((sequences != sequences[0]).any(axis=0).argmax())
    return tree_of((bos, *sequences[0, :common].tolist()), sequences[:, common:])


def encode(tokenizer: Tokenizer, batch: list[str], suffix: int) -> np.ndarray:
    """Token ids (n, L), padded with -1, without tokens wholly in the last `suffix` bytes."""
    rows = tokenizer.encode_all(batch)
    counts = np.fromiter(map(len, rows), dtype=np.int64, count=len(rows))
    ids = np.full((len(rows), int(counts.max())), PAD, dtype=np.int32)
    real = np.arange(ids.shape[1]) < counts[:, None]
    flat = np.fromiter(chain.from_iterable(rows), np.int32, int(counts.sum()))
    ids[real] = flat
    # a token covers a known number of bytes: those at and after each token tell where it begins
    sizes = np.zeros(ids.shape, np.int64)
    sizes[real] = tokenizer.sizes(flat, np.append(0, counts.cumsum()))
    following = sizes[:, ::-1].cumsum(axis=1)[:, ::-1]
    ids[following <= suffix] = PAD
    return ids


def _single_digits(
    tokenizer: Tokenizer, sentence: Sentence
) -> tuple[tuple[int, ...], np.ndarray] | None:
    """Tokens before the first digit and tokens of 0 to 9; None unless a digit is always one token.

    It always is if no token of the vocabulary joins a digit to anything; a sample of candidates
    confirms it in context.
    """
    vocab = tokenizer.backend.get_vocab()
    joined = any(
        len(token) > 1 and not DIGITS.isdisjoint(token) and token not in SPELLED for token in vocab
    )
    if joined or not vocab.keys() >= DIGITS:
        return None
    tokens = np.array([vocab[digit] for digit in sorted(DIGITS)])
    digits = sentence.digits
    drawn = np.random.default_rng(0).integers(10**digits, size=SAMPLE)
    values = np.concatenate([drawn, np.arange(10) * 10 ** (digits - 1)])
    sample = encoded(tokenizer, sentence, values)
    before = sample.shape[1] - digits
    expected = tokens[values[:, None] // 10 ** np.arange(digits - 1, -1, -1) % 10]
    same_context = (sample[:, :before] == sample[0, :before]).all()
    if not same_context or not (sample[:, before:] == expected).all():
        return None
    return tuple(sample[0, :before].tolist()), tokens
