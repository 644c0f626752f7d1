"""A part of a partition from columns: what `partitioning.py` does row by row.

Each different text of a shard is tokenized once, and its tokens are laid out wherever it stands.
Shapes: N points, T tokens.
"""

from dataclasses import replace
from itertools import repeat

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from confide.data.occurrences import Joined, check_apart, in_bytes, planted
from confide.data.partitioning import (
    Encode,
    Fill,
    Part,
    check_tiled,
    dressed,
    edges_of,
    only_mask,
    overlapping,
    starts_of,
)
from confide.files import arrays
from confide.files.columns import Copies, Points, Spans, Unlike
from confide.policies import merged_masks, redacted_text
from confide.specs import PartitionSpec
from confide.text.tokenizer import Tokenizer
from confide.text.word_columns import laid_out, tokens_of
from confide.types import MASK, Partition, View

SEVERAL_MASKS = rf"{MASK}[\s\x0b\x1c-\x1f\x{{80}}-\x{{10FFFF}}]*{MASK}"  # or more than white space


def part_of(
    spec: PartitionSpec,
    tokenizer: Tokenizer,
    encode: Encode,
    joined: Joined,
    copies: Copies,
    fill: Fill | None = None,
) -> Part:
    """The part of a shard. Unlike where rows have to be looked at one by one.

    That is where some tokens alone are learned, where planted points may hold new tokens, and where
    a point is listed as a copy that can be none.

    `fill`: what puts values in place of masks, if anything does.
    """
    points = joined.points
    if spec.learn != "all" or (tokenizer.new_tokens and planted(points).any()):
        raise Unlike
    copied = np.zeros(len(points), bool)
    copied[points.places(copies.at, copies.keys)] = True
    has_mask = points.masked
    if (copied & (has_mask | ~points.train)).any():
        raise Unlike
    private = joined.found | has_mask
    hidden = copied & (private | (spec.scope == "all")) & spec.dedup
    private |= hidden
    texts = replaced(points.texts, hidden, arrays.texts([MASK] * int(hidden.sum())))
    changed = private & ~hidden
    shown = replaced(texts, changed, redacted(spec, joined, changed, has_mask, fill))
    original, rest = views_of(tokenizer, encode, texts, shown)
    edges = edges_of(tokenizer, original.ids, original.starts)
    check_tiled(edges, original.starts, arrays.from_integers(pc.binary_length(texts)))
    bases = edges[original.starts[:-1]]
    flagged = overlapping(edges, *_bytes(points, joined.spans, joined.span_line, bases, changed))
    gold = points.gold
    secret = overlapping(edges, *_bytes(points, gold, gold.line, bases, ~hidden))
    partition = Partition(
        original=replace(original, private=flagged | original.private),
        redacted=rest,
        secret=secret,
        private=private,
        copy=only_mask(rest),
        split=points.split,
        domain=points.domain.number.astype(np.int32),
        owner=points.owner.number.astype(np.int32),
        domains=tuple(points.domain.names),
    )
    return Part(partition, tuple(points.owner.names))


def replaced(texts: pa.StringArray, places: np.ndarray, others: pa.StringArray) -> pa.StringArray:
    """Texts with others in some places."""
    if not places.any():
        return texts
    return pc.replace_with_mask(texts, arrays.booleans(places), others)


def redacted(
    spec: PartitionSpec,
    joined: Joined,
    chosen: np.ndarray,
    has_mask: np.ndarray,
    fill: Fill | None,
) -> pa.StringArray:
    """Texts of chosen points with each run of touching spans as one <MASK>, or a value."""
    points = joined.points
    lines = np.flatnonzero(chosen)
    within = chosen[joined.span_line]
    spans = joined.spans.where(within)
    line = joined.span_line[within]
    number = np.searchsorted(lines, line)  # of the chosen point
    texts = points.texts.take(arrays.integers(lines))
    content, edges = arrays.content_of(texts)
    first, last = (edges[number] + place for place in in_bytes(points, spans, line))
    check_apart(first, last)
    # what is left: from the start of a text to a run, from a run to the next, and to the end
    begins = np.append(True, (first[1:] > last[:-1]) | (number[1:] > number[:-1]))[: len(first)]
    run_start = first[begins]
    run_end = last[np.append(begins[1:], True)[: len(first)]]
    run_of = number[begins]
    piece_start = np.sort(np.concatenate([edges[:-1], run_end]), kind="stable")
    piece_end = np.sort(np.concatenate([run_start, edges[1:]]), kind="stable")
    pieces = arrays.slices(content, piece_start, piece_end)
    counts = np.bincount(run_of, minlength=len(lines)) + 1
    edges = np.append(0, np.cumsum(counts))
    left = pc.binary_join(arrays.lists(edges, pieces), arrays.text(MASK))
    literal = has_mask[lines]
    if literal.any():
        left = replaced(left, literal, _one_by_one(texts, spans, number, literal))
    if spec.merge_masks:
        several = arrays.from_booleans(pc.match_substring_regex(left, SEVERAL_MASKS))
        some = left.filter(arrays.booleans(several)).to_pylist()
        left = replaced(left, several, arrays.texts(list(map(merged_masks, some))))
    if fill is not None:
        keys = points.keys_at(lines).to_pylist()
        left = arrays.texts(list(map(dressed, left.to_pylist(), keys, repeat(fill))))
    return left


def _one_by_one(
    texts: pa.StringArray, spans: Spans, number: np.ndarray, chosen: np.ndarray
) -> pa.StringArray:
    """The same of texts that hold <MASK> themselves."""
    found: list[list[tuple[int, int]]] = [[] for _ in range(len(texts))]
    for place, start, end in zip(
        number.tolist(), spans.start.tolist(), spans.end.tolist(), strict=True
    ):
        found[place].append((start, end))
    some = np.flatnonzero(chosen)
    values = texts.take(arrays.integers(some)).to_pylist()
    return arrays.texts(
        [redacted_text(text, found[place]) for place, text in zip(some, values, strict=True)]
    )


def _bytes(
    points: Points, spans: Spans, line: np.ndarray, bases: np.ndarray, chosen: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """The bytes among all tokens' at which spans of chosen points begin and end."""
    some = chosen[line] & (spans.start < spans.end)
    first, last = in_bytes(points, spans.where(some), line[some])
    return bases[line[some]] + first, bases[line[some]] + last


def views_of(tokenizer: Tokenizer, encode: Encode, *columns: pa.StringArray) -> list[View]:
    """Columns of texts (N,) as views in which <MASK> alone is private."""
    encoded = pa.chunked_array(columns).combine_chunks().dictionary_encode()
    tokens = tokens_of(tokenizer, encode, encoded.dictionary)
    views = []
    size = len(columns[0])
    for number in range(len(columns)):
        ids, counts = laid_out(tokens, encoded.indices.slice(number * size, size))
        views.append(View(ids, starts_of(counts), private=ids == tokenizer.mask_id))
    return views
