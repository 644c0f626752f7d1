"""What kind of corpus a file or folder is, and which reader takes it.

It is told by names and first bytes, by the names of columns and by how many words stand in them.
Nothing of a text is said.
"""

from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from difflib import get_close_matches
from email import message_from_bytes
from itertools import islice
from pathlib import Path
from typing import Any, NamedTuple

import orjson

from confide.corpora.known_secrets import marks_of
from confide.corpora.lines import JSON, TABLES, Shard, raw_lines
from confide.corpora.mail import LAYOUTS, begins, maildirs, samples
from confide.corpora.messages import KEYS, OF, OF_MESSAGE
from confide.corpora.table import OPTIONAL
from confide.corpora.table_files import (
    ARROW,
    DELIMITERS,
    SAVED,
    SAVED_SPLITS,
    Kind,
    Piece,
    Reading,
    column_names,
    columns,
    hint,
    is_heading,
    is_name,
    pieces,
    sample,
    tables_below,
)
from confide.errors import InputError
from confide.files.encodings import Encoding, codec_of, text_lines
from confide.files.folders import visible
from confide.files.io import Range, readable
from confide.specs import CorpusSpec, LinesSpec, MailSpec, MessagesSpec, TableSpec
from confide.types import SPLITS

SAMPLE = 200  # rows that are looked at
MESSAGES = 20_000  # of mail that are looked at, to see how many their senders have
LEASTS = (10, 5, 3, 2, 1)  # messages of a sender, of which the largest number is taken
MOST_OF = 0.8  # that keeps so much of them
SEVERAL = 4  # words of a text, in the mean; a name or a code has fewer
OTHER_DELIMITERS = (";", "\t", "|")  # of files *.csv
TURNS = "conversations, a message a line that begins with its role"
TELLS = {"doc": "what belongs together", "author": "who wrote"}
HEADERS = ("From", "Date")  # that every message has
LOOKED_AT = 1 << 14  # bytes of a file that may be a message
KINDS_OF_FOLDER = "a folder that datasets saved, of tables, of mbox files, of mail, a Maildir"


class Input(NamedTuple):
    """What reads a corpus, and what a user should know of it."""

    spec: CorpusSpec
    said: str


class Asked(NamedTuple):
    """What a user says of a corpus beside its place."""

    column: str | None = None
    doc: str | None = None
    author: str | None = None
    encoding: Encoding | None = None
    secrets: tuple[str, ...] = ()  # columns


def recognised(path: Path, options: Asked) -> Input:
    """The reader for a corpus. InputError where none fits, or a column must be named."""
    with readable(path):
        path.stat()
    if is_table(path):
        return table(path, options)
    asked = {"column": options.column}
    if not (path.is_file() and path.suffix.lower() in JSON):  # which may be conversations
        asked |= {"doc": options.doc, "author": options.author}
        asked["secrets"] = ", ".join(options.secrets) or None
    for flag, value in asked.items():
        if value is not None:
            message = "is no table: no name of a file or folder says so"
            raise InputError(message, file=path, key=f"--{flag}", value=value)
    if path.suffix.lower() == ".eml" and path.is_file():
        raise InputError("is one message: give the folder of all", file=path)
    is_mbox = path.suffix.lower() in ("", ".mbox", ".mbx") and path.is_file()
    if path.is_file() and not (is_mbox and begins(path)):
        return file_of_lines(path, options)
    if options.encoding is not None:
        message = "is for text: messages name their own"
        raise InputError(message, file=path, key="--encoding", value=options.encoding)
    if path.is_dir():
        return folder(path)
    return mail(path, "mbox", "an mbox file, as it begins with From")


def is_table(path: Path) -> bool:
    """Whether a name says that this is a table."""
    if path.is_dir():
        is_saved = (path / SAVED).exists() or (path / SAVED_SPLITS).exists()
        return is_saved or any(tables_below(path))
    return path.suffix.lower() in TABLES


def folder(path: Path) -> Input:
    """Mail, of one kind or another."""
    if maildirs(path):
        return mail(path, "maildir", "a Maildir, as it has cur and new")
    files = list(islice(visible(path), SAMPLE))
    if any(file.suffix == ".mbox" or begins(file) for file in files):
        return mail(path, "mbox", "a folder of mbox files")
    letters = sum(map(is_message, files))
    if letters and 2 * letters >= len(files):
        return mail(path, "messages", "a folder of messages, as files begin with their headers")
    raise InputError(f"is none of the folders that are known: {KINDS_OF_FOLDER}", file=path)


