"""A pretrained model's chat template, which makes one text of the messages of a conversation.

A template is a foreign file of the language Jinja. It runs in transformers' sandbox, which has no
files, no network and no code; whoever calls bounds its time and memory. It sees the messages, the
names of the special tokens and a day that is always the same, so that a text depends on nothing but
its own messages.

Where a content stands in the text is not searched for: the template is asked once more for the same
roles with marks in place of contents. What stands between the marks is the template's own, and a
text is taken only if it is these parts with the contents between them.
"""

import operator
import re
from collections.abc import Callable, Iterator, Sequence
from datetime import datetime
from functools import lru_cache
from pathlib import Path
from typing import Any, NamedTuple

from confide.errors import InputError
from confide.files.io import read_bytes, read_object
from confide.text.tokenizer import described_in

FILES = ("chat_template.jinja", "tokenizer_config.json")
KEY = "chat_template"
LONGEST = 1 << 18  # characters of a template
ADDED = 1 << 20  # characters that a template may add to a conversation
DAY = datetime(2024, 7, 26)  # what a template that asks for the day is told
LARGEST = 1 << 64  # factor of a product of two such numbers
ARITHMETIC: dict[str, Callable[[Any, Any], Any]] = {"*": operator.mul, "**": operator.pow}
ASSISTANT = "assistant"
ROLES = (
    ("user", ASSISTANT),
    ("user", ASSISTANT, "user", ASSISTANT),
    ("system", "user", ASSISTANT),
)
MARK = "\ue000{}\ue001"  # stands for a content; of private use
MARKS = re.compile("\ue000([0-9]+)\ue001")
NAMED = re.compile(r"[a-z]+_token")  # keys of tokenizer_config.json that name special tokens


class Message(NamedTuple):
    """One message of a conversation."""

    role: str
    content: str


class Placed(NamedTuple):
    """Where a content stands in the text, and how many blanks before it the template dropped."""

    start: int
    end: int
    dropped: int


class Conversation(NamedTuple):
    """A rendered conversation."""

    text: str
    places: list[Placed]  # of each message
    # of each assistant's turn the range of its content and of the control string that closes it
    answers: list[tuple[int, int]]


class Refused(ValueError):
    """A conversation that cannot be rendered, in words without any of its text.

    `message` is the number of the message that is at fault, if one is.
    """

    def __init__(self, reason: str, message: int | None = None):
        super().__init__(reason)
        self.message = message


class ChatTemplate:
    """The template of a pretrained model's folder.

    `control`: the model's tokens that the template writes, in the order of their numbers.
    InputError where the folder has no template, or one that is no template.
    """

    def __init__(self, folder: Path):
        self.file, self.source = source_of(folder)
        self.names = special_names(folder)
        self._render = compiled(self.source, self.file)
        self.parts = lru_cache(maxsize=1024)(self._checked_parts)
        added = sorted(described_in(folder)["added_tokens"], key=lambda token: token["id"])
        self.added = [token["content"] for token in added if token["content"]]
        special = {token["content"] for token in added if token["special"]}
        said = [self.source, *(text for name, text in self.names.items() if name in self.source)]
        written = list(self._samples())
        self.control = [
            token
            for token in self.added
            if any(token in text for text in written)
            or (token in special and any(token in text for text in said))
        ]
        self.borders = borders(self.control)

    def _samples(self) -> Iterator[str]:
        """What the template writes beside contents in a few short conversations."""
        for roles in ROLES:
            try:
                yield "".join(self._parts(roles)[0])
            except Refused:
                continue

    def rendered(self, messages: Sequence[Message]) -> Conversation:
        """The text of a conversation, and where its contents stand in it.

        Refused where the template refuses it, leaves a content out, repeats or changes one, and
        where a content would forge a turn: where it holds a control string.
        """
        for number, message in enumerate(messages):
            for forged in self.borders.findall(message.content):
                raise Refused(
                    f"holds the control string {forged}, which would forge a turn", number
                )
        parts, order = self.parts(tuple(message.role for message in messages))
        text = self._text(messages)
        shown, places = filled(text, parts, [messages[number].content for number in order])
        if shown < len(order):
            raise Refused(f"is not given by {self.file.name} as it is", order[shown])
        if count(self.borders, text) != sum(count(self.borders, part) for part in parts):
            raise Refused("has a control string where a content ends, which would forge a turn")
        answers = []
        for number, part, place in zip(order, parts[1:], places, strict=True):
            if messages[number].role == ASSISTANT:
                closing = re.match(rf"\s*(?:{self.borders.pattern})", part)
                answers.append((place.start, place.end + (len(closing[0]) if closing else 0)))
        place_of = dict(zip(order, places, strict=True))
        return Conversation(text, [place_of[number] for number in range(len(messages))], answers)

    def _parts(self, roles: tuple[str, ...]) -> tuple[list[str], list[int]]:
        """What the template writes before, between and after contents, and the contents' order."""
        marked = [Message(role, MARK.format(number)) for number, role in enumerate(roles)]
        text = self._text(marked)
        pieces = MARKS.split(text)
        order = [int(number) for number in pieces[1::2]]
        for number, role in enumerate(roles):
            if (times := order.count(number)) != 1:
                verb = "leaves out" if times == 0 else "repeats"
                said = f"cannot be rendered: {self.file.name} {verb} what a {role} says here"
                raise Refused(said, number)
        parts = pieces[::2]
        if sum(map(len, parts)) > ADDED:
            raise Refused(f"cannot be rendered: {self.file.name} adds more than {ADDED} characters")
        return parts, order

    def _checked_parts(self, roles: tuple[str, ...]) -> tuple[list[str], list[int]]:
        """The same; Refused where a token of the model is in them that is no control string."""
        parts, order = self._parts(roles)
        written = "".join(parts)
        for token in self.added:
            if token in written and token not in self.control:
                said = f"cannot be rendered: {self.file.name} writes {token} for some roles alone"
                raise Refused(said)
        return parts, order

    def _text(self, messages: Sequence[Message]) -> str:
        """What the template makes of messages; Refused in words that are the template's own."""
        try:
            return self._render([message._asdict() for message in messages], self.names)
        except TimeoutError:
            raise
        except MemoryError:
            raise Refused(f"cannot be rendered: {self.file.name} takes too much memory") from None
        except Exception as error:  # whatever a foreign program does
            line = line_of(error)
            where = self.file.name if line is None else f"{self.file.name}:{line}"
            said = str(error)
            # what else it says may be text of the conversation
            reason = said if said and said in self.source else type(error).__name__
            raise Refused(f"is refused by {where}: {reason}") from None


