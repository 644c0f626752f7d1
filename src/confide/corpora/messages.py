"""The user's own conversations: JSON lines, or rows, with messages of a role and a content.

The keys of a line are "messages", "doc", "author", "domain" and "split", as the reader `lines` has
them, and those that the specification calls secret; it may name others for the document and the
author, and some that are not read. The keys of a message are "role", "content", which may be a list
of texts, and "spans", the gold spans of its content. A message without a content is left out. A
conversation is a document. The chat template of a pretrained model makes its text, in which spans
and the assistants' turns are found again. Without one a message is "role: content" on one line of
its own.
"""

import importlib
import re
from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import dataclass
from functools import cache, cached_property, partial
from pathlib import Path
from typing import Any

import orjson

from confide.corpora import lines
from confide.corpora.dialogues import BREAKS
from confide.corpora.known_secrets import marks_of, united, written
from confide.corpora.lines import Body, Form, Line, Row, Shard
from confide.corpora.table import shards_of, table_lines
from confide.corpora.table_files import Reading, columns, pieces
from confide.errors import InputError
from confide.files import jsons
from confide.provenance.artefacts import place_of
from confide.runtime.limits import limited, little_memory
from confide.specs import MessagesSpec
from confide.text.chat_template import ChatTemplate, Conversation, Message, Placed, Refused
from confide.types import Span

KEYS = frozenset(("messages", "doc", "author", "domain", "split"))
OF_MESSAGE = frozenset(("role", "content", "spans"))
LARGEST = 2**53  # of whole numbers up to which JSON's are exact
OF = "messages."  # before the key of a message
ROLE = re.compile(r"[A-Za-z_]{1,32}")
MEMORY = 1 << 29  # bytes that rendering a conversation may take


def form_of(spec: MessagesSpec) -> Form:
    """How a line is read. The template is opened once in each process, when it is first needed."""
    secrets = tuple(spec.secrets)
    parse = partial(lines.parsed, keys=KEYS | {*secrets}, body="messages")
    body_of = partial(plain_body, secrets)
    if spec.template is not None:
        body_of = partial(body, cache(partial(renderer, spec.template)), secrets)
    form = Form(parse, body_of)
    if is_table(spec):
        form = of_table(spec, form)
    else:
        rows = partial(lines.raw_lines, encoding=spec.encoding)
        form = form._replace(rows=rows, shards=lines.shards_of(spec))
    names = names_of(spec)
    return form._replace(rows=partial(known_rows, names, form.rows)) if names != Names() else form


@dataclass(frozen=True)
class Names:
    """What keys of a line are to be called, and which are not read."""

    key_by_name: tuple[tuple[str, str], ...] = ()  # as this reader has it, and as the line has it
    unread: frozenset[str] = frozenset()  # keys of a line
    of_messages: frozenset[str] = frozenset()  # keys of a message that are not read
    kept: frozenset[str] = frozenset()  # keys that stay beside their other name

    @cached_property
    def left_out(self) -> frozenset[str]:
        """Keys of a line that do not stand in what is read."""
        return self.unread | {key for _, key in self.key_by_name} - self.kept


def names_of(spec: MessagesSpec) -> Names:
    """Those that a specification has; of a table other columns are not read in any case, and those
    that are read have their names.
    """
    of_messages = frozenset(key.removeprefix(OF) for key in spec.unread if key.startswith(OF))
    if is_table(spec):
        return Names(of_messages=of_messages)
    return Names(
        tuple(spec.key_by_name.items()),
        unread=frozenset(spec.unread),
        of_messages=of_messages,
        kept=frozenset(spec.secrets),
    )


def known_rows(
    names: Names, rows: Callable[[Shard], Iterator[Line]], shard: Shard
) -> Iterator[Line]:
    """The lines of a shard with the keys that are known here."""
    for line in rows(shard):
        yield with_names(names, line)


