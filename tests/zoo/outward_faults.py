"""Faults in what is done with words and files that come from outside."""

from mutation import Fault, edit

WORDS, FILES = "words_from_outside_stay_words", "files_from_outside_say_one_thing"

FAULTS = [
    Fault(
        "HTML in Markdown",
        "Pages are rendered with HTML on, so a tag in a title is executed.",
        WORDS,
        edit(
            "confide.output.escaping:rendered",
            ("False", "True"),
        ),
    ),
    Fault(
        "raw cells",
        "A label that begins with = is written into a CSV file as it is.",
        WORDS,
        edit(
            "confide.output.escaping:cell",
            ('f"\'{line}"', "line"),
        ),
    ),
    Fault(
        "raw lines",
        "A name is printed with the terminal's own escapes and ends of lines in it.",
        WORDS,
        edit(
            "confide.output.escaping:terminal",
            ("visible(text)", "str(text)"),
        ),
    ),
    Fault(
        "a title is a template",
        "Braces of a title reach Snakemake as a wildcard.",
        WORDS,
        edit(
            "confide.output.escaping:category",
            ('"[{<]"', '"[<]"'),
        ),
    ),
    Fault(
        "the last of two keys wins",
        "A key that stands twice is found, and passed over.",
        FILES,
        edit(
            "confide.files.jsons:_once",
            ("raise Repeated(key)", "continue"),
        ),
    ),
    Fault(
        "keys counted by their usual spelling",
        "A key that is followed by a space is not counted, so that it may stand twice.",
        FILES,
        edit(
            "confide.files.jsons:in_order",
            (
                (
                    'line.count(b\'":\') == keys and b" :" not in line and (b"\\t" not in '
                    'line) and (b"\\r" not in line)'
                ),
                'line.count(b\'":\') == keys and b"\\t" not in line and (b"\\r" not in line)',
            ),
        ),
    ),
    Fault(
        "any model is a GPT-2",
        "The kind that a folder of weights says it is of is not looked at.",
        FILES,
        edit(
            "confide.models.pretrained:configured",
            ('kind != "gpt2"', "kind is None"),
        ),
    ),
]
