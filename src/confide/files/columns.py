"""JSON lines as columns, where they look as we write them.

All lines of a shard are read together: a cursor stands in each, and a step moves every one of them
over what must stand there, a literal or the value of a field. Each byte of a line is looked at, so
what is read is what a parser of JSON would give. Lines of any other form, which may be JSON
nevertheless or a mistake to be named, raise `Unlike`: then rows are read one by one (`rows.py`).

Shapes: N lines, S spans.
"""

from dataclasses import dataclass
from functools import cached_property

import numpy as np
import orjson
import pyarrow as pa
import pyarrow.compute as pc

from confide.files import arrays
from confide.files.io import Range, readable
from confide.types import SPLITS

LARGEST = 64 << 20  # bytes of a shard: a longer one holds a line of text as long
QUOTE = ord('"')
BACKSLASH = ord("\\")
NEWLINE = ord("\n")
# Bytes of a line on average: stages that read little of a point read longer ones faster by rows.
LONG = 400
LONGEST = 256  # bytes of a string that is looked for alone
DIGITS = 18  # of a number
PADDING = b'"""' + bytes(29)  # behind the lines, so that quotes and words can be read at the end
SCORE = b",1.0]"  # how a span ends that is certain


def _escaped() -> np.ndarray:
    """What characters stand for behind a backslash; u, which begins a longer escape, for itself."""
    table = np.zeros(256, np.uint8)
    for character, meant in zip(b'"\\/bfnrtu', b'"\\/\b\f\n\r\tu', strict=True):
        table[character] = meant
    return table


ESCAPED = _escaped()


class Unlike(Exception):
    """Lines that are not in the form in which we write them."""


@dataclass(frozen=True, slots=True)
class Field:
    """Where a string stands in each line: bytes (N,) from start to end; start is -1 for null."""

    start: np.ndarray
    end: np.ndarray


@dataclass(frozen=True)
class Spans:
    """Spans of all lines in order: how many each line has (N,), and columns (S,)."""

    counts: np.ndarray
    start: np.ndarray
    end: np.ndarray
    label: Field

    @cached_property
    def line(self) -> np.ndarray:
        """(S,) the line that each belongs to."""
        return np.repeat(np.arange(len(self.counts)), self.counts)

    def where(self, chosen: np.ndarray) -> "Spans":
        """Some of them (S,)."""
        counts = np.bincount(self.line[chosen], minlength=len(self.counts))
        label = Field(self.label.start[chosen], self.label.end[chosen])
        return Spans(counts, self.start[chosen], self.end[chosen], label)


def read(source: Range) -> bytes:
    """The lines of a shard; Unlike where they are too many."""
    with readable(source.path), open(source.path, "rb") as file:
        file.seek(source.start)
        content = file.read(LARGEST if source.end is None else source.end - source.start)
    if len(content) >= LARGEST:
        raise Unlike
    return content


def line_starts(lines: bytes) -> np.ndarray:
    """(N,) int64: where lines begin, the last of which is whole."""
    ends = np.flatnonzero(np.frombuffer(lines, np.uint8) == NEWLINE)
    return np.append(0, ends[:-1] + 1)[: len(ends)]


