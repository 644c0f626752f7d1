"""Token ids of many texts at once, each different word looked up once.

Texts of ASCII in which blanks stand alone are cut into words by the kinds of neighbouring
characters, just as the expression of the tokenizer cuts them (`tokenizer.py`); <MASK> is a word of
its own. Any other text, and those of tokenizers that cut in another way, are left to
`Tokenizer.packed`.
Shapes: U texts or lines, W words.
"""

import re
from collections.abc import Callable
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


def tokens_of(
    tokenizer: Tokenizer, encode: Callable[[str], bytes], texts: pa.StringArray
) -> pa.BinaryArray:
    """Token ids of each text, packed; `encode` gives them for texts that are looked at alone."""
    odd = _odd(tokenizer, texts)
    if not odd.any():
        return _of_words(tokenizer, texts)
    together = _of_words(tokenizer, texts.filter(arrays.booleans(~odd)))
    alone = arrays.binaries(list(map(encode, texts.filter(arrays.booleans(odd)).to_pylist())))
    places = np.empty(len(texts), np.int64)
    places[~odd] = np.arange(len(together))
    places[odd] = np.arange(len(together), len(texts))
    return pa.concat_arrays([together, alone]).take(arrays.integers(places))


def laid_out(packed: pa.BinaryArray, which: pa.Array) -> tuple[np.ndarray, np.ndarray]:
    """Token ids of texts that are known by numbers (N,), and how many each has."""
    return arrays.packed_integers(packed.take(which))


def _odd(tokenizer: Tokenizer, texts: pa.StringArray) -> np.ndarray:
    """(U,) bool: texts that are looked at alone."""
    if tokenizer.pattern is None:
        return np.ones(len(texts), bool)
    others = [re.escape(string) for string in tokenizer.whole if string != MASK]
    return arrays.from_booleans(pc.match_substring_regex(texts, "|".join([ODD, *others])))


def _of_words(tokenizer: Tokenizer, texts: pa.StringArray) -> pa.BinaryArray:
    """Tokens of texts that are not odd, each different line cut into words once.

    A line end is a word of its own there, so that lines are cut as if each stood alone.
    """
    content, edges = arrays.content_of(pc.replace_substring(texts, MASK, HOLE))
    ends = np.flatnonzero(np.frombuffer(content, np.uint8) == ord("\n")) + 1
    if not len(ends):
        return _of_lines(tokenizer, arrays.between(content, edges))
    line_edges = np.sort(np.concatenate([edges, ends]), kind="stable")  # some lines are empty
    lines = arrays.between(content, line_edges).dictionary_encode()
    packed = _of_lines(tokenizer, lines.dictionary).take(lines.indices)
    return arrays.runs_of(packed, np.searchsorted(line_edges, edges))


def _of_lines(tokenizer: Tokenizer, lines: pa.StringArray) -> pa.BinaryArray:
    """Tokens of lines, a batch of them after the other."""
    content, edges = arrays.content_of(lines)
    firsts = np.searchsorted(edges, np.arange(edges[0], edges[-1] + 1, BATCH))
    bounds = [*dict.fromkeys(firsts.tolist()), len(lines)]
    batches = [
        _of_batch(tokenizer, content[edges[first] : edges[last]], edges[first : last + 1])
        for first, last in pairwise(bounds)
    ]
    return pa.concat_arrays(batches)


def _of_batch(tokenizer: Tokenizer, content: bytes, edges: np.ndarray) -> pa.BinaryArray:
    """Tokens of lines that lie between edges (U + 1,)."""
    edges = edges - edges[0]
    grouped = tokenizer.pattern is not None and "{1,3}" in tokenizer.pattern.pattern
    kinds = np.frombuffer(content.translate(KINDS), np.uint8)
    starts = word_starts(kinds, edges, grouped=grouped)
    words = arrays.between(content, np.append(starts, edges[-1])).dictionary_encode()
    mask = packed_ids((tokenizer.mask_id,))
    packed = [
        mask if word == HOLE else tokenizer.words[word] for word in words.dictionary.to_pylist()
    ]
    tokens = arrays.binaries(packed).take(words.indices)
    return arrays.runs_of(tokens, np.searchsorted(starts, edges))


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