def mail(path: Path, layout: str, description: str) -> Input:
    """A reader of mail, which keeps most of the messages."""
    fields = {"reader": "mail", "path": str(path), "layout": layout}
    some = islice(samples(LAYOUTS[layout](path), Counter()), MESSAGES)
    senders = Counter(sample.author for sample in some)
    kept = {least: sum(count for count in senders.values() if count >= least) for least in LEASTS}
    enough = [least for least, count in kept.items() if count >= MOST_OF * senders.total()]
    spec = MailSpec.model_validate(fields | {"least": enough[0]})
    return Input(
        spec, f"{description}; senders are the authors, who have {spec.least} messages or more"
    )


def is_message(path: Path) -> bool:
    """Whether a file begins with the headers of mail."""
    with readable(path), open(path, "rb") as file:
        message = message_from_bytes(file.read(LOOKED_AT))
    return all(message[name] is not None for name in HEADERS)


def file_of_lines(path: Path, options: Asked) -> Input:
    """Conversations, other JSON lines, or plain text."""
    encoding = options.encoding
    codec = codec_of(path, encoding).upper()
    fields = {"path": str(path), "encoding": encoding}
    if path.suffix.lower() not in JSON:
        spec = LinesSpec.model_validate({"reader": "lines"} | fields)
        return Input(spec, f"plain text in {codec}, a document a line")
    line = next(raw_lines(Shard(Range(path)), encoding), None)
    if line is not None and line.content.lstrip().startswith(b"["):
        message = "is a JSON array: expected a JSON object a line, as `jq -c '.[]'` writes them"
        raise InputError(message, file=path, line=line.number)
    if line is not None and b'"messages"' in line.content and chat(line.content):
        return chats(path, options, f'JSON lines in {codec} with the key "messages": {TURNS}')
    if options.secrets:
        message = "is for tables and conversations: here `spans` mark secrets"
        raise InputError(message, file=path, key="--secrets", value=", ".join(options.secrets))
    for key, name in named_columns(options).items():
        message = f"is for tables and conversations: here the key `{key}` is read"
        raise InputError(message, file=path, key=f"--{key}", value=name)
    spec = LinesSpec.model_validate({"reader": "lines"} | fields)
    return Input(spec, f"JSON lines in {codec}, by the file's name")


def chats(path: Path, options: Asked, description: str) -> Input:
    """Conversations of JSON lines. Of what else they have only what the user names is read."""
    lines = raw_lines(Shard(Range(path)), options.encoding)
    of_lines, of_messages = keys_of_chats(line.content for line in lines)
    shown = list(filter(is_name, of_lines))
    column_by_key = named_columns(options)
    for flag, name in asked_for(options):
        if name not in of_lines:
            close = get_close_matches(name, shown, n=1)
            there = f"did you mean {close[0]}?" if close else f"there are {', '.join(shown)}"
            message = f"no line has such a key: {there}"
            raise InputError(message, file=path, key=flag, value=name)
    if "spans" in of_lines:
        message = "stands beside messages: each message has spans of its own content"
        raise InputError(message, file=path, key="spans")
    read = {*KEYS, *column_by_key.values(), *options.secrets}
    read -= column_by_key.keys() - column_by_key.values()  # another key has their part
    unread = [key for key in shown if key not in read]
    unread += [OF + key for key in filter(is_name, of_messages) if key not in OF_MESSAGE]
    named: Mapping[str, Any] = {"encoding": options.encoding, **column_by_key}
    lists = {"secrets": list(options.secrets), "unread": unread}
    spec = MessagesSpec.model_validate({"reader": "messages", "path": str(path), **named, **lists})
    said = description + given(column_by_key) + from_columns(options.secrets)
    if unread:
        more = "; ".join(hints({*of_lines, *column_by_key}, "KEY", "messages"))
        said += f"; not read: {column_names(unread, is_text=False)} ({more})"
    return Input(spec, said)


def keys_of_chats(lines: Iterable[bytes]) -> tuple[list[str], list[str]]:
    """Keys of these lines, and those of their messages, each once; other lines have none."""
    of_lines: dict[str, None] = {}
    of_messages: dict[str, None] = {}
    for row in map(chat, lines):
        of_lines |= dict.fromkeys(row)
        of_messages |= dict.fromkeys(keys_of_messages(row.get("messages")))
    return list(of_lines), list(of_messages)