def source_of(folder: Path) -> tuple[Path, str]:
    """The file that has a folder's template, and the template."""
    file = folder / FILES[0]
    if file.is_file():
        text = read_bytes(file).decode("utf-8", "replace")
    else:
        file = folder / FILES[1]
        template = read_object(file)[KEY] if file.is_file() and KEY in read_object(file) else None
        if isinstance(template, list):  # several, by name
            named = {
                entry.get("name"): entry.get("template")
                for entry in template
                if isinstance(entry, dict)
            }
            template = named.get("default")
        if not isinstance(template, str):
            raise InputError("holds no chat template", file=folder, key=KEY)
        text = template
    if len(text) > LONGEST:
        message = f"has more than {LONGEST} characters"
        raise InputError(message, file=file, key=KEY)
    return file, text


def special_names(folder: Path) -> dict[str, str]:
    """Special tokens by the names that templates have for them, such as eos_token."""
    place = folder / FILES[1]
    config = read_object(place) if place.is_file() else {}
    names = {}
    for name, token in config.items():
        content = token.get("content") if isinstance(token, dict) else token
        if NAMED.fullmatch(name) and isinstance(content, str):
            names[name] = content
    return names


def compiled(source: str, file: Path) -> Callable[[list[dict[str, str]], dict[str, str]], str]:
    """A function from messages and names of special tokens to a text.

    InputError for what is no template.
    """
    from jinja2 import TemplateError
    from transformers.utils.chat_template_utils import _compile_jinja_template

    sandbox = _compile_jinja_template("").environment
    # of constants, too, which would else be computed when the template is compiled
    sandbox.intercepted_binops = frozenset(ARITHMETIC)
    sandbox.call_binop = _arithmetic
    try:
        template = sandbox.from_string(source, {"strftime_now": DAY.strftime})
    except (TemplateError, RecursionError) as error:
        raise InputError(
            f"is no chat template: {type(error).__name__}",
            file=file,
            line=getattr(error, "lineno", None),
        ) from None

    def render(messages: list[dict[str, str]], names: dict[str, str]) -> str:
        return template.render(
            messages=messages, tools=None, documents=None, add_generation_prompt=False, **names
        )

    return render


def _arithmetic(context: object, sign: str, left: Any, right: Any) -> Any:
    """The result of an operator; SecurityError for numbers that would keep one step busy for long.

    No limit of time is heard within a step.
    """
    from jinja2.sandbox import SecurityError

    numbers = [number for number in (left, right) if isinstance(number, int)]
    if sign == "**" or sum(abs(number) > LARGEST for number in numbers) == 2:
        raise SecurityError("numbers are too large")
    return ARITHMETIC[sign](left, right)


def filled(text: str, parts: list[str], contents: list[str]) -> tuple[int, list[Placed]]:
    """Where contents stand in a text of these parts with contents between them.

    Returned is also how many contents fit; fewer than all if the text is another. Templates may
    drop blanks around a content.
    """
    places: list[Placed] = []
    if not text.startswith(parts[0]):
        return 0, places
    end = len(parts[0])
    for content, following in zip(contents, parts[1:], strict=True):
        last = len(places) == len(contents) - 1
        for form in (content, content.strip(), content.lstrip(), content.rstrip()):
            start = end
            stop = start + len(form) + len(following)
            fits = text.startswith(form, start) and text.startswith(following, start + len(form))
            if fits and (not last or stop == len(text)):
                break
        else:
            return len(places), places
        dropped = len(content) - len(content.lstrip()) if form == form.lstrip() else 0
        places.append(Placed(start, start + len(form), dropped))
        end = stop
    return len(places), places


def borders(strings: Sequence[str]) -> re.Pattern[str]:
    """Finds any of some strings, the longest that stands at a place; nothing where there is none.

    It has no group.
    """
    longest = sorted(strings, key=len, reverse=True)
    return re.compile("|".join(map(re.escape, longest)) or r"(?!)")


def count(pattern: re.Pattern[str], text: str) -> int:
    """How often a pattern is found in a text."""
    return sum(1 for _ in pattern.finditer(text))


def line_of(error: BaseException) -> int | None:
    """The line of a template in which an error arose."""
    trace = error.__traceback__
    line = None
    while trace is not None:
        if trace.tb_frame.f_code.co_filename == "<template>":
            line = trace.tb_lineno
        trace = trace.tb_next
    return line
