"""The user's own corpus: JSON lines, or plain text with a document a line.

The keys of a line are "text", "doc", "author", "domain", "split" and "spans". Documents go whole
into one split, by a keyed hash of their name; an author's documents go together, and so do
documents that share an author with one another. A line's own "split" overrules the hash for all
lines of its document. A large file is read in shards; a plan holds what one must know of the
others. What is in UTF-16, CSV or Arrow is read from one end to the other by one process.
"""

import contextlib
import hashlib
import itertools
import re
from collections import ChainMap, defaultdict
from collections.abc import Callable, Iterable, Iterator, MutableMapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from operator import attrgetter
from pathlib import Path
from typing import Any, NamedTuple

import msgspec
import numpy as np
import orjson

from confide.corpora.shares import check_train
from confide.errors import InputError
from confide.files import arrays, columns, jsons
from confide.files.buckets import KEYED, Buckets, keyed, later
from confide.files.encodings import ENDS, Encoding, binary, byte_lines, codec_of, decoded
from confide.files.io import Range, count_lines, is_short, size_of
from confide.files.shards import scatter, shards
from confide.specs import OwnSpec
from confide.text.documents import Documents, Ranges
from confide.text.fingerprints import Fingerprints, fresh
from confide.text.masked import cuts_a_mask, is_masked
from confide.types import MASK, SPLITS, Record, Span, SplitName

RENAMED = "other names: jq -c '{text: .body, author: .from}' FILE"
# By keys of other files for fine-tuning, what makes lines for the reader messages of theirs.
TO_MESSAGES = {
    ("conversations",): (
        '{messages: [.conversations[] | {role: ({human: "user", gpt: "assistant"}[.from] // .from),'
        " content: .value}]}"
    ),
    ("instruction", "output"): (
        '{messages: [{role: "user", content: ([.instruction, .input | strings | select(. != "")]'
        ' | join("\\n"))}, {role: "assistant", content: .output}]}'
    ),
    ("prompt", "completion"): (
        '{messages: [{role: "user", content: .prompt}, {role: "assistant", content: .completion}]}'
    ),
}
PLAIN_NAME = re.compile(r"[A-Za-z_]\w{0,31}", re.ASCII)  # of a key that jq takes without quotes
KEYS = frozenset(("text", "doc", "author", "domain", "split", "spans"))
LISTS = frozenset(("spans", "messages"))  # keys whose values are looked at later
BOM = b"\xef\xbb\xbf"
# of a text that `confide synthesize`, `generate` or `release --texts` writes
WRITTEN_NAME = re.compile(r"(?:synthetic-\d+|generated-text|redacted-text)-\d+")
WRITTEN_PARTS = ("synthetic-", "generated-text-", "redacted-text-")  # one of which is in each
SYNTHETIC = b'{"synthetic":'  # how the first line of what they write begins
# the same, or how a text in such a file begins, once the first line is cut off or lines are mixed
WRITTEN = re.compile(rf'\{{"(?:synthetic":|doc":"{WRITTEN_NAME.pattern}")'.encode())
WRITTEN_BYTES = 64  # in which either stands
JSON = (".jsonl", ".json", ".ndjson")
TABLES = (".csv", ".tsv", ".tab", ".parquet", ".arrow")  # which another reader takes
AUTOMATIC = "line-"  # how the document name begins where a line gives none; every one is unique
# A shard of the corpus is a quarter of others: what is made of it is several times as large.
PARTS = 4
TAKEN = re.compile(r"(?:doc-)*line-")  # given names that begin so are prefixed, to keep them apart

Row = dict[str, Any]
# What a line says of its document: the name, author and split.
Said = tuple[str, str | None, SplitName | None]


class Shard(NamedTuple):
    """Some consecutive lines of the corpus, and the number of the first.

    Of a table the range is of row groups of a Parquet file, or of all of it.
    """

    range: Range
    number: int = 1