def with_names(names: Names, line: Line) -> Line:
    """A line with names of this reader, and without what is not read.

    What is no object stays as it is: the reader refuses it. InputError where a name stands there
    already, or is no name, or where what is not read says that a model wrote the text.
    """
    try:
        row = orjson.loads(line.content)
    except orjson.JSONDecodeError:
        return line
    if not isinstance(row, dict):
        return line
    # of a key that stands twice only one is left below
    lines.check_keys(line, row, KEYS | OF_MESSAGE)
    if "doc" in names.unread and lines.is_written(row.get("doc")):
        raise line.refused("is of a text that a model wrote or has read: read it", "doc")
    found = {name: given(line, row, key) for name, key in names.key_by_name}
    row = without(row, names.left_out)
    for name, value in found.items():
        if name in row:
            raise line.refused(f"another key gives the {name}: add `unread: [{name}]`", name)
        row[name] = value
    if names.of_messages and isinstance(row.get("messages"), list):
        row["messages"] = [without(message, names.of_messages) for message in row["messages"]]
    return line._replace(content=orjson.dumps(row))


def given(line: Line, row: Row, key: str) -> str | None:
    """A name that a line gives under another key, perhaps as a whole number."""
    value = known(line, row, key)
    is_exact = not isinstance(value, float) or (value.is_integer() and abs(value) <= LARGEST)
    if isinstance(value, bool | list | dict) or not is_exact:
        message = f"expected a text, null, or a whole number of at most {LARGEST}"
        raise line.refused(message, jsons.name_of(key))
    return written(value) or None


def known(line: Line, row: Row, key: str) -> Any:
    """What a line says under a key that the specification names. InputError where it has none: one
    that is misspelt would be in no line.
    """
    if key not in row:
        hint = f"`jq -c '.{key} //= null' FILE` writes null where there is nothing"
        raise line.refused(f"missing; {hint}", jsons.name_of(key))
    return row[key]


def without(row: Any, keys: Collection[str]) -> Any:
    """A line or a message without these keys; what is none stays as it is."""
    if not isinstance(row, dict):
        return row
    return {key: value for key, value in row.items() if key not in keys}


def is_table(spec: MessagesSpec) -> bool:
    """Whether conversations are rows of a table."""
    path = Path(spec.path)
    return path.is_dir() or path.suffix.lower() in lines.TABLES


def of_table(spec: MessagesSpec, form: Form) -> Form:
    """How rows are found in a table with a column `messages`, and perhaps others of these names."""
    reading = Reading(encoding=spec.encoding)
    found = {piece.path: piece for piece in pieces(Path(spec.path), reading)}
    there = columns(next(iter(found)), reading)
    column_by_key = {key: key for key in KEYS if key in there or key == "messages"}
    column_by_key |= {key: key for key in spec.secrets}
    column_by_key |= spec.key_by_name
    return form._replace(
        rows=partial(table_lines, column_by_key, (), reading, found),
        shards=shards_of(found, reading),
    )


def plain(messages: Sequence[Message]) -> Conversation:
    """A conversation for a model without a chat template: its messages, "role: content" each.

    A turn is a line: blanks stand for what breaks lines in a content.
    """
    text = ""
    places = []
    for role, content in messages:
        text += f"{role}: "
        places.append(Placed(len(text), len(text) + len(content), 0))
        text += f"{content.translate(BREAKS)}\n"
    return Conversation(text.removesuffix("\n"), places, [])


def plain_body(secrets: Sequence[str], line: Line, row: Row) -> Body:
    """The same for the form of a line; nobody's turns are told apart, so that it may be cut."""
    return body(lambda: plain, secrets, line, row)._replace(answers=None)


def renderer(name: str) -> Callable[[Sequence[Message]], Conversation]:
    """What makes a text of a conversation, within bounds of time and memory."""
    template = template_of(name, "corpus.template")
    return limited(little_memory(template.rendered, MEMORY))


