"""Split documents into points, the unit of deduplication, sampling and privacy (CRT A.6).

A point is a line (turn), a document (dialogue), a natural sentence or a window of words. Blanks
around a point are not part of it and blank points are skipped. Gold spans move with their text; one
that straddles two points is cut into both.
"""

import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from functools import partial
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np

from confide.corpora import FORMS, READERS, lines
from confide.corpora.lines import AUTOMATIC
from confide.errors import InputError
from confide.files import arrays
from confide.files.io import dump_lines, write_pieces
from confide.files.rows import point_of
from confide.files.shards import no_collection, scatter
from confide.specs import OwnSpec, SplitSpec
from confide.text import turns as turns_of
from confide.text.documents import Documents
from confide.text.masked import is_masked
from confide.types import Record, Span

Characters = tuple[int, int]  # of the document, half-open

LINE = re.compile(r"[^\n]+")
WORD = re.compile(r"\S+")
# A sentence may end after a run of terminators and closing quotes, before a blank and something
# that can begin one.
END = re.compile(
    r"""(?<![.!?…])[.!?…]++["'”’»)\]]*+(?=\s++["'“‘«(\[]*+[^\W_a-z])|[。！？]++[”’」』）]*+|\n"""
)
BEFORE = re.compile(r"[^\s\"'“‘«(\[]*$")  # the token that a period closes
TITLES = """
mr mrs ms dr prof rev hon sr jr st mt ft gen col lt sgt capt maj cmdr adm gov sen rep pres
vs viz cf eg ie e.g i.e a.k.a ed eds ca approx est dept univ assn bros apt ave blvd rd hwy
jan feb mar apr jun jul aug sep sept oct nov dec tue tues thu thur thurs
u.s u.k u.n d.c ph.d b.a m.a b.sc m.sc
"""
ABBREVIATIONS = frozenset(TITLES.split())
# If a digit follows.
NUMBERED = frozenset(["no", "nos", "vol", "p", "pp", "fig", "figs", "eq", "eqs", "sec", "ch"])
DIGIT_NEXT = re.compile(r"\s+\d")


def turns(text: str, window: int) -> Iterator[Characters]:
    """Lines."""
    for line in LINE.finditer(text):
        yield line.span()


def dialogues(text: str, window: int) -> Iterator[Characters]:
    """The whole text."""
    yield 0, len(text)


def sentences(text: str, window: int) -> Iterator[Characters]:
    """Natural sentences; in doubt (abbreviations, initials, numbers) the text is not cut."""
    start = 0
    for match in END.finditer(text):
        is_period = match[0].rstrip("\"'”’»)]") == "."
        if is_period and not _ends(text, start, match):
            continue
        yield start, match.end()
        start = match.end()
    yield start, len(text)


def _ends(text: str, start: int, match: re.Match[str]) -> bool:
    """Whether a single period closes a sentence, and no abbreviation, initial or ordinal."""
    before = text[max(start, match.start() - 40) : match.start()].lower()
    closed = BEFORE.search(before)
    if closed is None or not closed[0]:
        return True  # a period that stands alone, as in tokenized text
    token = closed[0]
    if token.isdigit() or token in NUMBERED:
        alone = token.isdigit() and before.lstrip() == token  # as in "1. Open the box."
        return not alone and not DIGIT_NEXT.match(text, match.end())
    return not token[0].isalpha() or (len(token) > 1 and token not in ABBREVIATIONS)


def windows(text: str, window: int) -> Iterator[Characters]:
    """Runs of `window` words, the blanks between them kept."""
    words = WORD.finditer(text)
    while run := list(islice(words, window)):
        yield run[0].start(), run[-1].end()


CUTS: dict[str, Callable[[str, int], Iterator[Characters]]] = {
    "turn": turns,
    "dialogue": dialogues,
    "sentence": sentences,
    "window": windows,
}