def keys_of_messages(messages: Any) -> Iterator[str]:
    """Keys of the messages of one conversation."""
    if isinstance(messages, list):
        for message in messages:
            yield from message if isinstance(message, dict) else ()


def chat(line: bytes) -> dict[str, Any]:
    """What a line with messages says; nothing of any other line."""
    row = loaded(line)
    return row if isinstance(row, dict) and "messages" in row else {}


def loaded(text: bytes | str) -> Any:
    """What JSON says; None where it is none: the reader says where."""
    try:
        return orjson.loads(text)
    except orjson.JSONDecodeError:
        return None


def table_of_chats(
    path: Path, options: Asked, there: Mapping[str, Kind], parts: Sequence[Piece]
) -> Input:
    """Conversations of a table, in its column `messages`."""
    first = parts[0].path
    column_by_key = named_columns(options)
    for flag, name in asked_for(options):
        _check(first, there, name, flag)
    rows = sample(first, Reading(encoding=options.encoding), ["messages"], SAMPLE)
    keys = {key: None for (cell,) in rows for key in keys_of_messages(conversation(cell))}
    unread = [OF + key for key in filter(is_name, keys) if key not in OF_MESSAGE]
    lists = {"secrets": list(options.secrets), "unread": unread}
    fields = {"reader": "messages", "path": str(path), **lists, **column_by_key}
    spec = MessagesSpec.model_validate(fields | {"encoding": options.encoding})
    description = f"{kind(path, first)}, column messages: {TURNS}"
    said = description + given(column_by_key) + from_columns(options.secrets) + splits_of(parts)
    read = {*KEYS, *column_by_key.values(), *options.secrets}
    left = [column for column in there if column not in read]
    return Input(spec, said + unread_columns(list(there), left, first, {*there, *column_by_key}))


def conversation(cell: Any) -> Any:
    """What a cell holds, which may be JSON; None where it is none."""
    return loaded(cell) if isinstance(cell, str) else cell


def holds_chats(path: Path, there: Mapping[str, Kind], reading: Reading) -> bool:
    """Whether a table's column `messages` holds conversations, as lists or as JSON."""
    if there.get("messages") != "text":
        return there.get("messages") == "list"
    ((cell,), *_) = sample(path, reading, ["messages"], 1) or [[None]]
    return {"role", "content"} <= {*keys_of_messages(conversation(cell))}


def named_columns(options: Asked) -> dict[str, str]:
    """What the user says of documents and authors: columns, or keys of a line."""
    column_by_key = {"doc": options.doc, "author": options.author}
    return {key: column for key, column in column_by_key.items() if column is not None}


def asked_for(options: Asked) -> list[tuple[str, str]]:
    """Flags with the columns, or keys, that the user names behind them, but for that of texts."""
    named = [(f"--{key}", name) for key, name in named_columns(options).items()]
    return [*named, *(("--secrets", name) for name in options.secrets)]


def from_columns(secrets: Sequence[str]) -> str:
    """Which columns, or keys, hold secrets, in words."""
    return f", secrets from {', '.join(secrets)}" if secrets else ""


def table(path: Path, options: Asked) -> Input:
    """A table, with the columns that have the names of keys, and one of texts."""
    parts = pieces(path, Reading(encoding=options.encoding))
    first = parts[0].path
    reading = Reading(delimiter_of(first, options.encoding), encoding=options.encoding)
    there = columns(first, reading)
    if options.column is None and holds_chats(first, there, reading):
        return table_of_chats(path, options, there, parts)
    text, why = text_column(first, there, reading, options.column)
    column_by_key = {key: key for key in (*OPTIONAL, "spans") if key in there and key != text}
    for flag, column in asked_for(options):
        _check(first, there, column, flag)
    column_by_key |= named_columns(options)
    if splits := splits_of(parts):
        column_by_key.pop("split", None)
    fields = {"reader": "table", "path": str(path), "text": text, "encoding": options.encoding}
    fields |= {"delimiter": reading.delimiter} | column_by_key
    spec = TableSpec.model_validate(fields | {"secrets": list(options.secrets)})
    others = given(column_by_key)
    if options.secrets:
        others += f", secrets from {found_in(first, reading, text, options.secrets)}"
    read = (text, *column_by_key.values(), *options.secrets)
    left = [column for column in there if column not in read]
    unread = unread_columns(list(there), left, first, column_by_key)
    return Input(spec, f"{kind(path, first)}: text from {text} ({why}){others}{splits}{unread}")


