"""Faults in what is done with words and files that come from outside."""

from mutation import slip

WORDS, FILES = "words_from_outside_stay_words", "files_from_outside_say_one_thing"

FAULTS = [
    slip(
        "HTML in Markdown",
        "Pages are rendered with HTML on, so a tag in a title is executed.",
        WORDS,
        "confide.output.escaping:rendered",
        ("False", "True"),
    ),
    slip(
        "raw cells",
        "A label that begins with = is written into a CSV file as it is.",
        WORDS,
        "confide.output.escaping:cell",
        ('f"\'{line}"', "line"),
    ),
    slip(
        "raw lines",
        "A name is printed with the terminal's own escapes and ends of lines in it.",
        WORDS,
        "confide.output.escaping:terminal",
        ("visible(text)", "str(text)"),
    ),
    slip(
        "a title is a template",
        "Braces of a title reach Snakemake as a wildcard.",
        WORDS,
        "confide.output.escaping:category",
        ('"[{<]"', '"[<]"'),
    ),
    slip(
        "the last of two keys wins",
        "A key that stands twice is found, and passed over.",
        FILES,
        "confide.files.jsons:_once",
        ("raise Repeated(key)", "continue"),
    ),
    slip(
        "keys counted by their usual spelling",
        "A key that is followed by a space is not counted, so that it may stand twice.",
        FILES,
        "confide.files.jsons:in_order",
        ('b" :" not in raw', "True"),
    ),
    slip(
        "any model is a GPT-2",
        "The kind that a folder of weights says it is of is not looked at.",
        FILES,
        "confide.models.pretrained:configured",
        ('kind != "gpt2"', "kind is None"),
    ),
]