class Line(NamedTuple):
    """A line of a file, or a row of a table as JSON, and where it stands."""

    file: Path
    number: int  # among all of the corpus
    content: bytes  # in UTF-8
    place: int | None = None  # line or row of the file, where that is not its number

    def refused(self, message: str, key: str | None = None) -> InputError:
        """The error that names the line."""
        line = self.number if self.place is None else self.place
        return InputError(message, file=self.file, line=line, key=key)

    def without_content(self) -> "Line":
        """Where it stands alone: what is kept of many lines, and sent between processes."""
        return self._replace(content=b"")


Note = tuple[Line, Said]  # where notes are kept, the line is without its content


class Body(NamedTuple):
    """What is read of a line: its text, the gold spans in it, and what assistants say in it."""

    text: str
    spans: tuple[Span, ...]
    answers: Ranges | None = None


def line_shards(path: Path) -> Iterator[Shard]:
    """The shards of a file of lines."""
    number = 1
    for shard in shards(path, PARTS):
        yield Shard(shard, number)
        number += 0 if shard.end is None else count_lines(shard.path, shard.start, shard.end)


def raw_lines(shard: Shard, encoding: Encoding | None = None) -> Iterator[Line]:
    """Non-blank lines without line ends."""
    path = shard.range.path
    codec = codec_of(path, encoding)
    for number, line in enumerate(byte_lines(shard.range, codec), shard.number):
        if codec != "utf-8":
            line = decoded(line, codec, path, number).encode()
        elif b"\0" in line:
            raise binary(path, number)
        line = (line.removeprefix(BOM) if number == 1 else line).rstrip(b"\r\n")
        if number == 1 and line.startswith(SYNTHETIC):
            continue  # where texts come from that a model wrote
        if line and not line.isspace():
            yield Line(path, number, line)


def is_synthetic(file: Path) -> bool:
    """Whether a file is one of texts that a certified model wrote or has read, by its first line.

    In whatever encoding `raw_lines` reads it without being told.
    """
    if not file.is_file():
        return False
    codec = codec_of(file)
    with file.open("rb") as content:
        first = content.read(len(BOM) + 2 * WRITTEN_BYTES)
    return WRITTEN.match(first.decode(codec, "ignore").encode().removeprefix(BOM)) is not None


class Objects(NamedTuple):
    """Lines of a shard, of which each begins and ends with a brace.

    No object then goes on from one line to the next, where JSON would want a comma before a brace:
    as many objects as lines are one in each.
    """

    content: bytes
    starts: np.ndarray  # (N + 1,) where they begin, and behind them where the last one ends


def objects(shard: Shard, encoding: Encoding | None = None) -> Objects | None:
    """A shard as it is read; None where its lines may be others than those of `raw_lines`."""
    path = shard.range.path
    if codec_of(path, encoding) != "utf-8" or not is_short(shard.range):
        return None
    try:
        raw = columns.read(shard.range)
    except columns.Unlike:
        return None
    synthetic = shard.number == 1 and raw.startswith(SYNTHETIC)
    if synthetic or not raw.endswith(b"\n") or b"\0" in raw:
        return None
    characters = np.frombuffer(raw, np.uint8)
    starts = np.append(columns.line_starts(raw), len(raw))
    opened = (characters[starts[:-1]] == ord("{")).all()
    closed = (characters[starts[1:] - 2] == ord("}")).all()
    return Objects(raw, starts) if opened and closed else None


class Named(msgspec.Struct, gc=False):
    """What a line says of its document."""

    doc: str | None = None
    author: str | None = None
    split: SplitName | None = None


def unless_blank(name: str | None) -> str | None:
    """The name of a document or an author; None for a blank one, which would make one document, or
    one person, of all that have no name.
    """
    return name if name and not name.isspace() else None


def without_blanks(names: list[str | None]) -> list[str | None]:
    """What `unless_blank` makes of each of many names, hardly any of which is blank."""
    if "" in names or any(map(str.isspace, filter(None, names))):
        return list(map(unless_blank, names))
    return names


