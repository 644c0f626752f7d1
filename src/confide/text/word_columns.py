"""Token ids of many texts at once, each different word looked up once.

Texts of ASCII in which blanks stand alone are cut into words by the kinds of neighbouring
characters, just as the expression of the tokenizer cuts them (`tokenizer.py`); <MASK> is a word of
its own. Any other text, and those of tokenizers that cut in another way, are left to
`Tokenizer.packed`.
Shapes: U texts, W words, T tokens.
"""

import re
from collections.abc import Callable
from dataclasses import dataclass
from itertools import pairwise

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from confide.files import arrays
from confide.text.tokenizer import Tokenizer
from confide.text.tokenizer import packed as packed_ids
from confide.types import MASK

LETTER, DIGIT, OTHER, SPACE, LINE_END, MASKED = range(6)
BATCH = 1 << 20  # bytes that are cut at once: what is made of them stays in a processor's cache
GROUP = 3  # digits of a word, where digits are tokens one by one
HOLE = "\x01"  # a byte in place of each <MASK>, which is a word of its own
# Characters beyond ASCII, apostrophes, which may begin a word with letters, blanks but single
# spaces and line ends, and what stands in place of masks.
ODD = rf"[^\x00-\x7F]|['\t\r\f\v{HOLE}]|[ \n][ \n]"


def _kinds() -> bytes:
    """The kind of each byte, as a table for `bytes.translate`."""
    kinds = np.full(256, OTHER, np.uint8)
    for first, last, kind in (("A", "Z", LETTER), ("a", "z", LETTER), ("0", "9", DIGIT)):
        kinds[ord(first) : ord(last) + 1] = kind
    kinds[ord(" ")] = SPACE
    kinds[ord("\n")] = LINE_END
    kinds[ord(HOLE)] = MASKED
    return kinds.tobytes()


KINDS = _kinds()


@dataclass(frozen=True)
class Tokens:
    """Tokens of U texts: how many, and where they begin among all ids."""

    ids: np.ndarray  # (T,) int32
    starts: np.ndarray  # (U,) int64
    counts: np.ndarray  # (U,) int64


def tokens_of(
    tokenizer: Tokenizer, encode: Callable[[str], bytes], texts: pa.StringArray
) -> Tokens:
    """Token ids of each text; `encode` gives them packed for texts that are looked at alone."""
    odd = _odd(tokenizer, texts)
    packed = list(map(encode, texts.filter(arrays.booleans(odd)).to_pylist()))
    alone = np.fromiter(map(len, packed), np.int64, len(packed)) // np.int32().itemsize
    together = _of_words(tokenizer, texts.filter(arrays.booleans(~odd)))
    counts = np.empty(len(texts), np.int64)
    starts = np.empty(len(texts), np.int64)
    counts[~odd] = together.counts
    starts[~odd] = together.starts
    counts[odd] = alone
    starts[odd] = len(together.ids) + np.cumsum(alone) - alone
    ids = np.concatenate([together.ids, np.frombuffer(b"".join(packed), np.int32)])
    return Tokens(ids, starts, counts)


def laid_out(tokens: Tokens, which: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Token ids of texts that are known by numbers (N,), and how many each has."""
    counts = tokens.counts[which]
    return tokens.ids[arrays.runs(tokens.starts[which], counts)], counts


def _odd(tokenizer: Tokenizer, texts: pa.StringArray) -> np.ndarray:
    """(U,) bool: texts that are looked at alone."""
    if tokenizer.pattern is None:
        return np.ones(len(texts), bool)
    others = [re.escape(string) for string in tokenizer.whole if string != MASK]
    return arrays.from_booleans(pc.match_substring_regex(texts, "|".join([ODD, *others])))


def _of_words(tokenizer: Tokenizer, texts: pa.StringArray) -> Tokens:
    """Tokens of texts that are not odd, a batch of them after the other."""
    content, edges = arrays.content_of(pc.replace_substring(texts, MASK, HOLE))
    firsts = np.searchsorted(edges, np.arange(edges[0], edges[-1] + 1, BATCH))
    bounds = [*dict.fromkeys(firsts.tolist()), len(texts)]
    batches = [
        _of_batch(tokenizer, content[edges[first] : edges[last]], edges[first : last + 1])
        for first, last in pairwise(bounds)
    ]
    counts = np.concatenate([counts for _, counts in batches])
    ids = np.concatenate([ids for ids, _ in batches])
    return Tokens(ids, np.cumsum(counts) - counts, counts)


def _of_batch(
    tokenizer: Tokenizer, content: bytes, edges: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """Tokens of texts that lie between edges (U + 1,), and how many each has."""
    edges = edges - edges[0]
    grouped = tokenizer.pattern is not None and "{1,3}" in tokenizer.pattern.pattern
    kinds = np.frombuffer(content.translate(KINDS), np.uint8)
    starts = word_starts(kinds, edges, grouped=grouped)
    ends = pa.py_buffer(np.append(starts, edges[-1]).astype(np.int32))
    words = pa.StringArray.from_buffers(len(starts), ends, pa.py_buffer(content))
    words = words.dictionary_encode()
    mask = packed_ids((tokenizer.mask_id,))
    packed = [
        mask if word == HOLE else tokenizer.words[word] for word in words.dictionary.to_pylist()
    ]
    sizes = np.fromiter(map(len, packed), np.int64, len(packed)) // np.int32().itemsize
    known = Tokens(np.frombuffer(b"".join(packed), np.int32), np.cumsum(sizes) - sizes, sizes)
    ids, counts = laid_out(known, arrays.from_integers(words.indices))
    tokens = np.append(0, np.cumsum(counts))[np.searchsorted(starts, edges)]
    return ids, np.diff(tokens)


def word_starts(kind: np.ndarray, edges: np.ndarray, *, grouped: bool) -> np.ndarray:
    """Bytes (W,) at which words begin of texts between edges (U + 1,) that are not odd.

    kind: of each byte
    grouped: digits are words of their own, of GROUP at most; else they are like letters.
    """
    before = np.append(LINE_END, kind[:-1])[: len(kind)]
    starts = kind != before
    # a space belongs to the word behind it
    starts &= ~((before == SPACE) & (kind < SPACE) & ((kind != DIGIT) | (not grouped)))
    starts |= kind >= SPACE
    if grouped:
        digits = np.flatnonzero(kind == DIGIT)
        fresh = np.append(True, np.diff(digits) > 1)[: len(digits)]
        edge = np.zeros(len(kind) + 1, bool)
        edge[edges] = True
        fresh |= edge[digits]
        number = np.arange(len(digits))
        first = np.maximum.accumulate(np.where(fresh, number, 0))
        starts[digits] = (number - first) % GROUP == 0
    starts[edges[:-1][np.diff(edges) > 0]] = True
    return np.flatnonzero(starts)
