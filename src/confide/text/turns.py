"""Many documents cut into their lines at once, as points in JSON.

It is for the documents that most corpora are made of: texts of ASCII without signs that JSON has to
escape. Shapes: D documents, L lines that are not blank, S spans.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import orjson
import pyarrow as pa
import pyarrow.compute as pc

from confide.files import arrays
from confide.types import Record

NEWLINE = ord("\n")
SPACE = ord(" ")
# Characters of a document, and of the names that stand in each of its points: what is written of a
# shard at once has to be less than two gigabytes.
LONGEST_TEXT = 1 << 20
LONGEST_NAMES = 200
ODD = r"[^ !#-\[\]-~\n]"  # what is escaped in JSON, or is beyond ASCII


@dataclass(frozen=True)
class Written:
    """Lines of JSON, and of each document how many and at which byte they begin and end."""

    content: bytes
    counts: list[int]  # (D,)
    edges: list[int]  # (D + 1,)


def plain(records: Sequence[Record]) -> np.ndarray:
    """(D,) bool: documents that can be cut here."""
    texts = arrays.texts([record.text for record in records])
    found = ~arrays.from_booleans(pc.match_substring_regex(texts, ODD))
    for number, record in enumerate(records):
        if record.answers is not None or any(span.score != 1.0 for span in record.spans):
            found[number] = False
        names = (record.doc, record.domain or "", record.author or "")
        if len(record.text) > LONGEST_TEXT or sum(map(len, names)) > LONGEST_NAMES:
            found[number] = False
    return found


def cut(records: Sequence[Record], first: Sequence[int]) -> Written:
    """Points of documents that are `plain`, numbered from `first` on (D,)."""
    raw = "\n".join([record.text for record in records]).encode()
    sizes = np.fromiter((len(record.text) for record in records), np.int64, len(records)) + 1
    begins = np.cumsum(sizes) - sizes
    start, end = _lines(raw)
    document = np.searchsorted(begins, start, side="right") - 1
    counts = np.bincount(document, minlength=len(records))
    number = np.arange(len(start)) - (np.cumsum(counts) - counts)[document]
    head, tail = zip(*map(_around, records), strict=True)
    which = arrays.integers(document)
    content, edges = arrays.joined(
        arrays.texts(head).take(which),
        arrays.digits(number + np.array(first, np.int64)[document]),
        '","text":"',
        arrays.slices(raw, start, end),
        arrays.texts(tail).take(which),
        _gold(records, begins, start, end),
        ',"canary":null}\n',
    )
    lines = np.append(0, np.cumsum(counts))
    return Written(content, counts.tolist(), edges[lines].tolist())


def _lines(raw: bytes) -> tuple[np.ndarray, np.ndarray]:
    """Where lines begin and end that are not blank, without spaces around them."""
    content = np.frombuffer(
        b" " + raw + b" ", np.uint8
    )  # a byte further, so that edges can be read
    breaks = np.flatnonzero(content == NEWLINE) - 1
    start = np.append(0, breaks + 1)
    end = np.append(breaks, len(raw))
    while (more := (start < end) & (content[start + 1] == SPACE)).any():
        start = start + more
    while (more := (start < end) & (content[end] == SPACE)).any():
        end = end - more
    some = start < end
    return start[some], end[some]


def _around(record: Record) -> tuple[str, str]:
    """What stands in each point of a document before its number, and behind its text."""
    fields = {
        "doc": record.doc,
        "split": record.split,
        "domain": record.domain,
        "owner": record.author,
    }
    doc = orjson.dumps(record.doc).decode()
    return f'{{"key":{doc[:-1]}:', f'",{orjson.dumps(fields)[1:-1].decode()},"gold":'


def _gold(
    records: Sequence[Record], begins: np.ndarray, start: np.ndarray, end: np.ndarray
) -> pa.StringArray:
    """Gold spans of each line (L,), those that straddle lines cut."""
    spans = [sorted(record.spans) for record in records]
    flat = [span for some in spans for span in some]
    base = np.repeat(begins, list(map(len, spans)))
    begin, end_, names, _ = zip(*flat, strict=True) if flat else ((), (), (), ())
    first = base + np.array(begin, np.int64)
    last = base + np.array(end_, np.int64)
    from_line = np.searchsorted(end, first, side="right")
    to_line = np.searchsorted(start, last, side="left")
    counts = np.maximum(to_line - from_line, 0)
    span = np.repeat(np.arange(len(flat)), counts)
    line = np.arange(counts.sum()) - np.repeat(np.cumsum(counts) - counts - from_line, counts)
    order = np.argsort(line, kind="stable")
    span = span[order]
    line = line[order]
    known = {name: number for number, name in enumerate(dict.fromkeys(names))}
    labels = arrays.texts([orjson.dumps(name).decode() for name in known])
    numbers = np.fromiter(map(known.__getitem__, names), np.int64, len(names))
    written = pc.binary_join_element_wise(
        arrays.text("["),
        arrays.digits(np.maximum(first[span], start[line]) - start[line]),
        arrays.text(","),
        arrays.digits(np.minimum(last[span], end[line]) - start[line]),
        arrays.text(","),
        labels.take(arrays.integers(numbers[span])),
        arrays.text(",1.0]"),
        arrays.text(""),
    )
    offsets = np.append(0, np.cumsum(np.bincount(line, minlength=len(start)))).astype(np.int32)
    inner = pc.binary_join(arrays.lists(offsets, written), arrays.text(","))
    return pc.binary_join_element_wise(arrays.text("["), inner, arrays.text("]"), arrays.text(""))