class Usual(msgspec.Struct, gc=False, forbid_unknown_fields=True):
    """A line of texts as nearly all are, read in one go; what is not there is UNSET."""

    text: str
    doc: str | msgspec.UnsetType | None = msgspec.UNSET
    author: str | msgspec.UnsetType | None = msgspec.UNSET
    domain: str | msgspec.UnsetType | None = msgspec.UNSET
    split: SplitName | msgspec.UnsetType | None = msgspec.UNSET
    spans: list[tuple[int, int, str]] | msgspec.UnsetType | None = msgspec.UNSET


class Form(NamedTuple):
    """How a line is found and read. `parse` looks at its keys, `body` at its text."""

    parse: Callable[[Line], Row]
    body: Callable[[Line, Row], Body]
    plain: bool = False  # whether a file may be plain text
    # the same in one go, of lines that need no error: what is said of the document, and all of it
    named: Callable[[bytes], Named] | None = None
    usual: Callable[[bytes], tuple[Row, Body] | None] | None = None
    rows: Callable[[Shard], Iterator[Line]] = raw_lines
    # all lines of a shard at once, where each is an object in UTF-8
    at_once: Callable[[Shard], "Objects | None"] | None = None
    # how the corpus is divided; None: it cannot be
    shards: Callable[[], Iterator[Shard]] | None = None

    def has_plain(self, path: Path) -> bool:
        """Whether a file is plain text, with a document a line."""
        return self.plain and path.suffix.lower() not in JSON


def _plain(plan: "Plan", shard: Shard) -> Iterator[Record]:
    """Each line of a text file is a document."""
    for line in plan.form.rows(shard):
        text = decoded(line.content, "utf-8", line.file, line.number)
        (split,) = _hashed(plan.spec, [f"l{line.number}"])
        yield Record(text, f"{AUTOMATIC}{line.number}", split=split)


def parsed(line: Line, keys: frozenset[str] = KEYS, body: str = "text") -> Row:
    """A line's JSON object with known keys of the right types; `body` is the one that it must have.

    `orjson` refuses bad UTF-8 and lone surrogates.
    """
    try:
        row = orjson.loads(line.content)
    except orjson.JSONDecodeError as error:
        decoded(line.content, "utf-8", line.file, line.number)  # or an error that says more
        raise line.refused(f"malformed JSON at character {error.colno}") from None
    if not isinstance(row, dict):
        raise line.refused("expected a JSON object")
    for key, value in row.items():
        if key not in keys:
            hint = renamed(row)
            if body == "messages":
                hint = f"`unread: [{jsons.name_of(key) or 'KEY'}]` of the corpus leaves it out"
            elif body in row and key != "messages" and PLAIN_NAME.fullmatch(key):
                hint = f"`jq -c 'del(.{key})' FILE` leaves it out"
                if "author" not in row and isinstance(value, str):
                    hint += f", `jq -c '.author = .{key} | del(.{key})' FILE` makes it the author"
            message = f"unknown key: one of {', '.join(sorted(keys))}; {hint}"
            raise line.refused(message, jsons.name_of(key))
        if key in LISTS:
            continue
        if not isinstance(value, str) and (value is not None or key == body):
            is_number = isinstance(value, int | float) and not isinstance(value, bool)
            writes = f"; `jq -c '(.{key}|numbers) |= tostring' FILE` writes it"
            hint = writes if is_number and key != body else ""
            raise line.refused(f"expected a string{hint}", key)
    if body not in row:
        raise line.refused("missing", body)
    if row.get("split") is not None and row["split"] not in SPLITS:
        raise line.refused(f"expected one of {', '.join(SPLITS)}", "split")
    return row


def renamed(row: Row) -> str:
    """How a line that is none of texts can be read."""
    if "messages" in row:
        return "the reader messages takes it"
    for keys, program in TO_MESSAGES.items():
        if row.keys() >= {*keys}:
            return f"the reader messages takes what `jq -c '{program}' FILE` writes"
    return RENAMED


