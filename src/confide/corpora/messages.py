"""The user's own conversations: JSON lines, or rows, with messages of a role and a content.

The keys of a line are "messages", "doc", "author", "domain" and "split", as the reader `lines` has
them, and those that the specification calls secret. The keys of a message are "role", "content" and
"spans", the gold spans of its content. A conversation is a document. The chat template of a
pretrained model makes its text, in which spans and the assistants' turns are found again. Without
one a message is "role: content" on one line of its own.
"""

import importlib
import re
from collections.abc import Callable, Iterator, Sequence
from functools import cache, partial
from pathlib import Path
from typing import Any

from confide.corpora import lines
from confide.corpora.dialogues import BREAKS
from confide.corpora.known_secrets import marks_of, united
from confide.corpora.lines import Body, Form, Line, Row
from confide.corpora.table import shards_of, table_lines
from confide.corpora.table_files import Reading, columns, pieces
from confide.errors import InputError
from confide.provenance.artefacts import place_of
from confide.runtime.limits import limited, little_memory
from confide.specs import MessagesSpec
from confide.text.chat_template import ChatTemplate, Conversation, Message, Placed, Refused
from confide.types import Record, Span

KEYS = frozenset(("messages", "doc", "author", "domain", "split"))
OF_MESSAGE = frozenset(("role", "content", "spans"))
ROLE = re.compile(r"[A-Za-z_]{1,32}")
MEMORY = 1 << 29  # bytes that rendering a conversation may take


def read(spec: MessagesSpec, raw: Path | None = None) -> Iterator[Record]:
    """All conversations; `raw` is not used: the spec names the file. InputError if there is none.

    Errors: InputError names file, line and key, never the text.
    """
    yield from lines.read(spec, raw, form_of(spec))


def form_of(spec: MessagesSpec) -> Form:
    """How a line is read. The template is opened once in each process, when it is first needed."""
    secrets = tuple(spec.secrets)
    parse = partial(lines.parsed, keys=KEYS | {*secrets}, body="messages")
    body_of = partial(plain_body, secrets)
    if spec.template is not None:
        body_of = partial(body, cache(partial(renderer, spec.template)), secrets)
    if is_table(spec):
        return of_table(spec, Form(parse, body_of))
    rows = partial(lines.raw_lines, encoding=spec.encoding)
    return Form(parse, body_of, rows=rows, shards=lines.shards_of(spec))


def is_table(spec: MessagesSpec) -> bool:
    """Whether conversations are rows of a table."""
    path = Path(spec.path)
    return path.is_dir() or path.suffix.lower() in lines.TABLES


def of_table(spec: MessagesSpec, form: Form) -> Form:
    """How rows are found in a table with a column `messages`, and perhaps others of these names."""
    reading = Reading(encoding=spec.encoding)
    found = {piece.path: piece for piece in pieces(Path(spec.path), reading)}
    there = columns(next(iter(found)), reading)
    wanted = [key for key in KEYS if key in there or key == "messages"]
    column_by_key = {key: key for key in (*wanted, *spec.secrets)}
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
    lines.check_keys(line, KEYS | OF_MESSAGE | {*secrets})
    known = {key: row.get(key) for key in secrets}
    messages = checked(line, row["messages"])
    try:
        conversation = render()(messages)
    except Refused as refused:
        key = "messages" if refused.message is None else f"messages.{refused.message}.content"
        raise line.refused(str(refused), key) from None
    except TimeoutError:
        raise line.refused("takes the chat template too long", "messages") from None
    spans: list[Span] = []
    for number, (message, place) in enumerate(zip(messages, conversation.places, strict=True)):
        key = f"messages.{number}.spans"
        given = lines.gold(line, row["messages"][number].get("spans"), message.content, key)
        marks = united(
            [[span.start, span.end, span.label] for span in given], marks_of(message.content, known)
        )
        spans += shifted(line, [Span(*mark) for mark in marks], place, key)
    return Body(conversation.text, tuple(sorted(spans)), tuple(conversation.answers))


def checked(line: Line, raw: Any) -> list[Message]:
    """The messages of a line; InputError where one is malformed."""
    if not isinstance(raw, list) or not raw:
        raise line.refused("expected a list of messages, one at least", "messages")
    messages = []
    for number, message in enumerate(raw):
        key = f"messages.{number}"
        if not isinstance(message, dict):
            raise line.refused("expected an object with role and content", key)
        for name in message:
            if name not in OF_MESSAGE:
                names = ", ".join(sorted(OF_MESSAGE))
                raise line.refused(f"unknown key in a message: one of {names}", key)
        for name in ("role", "content"):
            if not isinstance(message.get(name), str):
                raise line.refused("expected a string", f"{key}.{name}")
        if not ROLE.fullmatch(message["role"]):
            problem = "expected a word such as system, user or assistant"
            raise line.refused(problem, f"{key}.role")
        messages.append(Message(message["role"], message["content"]))
    return messages


def shifted(line: Line, spans: Sequence[Span], place: Placed, key: str) -> Iterator[Span]:
    """Spans of a content as spans of the text that it stands in, without the blanks it lost."""
    shift = place.start - place.dropped
    for span in spans:
        start = max(place.start, span.start + shift)
        end = min(place.end, span.end + shift)
        if start >= end:
            raise line.refused("has nothing but blanks, which the chat template drops", key)
        yield span._replace(start=start, end=end)
