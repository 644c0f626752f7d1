"""JSON lines as columns, where they look as we write them.

All lines of a shard are read together. Of each line the first strings, which differ from line to
line, are found by what separates them; what follows stands in many lines alike, and is looked at
once for all of them. There a cursor stands in each line, and a step moves every one of them over
what must stand there, a literal or the value of a field. Each byte of a line is looked at, so what
is read is what a parser of JSON would give. Lines of any other form, which may be JSON nevertheless
or a mistake to be named, raise `Unlike`: then rows are read one by one (`rows.py`).

Shapes: N lines, S spans.
"""

from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

import numpy as np
import orjson
import pyarrow as pa
import pyarrow.compute as pc

from confide.files import arrays
from confide.files.io import Range, readable
from confide.types import MASK, SPLITS

LARGEST = 64 << 20  # bytes of a shard: a longer one holds a line of text as long
NEAR = 1 << 15  # bytes that are read at once where some lines are asked for
QUOTE = ord('"')
BACKSLASH = ord("\\")
NEWLINE = ord("\n")
NOWHERE = 1  # a control character, which stands in no line and which no short escape means
# Bytes of a line on average: stages that read little of a point read longer ones faster by rows.
LONG = 400
SAMPLE = 1 << 16  # bytes by which lines are taken for long
LONGEST = 256  # bytes of a string that is looked for alone
DIGITS = 18  # of a number
PADDING = b'"""' + bytes(29)  # behind the lines, so that quotes and words can be read at the end
SCORE = b",1.0]"  # how a span ends that is certain
ONE = np.uint64(1)
BYTES = np.uint64(0x0101010101010101)  # the lowest bit in each byte of a word
HIGHEST = np.uint64(0x8080808080808080)  # the highest one
Unlike = arrays.Unlike


def _escaped() -> np.ndarray:
    """What characters stand for behind a backslash; u, which begins a longer escape, for itself."""
    table = np.zeros(256, np.uint8)
    for character, meant in zip(b'"\\/bfnrtu', b'"\\/\b\f\n\r\tu', strict=True):
        table[character] = meant
    return table


ESCAPED = _escaped()


@dataclass(frozen=True, slots=True)
class Field:
    """Where a string stands in each line: bytes (N,) from start to end."""

    start: np.ndarray
    end: np.ndarray


@dataclass(frozen=True)
class Spans:
    """Spans of all lines in order: how many each line has (N,), and columns (S,)."""

    counts: np.ndarray
    start: np.ndarray
    end: np.ndarray
    label: np.ndarray  # numbers of names
    names: list[str]

    @cached_property
    def line(self) -> np.ndarray:
        """(S,) the line that each belongs to."""
        return np.repeat(np.arange(len(self.counts)), self.counts)

    def where(self, chosen: np.ndarray) -> "Spans":
        """Some of them (S,)."""
        counts = np.bincount(self.line[chosen], minlength=len(self.counts))
        return Spans(counts, self.start[chosen], self.end[chosen], self.label[chosen], self.names)

    def of_lines(self, which: np.ndarray) -> "Spans":
        """Those of lines that are known by numbers, one line after the other."""
        counts = self.counts[which]
        places = arrays.runs((np.cumsum(self.counts) - self.counts)[which], counts)
        return Spans(counts, self.start[places], self.end[places], self.label[places], self.names)


@dataclass(frozen=True)
class Names:
    """A name for each line, or none."""

    number: np.ndarray  # (N,) of the names; -1: none
    names: list[str]  # in the order of their first lines

    def of_lines(self, which: np.ndarray) -> "Names":
        """Those of lines that are known by numbers; the names stay."""
        return Names(self.number[which], self.names)

    def to_list(self) -> list[str | None]:
        """The name of each line."""
        names = [*self.names, None]  # -1 is the last one
        return [names[number] for number in self.number.tolist()]


def read(source: Range) -> bytes:
    """The lines of a shard; Unlike where they are too many."""
    arrays.keep_freed()
    with readable(source.path), open(source.path, "rb") as file:
        file.seek(source.start)
        content = file.read(LARGEST if source.end is None else source.end - source.start)
    if len(content) >= LARGEST:
        raise Unlike
    return content


def line_starts(lines: bytes) -> np.ndarray:
    """(N,) int64: where lines begin, the last of which is whole."""
    return _behind(np.flatnonzero(np.frombuffer(lines, np.uint8) == NEWLINE))