def check_keys(line: Line, row: Row, keys: frozenset[str] = KEYS) -> None:
    """InputError where a key stands twice, of a line that was read as this row.

    The last one would win, and gold secrets could be gone.
    """
    try:
        jsons.check(line.content, row)
    except jsons.Repeated as error:
        raise line.refused(str(error), error.key if error.key in keys else None) from None
    except jsons.Nested as error:
        raise line.refused(str(error)) from None


def gold(line: Line, raw_spans: Any, text: str, key: str = "spans") -> tuple[Span, ...]:
    """Gold spans of a text, in order.

    InputError where one is malformed, out of range, overlaps another or is masked already: among
    secrets these would count as found, and make misses look rare. `key`: where they stand.
    """
    if raw_spans is None:
        return ()
    if not isinstance(raw_spans, list) or not all(map(is_span, raw_spans)):
        raise line.refused("expected a list of [start, end, label]", key)
    length = len(text)
    for start, end, _ in raw_spans:
        if not 0 <= start < end <= length:
            message = f"[{start}, {end}) is not a range within the {length} characters of the text"
            raise line.refused(message, key)
        if is_masked(text, start, end):
            message = (
                f"[{start}, {end}) is masked already, so that no secret is there: leave it out"
            )
            raise line.refused(message, key)
        if cuts_a_mask(text, start, end):
            raise line.refused(f"[{start}, {end}) cuts a {MASK} of the text in two", key)
    spans = tuple(Span(*span) for span in sorted(raw_spans))
    if any(left.end > right.start for left, right in itertools.pairwise(spans)):
        raise line.refused("spans overlap", key)
    return spans


def is_span(span: Any) -> bool:
    """Whether it is [start, end, label], of two integers and a string that is not empty."""
    return isinstance(span, list) and [*map(type, span)] == [int, int, str] and span[2] != ""


def _body(line: Line, row: Row) -> Body:
    check_keys(line, row)
    return Body(row["text"], gold(line, row.get("spans"), row["text"]))


def _usual(content: bytes) -> tuple[Row, Body] | None:
    """Keys and body of a line; None where it has to be looked at closely."""
    try:
        usual = USUAL.decode(content)
    except REFUSED:
        return None
    row = _row(usual)
    if not jsons.in_order(content, _key_count(usual, row)):
        return None
    body = _usual_body(usual)
    return None if body is None else (row, body)


def _row(usual: Usual) -> Row:
    """What a line says besides its text."""
    return {name: value for name in ROW if (value := getattr(usual, name)) is not msgspec.UNSET}


def _key_count(usual: Usual, row: Row) -> int:
    """How many keys a line has."""
    return 1 + len(row) + (usual.spans is not msgspec.UNSET)


def _usual_body(usual: Usual) -> Body | None:
    """Text and spans of a line; None where spans have to be looked at closely."""
    if not usual.spans:
        return Body(usual.text, ())
    if MASK in usual.text:  # a span may be masked already
        return None
    spans = tuple([Span(*span) for span in sorted(usual.spans)])
    last = 0
    for start, end, label, _ in spans:
        if not last <= start < end or not label:
            return None
        last = end
    return Body(usual.text, spans) if last <= len(usual.text) else None


class Together(NamedTuple):
    """All lines of a shard, read in one go."""

    lines: list[Usual]
    objects: Objects
    key_counts: np.ndarray  # as many as each surely has; -1: it has to be looked at closely


def _together(form: Form, shard: Shard) -> Together | None:
    """The lines of a shard; None where they have to be read one by one."""
    there = None if form.at_once is None else form.at_once(shard)
    if there is None:
        return None
    try:
        usual = USUAL.decode_lines(there.content)
    except REFUSED:
        return None
    if len(usual) != len(there.starts) - 1:
        return None
    characters = np.frombuffer(there.content, np.uint8)
    before, behind = characters[:-1], characters[1:]
    key_counts = _counted((before == ord('"')) & (behind == ord(":")), there.starts)
    for between in (b" :", b"\t", b"\r"):  # what may stand between a key and its colon
        if between in there.content:
            close = before == between[0]
            if len(between) > 1:
                close &= behind == between[1]
            key_counts[_counted(close, there.starts) > 0] = -1
    return Together(usual, there, key_counts)