def template_of(name: str, key: str) -> ChatTemplate:
    """The chat template of a pretrained model's folder, or of a model of the hub's cache.

    InputError where there is none, or it takes too long; `key`: what named it.
    """
    place = place_of(name)
    if place is None or not place.is_dir():
        raise InputError("is no folder of a pretrained model", key=key, value=name)
    importlib.import_module("transformers.utils.chat_template_utils")  # not in the bounds below
    try:
        return limited(little_memory(ChatTemplate, MEMORY))(place)
    except (TimeoutError, MemoryError):
        message = "has a chat template that takes too much time or memory"
        raise InputError(message, key=key, value=name) from None


def body(
    render: Callable[[], Callable[[Any], Conversation]],
    secrets: Sequence[str],
    line: Line,
    row: Row,
) -> Body:
    """The text of a line's conversation, with its gold spans and its assistants' turns.

    secrets: keys whose values are marked where a content has them, too.
    """
    lines.check_keys(line, row, KEYS | OF_MESSAGE | {*secrets})
    values = {key: known(line, row, key) for key in secrets}
    messages = checked(line, row["messages"])
    numbers = list(messages)
    try:
        conversation = render()([*messages.values()])
    except Refused as refused:
        number = None if refused.message is None else numbers[refused.message]
        key = "messages" if number is None else f"messages.{number}.content"
        raise line.refused(str(refused), key) from None
    except TimeoutError:
        raise line.refused("takes the chat template too long", "messages") from None
    spans: list[Span] = []
    for (number, message), place in zip(messages.items(), conversation.places, strict=True):
        key = f"messages.{number}.spans"
        raw = row["messages"][number]
        if isinstance(raw["content"], list) and len(raw["content"]) > 1 and raw.get("spans"):
            raise line.refused("count characters of one text, and the content has several", key)
        gold = lines.gold(line, raw.get("spans"), message.content, key)
        marks = united([list(span[:3]) for span in gold], marks_of(message.content, values))
        spans += shifted(line, [Span(*mark) for mark in marks], place, key)
    return Body(conversation.text, tuple(sorted(spans)), tuple(conversation.answers))


def checked(line: Line, raw: Any) -> dict[int, Message]:
    """The messages of a line that say something, by number; InputError where one is malformed."""
    if not isinstance(raw, list) or not raw:
        raise line.refused("expected a list of messages, one at least", "messages")
    messages = {}
    for number, message in enumerate(raw):
        key = f"messages.{number}"
        if not isinstance(message, dict):
            raise line.refused("expected an object with role and content", key)
        for name in message:
            if name not in OF_MESSAGE:
                names = ", ".join(sorted(OF_MESSAGE))
                hint = f"`unread: [{OF}{jsons.name_of(name) or 'KEY'}]` of the corpus leaves it out"
                raise line.refused(f"unknown key in a message: one of {names}; {hint}", key)
        role = message.get("role")
        if not isinstance(role, str):
            raise line.refused("expected a string", f"{key}.role")
        if not ROLE.fullmatch(role):
            problem = "expected a word such as system, user or assistant"
            raise line.refused(problem, f"{key}.role")
        content = message.get("content")
        if content is not None:
            messages[number] = Message(role, content_of(line, content, f"{key}.content"))
    if not messages:
        raise line.refused("has no message with a content", "messages")
    return messages


def content_of(line: Line, content: Any, key: str) -> str:
    """What a message says: a text, or several, with a line break between."""
    if isinstance(content, str):
        return content
    if not isinstance(content, list) or not content:
        raise line.refused("expected a string, or a list of texts", key)
    for part in content:
        is_text = isinstance(part, dict) and part.keys() == {"type", "text"}
        if not (is_text and part["type"] == "text" and isinstance(part["text"], str)):
            raise line.refused('has a part that is no text: {"type": "text", "text": "…"}', key)
    return "\n".join(part["text"] for part in content)


def shifted(line: Line, spans: Sequence[Span], place: Placed, key: str) -> Iterator[Span]:
    """Spans of a content as spans of the text that it stands in, without the blanks it lost."""
    shift = place.start - place.dropped
    for span in spans:
        start = max(place.start, span.start + shift)
        end = min(place.end, span.end + shift)
        if start >= end:
            raise line.refused("has nothing but blanks, which the chat template drops", key)
        yield span._replace(start=start, end=end)