class Cursor:
    """A place in each of some lines."""

    def __init__(self, raw: bytes):
        self.raw = raw
        self.bytes = np.frombuffer(raw + PADDING, np.uint8)
        self.words = np.ndarray((len(raw) + len(PADDING) - 7,), "<u8", self.bytes.data, 0, (1,))
        content = self.bytes[: len(raw)]
        self.ends = np.flatnonzero(content < ord(" "))
        if (content[self.ends] != NEWLINE).any() or not (raw.endswith(b"\n") or not raw):
            raise Unlike
        self.starts = np.append(0, self.ends[:-1] + 1)[: len(self.ends)]
        self.ascii = raw.isascii()
        if not self.ascii:
            self._check_encoding()
        self.escapes = self._escapes(content) if b"\\" in raw else np.zeros(0, np.int64)
        self.quotes = self._quotes()
        self.next = np.searchsorted(self.quotes, self.starts)  # the next quote of each line
        self.place = self.starts

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

    def _quotes(self) -> np.ndarray:
        """Where quotes stand that begin or end a string."""
        quotes = self.bytes == QUOTE
        quotes[self.escapes + 1] = False
        return np.flatnonzero(quotes)

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
        kept = np.ones(len(content), bool)
        kept[self._short] = False
        return content[kept].tobytes()

    def __len__(self) -> int:
        return len(self.starts)

    def literal(self, expected: bytes) -> None:
        """Move over bytes that every line has here."""
        if not self.has(expected).all():
            raise Unlike
        self.place = self.place + len(expected)
        if quotes := expected.count(b'"'):
            self.next = self.next + quotes

    def has(self, expected: bytes, place: np.ndarray | None = None) -> np.ndarray:
        """(N,) bool: whether so stands at each place."""
        place = self.place if place is None else place
        size = len(expected)
        if size < 8:
            mask = np.uint64((1 << 8 * size) - 1)
            return self.words[place] & mask == np.uint64(int.from_bytes(expected, "little"))
        found = np.ones(len(place), bool)
        for offset in {*range(0, size - 7, 8), size - 8}:
            word = int.from_bytes(expected[offset : offset + 8], "little")
            found &= self.words[place + offset] == np.uint64(word)
        return found

    def string(self) -> Field:
        """The rest of a string; the quote that ends it comes next."""
        field = Field(self.place, self.quotes[self.next])
        self.place = field.end
        return field

    def optional(self) -> Field:
        """A string with its quotes, or null."""
        quoted = self.bytes[self.place] == QUOTE
        if not (quoted | self.has(b"null")).all():
            raise Unlike
        end = self.quotes[np.minimum(self.next + 1, len(self.quotes) - 1)]
        field = Field(np.where(quoted, self.place + 1, -1), np.where(quoted, end, -1))
        self.place = np.where(quoted, end + 1, self.place + 4)
        self.next = self.next + 2 * quoted
        return field

    def boolean(self) -> np.ndarray:
        """(N,) bool."""
        true = self.has(b"true")
        if not (true | self.has(b"false")).all():
            raise Unlike
        self.place = self.place + np.where(true, 4, 5)
        return true

    def integer(self) -> np.ndarray:
        """(N,) int64, of lines in which it is no less than 0."""
        end = self.place
        for _ in range(DIGITS + 1):
            digit = _is_digit(self.bytes[end])
            if not digit.any():
                break
            end = end + digit
        value, start = self._number(end)
        if (start != self.place).any():
            raise Unlike
        self.place = end
        return value

    def spans(self, quotes_after: int) -> Spans:
        """Spans, all certain, of a list whose opening bracket was passed, and the closing one.

        So many quotes follow in each line.
        """
        last = np.searchsorted(self.quotes, self.ends)
        doubled = last - self.next - quotes_after
        if (doubled < 0).any() or (doubled % 2).any():
            raise Unlike
        counts = doubled // 2
        firsts = np.cumsum(counts) - counts
        within = np.arange(int(counts.sum())) - np.repeat(firsts, counts)
        opened = np.repeat(self.next, counts) + 2 * within
        label = Field(self.quotes[opened] + 1, self.quotes[opened + 1])
        end, comma = self._number(label.start - 2)
        start, bracket = self._number(comma - 1)
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
        self.literal(b"]")
        return Spans(counts, start, end, label)

    def _number(self, end: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
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

    def finish(self) -> None:
        """Unlike unless every line ends here."""
        if (self.place != self.ends).any():
            raise Unlike

    def escaped(self, field: Field, escapes: np.ndarray | None = None) -> np.ndarray:
        """(N,) bool: strings in which an escape stands, of all or of some."""
        escapes = self.escapes if escapes is None else escapes
        if not len(escapes):
            return np.zeros(len(field.start), bool)
        return np.searchsorted(escapes, field.end) > np.searchsorted(escapes, field.start)

    def strings(self, field: Field) -> pa.StringArray:
        """The strings of a field, null among them."""
        null = field.start < 0
        if not null.any():
            return self._strings(field)
        some = Field(field.start[~null], field.end[~null])
        places = np.cumsum(~null) - 1
        return self._strings(some).take(arrays.nullable(places, null))

    def _strings(self, field: Field) -> pa.StringArray:
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


def _is_digit(byte: np.ndarray) -> np.ndarray:
    return (byte >= ord("0")) & (byte <= ord("9"))


def first_strings(raw: bytes, starts: np.ndarray, opening: bytes) -> pa.StringArray:
    """The strings of some lines that stand behind what each of them begins with.

    Unlike where a line begins otherwise, or where a string needs escapes or is longer than LONGEST.
    """
    content = np.frombuffer(raw + PADDING, np.uint8)
    for place, byte in enumerate(opening):
        if (content[starts + place] != byte).any():
            raise Unlike
    start = starts + len(opening)
    end = start
    for _ in range(LONGEST):
        byte = content[end]
        within = byte != QUOTE
        if not within.any():
            return arrays.slices(raw, start, end)
        if (byte == BACKSLASH).any():
            raise Unlike
        end = end + within
    raise Unlike


@dataclass(frozen=True)
class Points:
    """Points of a shard; what no stage asks for is not made."""

    cursor: Cursor
    at: np.ndarray  # (N,) int64: the byte of the file at which each begins
    key: Field
    text: Field
    doc: Field
    split: np.ndarray  # (N,) uint8, of SPLITS
    domain: Field
    owner: Field
    gold: Spans  # in characters of the text
    canary: np.ndarray  # (N,) bool: it is the text of one

    def __len__(self) -> int:
        return len(self.at)

    @property
    def train(self) -> np.ndarray:
        """(N,) bool: the training points."""
        return self.split == SPLITS.index("train")

    def named(self, start: str) -> np.ndarray:
        """(N,) bool: points of documents whose names begin so, in ASCII."""
        return self.cursor.has(start.encode(), self.doc.start)

    @cached_property
    def keys(self) -> pa.StringArray:
        return self.cursor.strings(self.key)

    @cached_property
    def texts(self) -> pa.StringArray:
        return self.cursor.strings(self.text)

    @cached_property
    def sizes(self) -> np.ndarray:
        """(N,) bytes of each text in UTF-8."""
        return arrays.from_integers(pc.binary_length(self.texts))

    def places(self, at: np.ndarray, field: Field, cursor: Cursor) -> np.ndarray:
        """The points that begin at some bytes; Unlike unless they ascend and have these keys."""
        place = np.searchsorted(self.at, at)
        if not (np.diff(at) > 0).all() or not (place < len(self)).all():
            raise Unlike
        same = self.keys.take(arrays.integers(place)).equals(cursor.strings(field))
        if not same or (self.at[place] != at).any():
            raise Unlike
        return place

    @cached_property
    def lengths(self) -> np.ndarray:
        """(N,) characters of each text."""
        if self.cursor.ascii and not len(self.cursor.escapes):
            return self.text.end - self.text.start
        return arrays.from_integers(pc.utf8_length(self.texts))


def points(shard: Range, longest: int | None = None) -> Points:
    """The points of a shard; Unlike where one is not as `split` and `plant` write it.

    Unlike, too, where a gold span reaches beyond its text, and where lines have more than `longest`
    bytes on average: each byte is looked at, which a stage may have no need of.
    """
    lines = read(shard)
    if longest is not None and len(lines) > longest * lines.count(b"\n"):
        raise Unlike
    cursor = Cursor(lines)
    cursor.literal(b'{"key":"')
    key = cursor.string()
    cursor.literal(b'","text":"')
    text = cursor.string()
    cursor.literal(b'","doc":"')
    doc = cursor.string()
    cursor.literal(b'","split":"')
    split = _splits(cursor)
    cursor.literal(b'","domain":')
    domain = cursor.optional()
    cursor.literal(b',"owner":')
    owner = cursor.optional()
    cursor.literal(b',"gold":[')
    gold = cursor.spans(quotes_after=2)
    cursor.literal(b',"canary":')
    canary = _canaries(cursor)
    cursor.literal(b"}")
    cursor.finish()
    if any(cursor.escaped(field).any() for field in (key, doc, domain, owner)):
        raise Unlike
    at = cursor.starts + shard.start
    read_ = Points(cursor, at, key, text, doc, split, domain, owner, gold, canary)
    if len(cursor.escapes):
        _ = read_.texts  # Unlike where an escape is none of JSON's
    if len(gold.start):
        beyond = gold.end > read_.lengths[gold.line]
        if (beyond | (gold.start > gold.end)).any():
            raise Unlike
    return read_


def _splits(cursor: Cursor) -> np.ndarray:
    split = np.full(len(cursor), len(SPLITS), np.uint8)
    for index, name in enumerate(SPLITS):
        split[cursor.has(f'{name}"'.encode())] = index
    if (split == len(SPLITS)).any():
        raise Unlike
    cursor.string()
    return split


def _canaries(cursor: Cursor) -> np.ndarray:
    null = cursor.has(b"null")
    if null.all():
        cursor.literal(b"null")
        return ~null
    return _some_canaries(cursor, null)


def _some_canaries(cursor: Cursor, null: np.ndarray) -> np.ndarray:
    """Move over null in some lines, and over numbers in others."""
    size = np.where(null, 4, cursor.ends - 1 - cursor.place)
    if (size > DIGITS).any():
        raise Unlike
    for place, length in zip(cursor.place[~null].tolist(), size[~null].tolist(), strict=True):
        number = cursor.raw[place : place + length]
        if not number.isdigit() or (length > 1 and number.startswith(b"0")):
            raise Unlike
    cursor.place = cursor.place + size
    return ~null


@dataclass(frozen=True)
class Copies:
    """Later copies among the points of a shard."""

    cursor: Cursor
    key: Field
    at: np.ndarray  # (N,) int64: where the points begin


def copies(shard: Range) -> Copies:
    """The lines of a shard of `dedup`'s; Unlike where one is not as it writes it."""
    cursor = Cursor(read(shard))
    cursor.literal(b'{"key":"')
    key = cursor.string()
    cursor.literal(b'","at":')
    at = cursor.integer()
    cursor.literal(b"}")
    cursor.finish()
    if cursor.escaped(key).any():
        raise Unlike
    return Copies(cursor, key, at)


@dataclass(frozen=True)
class Findings:
    """What the policies say of the points of a shard."""

    cursor: Cursor
    key: Field
    spans: Spans  # in characters
    conservative: np.ndarray  # (N,) bool
    at: np.ndarray  # (N,) int64: where the points begin


def findings(shard: Range) -> Findings:
    """The lines of a shard of `redact`'s; Unlike where one is not as it writes it, or says that a
    policy failed.
    """
    cursor = Cursor(read(shard))
    cursor.literal(b'{"key":"')
    key = cursor.string()
    cursor.literal(b'","spans":[')
    spans = cursor.spans(quotes_after=4)
    cursor.literal(b',"conservative":')
    conservative = cursor.boolean()
    cursor.literal(b',"at":')
    at = cursor.integer()
    cursor.literal(b"}")
    cursor.finish()
    if cursor.escaped(key).any() or (spans.start > spans.end).any():
        raise Unlike
    return Findings(cursor, key, spans, conservative, at)
