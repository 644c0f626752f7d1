"""Words from outside on their way to a reader: a function for each medium.

Titles, labels of secrets, names of domains, authors, runs and files may be written by anybody. In a
terminal they must not clear the screen or make a line of their own, in a page run nothing, in a
spreadsheet be no formula, in a figure no formula either, and in a rule of Snakemake no wildcard.
Everywhere a character that cannot be seen is spelled out: \\x1b, \\n, \\u202e.
"""

import csv
import html
import io
import re
import sys
import unicodedata
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, TextIO

# Categories of Unicode: controls, directions and joiners, halves, ends of lines.
UNSEEN = ("Cc", "Cf", "Cs", "Zl", "Zp")
# What means something in Markdown; an underscore within a word does not.
MARKUP = re.compile(r"[\\`*\[\]<>&|~#$!]|(?<![^\W_])_|_(?![^\W_])")
FORMULA = tuple("=+-@＝＋－＠")  # how a cell begins that a spreadsheet computes
STRING = re.compile(r'"(?:[^"\\]|\\.)*"')  # in JSON
TEMPLATE = re.compile(r"[{}<>&]")  # of Snakemake, or of HTML
JOINER = "\u2060"  # cannot be seen, and keeps what it stands between from being read as one
BASE64 = re.compile(r"[A-Za-z0-9+/]{5000}")  # a part of an image within a page


def visible(text: object) -> str:
    """Text on one line, with each character that cannot be seen spelled out as by Python."""
    line = str(text)
    if line.isprintable():
        return line
    return "".join(_spelled(character) for character in line)


def _spelled(character: str) -> str:
    """A character as it is shown: itself if it can be seen, else as Python would write it."""
    if unicodedata.category(character) not in UNSEEN:
        return character
    code = ord(character)
    if code < 0x80:
        return repr(character)[1:-1]
    if code <= 0xFF:
        return f"\\x{code:02x}"
    return f"\\u{code:04x}" if code <= 0xFFFF else f"\\U{code:08x}"


def terminal(text: object) -> str:
    """One line of a terminal, of a log, or of XML."""
    return visible(text)


def say(*lines: object, file: TextIO | None = None) -> None:
    """Print one line for each argument, whatever stands in it.

    That is to standard output if no file is given.
    """
    for line in lines:
        print(terminal(line), file=file or sys.stdout, flush=True)


def warn(*lines: object) -> None:
    """The same to standard error."""
    say(*lines, file=sys.stderr)


def markdown(text: object) -> str:
    """Text within a line or a cell of Markdown."""
    return MARKUP.sub(r"\\\g<0>", visible(text))


def code(text: object) -> str:
    """Text as code within Markdown, between backticks, which it must not end.

    Neither must it end the cell of a table.
    """
    return "`" + visible(text).replace("`", "'").replace("|", "¦") + "`"


def page(text: object) -> str:
    """Text within a page of HTML."""
    return html.escape(visible(text))


def rendered(text: str) -> str:
    """A page of ours in Markdown as HTML; tags in it are shown and do nothing."""
    from markdown_it import MarkdownIt

    return MarkdownIt("commonmark", {"html": False}).enable("table").render(text)


def cell(value: Any) -> Any:
    """A value of a CSV file, with an apostrophe before what a spreadsheet would compute.

    Numbers have none.
    """
    if not isinstance(value, str):
        return value
    line = visible(value)
    return f"'{line}" if line.lstrip().startswith(FORMULA) and not _number(line) else line


def _number(text: str) -> bool:
    try:
        float(text)
    except ValueError:
        return False
    return True


def table(head: Sequence[str], rows: Iterable[Sequence[Any]]) -> str:
    """Comma-separated text of rows: None is empty, numbers are in full precision."""
    out = io.StringIO()
    writer = csv.writer(out, lineterminator="\n")
    for row in (head, *rows):
        writer.writerow([cell(value) for value in row])
    return out.getvalue()


def table_of(rows: Sequence[Mapping[str, Any]]) -> str:
    """The same of rows with equal keys, which are the head."""
    return table(list(rows[0]), (list(row.values()) for row in rows))


def figure(text: object) -> str:
    """Text in a figure, one line for each of its own.

    Settings in which formulas are off are those of `report.style`.
    """
    return "\n".join(visible(line) for line in str(text).split("\n"))


def category(text: object) -> str:
    """A heading of Snakemake's report: no wildcard, and no end of the script that it stands in."""
    return re.sub(r"[{<]", rf"\g<0>{JOINER}", visible(text))


def parameter(text: str) -> str:
    """JSON that means the same, for a parameter of a rule: no wildcard and no tag in it."""
    return STRING.sub(lambda string: _escaped(string[0]), text)


def _escaped(string: str) -> str:
    """A string of JSON with Unicode escapes for what is read as markup or cannot be seen."""
    if string.isprintable() and not TEMPLATE.search(string):
        return string
    return "".join(
        f"\\u{ord(character):04x}" if _must_escape(character) else character for character in string
    )


def _must_escape(character: str) -> bool:
    is_unseen = unicodedata.category(character) in UNSEEN and ord(character) <= 0xFFFF
    return bool(TEMPLATE.match(character)) or is_unseen


def embedded(text: str) -> str:
    """A part of a page as raw HTML within reStructuredText, a template before it is read.

    docutils refuses lines of 10,000 characters; blanks within base64 mean nothing to a browser.
    """
    text = BASE64.sub("\\g<0>\n", text.replace("{", "&#123;").replace("}", "&#125;"))
    lines = text.splitlines()
    return "\n".join([".. raw:: html", "", *(f"   {line}" for line in lines)]) + "\n"