def _behind(ends: np.ndarray) -> np.ndarray:
    """(N,) where each of what follows one upon the other begins, by where it ends."""
    return np.append(0, ends[:-1] + 1)[: len(ends)]


class Content:
    """Bytes, and the word of eight of them that begins with each."""

    def __init__(self, raw: bytes):
        self.raw = raw
        self.bytes = np.frombuffer(raw + PADDING, np.uint8)
        self.words = np.ndarray((len(raw) + len(PADDING) - 7,), "<u8", self.bytes.data, 0, (1,))

    def has(self, expected: bytes, place: np.ndarray) -> np.ndarray:
        """(n,) bool: whether so stands at some places."""
        size = len(expected)
        if size < 8:
            mask = np.uint64((1 << 8 * size) - 1)
            return self.words[place] & mask == np.uint64(int.from_bytes(expected, "little"))
        found = np.ones(len(place), bool)
        for offset in {*range(0, size - 7, 8), size - 8}:
            word = int.from_bytes(expected[offset : offset + 8], "little")
            found &= self.words[place + offset] == np.uint64(word)
        return found


class Lines(Content):
    """Lines of a shard, of which it is known where they begin and end, and where escapes stand.

    Unlike where they are no UTF-8, or where another control character stands than a line end.
    """

    def __init__(self, raw: bytes):
        super().__init__(raw)
        self.ascii = raw.isascii()
        if not self.ascii:
            self._check_encoding()
        content = self.bytes[: len(raw)]
        self.escapes = self._escapes(content) if b"\\" in raw else np.zeros(0, np.int64)
        self.marks, is_end = self._marks(content)
        self.ends = self.marks[is_end]
        if (self.bytes[self.ends] != NEWLINE).any() or not (raw.endswith(b"\n") or not raw):
            raise Unlike
        self.starts = _behind(self.ends)
        self.end_marks = np.flatnonzero(is_end)

    def _marks(self, content: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Where control characters stand, and where strings end behind which a comma and another
        one follow; which of these places (M,) are control characters.
        """
        quotes = self._quotes
        size = len(content)
        string_ends = quotes[:size] & (self.bytes[1:][:size] == ord(",")) & quotes[2:][:size]
        marks = np.flatnonzero(string_ends | (content < ord(" ")))
        # of a string that is a comma, the quote that begins it looks like one that ends a string
        is_control = self.bytes[marks] < ord(" ")
        comma = (np.diff(marks, append=len(self.bytes)) == 2) & ~is_control
        if not comma.any():
            return marks, is_control
        return marks[~comma], is_control[~comma]

    def _check_encoding(self) -> None:
        try:
            self.raw.decode()
        except UnicodeDecodeError:
            raise Unlike from None

    def _escapes(self, content: np.ndarray) -> np.ndarray:
        """Backslashes that are not themselves escaped."""
        backslashes = np.flatnonzero(content == BACKSLASH)
        number = np.arange(len(backslashes))
        begins = np.append(True, np.diff(backslashes) > 1)
        first = np.maximum.accumulate(np.where(begins, number, 0))
        return backslashes[(number - first) % 2 == 0]

    @cached_property
    def _short(self) -> np.ndarray:
        """Escapes that are a backslash and a character; Unlike where one is none of JSON's."""
        character = self.bytes[self.escapes + 1]
        if not ESCAPED[character].all():
            raise Unlike
        return self.escapes[character != ord("u")]

    @cached_property
    def _unescaped(self) -> bytes:
        """The lines, with what short escapes stand for in their place."""
        content = self.bytes[: len(self.raw)].copy()
        content[self._short + 1] = ESCAPED[content[self._short + 1]]
        content[self._short] = NOWHERE
        return content.tobytes().translate(None, delete=bytes([NOWHERE]))

    def __len__(self) -> int:
        return len(self.starts)

    @cached_property
    def _quotes(self) -> np.ndarray:
        """(bytes,) bool: where quotes stand that begin or end a string."""
        quotes = self.bytes == QUOTE
        quotes[self.escapes + 1] = False
        quotes[len(self.raw) :] = False
        return quotes

    @cached_property
    def quote_count(self) -> int:
        """How many quotes begin or end a string, in all lines."""
        return int(np.count_nonzero(self._quotes))

    def first_ends(self, count: int) -> list[np.ndarray]:
        """Where the first strings end, (N,) each, behind which a comma and another string follow.

        Unlike where a line has not so many of them.
        """
        first = _behind(self.end_marks)
        if (first + count > self.end_marks).any():
            raise Unlike
        return [self.marks[first + number] for number in range(count)]

    def between(self, before: np.ndarray, opening: bytes, end: np.ndarray) -> Field:
        """Strings up to `end` (N,), with what stands before them from `before` (N,) on.

        Unlike where that is another thing, or where they do not end in their line.
        """
        start = before + len(opening)
        if (start > end).any() or (end >= self.ends).any() or not self.has(opening, before).all():
            raise Unlike
        return Field(start, end)

    def last_number(self, opening: bytes) -> tuple[np.ndarray, np.ndarray]:
        """The number (N,) with which each line ends, before a brace; where `opening` begins that
        stands before it.
        """
        number, start = self.number(self.ends - 1)
        before = start - len(opening)
        closed = self.bytes[self.ends - 1] == ord("}")
        if (before < self.starts).any() or not (closed & self.has(opening, before)).all():
            raise Unlike
        return number, before

    def escapes_in(self, field: Field) -> np.ndarray:
        """(N,) how many escapes stand in strings."""
        if not len(self.escapes):
            return np.zeros(len(field.start), np.int64)
        ends = np.searchsorted(self.escapes, field.end)
        return ends - np.searchsorted(self.escapes, field.start)

    @cached_property
    def only_short_escapes(self) -> bool:
        """Whether each escape is two characters for one; Unlike where one is none of JSON's."""
        return len(self._short) == len(self.escapes)

    def escaped(self, field: Field, escapes: np.ndarray | None = None) -> np.ndarray:
        """(N,) bool: strings that hold one of `escapes`; None: any escape."""
        escapes = self.escapes if escapes is None else escapes
        if not len(escapes):
            return np.zeros(len(field.start), bool)
        return np.searchsorted(escapes, field.end) > np.searchsorted(escapes, field.start)

    def strings(self, field: Field) -> pa.StringArray:
        """The strings of a field."""
        if not self.escaped(field).any():
            return arrays.slices(self.raw, field.start, field.end)
        start = field.start - np.searchsorted(self._short, field.start)
        end = field.end - np.searchsorted(self._short, field.end)
        texts = arrays.slices(self._unescaped, start, end)
        long = self.escaped(field, np.setdiff1d(self.escapes, self._short, assume_unique=True))
        if not long.any():
            return texts
        places = zip(field.start[long].tolist(), field.end[long].tolist(), strict=True)
        try:
            values = [orjson.loads(self.raw[first - 1 : last + 1]) for first, last in places]
        except orjson.JSONDecodeError:
            raise Unlike from None
        return pc.replace_with_mask(texts, arrays.booleans(long), arrays.texts(values))

    def number(self, end: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Numbers that end before some places, and where they begin; Unlike where there is none."""
        value = np.zeros(len(end), np.int64)
        start = end
        live = np.ones(len(end), bool)
        scale = 1
        for _ in range(DIGITS):
            digit = self.bytes[start - 1]
            live = live & _is_digit(digit)
            if not live.any():
                break
            value += np.where(live, (digit - np.uint8(ord("0"))) * np.int64(scale), 0)
            start = start - live
            scale *= 10
        zero_first = (self.bytes[start] == ord("0")) & (end - start > 1)
        if live.any() or (start == end).any() or zero_first.any():
            raise Unlike
        return value, start


class Cursor(Lines):
    """A place in each of some lines."""

    def __init__(self, raw: bytes):
        super().__init__(raw)
        self.quoted = np.flatnonzero(self._quotes)
        self.next = np.searchsorted(self.quoted, self.starts)  # the next quote of each line
        self.place = self.starts

    def literal(self, expected: bytes) -> None:
        """Move over bytes that every line has here."""
        if not self.has(expected, self.place).all():
            raise Unlike
        self.place = self.place + len(expected)
        if quotes := expected.count(b'"'):
            self.next = self.next + quotes

    def optional(self, expected: bytes) -> np.ndarray:
        """Move over bytes that some lines have here: which ones, (N,) bool."""
        there = self.has(expected, self.place)
        self.place = self.place + len(expected) * there
        self.next = self.next + expected.count(b'"') * there
        return there

    def names(self, opening: bytes) -> Names:
        """The strings behind an opening, with the quotes that end them, of lines that have them.

        Unlike where one needs escapes.
        """
        there = self.optional(opening)
        closing = self.next[there]
        if (closing >= len(self.quoted)).any():
            raise Unlike
        field = Field(self.place[there], self.quoted[closing])
        if self.escaped(field).any():
            raise Unlike
        names = self.strings(field).dictionary_encode()
        number = np.full(len(self), -1, np.int64)
        number[there] = arrays.from_integers(names.indices)
        self.place[there] = field.end + 1
        self.next = self.next + there
        return Names(number, names.dictionary.to_pylist())

    def boolean(self) -> np.ndarray:
        """(N,) bool."""
        true = self.has(b"true", self.place)
        if not (true | self.has(b"false", self.place)).all():
            raise Unlike
        self.place = self.place + np.where(true, 4, 5)
        return true

    def spans(self, quotes_after: int | np.ndarray) -> Spans:
        """Spans, all certain, of a list whose opening bracket was passed; the closing one comes
        next.

        So many quotes follow in each line; those of the spans decide how many there are.
        """
        last = np.searchsorted(self.quoted, self.ends)
        doubled = last - self.next - quotes_after
        if (doubled < 0).any() or (doubled % 2).any():
            raise Unlike
        counts = doubled // 2
        firsts = np.cumsum(counts) - counts
        opened = arrays.runs(self.next, doubled)[::2]
        label = Field(self.quoted[opened] + 1, self.quoted[opened + 1])
        end, comma = self.number(label.start - 2)
        start, bracket = self.number(comma - 1)
        closed = label.end + 1 + len(SCORE)
        # where it has to begin: with the list, or a comma behind the one before
        expected = np.append(0, closed[:-1] + 1)[: len(closed)]
        some = counts > 0
        expected[firsts[some]] = self.place[some]
        joined = np.ones(len(closed), bool)
        joined[firsts[some]] = False
        fits = (
            (self.bytes[label.start - 2] == ord(","))
            & (self.bytes[comma - 1] == ord(","))
            & (self.bytes[bracket - 1] == ord("["))
            & (bracket - 1 == expected)
            & self.has(SCORE, label.end + 1)
            & (~joined | (self.bytes[expected - 1] == ord(",")))
        )
        if not fits.all() or self.escaped(label).any():
            raise Unlike
        place = self.place.copy()
        place[some] = closed[(firsts + counts - 1)[some]]
        self.place = place
        self.next = self.next + doubled
        names = self.strings(label).dictionary_encode()
        numbers = arrays.from_integers(names.indices)
        return Spans(counts, start, end, numbers, names.dictionary.to_pylist())

    def finish(self) -> None:
        """Unlike unless every line ends here."""
        if (self.place != self.ends).any():
            raise Unlike


def _is_digit(byte: np.ndarray) -> np.ndarray:
    return (byte >= ord("0")) & (byte <= ord("9"))


def opening_strings(raw: bytes, starts: np.ndarray, opening: bytes) -> pa.StringArray:
    """What some lines begin with, up to the quote that ends the string behind `opening`.

    Unlike where a line begins otherwise, or where a string needs escapes or is longer than LONGEST.
    """
    content = Content(raw)
    if not content.has(opening, starts).all():
        raise Unlike
    end = starts + len(opening)
    unended = np.arange(len(end))  # strings whose end is not found yet
    for _ in range(LONGEST // 8):
        words = content.words[np.minimum(end[unended], len(raw))]  # behind which quotes stand
        before = _bytes_before_quote(words)
        end[unended] += before
        unended = unended[before == 8]
        if not len(unended):
            break
    else:
        raise Unlike
    strings = arrays.slices(raw, starts, end)
    written, _ = arrays.content_of(strings)
    if b"\\" in written:
        raise Unlike
    return strings


def _bytes_before_quote(words: np.ndarray) -> np.ndarray:
    """(n,) how many of the eight bytes of each word stand before the first quote; 8: all.

    By Mycroft's test for a byte of zeros, of which the lowest that it names is one.
    """
    others = words ^ (BYTES * np.uint64(QUOTE))
    marks = (others - BYTES) & ~others & HIGHEST
    below = ~marks & (marks - ONE)  # the bits below the lowest mark
    return np.bitwise_count(below) >> 3


@dataclass(frozen=True)
class Points:
    """Points of a shard; what no stage asks for is not made."""

    lines: Lines
    at: np.ndarray  # (N,) int64: the byte of the file at which each begins
    key: Field
    text: Field
    split: np.ndarray  # (N,) uint8, of SPLITS
    domain: Names
    owner: Names
    gold: Spans  # in characters of the text
    canary: np.ndarray  # (N,) bool: it is the text of one
    escapes: np.ndarray  # (N,) how many stand in each text

    def __len__(self) -> int:
        return len(self.at)

    @property
    def train(self) -> np.ndarray:
        """(N,) bool: the training points."""
        return self.split == SPLITS.index("train")

    def named(self, start: str) -> np.ndarray:
        """(N,) bool: points of documents whose names begin so, in ASCII, as their keys do."""
        expected = start.encode()
        named = self.lines.bytes[self.key.start] == expected[0]
        places = np.flatnonzero(named)
        named[places] = self.lines.has(expected, self.key.start[places])
        return named

    @cached_property
    def texts(self) -> pa.StringArray:
        return self.lines.strings(self.text)

    def keys_at(self, places: np.ndarray) -> pa.StringArray:
        """Keys of points that are known by numbers; the others are not made."""
        return self.lines.strings(Field(self.key.start[places], self.key.end[places]))

    def texts_at(self, places: np.ndarray) -> pa.StringArray:
        """Texts of points that are known by numbers; the others are not made."""
        return self.lines.strings(Field(self.text.start[places], self.text.end[places]))

    def holding(self, string: str) -> np.ndarray:
        """(N,) bool: points whose text holds a string, none of whose characters has a short escape.

        Where it is nowhere in the lines, texts are not looked at.
        """
        if self.lines.only_short_escapes and not _holds(self.lines.raw, string.encode()):
            return np.zeros(len(self), bool)
        return arrays.from_booleans(pc.match_substring(self.texts, string))

    @cached_property
    def masked(self) -> np.ndarray:
        """(N,) bool: points whose text holds <MASK>."""
        return self.holding(MASK)

    @cached_property
    def plain(self) -> bool:
        """Whether texts stand in the lines as they are, a byte for each character."""
        return self.lines.ascii and not len(self.lines.escapes)

    @cached_property
    def sizes(self) -> np.ndarray:
        """(N,) bytes of each text in UTF-8."""
        if self.lines.only_short_escapes:
            return self.text.end - self.text.start - self.escapes
        return arrays.from_integers(pc.binary_length(self.texts))

    def places(self, at: np.ndarray, keys: pa.StringArray) -> np.ndarray:
        """The points that begin at some bytes; Unlike unless they ascend and have these keys."""
        place = np.searchsorted(self.at, at)
        if not (np.diff(at) > 0).all() or not (place < len(self)).all():
            raise Unlike
        if not self.keys_at(place).equals(keys) or (self.at[place] != at).any():
            raise Unlike
        return place

    @cached_property
    def lengths(self) -> np.ndarray:
        """(N,) characters of each text."""
        if self.lines.ascii and self.lines.only_short_escapes:
            return self.sizes
        return arrays.from_integers(pc.utf8_length(self.texts))


def _holds(raw: bytes, string: bytes) -> bool:
    """Whether a string stands in the lines; a byte alone is found many times as fast."""
    return string[:1] in raw and string in raw


def points(shard: Range, longest: int | None = None) -> Points:
    """The points of a shard; Unlike where one is not as `split` and `plant` write it.

    Unlike, too, where a gold span reaches beyond its text, and where the first lines have more than
    `longest` bytes on average: each byte is looked at, which a stage may have no need of.
    """
    raw = read(shard)
    first = raw[:SAMPLE]
    if longest is not None and len(first) > longest * first.count(b"\n"):
        raise Unlike
    return points_of(raw, shard.start)


def points_at(path: Path, at: np.ndarray) -> Points:
    """Those points of a file that begin at some bytes, ascending, as if no others stood in it;
    Unlike as `points` has it.
    """
    lines = []
    with readable(path), open(path, "rb", buffering=NEAR) as file:
        for start in at.tolist():
            file.seek(start)
            lines.append(file.readline())
    return points_of(b"".join(lines), 0)


def points_of(raw: bytes, start: int) -> Points:
    """The points that stand in lines which begin at a byte of a file."""
    lines = Lines(raw)
    key_end, text_end = lines.first_ends(2)
    key = lines.between(lines.starts, b'{"key":"', key_end)
    text = lines.between(key_end, b'","text":"', text_end)
    cursor, which = alike(lines, text_end, lines.ends, quotes=7)
    cursor.literal(b'","split":"')
    split = _splits(cursor)
    domain = cursor.names(b',"domain":"')
    owner = cursor.names(b',"owner":"')
    has_gold = cursor.optional(b',"gold":[')
    canary = _is_digit(cursor.bytes[cursor.ends - 2])
    gold = cursor.spans(quotes_after=2 * canary)
    if ((gold.counts > 0) != has_gold).any() or (cursor.optional(b"]") != has_gold).any():
        raise Unlike
    _pass_canaries(cursor, canary)
    cursor.literal(b"}")
    cursor.finish()
    escapes = lines.escapes_in(text)
    if escapes.sum() != len(lines.escapes):
        raise Unlike
    read_ = Points(
        lines=lines,
        at=lines.starts + start,
        key=key,
        text=text,
        split=split[which],
        domain=domain.of_lines(which),
        owner=owner.of_lines(which),
        gold=gold.of_lines(which),
        canary=canary[which],
        escapes=escapes,
    )
    if not lines.only_short_escapes:
        _ = read_.texts  # Unlike where an escape is none of JSON's
    gold = read_.gold
    if len(gold.start):
        beyond = gold.end > read_.lengths[gold.line]
        if (beyond | (gold.start > gold.end)).any():
            raise Unlike
    return read_


def alike(
    lines: Lines, start: np.ndarray, end: np.ndarray, *, quotes: int
) -> tuple[Cursor, np.ndarray]:
    """A cursor over the different things that stand in lines from `start` to `end`, each once.

    Also which of them stands in each line (N,). Unlike unless so many quotes stand elsewhere in
    each line.
    """
    parts = arrays.slices(lines.raw, start, end).dictionary_encode()
    which = arrays.from_integers(parts.indices)
    cursor = Cursor(arrays.lines(parts.dictionary, "\n"))
    within = np.diff(np.append(cursor.next, len(cursor.quoted)))
    if lines.quote_count != quotes * len(lines) + within[which].sum():
        raise Unlike
    return cursor, which


def _splits(cursor: Cursor) -> np.ndarray:
    """(N,) uint8, of SPLITS; moves over the quote behind each."""
    split = np.full(len(cursor), len(SPLITS), np.uint8)
    for index, name in enumerate(SPLITS):
        split[cursor.optional(f'{name}"'.encode())] = index
    if (split == len(SPLITS)).any():
        raise Unlike
    return split


def _pass_canaries(cursor: Cursor, canary: np.ndarray) -> None:
    """Move over the numbers of canaries (N,), which stand in some lines."""
    if (cursor.optional(b',"canary":') != canary).any():
        raise Unlike
    _, start = cursor.number(cursor.ends[canary] - 1)
    if (start != cursor.place[canary]).any():
        raise Unlike
    cursor.place[canary] = cursor.ends[canary] - 1


@dataclass(frozen=True)
class Copies:
    """Later copies among the points of a shard."""

    keys: pa.StringArray
    at: np.ndarray  # (N,) int64: where the points begin


def copies(shard: Range) -> Copies:
    """The lines of a shard of `dedup`'s; Unlike where one is not as it writes it."""
    lines = Lines(read(shard))
    at, key_end = lines.last_number(b'","at":')
    key = lines.between(lines.starts, b'{"key":"', key_end)
    if len(lines.escapes) or lines.quote_count != 6 * len(lines):
        raise Unlike
    return Copies(lines.strings(key), at)


@dataclass(frozen=True)
class Findings:
    """What the policies say of the points of a shard."""

    keys: pa.StringArray
    spans: Spans  # in characters
    conservative: np.ndarray  # (N,) bool
    at: np.ndarray  # (N,) int64: where the points begin


def findings(shard: Range) -> Findings:
    """The lines of a shard of `redact`'s; Unlike where one is not as it writes it, or says that a
    policy failed.
    """
    lines = Lines(read(shard))
    (key_end,) = lines.first_ends(1)
    key = lines.between(lines.starts, b'{"key":"', key_end)
    at, end = lines.last_number(b',"at":')
    cursor, which = alike(lines, key_end, end, quotes=5)
    cursor.literal(b'","spans":[')
    spans = cursor.spans(quotes_after=2)
    cursor.literal(b'],"conservative":')
    conservative = cursor.boolean()
    cursor.finish()
    if len(lines.escapes) or (spans.start > spans.end).any():
        raise Unlike
    return Findings(lines.strings(key), spans.of_lines(which), conservative[which], at)
