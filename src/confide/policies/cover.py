"""Cover whatever may be secret, from its first word to its last.

A word is a run of characters that are not blank. It is suspect where one of the patterns is found
in it, read by itself, or where it holds <MASK>. A suspect is a hit unless the list of familiar
words has it, and then, too, if it stands beside a hit: "Mark" alone may be a verb that opens a
sentence, "Mark Aldale" is no verb. But no word is one for a hit that ended the sentence before. And
a familiar word only introduces the hit that follows if it ends with a colon ("Name: Aldale"), or if
it opens a sentence and ends with another mark ("Yes, Aldale"). A word with a digit or <MASK> is
never familiar. Hits with at most `gap` words between them are covered together, gaps and all;
without a limit a text has one cover, from its first hit to its last. Marks behind the last word of
a cover stay: they end a sentence, and seldom a secret.

Masking a covered secret changes nothing of the covered text, so what is learned of that tells
nothing of a secret that is covered whole: docs/cover.md has the proof.
"""

import re
from collections.abc import Callable
from pathlib import Path
from re import _constants as op  # type: ignore[attr-defined]
from re import _parser as parser  # type: ignore[attr-defined]
from typing import Any

from confide.errors import InputError
from confide.files.io import read_json
from confide.policies.regex import detector
from confide.policies.spans import Policy
from confide.specs import CoverPolicySpec, RegexPolicySpec
from confide.types import MASK, Span

WORD = re.compile(r"\S+")
EDGE = re.compile(r"^[\W_]+|(?<![\W_])[\W_]+$")  # punctuation around a word
SHORT = re.compile(r"['’](?:m|re|s|ve|ll|d)$")  # of a verb behind a word: "I'm", "that's"
ENDS = ".!?"  # of a sentence
DIGIT = re.compile(r"\d")
LABEL = "cover"
NEEDS_BLANK = "needs a blank, and finds nothing: a cover reads each word by itself"


def needs_blank(pattern: str) -> bool:
    """Whether a pattern that compiles matches nothing without a blank, or behind or before one."""
    return _needs_blank(parser.parse(pattern))


def _needs_blank(parts: Any) -> bool:
    return any(_is_blank(kind, value) for kind, value in parts)


def _is_blank(kind: Any, value: Any) -> bool:
    """Whether this part of a pattern needs one."""
    if kind is op.LITERAL:
        return chr(value).isspace()
    if kind is op.IN:
        return all(_only_blanks(*member) for member in value)
    if kind is op.SUBPATTERN:
        return _needs_blank(value[-1])
    if kind in (op.MAX_REPEAT, op.MIN_REPEAT, op.POSSESSIVE_REPEAT):
        least, _, parts = value
        return least > 0 and _needs_blank(parts)
    if kind is op.BRANCH:
        return all(map(_needs_blank, value[1]))
    if kind is op.ASSERT:
        return _needs_blank(value[1])
    return kind is op.ATOMIC_GROUP and _needs_blank(value)


def _only_blanks(kind: Any, value: Any) -> bool:
    """Whether this member of a set of characters is a blank."""
    if kind is op.LITERAL:
        return chr(value).isspace()
    return kind is op.CATEGORY and value is op.CATEGORY_SPACE


def suspicion(spec: CoverPolicySpec) -> Callable[[str], bool]:
    """Whether a pattern is found in a word; InputError for one that never is."""
    suspicious = detector(RegexPolicySpec(kind="regex", patterns=spec.patterns))
    for label, pattern in spec.patterns.items():
        if needs_blank(pattern):
            raise InputError(NEEDS_BLANK, key=f"patterns.{label}", value=pattern)
    return suspicious


def cover(spec: CoverPolicySpec) -> Policy:
    """The policy of a specification; InputError where its words cannot be read."""
    suspicious = suspicion(spec)
    known = frozenset(words_of(Path(spec.model))) if spec.model is not None else frozenset()
    marks = tuple(spec.marks)
    ends = tuple(mark for mark in marks if mark in ENDS)

    def suspect(word: str) -> bool:
        return MASK in word or suspicious(word)

    def familiar(word: str) -> bool:
        return bare(word) in known and MASK not in word and not DIGIT.search(word)

    def introduces(place: int, words: list[str]) -> bool:
        """Whether a familiar word is none of the hit that follows."""
        opens = place == 0 or words[place - 1].endswith((*ends, ":"))
        return words[place].endswith(":") or (opens and words[place].endswith(marks))

    def reach(place: int, first: int, last: int, words: list[str]) -> tuple[int, int]:
        """From which suspect to which one a strange word among them makes all of them hits."""
        start = place
        while start > first and not introduces(start - 1, words):
            start -= 1
        end = place
        while end < last and not words[end].endswith(ends):
            end += 1
        return start, end

    def hits(words: list[str]) -> list[int]:
        found: list[int] = []
        suspects = [place for place, word in enumerate(words) if suspect(word)]
        for first, last in together(suspects, gap=0):
            undecided = first
            for place in range(first, last + 1):
                if place >= undecided and not familiar(words[place]):
                    start, end = reach(place, undecided, last, words)
                    found.extend(range(start, end + 1))
                    undecided = end + 1
        return found

    def find(text: str) -> list[Span]:
        words = list(WORD.finditer(text))
        runs = together(hits([word[0] for word in words]), spec.gap)
        covers = [
            (words[first].start(), words[last].start() + len(words[last][0].rstrip(spec.marks)))
            for first, last in runs
        ]
        # a word may be nothing but marks
        return [Span(start, end, LABEL) for start, end in covers if start < end]

    return find


def together(places: list[int], gap: int | None) -> list[tuple[int, int]]:
    """First and last place of each run of places with at most `gap` others between two of them."""
    runs: list[tuple[int, int]] = []
    for place in places:
        if runs and (gap is None or place - runs[-1][1] <= gap + 1):
            runs[-1] = (runs[-1][0], place)
        else:
            runs.append((place, place))
    return runs


def bare(word: str) -> str:
    """A word as lists of words have it: without a verb's short form behind it, without punctuation
    around it, whatever its case.
    """
    return SHORT.sub("", EDGE.sub("", word)).casefold()


def words_of(path: Path) -> list[str]:
    """A list of words from a JSON file."""
    words = read_json(path)
    if not isinstance(words, list) or not all(isinstance(word, str) for word in words):
        raise InputError("expected a JSON list of words", file=path)
    return words
