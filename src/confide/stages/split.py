"""Split documents into points, the unit of deduplication, sampling and privacy, before anything else (CRT A.6).

A point is a line (turn), a document (dialogue), a natural sentence or a window of words. Blanks around a point are not part
of it and blank points are skipped. Gold spans move with their text; one that straddles two points is cut into both.
"""

import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from confide.corpora import READERS
from confide.corpora.lines import AUTOMATIC
from confide.errors import InputError
from confide.io import write_jsonl
from confide.specs import SplitSpec
from confide.types import Record, Span

Range = tuple[int, int]  # half-open, in characters of the document

WORD = re.compile(r"\S+")
# A sentence may end after a run of terminators and closing quotes, before a blank and something that can begin one.
END = re.compile(r"""(?<![.!?…])[.!?…]++["'”’»)\]]*+(?=\s++["'“‘«(\[]*+[^\W_a-z])|[。！？]++[”’」』）]*+|\n""")
BEFORE = re.compile(r"[^\s\"'“‘«(\[]*$")  # the token that a period closes
TITLES = """
mr mrs ms dr prof rev hon sr jr st mt ft gen col lt sgt capt maj cmdr adm gov sen rep pres vs viz cf eg ie e.g i.e a.k.a ed eds
ca approx est dept univ assn bros apt ave blvd rd hwy jan feb mar apr jun jul aug sep sept oct nov dec tue tues thu thur thurs
u.s u.k u.n d.c ph.d b.a m.a b.sc m.sc
"""
ABBREVIATIONS = frozenset(TITLES.split())
NUMBERED = frozenset(("no", "nos", "vol", "p", "pp", "fig", "figs", "eq", "eqs", "sec", "ch"))  # if a digit follows
DIGIT_NEXT = re.compile(r"\s+\d")


def turns(text: str, window: int) -> Iterator[Range]:
    """Lines."""
    start = 0
    for line in text.split("\n"):
        yield start, start + len(line)
        start += len(line) + 1


def dialogues(text: str, window: int) -> Iterator[Range]:
    """The whole document."""
    yield 0, len(text)


def sentences(text: str, window: int) -> Iterator[Range]:
    """Natural sentences; in doubt (abbreviations, initials, numbers) the text is not cut."""
    start = 0
    for match in END.finditer(text):
        if match[0].startswith(".") and len(match[0].rstrip("\"'”’»)]")) == 1 and not _ends(text, start, match):
            continue
        yield start, match.end()
        start = match.end()
    yield start, len(text)


def _ends(text: str, start: int, match: re.Match[str]) -> bool:
    """Whether a single period closes a sentence rather than an abbreviation, an initial or an ordinal."""
    token = BEFORE.search(text, max(start, match.start() - 40), match.start())[0].lower()
    if not token:
        return True  # a period that stands alone, as in tokenized text
    if token.isdigit() or token in NUMBERED:
        alone = token.isdigit() and text[start : match.start()].lstrip().lower() == token  # as in "1. Open the box."
        return not alone and not DIGIT_NEXT.match(text, match.end())
    return not token[0].isalpha() or (len(token) > 1 and token not in ABBREVIATIONS)


def windows(text: str, window: int) -> Iterator[Range]:
    """Runs of `window` words, the blanks between them kept."""
    start, end, count = 0, 0, 0
    for match in WORD.finditer(text):
        start = match.start() if not count else start
        end, count = match.end(), count + 1
        if count == window:
            yield start, end
            count = 0
    if count:
        yield start, end


CUTS: dict[str, Callable[[str, int], Iterator[Range]]] = {
    "turn": turns,
    "dialogue": dialogues,
    "sentence": sentences,
    "window": windows,
}


def pieces(record: Record, point: str, window: int) -> Iterator[tuple[str, tuple[Span, ...]]]:
    """Text and gold spans of each point of a document, in order."""
    text, spans = record.text, sorted(record.spans)
    if point == "turn" and not spans:  # most of a large corpus: no need to know where a line starts
        yield from ((kept, ()) for line in text.split("\n") if (kept := line.strip()))
        return
    first = 0
    for start, end in CUTS[point](text, window):
        piece = text[start:end]
        if not (kept := piece.strip()):
            continue
        start += len(piece) - len(piece.lstrip())
        end = start + len(kept)
        while first < len(spans) and spans[first].end <= start:
            first += 1
        yield kept, tuple(_within(spans, first, start, end))


def _within(spans: list[Span], first: int, start: int, end: int) -> Iterator[Span]:
    """Parts of the spans from `first` on that lie in a range, relative to it."""
    for index in range(first, len(spans)):
        if spans[index].start >= end:
            return
        low, high = max(spans[index].start, start), min(spans[index].end, end)
        if low < high:
            yield Span(low - start, high - start, spans[index].label, spans[index].score)


def points(spec: SplitSpec, raw: Path | None) -> Iterator[dict[str, Any]]:
    """Fields of each Point. InputError where there is no point at all, or none in train."""
    counts: dict[str, int] = {}  # points so far of documents that may come again
    total = train = 0
    for record in READERS[spec.corpus.reader](spec.corpus, raw):
        doc = record.doc
        index = counts.get(doc, 0)
        for text, spans in pieces(record, spec.point, spec.window):
            yield {
                "key": f"{doc}:{index}",
                "text": text,
                "doc": doc,
                "split": record.split,
                "domain": record.domain,
                "owner": record.author,
                "gold": [tuple(span) for span in spans] if spans else (),
                "canary": None,
            }
            index += 1
            total += 1
            train += record.split == "train"
        if not doc.startswith(AUTOMATIC):
            counts[doc] = index
    if not train:
        raise InputError("the train split is empty" if total else "the corpus has no text", key="corpus")


def split(spec: SplitSpec, *, output: Path, raw: Path | None = None) -> None:
    """Write points.jsonl in corpus order. InputError if the corpus, or its train split, is empty.

    Guarantees: keys are unique, and a document's points are all in one split.
    """
    write_jsonl(output, points(spec, raw))