def pieces(record: Record, point: str, window: int) -> Iterator[tuple[str, tuple[Span, ...]]]:
    """Text and gold spans of each point of a document, in order."""
    text = record.text
    spans = sorted(record.spans)
    if point == "turn" and not spans:  # most of a large corpus: no need to know where a line starts
        yield from ((stripped, ()) for line in text.split("\n") if (stripped := line.strip()))
        return
    if point == "dialogue" and text and _as_it_is(text, spans):
        yield text, tuple(spans)
        return
    first = 0
    for start, end in CUTS[point](text, window):
        piece = text[start:end]
        if not (stripped := piece.strip()):
            continue
        start += len(piece) - len(piece.lstrip())
        end = start + len(stripped)
        while first < len(spans) and spans[first].end <= start:
            first += 1
        yield stripped, tuple(_within(spans, first, start, end, text))


def _as_it_is(text: str, spans: list[Span]) -> bool:
    """Whether a document is a point with the same text and the same spans."""
    size = len(text)
    return text == text.strip() and all(0 <= start < end <= size for start, end, _, _ in spans)


def _within(spans: list[Span], first: int, start: int, end: int, text: str) -> Iterator[Span]:
    """Parts of the spans from `first` on that lie in a range of the text, relative to it.

    What is nothing but masks is no part of a secret.
    """
    for index in range(first, len(spans)):
        if spans[index].start >= end:
            return
        low = max(spans[index].start, start)
        high = min(spans[index].end, end)
        if low < high and not is_masked(text, low, high):
            yield Span(low - start, high - start, spans[index].label, spans[index].score)


def points(
    spec: SplitSpec, record: Record, counts: dict[str, int], seen: Counter[str]
) -> list[dict[str, Any]]:
    """Fields of each point of a record.

    `counts`: points so far of documents that may come again; `seen`: of each split.
    """
    first = counts.get(record.doc, 0)
    turns_ = answers(spec, record)
    rows = [
        point_of(
            key=f"{record.doc}:{number}",
            text=text,
            split=record.split,
            domain=record.domain,
            owner=record.author,
            gold=[tuple(span) for span in spans] if spans else (),
            answers=turns_,
        )
        for number, (text, spans) in enumerate(pieces(record, spec.point, spec.window), first)
    ]
    add(len(rows), counts, seen, doc=record.doc, split=record.split)
    return rows


def add(count: int, counts: dict[str, int], seen: Counter[str], *, doc: str, split: str) -> None:
    """Count points of a document, and of its split."""
    if not doc.startswith(AUTOMATIC):
        counts[doc] = counts.get(doc, 0) + count
    seen[split] += count


def answers(spec: SplitSpec, record: Record) -> list[Characters] | None:
    """The assistants' turns in the point of a record, if that is a conversation.

    InputError where conversations are to be cut: a piece of one is no text that a template writes.
    """
    if record.answers is None:
        return None
    if spec.point != "dialogue":
        message = "cuts conversations; a chat template writes them whole: dialogue"
        raise InputError(message, key="point", value=spec.point)
    text = record.text
    first = len(text) - len(text.lstrip())
    last = len(text.rstrip())
    within = [(max(first, start), min(last, end)) for start, end in record.answers]
    return [(start - first, end - first) for start, end in within if start < end]


def cut(
    spec: SplitSpec, plan: lines.Plan, shard: lines.Shard
) -> tuple[list[bytes | Record], Counter[str]]:
    """Lines of the output for a shard, and how many of each split.

    Documents that other shards hold, too, are still records.
    """
    with no_collection():
        return _cut(spec, plan, shard)


def _cut(
    spec: SplitSpec, plan: lines.Plan, shard: lines.Shard
) -> tuple[list[bytes | Record], Counter[str]]:
    """The same. Its documents are gone when it returns: no search for cycles looks at them."""
    there = lines.documents(plan, shard)
    returning = np.array(plan.returns(there.names), bool)
    cutting = Cutting(spec, there, returning)
    return cutting.written(), cutting.seen


Pieces = Iterator[bytes | memoryview | Record]  # of the output, or documents that return