def _counted(places: np.ndarray, starts: np.ndarray) -> np.ndarray:
    """How many of some places, (bytes,) bool, lie in each line."""
    return np.diff(np.searchsorted(np.flatnonzero(places), starts))


REFUSED = (msgspec.DecodeError, UnicodeDecodeError, RecursionError)
USUAL = msgspec.json.Decoder(Usual)
NAMED = msgspec.json.Decoder(Named)
ROW = ("doc", "author", "domain", "split")
TEXTS = Form(parsed, _body, plain=True, named=NAMED.decode, usual=_usual)


def form_of(spec: OwnSpec) -> Form:
    """How the lines of a file of texts are read. InputError for a table."""
    path = Path(spec.path)
    if path.suffix.lower() in TABLES:
        raise InputError("is a table, which the reader table takes", file=path, key="reader")
    return TEXTS._replace(
        rows=partial(raw_lines, encoding=spec.encoding),
        at_once=partial(objects, encoding=spec.encoding),
        shards=shards_of(spec),
    )


def shards_of(spec: OwnSpec) -> Callable[[], Iterator[Shard]] | None:
    """How a file of lines is divided; None for what is in UTF-16, which cannot be."""
    path = Path(spec.path)
    if path.is_dir() or codec_of(path, spec.encoding) in ENDS:
        return None
    return partial(line_shards, path)


@dataclass(slots=True)
class Places:
    """Which documents belong together.

    There are documents with a split of their own, and groups of documents that share authors.
    """

    fixed: MutableMapping[str, SplitName] = field(default_factory=dict)
    parent: MutableMapping[str, str] = field(default_factory=dict)

    def group(self, node: str) -> str:
        """Name of the group's least node, whatever the order in which links were added."""
        root = node
        while (above := self.parent.get(root, root)) != root:
            root = above
        while (above := self.parent.get(node, node)) != root:
            self.parent[node], node = root, above
        return root

    def link(self, first: str, second: str) -> None:
        low, high = sorted((self.group(first), self.group(second)))
        self.parent[high] = low

    def note(self, line: Line, doc: str, author: str | None, split: SplitName | None) -> None:
        """Add what a line says of its document. InputError if it is in another split."""
        if split is not None and self.fixed.setdefault(doc, split) != split:
            raise line.refused("the document is in another split on an earlier line", "split")
        if author is not None:
            self.link("a" + author, "d" + doc)

    def beneath(self) -> "Places":
        """A copy to add to; this one stays as it is."""
        return Places(_beneath(self.fixed), _beneath(self.parent))


def _beneath(known: MutableMapping[str, Any]) -> MutableMapping[str, Any]:
    """A copy to add to."""
    return ChainMap({}, known) if known else {}


def _hashed(spec: OwnSpec, groups: Iterable[str]) -> list[SplitName]:
    """Splits of groups, each by a keyed hash of its name: the same for any order of the file."""
    copy = hashlib.blake2b(digest_size=8, salt=(spec.seed % 2**64).to_bytes(8)).copy
    test = spec.test
    held_out = spec.test + spec.valid
    splits: list[SplitName] = []
    for group in groups:
        digest = copy()
        digest.update(group.encode())
        share = int.from_bytes(digest.digest()) / 2**64
        splits.append("test" if share < test else "valid" if share < held_out else "train")
    return splits


def _record(plan: "Plan", places: Places, line: Line, row: Row, body: Body) -> Record:
    author = unless_blank(row.get("author"))
    name = unless_blank(row.get("doc"))
    if not plan.of_model:
        _check_unwritten(line, name)
    said = [line.number], [name], [author], [row.get("split")]
    (doc,), (split,) = _placed(plan, places, *said)
    return Record(
        body.text,
        doc=doc,
        author=author,
        domain=row.get("domain"),
        spans=body.spans,
        split=split,
        answers=body.answers,
    )


