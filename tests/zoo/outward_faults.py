"""Faults in what is done with words and files that come from outside."""

from mutation import Fault, edit

from confide.files import jsons
from confide.models import pretrained
from confide.output import escaping

WORDS, FILES = "words_from_outside_stay_words", "files_from_outside_say_one_thing"

FAULTS = [
    Fault(
        "HTML in Markdown",
        "Pages are rendered with HTML on, so a tag in a title is executed.",
        WORDS,
        edit(escaping.rendered, ('{"html": False}', '{"html": True}')),
    ),
    Fault(
        "raw cells",
        "A label that begins with = is written into a CSV file as it is.",
        WORDS,
        edit(escaping.cell, ('f"\'{words}" if', "words if")),
    ),
    Fault(
        "raw lines",
        "A name is printed with the terminal's own escapes and ends of lines in it.",
        WORDS,
        edit(escaping.terminal, ("visible(text)", "str(text)")),
    ),
    Fault(
        "a title is a template",
        "Braces of a title reach Snakemake as a wildcard.",
        WORDS,
        edit(escaping.category, ('r"[{<]"', 'r"[<]"')),
    ),
    Fault(
        "the last of two keys wins",
        "A key that stands twice is found, and passed over.",
        FILES,
        edit(jsons._once, ("raise Repeated(key)", "continue")),
    ),
    Fault(
        "keys counted by their usual spelling",
        "A key that is followed by a space is not counted, so that it may stand twice.",
        FILES,
        edit(jsons.in_order, ('b" :" not in line and ', "")),
    ),
    Fault(
        "any model is a GPT-2",
        "The kind that a folder of weights says it is of is not looked at.",
        FILES,
        edit(pretrained.configured, ('kind != "gpt2"', "kind is None")),
    ),
]
