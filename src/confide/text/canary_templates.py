"""Sentences of canaries, as params.yaml writes them: {6} stands for six digits, {token} for a token
that no text gives.
"""

import re
from typing import NamedTuple

from confide.specs import CanarySpec
from confide.text.planted import NEW_TOKEN

DIGITS = re.compile(r"\{(\d+)\}")
DIGITS_OR_TOKEN = re.compile(r"\{(\d+|token)\}")
MOST_DIGITS = 18  # of a 64-bit integer


class BadTemplate(ValueError):
    """A template that is none, and why."""


class Template(NamedTuple):
    """A canary's sentence: prefix, so many digits (0: a new token), suffix."""

    prefix: str
    digits: int
    suffix: str


class Parsed(NamedTuple):
    """The sentence of canaries of digits.

    answer: where the secret is only read, what stands behind it, if that has digits, too, which
    each canary has of its own; the suffix of the sentence ends before them.
    scored: where the secret is only read, the range of the sentence that is scored: from the first
    word that begins behind it.
    """

    sentence: Template
    answer: Template | None
    scored: tuple[int, int] | None


def parse_template(text: str, slot: re.Pattern[str] = DIGITS) -> Template:
    """ "My ID is: {6}" -> ("My ID is: ", 6, ""). BadTemplate unless there is exactly one slot."""
    parts = slot.split(text)
    if len(parts) != 3:
        other = ", or {token}" if slot is DIGITS_OR_TOKEN else ""
        raise BadTemplate(f"expected exactly one slot of digits such as {{6}}{other}")
    if NEW_TOKEN.search(text):
        raise BadTemplate("holds a character that stands for a new token")
    prefix, what, suffix = parts
    if what == "token":
        return Template(prefix, 0, suffix)
    digits = int(what)
    if not 1 <= digits <= MOST_DIGITS:
        raise BadTemplate(f"expected between 1 and {MOST_DIGITS} digits")
    return Template(prefix, digits, suffix)


def parse_canary(spec: CanarySpec) -> Parsed:
    """The sentence of canaries of digits; BadTemplate for one that they cannot have.

    "ID {6}, for box {4}." -> ("ID ", 6, ", for box "), (", for box ", 4, "."), (11, 24)
    """
    if not spec.input_only:
        return Parsed(parse_template(spec.template), answer=None, scored=None)
    slot = DIGITS.search(spec.template)
    behind = "" if slot is None else spec.template[slot.end() :]
    if not DIGITS.search(behind):
        sentence = parse_template(spec.template)
        return Parsed(sentence, answer=None, scored=scored_behind(sentence, None))
    answer = parse_template(behind)
    sentence = parse_template(spec.template.removesuffix(behind))._replace(suffix=answer.prefix)
    if answer.digits == sentence.digits:
        raise BadTemplate(
            "has an answer of as many digits as the secret, so that one could be the other"
        )
    return Parsed(sentence, answer, scored_behind(sentence, answer))


def scored_behind(sentence: Template, answer: Template | None) -> tuple[int, int]:
    """The range that is scored if a secret is not; BadTemplate unless an answer is within it."""
    behind = sentence.suffix
    if answer is not None:
        behind += "0" * answer.digits + answer.suffix
    begin = re.search(r"\s\S", behind)
    if begin is None:
        raise BadTemplate(
            "has no word behind its secret, which alone would be learned (input_only)"
        )
    first = begin.end() - 1
    if answer is not None and first > len(sentence.suffix):
        raise BadTemplate("has its answer in the word of its secret, which is not learned")
    before = len(sentence.prefix) + sentence.digits
    return before + first, before + len(behind)