def _placed(
    plan: "Plan",
    places: Places,
    numbers: Sequence[int],
    names: Sequence[str | None],
    authors: Sequence[str | None],
    splits: Sequence[SplitName | None],
) -> tuple[list[str], list[SplitName]]:
    """The names of lines' documents, and the splits that they are in; all of as many lines."""
    given = iter(_told_apart([name for name in names if name is not None]))
    docs = [
        f"{AUTOMATIC}{number}" if name is None else next(given)
        for number, name in zip(numbers, names, strict=True)
    ]
    nodes = list(map(_node, numbers, names, authors))
    if places.parent:
        nodes = list(map(places.group, nodes))
    if places.fixed:
        fixed = [None if name is None else places.fixed.get(name) for name in names]
        splits = [own or other for own, other in zip(splits, fixed, strict=True)]
    left = [node for node, split in zip(nodes, splits, strict=True) if split is None]
    drawn = iter(_hashed(plan.spec, left))
    return docs, [next(drawn) if split is None else split for split in splits]


def _node(number: int, name: str | None, author: str | None) -> str:
    """What a line's document belongs to, as `Places` names it: its author, else itself."""
    if author is not None:
        return "a" + author
    return f"l{number}" if name is None else "d" + name


def _check_unwritten(line: Line, name: str | None) -> None:
    """InputError for the name of a text that a model wrote, in a file that does not say so:
    certificates would be silent about the model.
    """
    if is_written(name):
        message = (
            f"{name} is how `confide` names texts that a model wrote or has read, and certificates "
            "must say so: give the file as it was written, other texts behind its own, or rename "
            "what is no such text"
        )
        raise line.refused(message, "doc")


def _perhaps_written(names: Sequence[str | None]) -> bool:
    """Whether it takes a look at each of some names to tell that no model wrote their texts."""
    together = "\n".join(filter(None, names))
    return any(part in together for part in WRITTEN_PARTS)


def is_written(doc_name: Any) -> bool:
    """Whether a name is that of a text that a model wrote or has read."""
    return isinstance(doc_name, str) and WRITTEN_NAME.fullmatch(doc_name) is not None


def _told_apart(names: list[str]) -> list[str]:
    """Given names, so that none is one that a line without a name is given."""
    if AUTOMATIC not in "\n".join(names):
        return names
    return ["doc-" + name if TAKEN.match(name) else name for name in names]


class Plan(NamedTuple):
    """What must be known of the whole corpus to read one of its shards."""

    spec: OwnSpec
    places: Places
    form: Form = TEXTS
    of_model: bool = False  # a model wrote the texts, and their file says so
    fingerprints: Fingerprints = fresh()
    # fingerprints of the names of documents that stand in several shards
    returning: frozenset[bytes] = frozenset()

    def returns(self, docs: Sequence[str]) -> list[bool]:
        """Which documents stand in several shards."""
        if not self.returning:
            return [False] * len(docs)
        found = self.fingerprints(arrays.binaries([doc.encode() for doc in docs])).tolist()
        return [
            one in self.returning and not doc.startswith(AUTOMATIC)
            for one, doc in zip(found, docs, strict=True)
        ]


def plan(spec: OwnSpec, folder: Path, threads: int, form: Form, parts: Sequence[Shard]) -> Plan:
    """First passes, over lines that name a document; `parts`: all shards of the corpus.

    Memory: documents in several shards, and those of several authors.
    """
    path = Path(spec.path)
    places = Places()
    if form.has_plain(path):
        return Plan(spec, places, form=form)
    fingerprints = fresh()
    of_model = is_synthetic(path)
    size = sum(map(size_of, {part.range.path for part in parts}))
    buckets = Buckets(folder, size, KEYED)
    notes: list[Note] = []
    for first, several in scatter(lambda: partial(_said, fingerprints, form), parts, threads):
        buckets.add(first)
        notes += several
    names = frozenset(
        name for piece in buckets.each(later, threads) for name in piece["digest"].tolist()
    )
    ready = Plan(spec, places, form, of_model, fingerprints, names)
    if names:
        shared = scatter(lambda: partial(_shared, ready), parts, threads)
        notes = [note for some in shared for note in some]
    for line, said in notes:
        places.note(line, *said)
    return ready