@dataclass
class Cutting:
    """Documents of a shard that are cut into points; those that are `returning` stay records."""

    spec: SplitSpec
    there: Documents
    returning: np.ndarray  # (D,) bool: other shards hold them, too
    # points so far of each document that may come again in the shard
    counts: dict[str, int] = field(init=False, default_factory=dict)
    seen: Counter[str] = field(init=False, default_factory=Counter)  # points of each split

    def written(self) -> list[bytes | Record]:
        """Lines of the output, and records among them."""
        ways = {"turn": self.turns, "dialogue": self.dialogues}
        parts: list[bytes | Record] = []
        run: list[bytes | memoryview] = []
        for piece in ways.get(self.spec.point, self.one_by_one)():
            if isinstance(piece, Record):
                parts += [b"".join(run), piece]
                run = []
            else:
                run.append(piece)
        return [*parts, b"".join(run)]

    def turns(self) -> Pieces:
        """Documents whose points are lines: those that can be are cut at once, others alone."""
        names = Counter(self.there.names)
        once = np.array([names[name] == 1 for name in self.there.names], bool)
        fit = once & ~self.returning
        first = 0
        for run in self.there.runs(turns_of.RUN):
            last = first + len(run)
            yield from self.together(first, run, turns_of.plain(run) & fit[first:last])
            first = last

    def together(self, first: int, run: Documents, chosen: np.ndarray) -> Pieces:
        """Documents from one on, of which the chosen ones are cut at once."""
        try:
            cut_ = turns_of.cut(run, chosen)
        except arrays.Unlike:
            yield from map(self.alone, range(first, first + len(run)))
            return
        for split, count in zip(run.splits, cut_.counts, strict=True):
            self.seen[split] += count
        if chosen.all():
            yield cut_.content
            return
        content = memoryview(cut_.content)
        edge = 0
        for number in np.flatnonzero(~chosen).tolist():
            yield content[edge : cut_.edges[number]]
            yield self.alone(first + number)
            edge = cut_.edges[number]
        yield content[edge:]

    def dialogues(self) -> Pieces:
        """Documents that are points themselves."""
        there = self.there
        as_they_are = there.in_order & there.certain & ~self.returning
        for number, as_it_is in enumerate(as_they_are.tolist()):
            text = there.texts[number]
            if (
                not as_it_is
                or not text
                or text != text.strip()
                or there.answers[number] is not None
            ):
                yield self.alone(number)
                continue
            name = there.names[number]
            row = point_of(
                key=f"{name}:{self.counts.get(name, 0)}",
                text=text,
                split=there.splits[number],
                domain=there.domains[number],
                owner=there.authors[number],
                gold=[(span[0], span[1], span[2], 1.0) for span in there.spans[number]],
            )
            yield dump_lines([row])
            add(1, self.counts, self.seen, doc=name, split=there.splits[number])

    def one_by_one(self) -> Pieces:
        """Documents that are cut one after the other."""
        return map(self.alone, range(len(self.there)))

    def alone(self, number: int) -> bytes | Record:
        """Lines of a document; a returning one stays a record."""
        record = self.there.record(number)
        if self.returning[number]:
            return record
        return dump_lines(points(self.spec, record, self.counts, self.seen))


def cuts(
    spec: SplitSpec, raw: Path | None, folder: Path, threads: int
) -> Iterator[tuple[Iterable[bytes | Record], Counter[str]]]:
    """What `cut` gives for each shard of a corpus that can be divided.

    Any other is read from one end to the other.
    """
    corpus = spec.corpus
    if not isinstance(corpus, OwnSpec):
        yield READERS[corpus.reader](corpus, raw), Counter()
        return
    form = FORMS[corpus.reader](corpus)
    if form.shards is None:
        yield lines.read(corpus, form), Counter()
        return
    parts = list(form.shards())
    plan = lines.plan(corpus, folder, threads, form, parts)
    yield from scatter(lambda: partial(cut, spec, plan), parts, threads)


def split(spec: SplitSpec, *, output: Path, raw: Path | None = None, threads: int = 1) -> None:
    """Write points.jsonl in corpus order. InputError if the corpus, or its train split, is empty.

    `threads`: processes, where the corpus is a file of lines or Parquet.
    Guarantees: keys are unique, and a document's points are all in one split.
    """
    counts: dict[str, int] = {}
    seen: Counter[str] = Counter()

    def written() -> Iterator[bytes]:
        for parts, others in cuts(spec, raw, output.parent, threads):
            seen.update(others)
            for piece in parts:
                if isinstance(piece, Record):
                    piece = dump_lines(points(spec, piece, counts, seen))
                yield piece
        if not seen["train"]:
            message = "the train split is empty" if seen.total() else "the corpus has no text"
            raise InputError(message, key="corpus")

    write_pieces(output, written())
