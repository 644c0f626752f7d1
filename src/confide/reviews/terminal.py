"""A review in a terminal, line by line, for machines without a browser."""

from collections.abc import Callable

from confide.output.escaping import terminal
from confide.reviews.draw import OTHER
from confide.reviews.session import Session, missed_strings, spans_shown

HELP = (
    "[[label: what was masked]], [[+label: what you marked]]",
    "Type what was missed, `LABEL: TEXT` or TEXT alone; an empty line: no more, next text.",
    ":vain N  span N of the policy is no secret, or is one again    :clear  no marks",
    ":back    the text before    :undo  take back    :quit  go on another time",
)
PROMPT = "> "


def review(session: Session, ask: Callable[[str], str], tell: Callable[[str], None]) -> None:
    """Show texts that were not read until there is none, or until the person quits."""
    for line in (*HELP, f"labels: {', '.join(session.review.labels)}"):
        tell(line)
    index = session.next_unread()
    while index is not None:
        for line in lines_of(session, index):
            tell(line)
        index = turn(session, index, ask, tell)


def turn(
    session: Session, index: int, ask: Callable[[str], str], tell: Callable[[str], None]
) -> int | None:
    """One line of the person's; the number of the text that comes next, None at the end."""
    try:
        line = ask(PROMPT).strip()
    except EOFError:
        return None
    problem: str | None = None
    if not line:
        session.read(index)
        return session.next_unread(index)
    if line == ":quit":
        return None
    if line == ":back":
        return max(0, index - 1)
    if line == ":undo":
        return index if (before := session.undo()) is None else before
    if line == ":clear":
        problem = session.remove(index, 0, len(session.text(index).text))
    elif line.startswith(":vain "):
        number = line.removeprefix(":vain ").strip()
        problem = "expected the number of a span"
        if number.isascii() and number.isdigit() and len(number) < 9:
            problem = session.in_vain(index, int(number))
    else:
        problem = missed_strings(session, index, *spoken(session, line))
    if problem is not None:
        tell(f"! {problem}")
    return index


def spoken(session: Session, line: str) -> tuple[str, str]:
    """What was typed, and its label."""
    label, colon, words = line.partition(":")
    if colon and label.strip() in session.review.labels:
        return words.strip(), label.strip()
    return line, OTHER


def lines_of(session: Session, index: int) -> list[str]:
    """Lines that show a text."""
    text = session.text(index)
    marks = session.marks(index)
    total = len(session.sample.texts)
    lines = [f"--- {index + 1} of {total}, {session.review.reviewed} read ---"]
    parts = []
    place = 0
    for start, end, label in spans_shown(text, marks):
        plus = "+" if (start, end, label) in marks.missed else ""
        parts += [text.text[place:start], f"[[{plus}{label}: {text.text[start:end]}]]"]
        place = max(place, end)
    parts.append(text.text[place:])
    lines += ["".join(parts)] if "\n" not in text.text else "".join(parts).split("\n")
    for number, (start, end, label) in enumerate(text.found):
        vain = " (in vain)" if number in marks.vain else ""
        lines.append(f"  {number}: {label}: {text.text[start:end]}{vain}")
    return [terminal(line) for line in lines]
