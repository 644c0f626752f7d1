"""Fingerprints by which texts in columns are compared: one for each, the same for the same text.

Shapes: N texts.
"""

import hashlib
import secrets
from collections.abc import Callable

import numpy as np
import pyarrow as pa

from confide.files import arrays
from confide.files.buckets import DIGEST

KEY = f"S{DIGEST}"
Fingerprints = Callable[[pa.BinaryArray], np.ndarray]  # (N,) KEY
LANES = DIGEST // 4  # numbers of 32 bits in a fingerprint
LONGEST = 512  # bytes of a text that is taken apart into words
WORDS = LONGEST // 4
BLOCK = 64  # bytes of a key
ONE = np.uint64(1)
HALF = np.uint64(32)
LOW = np.uint64(2**32 - 1)


def each(digested: Callable[[bytes], bytes]) -> Fingerprints:
    """Digests of texts as their fingerprints, one after the other."""

    def fingerprints(values: pa.BinaryArray) -> np.ndarray:
        return np.frombuffer(b"".join(map(digested, values.to_pylist())), KEY)

    return fingerprints


def fresh(lanes: int = LANES) -> Fingerprints:
    """Fingerprints under a random key, for what is compared within one process and its own.

    lanes: numbers of 32 bits in one, behind which zeros stand; two are enough where something else
    has the last word

    A text is a list of numbers of 32 bits: its words and its size. Each lane of a fingerprint is
    the upper half of their sum, modulo 2^64, after each was multiplied by a random number of its
    own: Multilinear of Lemire and Kaser, Strongly universal string hashing is fast (2014). Two
    texts that were chosen without the key have the same one with a probability of 2^-32, and the
    same fingerprint of five lanes with 2^-160. Nothing so small is proven of what is itself made of
    fingerprints under the key, such as pairs of them. Longer texts are known by their BLAKE2b under
    it.
    """
    key = secrets.token_bytes(BLOCK)
    random = hashlib.shake_256(key).digest(lanes * (WORDS + 2) * 8)
    factors = np.frombuffer(random, np.uint64).reshape(WORDS + 2, lanes, 1)
    keyed = hashlib.blake2b(key=key, digest_size=DIGEST).copy

    def of_long(text: bytes) -> bytes:
        digest = keyed()
        digest.update(text)
        return digest.digest()

    def fingerprints(values: pa.BinaryArray) -> np.ndarray:
        content, edges = arrays.content_of(values)
        size = np.diff(edges)
        capped = np.minimum(size, LONGEST + 1).astype(np.int16)
        longest_first = np.argsort(-capped, kind="stable")
        long, short = np.split(longest_first, [np.count_nonzero(capped > LONGEST)])
        found = np.empty(len(size), f"V{DIGEST}")  # which numpy moves faster than S
        found[long] = each(of_long)(values.take(arrays.integers(long))).view(found.dtype)
        numbers = _of_words(content, edges[short], size[short], factors)
        words = np.zeros((len(short), LANES), np.uint32)
        words[:, :lanes] = numbers.T
        found[short] = words.view(found.dtype).ravel()
        return found.view(KEY)

    return fingerprints


def _of_words(
    content: bytes, start: np.ndarray, size: np.ndarray, factors: np.ndarray
) -> np.ndarray:
    """(lanes, N) numbers of 32 bits of texts that stand at some bytes, the longest ones first."""
    padded = content + bytes(BLOCK)
    blocks = np.ndarray((len(content) + 1,), f"V{BLOCK}", padded, 0, (1,))  # one at each byte
    sums = factors[-1] + factors[-2] * size.astype(np.uint64)
    left = size.copy()  # bytes that are left of each text
    for first in range(0, int(size.max(initial=0)), BLOCK):
        count = int(np.count_nonzero(left > 0))  # texts that go on here
        columns = blocks[start[:count] + first].view(np.uint64).reshape(count, -1).T
        for place, pair in enumerate(np.ascontiguousarray(columns)):
            count, whole = int(np.count_nonzero(left > 0)), int(np.count_nonzero(left >= 8))
            if not count:
                break
            pair = pair[:count]
            pair[whole:] &= (ONE << (8 * left[whole:count]).astype(np.uint64)) - ONE
            word = first // 4 + 2 * place
            sums[:, :count] += factors[word] * (pair & LOW)
            sums[:, :count] += factors[word + 1] * (pair >> HALF)
            left -= 8
    return (sums >> HALF).astype(np.uint32)