def unread_columns(
    header: Sequence[str], left: Sequence[str], path: Path, known: Collection[str]
) -> str:
    """Which columns nothing is read of, in words, and what one of them could tell.

    known: keys that have a column.
    """
    if not left:
        return ""
    is_text = path.suffix.lower() in DELIMITERS
    return f"; not read: {column_names(header, is_text, left)} ({'; '.join(hints(known))})"


def hints(known: Collection[str], word: str = "COLUMN", of: str = "text") -> list[str]:
    """What columns, or keys, could tell beside those that are known."""
    more = [f"--{key} {word}: {tells}" for key, tells in TELLS.items() if key not in known]
    return [*more, f"--secrets {word}S: what is secret in the {of} beside it"]


def given(column_by_key: Mapping[str, str]) -> str:
    """Which columns say what, in words."""
    return "".join(f", {key} from {column}" for key, column in column_by_key.items())


def found_in(path: Path, reading: Reading, text: str, secrets: Sequence[str]) -> str:
    """Columns of secrets, each with in how many of the first rows its value stands in the text."""
    rows = sample(path, reading, [text, *secrets], SAMPLE)
    found = dict.fromkeys(secrets, 0)
    for shown, *values in rows:
        known = dict(zip(secrets, values, strict=True))
        for column in {label for _, _, label in marks_of(shown or "", known)}:
            found[column] += 1
    there = {column: count or "none" for column, count in found.items()}
    return ", ".join(f"{column} (in {there[column]} of {len(rows)} rows)" for column in secrets)


def splits_of(parts: Sequence[Piece]) -> str:
    """Which splits a folder gives, in words; others are drawn."""
    splits = [split for split in SPLITS if any(piece.split == split for piece in parts)]
    return f", {' and '.join(splits)} as the folder has them" if splits else ""


def kind(path: Path, first: Path) -> str:
    """What a table is, in words."""
    if not path.is_dir():
        return f"a table, {path.suffix}"
    is_saved = first.suffix == ARROW
    return "a folder that datasets saved" if is_saved else f"a folder of tables, *{first.suffix}"


def delimiter_of(path: Path, encoding: Encoding | None) -> str | None:
    """The delimiter of a file *.csv whose header has another one than commas; None: the usual."""
    if DELIMITERS.get(path.suffix.lower()) != ",":
        return None
    header = next(text_lines(path, encoding), "")
    if "," in header:
        return None
    return next((other for other in OTHER_DELIMITERS if other in header), None)


def text_column(
    path: Path, there: Mapping[str, Kind], reading: Reading, column: str | None
) -> tuple[str, str]:
    """The column that holds texts, and why. InputError, with names, where it must be named."""
    if column is not None:
        _check(path, there, column, "--column")
        return column, "as --column says"
    is_text = path.suffix.lower() in DELIMITERS
    if is_text and not all(map(is_heading, there)):
        message = "line 1 does not look like a header: names of columns are words"
        raise InputError(message, file=path)
    texts = [name for name, kind in there.items() if kind == "text"]
    if "text" in texts:
        return "text", "by its name"
    long = list(_of_several_words(path, reading, texts))
    if len(long) == 1 and is_name(long[0]):
        return long[0], "the only column of several words"
    if not texts:
        raise InputError("has no column of text", file=path)
    names = column_names([*there], is_text, long or texts)
    raise InputError(f"which column holds the texts? --column, one of: {names}", file=path)


def _of_several_words(path: Path, reading: Reading, texts: list[str]) -> Iterator[str]:
    """Columns whose cells have several words in the mean."""
    rows = sample(path, reading, texts, SAMPLE)
    for index, name in enumerate(texts):
        cells = [row[index] for row in rows if row[index]]
        words = sum(len(cell.split()) for cell in cells)
        if cells and words >= SEVERAL * len(cells):
            yield name


def _check(path: Path, there: Mapping[str, Kind], column: str, flag: str) -> None:
    if column not in there:
        is_text = path.suffix.lower() in DELIMITERS
        message = f"there is no such column{hint(list(there), column, is_text)}"
        raise InputError(message, file=path, key=flag, value=column)
