"""Many documents cut into their lines at once, as points in JSON.

It is for the documents that most corpora are made of: texts of ASCII without signs that JSON has to
escape. Shapes: D documents, L lines that are not blank, S spans.
"""

from collections import defaultdict
from collections.abc import Hashable, Iterable, Sequence
from dataclasses import dataclass
from itertools import count
from typing import TypeVar

import numpy as np
import orjson
import pyarrow as pa

from confide.files import arrays
from confide.files.rows import point_of
from confide.text.documents import Documents
from confide.types import MASK

Value = TypeVar("Value", bound=Hashable)

NEWLINE = ord("\n")
SPACE = ord(" ")
END = "}\n"  # of a point
# Characters of a document, of a run of them, and of the names that stand in each of their points:
# what is written of a run at once has to be less than two gigabytes.
LONGEST_TEXT = 1 << 20
RUN = 1 << 20
LONGEST_NAMES = 200
# A table for `bytes.translate`: 1 for what is escaped in JSON, or is beyond ASCII.
ODD = bytes(
    chr(byte) not in "\n !" and not (35 <= byte <= 126 and byte != 92) for byte in range(256)
)


@dataclass(frozen=True)
class Written:
    """Lines of JSON, and of each document how many and at which byte they begin and end."""

    content: bytes
    counts: list[int]  # (D,)
    edges: list[int]  # (D + 1,)


def plain(documents: Documents) -> np.ndarray:
    """(D,) bool: documents that can be cut here."""
    content, edges = arrays.encoded(documents.texts)
    odd = np.flatnonzero(np.frombuffer(content.translate(ODD), bool))
    fit = documents.certain & (np.diff(edges) <= LONGEST_TEXT)
    fit[np.searchsorted(edges[1:], odd, side="right")] = False
    fit[_partly_masked(documents)] = False
    lengths = np.fromiter(map(len, documents.names), np.int64, len(documents))
    beside = _longest(documents.domains) + _longest(documents.authors)
    no_answers = [answers is None for answers in documents.answers]
    return fit & (lengths + beside <= LONGEST_NAMES) & np.array(no_answers, bool)


def _longest(names: Sequence[str | None]) -> int:
    """Characters of the longest of some names."""
    return max(map(len, filter(None, set(names))), default=0)


def _partly_masked(documents: Documents) -> np.ndarray:
    """Numbers of documents with a gold span that holds a mask: lines may cut it into such alone."""
    gold = documents.gold
    masked = documents.masked
    some = np.flatnonzero(masked[gold.document])
    return np.array(
        [
            gold.document[span]
            for span in some
            if MASK in documents.texts[gold.document[span]][gold.start[span] : gold.end[span]]
        ],
        np.int64,
    )


def cut(documents: Documents, chosen: np.ndarray) -> Written:
    """Points of chosen documents (D,), which are `plain`; the others have no lines here.

    arrays.Unlike where these take more than a column holds.
    """
    texts = [
        text if there else "" for text, there in zip(documents.texts, chosen.tolist(), strict=True)
    ]
    raw = "\n".join(texts).encode()
    sizes = np.fromiter(map(len, texts), np.int64, len(texts)) + 1
    begins = np.cumsum(sizes) - sizes
    start, end = _lines(raw)
    document = np.searchsorted(begins, start, side="right") - 1
    counts = np.bincount(document, minlength=len(texts))
    number = np.arange(len(start)) - (np.cumsum(counts) - counts)[document]
    gold, has_gold = _gold(documents, chosen, begins, start, end)
    places, tails = _behind_texts(documents)
    content, edges = arrays.joined(
        arrays.taken(_heads(documents), document),
        arrays.digits(number),
        '","text":"',
        arrays.slices(raw, start, end),
        arrays.taken(tails, 2 * places[document] + has_gold),
        gold,
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
    for line in np.flatnonzero((start < end) & (content[start + 1] == SPACE)).tolist():
        text = raw[start[line] : end[line]]
        start[line] += len(text) - len(text.lstrip(b" "))
    for line in np.flatnonzero((start < end) & (content[end] == SPACE)).tolist():
        text = raw[start[line] : end[line]]
        end[line] -= len(text) - len(text.rstrip(b" "))
    some = start < end
    return start[some], end[some]


def _heads(documents: Documents) -> pa.StringArray:
    """What stands in each point of a document before its number (D,)."""
    return arrays.texts(
        [f'{{"key":{orjson.dumps(name).decode()[:-1]}:' for name in documents.names]
    )


def _behind_texts(documents: Documents) -> tuple[np.ndarray, pa.StringArray]:
    """Numbers of documents (D,), the same for the same split, domain and author, and what stands
    behind the text of a point: of each number where no gold spans follow, then where they do.
    """
    places = zip(documents.splits, documents.domains, documents.authors, strict=True)
    number, different = _numbered(places)
    tails = [_behind_text(*place) + ending for place in different for ending in (END, "")]
    return number, arrays.texts(tails)


def _numbered(values: Iterable[Value]) -> tuple[np.ndarray, list[Value]]:
    """Numbers (n,) int64 of values, and the different ones, as they first appear."""
    numbers: dict[Value, int] = defaultdict(count().__next__)
    number = np.fromiter(map(numbers.__getitem__, values), np.int64)
    return number, list(numbers)


def _behind_text(split: str, domain: str | None, author: str | None) -> str:
    """What stands in a point from the quote behind its text to its gold spans."""
    point = point_of(key="", text="", split=split, domain=domain, owner=author)
    return orjson.dumps(point).decode().removeprefix('{"key":"","text":"').removesuffix("}")


def _gold(
    documents: Documents,
    chosen: np.ndarray,
    begins: np.ndarray,
    start: np.ndarray,
    end: np.ndarray,
) -> tuple[pa.StringArray, np.ndarray]:
    """The field of gold spans of each line (L,), and the end of it; nothing where there are none.
    Also which lines have some, (L,) bool. Spans that straddle lines are cut.
    """
    gold = documents.gold
    some = chosen[gold.document]
    base = begins[gold.document[some]]
    first = base + gold.start[some]
    last = base + gold.end[some]
    from_line = np.searchsorted(end, first, side="right")
    to_line = np.searchsorted(start, last, side="left")
    counts = np.maximum(to_line - from_line, 0)
    span = np.repeat(np.arange(len(first)), counts)
    line = arrays.runs(from_line, counts)
    order = np.argsort(line, kind="stable")
    span = span[order]
    line = line[order]
    of_spans, different = _numbered(gold.labels)
    number = of_spans[some][span]
    labels = [
        f",{orjson.dumps(label).decode()},1.0]{ending}"
        for label in different
        for ending in ("", "]" + END)
    ]
    is_first = np.diff(line, prepend=-1) > 0
    is_last = np.diff(line, append=len(start)) > 0
    written, edges = arrays.joined(
        arrays.taken(arrays.texts([",[", ',"gold":[[']), is_first.astype(np.int64)),
        arrays.digits(np.maximum(first[span], start[line]) - start[line]),
        ",",
        arrays.digits(np.minimum(last[span], end[line]) - start[line]),
        arrays.taken(arrays.texts(labels), 2 * number + is_last),
    )
    spans_of_line = np.bincount(line, minlength=len(start))
    lines = np.append(0, np.cumsum(spans_of_line))
    return arrays.between(written, edges[lines]), spans_of_line > 0