def _said(fingerprints: Fingerprints, form: Form, shard: Shard) -> tuple[np.ndarray, list[Note]]:
    """Records KEYED of the names of documents in a shard, and notes of those that join authors."""
    notes = _names(form, shard)
    lines_of: dict[str, int] = {}
    for line, (doc, _, _) in notes:
        lines_of.setdefault(doc, line.number)
    names = arrays.binaries([name.encode() for name in _told_apart(list(lines_of))])
    first = keyed(fingerprints(names), np.array(list(lines_of.values()), np.int64))
    if len(lines_of) == len(notes):
        return first, []  # no document has a second author
    return first, _joining([(line, said) for line, said in notes if said[1:] != (None, None)])


def _named(form: Form, line: Line) -> Said | None:
    """What a line says of the document that it names; the errors are those of `parse`."""
    named = None
    if form.named is not None:
        with contextlib.suppress(*REFUSED):
            named = form.named(line.content)
    if named is None:
        row = form.parse(line)
        named = Named(row.get("doc"), row.get("author"), row.get("split"))
    doc = unless_blank(named.doc)
    return None if doc is None else (doc, unless_blank(named.author), named.split)


def _names(form: Form, shard: Shard) -> list[Note]:
    """What lines say of the documents that they name."""
    there = None if form.at_once is None else form.at_once(shard)
    every: list[Named] = []
    with contextlib.suppress(*REFUSED):
        every = [] if there is None else NAMED.decode_lines(there.content)
    if there is not None and len(every) == len(there.starts) - 1:
        docs = without_blanks([named.doc for named in every])
        authors = without_blanks([named.author for named in every])
        splits = [named.split for named in every]
        path = shard.range.path
        said = enumerate(zip(docs, authors, splits, strict=True), shard.number)
        return [
            (Line(path, number, b""), (doc, author, split))
            for number, (doc, author, split) in said
            if doc is not None
        ]
    # what is escaped may spell a key
    lines = (
        line for line in form.rows(shard) if b'"doc"' in line.content or b"\\u" in line.content
    )
    read = ((line.without_content(), _named(form, line)) for line in lines)
    return [(line, said) for line, said in read if said is not None]


def _notes(form: Form, shard: Shard) -> Iterator[Note]:
    """What lines say of documents.

    Only lines that name one beside an author or a split are parsed.
    """
    for line in form.rows(shard):
        says_more = b'"author"' in line.content or b'"split"' in line.content
        if (b'"doc"' in line.content and says_more) or b"\\u" in line.content:
            said = _named(form, line)
            if said is not None:
                yield line, said


def _shared(plan: Plan, shard: Shard) -> list[Note]:
    """Those of the notes that say something of other shards, by the numbers of their lines.

    These are notes of documents that return, or that join authors.
    """
    notes = [(line.without_content(), said) for line, said in _notes(plan.form, shard)]
    returns = plan.returns(_told_apart([doc for _, (doc, _, _) in notes]))
    returning = itertools.compress(notes, returns)
    return sorted({*returning, *_joining(notes)}, key=lambda note: note[0].number)


def _joining(notes: list[Note]) -> list[Note]:
    """Notes of documents that join authors."""
    authors = defaultdict(set)
    for _, (doc, author, _) in notes:
        authors[doc].add(author)
    return [(line, said) for line, said in notes if len(authors[said[0]]) > 1]


def records(plan: Plan, shard: Shard) -> Iterator[Record]:
    """Records of a shard in file order, each with its split.

    Guarantees: no document is in two splits, and neither is an author, but for documents whose
    lines name their split. Errors: InputError names file, line and key, never the text.
    """
    there = _documents(plan, shard)
    yield from _one_by_one(plan, shard) if there is None else there.records()


def documents(plan: Plan, shard: Shard) -> Documents:
    """The same records in columns."""
    there = _documents(plan, shard)
    return Documents.of(list(_one_by_one(plan, shard))) if there is None else there


def _one_by_one(plan: Plan, shard: Shard) -> Iterator[Record]:
    """Records of lines that are read one by one."""
    if plan.form.has_plain(shard.range.path):
        yield from _plain(plan, shard)
        return
    places = plan.places.beneath()
    for line, said in _notes(plan.form, shard):
        places.note(line, *said)
    for line in plan.form.rows(shard):
        yield _record(plan, places, line, *_whole(plan.form, line))


def _documents(plan: Plan, shard: Shard) -> Documents | None:
    """The records of a shard whose lines can be read in one go; None for any other."""
    path = shard.range.path
    check_train(plan.spec.valid, plan.spec.test)
    together = None if plan.form.has_plain(path) else _together(plan.form, shard)
    if together is None:
        return None
    columns = [_column(together.lines, name) for name in ROW]
    names, authors, domains, splits = (values for values, _ in columns)
    names = without_blanks(names)
    authors = without_blanks(authors)
    numbers = range(shard.number, shard.number + len(names))
    places = plan.places.beneath()
    for number, name, author, split in zip(numbers, names, authors, splits, strict=True):
        if name is not None and (author is not None or split is not None):
            places.note(Line(path, number, b""), name, author, split)
    if not plan.of_model and _perhaps_written(names):
        for number, name in zip(numbers, names, strict=True):
            _check_unwritten(Line(path, number, b""), name)
    docs, splits = _placed(plan, places, numbers, names, authors, splits)
    spans, has_spans = _column(together.lines, "spans")
    read_ = Documents(
        texts=[line.text for line in together.lines],
        names=docs,
        authors=authors,
        domains=domains,
        spans=[some or () for some in spans],
        splits=splits,
        answers=[None] * len(docs),
    )
    expected_counts = 1 + has_spans + sum(there for _, there in columns)
    try:
        in_order = read_.in_order
    except OverflowError:
        return None
    perhaps_masked = read_.masked & (read_.gold.counts > 0)
    close = np.flatnonzero((together.key_counts != expected_counts) | ~in_order | perhaps_masked)
    return _looked_at(plan, shard, together.objects, read_, close.tolist())


def _looked_at(
    plan: Plan, shard: Shard, objects_: Objects, read_: Documents, close: list[int]
) -> Documents:
    """Documents of lines some of which have to be looked at closely yet: spans may be no spans."""
    if not close:
        return read_
    spans = list(read_.spans)
    for number in close:
        first, last = objects_.starts[number : number + 2]
        content = objects_.content[first:last].rstrip(b"\r\n")
        _, body = _whole(plan.form, Line(shard.range.path, shard.number + number, content))
        spans[number] = [span[:3] for span in body.spans]
    return replace(read_, spans=spans)


def _column(lines: list[Usual], name: str) -> tuple[list[Any], np.ndarray]:
    """What each line has of a key, None where it has nothing, and (N,) bool whether it has it."""
    values = list(map(attrgetter(name), lines))
    missing = values.count(msgspec.UNSET)
    if not missing:
        return values, np.ones(len(values), bool)
    if missing == len(values):
        return [None] * missing, np.zeros(missing, bool)
    there = np.array([value is not msgspec.UNSET for value in values], bool)
    return [None if value is msgspec.UNSET else value for value in values], there


def _whole(form: Form, line: Line) -> tuple[Row, Body]:
    """All that a line says. InputError names what is wrong with it."""
    if form.usual is not None and (usual := form.usual(line.content)) is not None:
        return usual
    row = form.parse(line)
    return row, form.body(line, row)


def read(spec: OwnSpec, form: Form) -> Iterator[Record]:
    """All records. InputError if there are none."""
    empty = True
    of_model = is_synthetic(Path(spec.path))
    plan = Plan(spec, Places(), form=form, of_model=of_model)
    for record in records(plan, Shard(Range(Path(spec.path)))):
        empty = False
        yield record
    if empty:
        raise InputError("holds no documents", file=spec.path)
