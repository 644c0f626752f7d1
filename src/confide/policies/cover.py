"""Cover whatever may be secret, from its first word to its last.

A word is a run of characters that are not blank. It is a hit where one of the patterns is found in
it, read by itself, or where it holds <MASK>. Words that the list of familiar ones has are no hits,
unless a digit is in them. Hits with at most `gap` words between them are covered together, gaps and
all; without a limit a text has one cover, from its first hit to its last.

Masking a covered secret changes nothing of the covered text: whichever words the secret was made
of become one word that holds <MASK>, a hit. It stands where they stood, so a cover begins and ends
with the same characters as before, and what it hides is one mask either way; between hits there
are no more words than there were. No word is judged by another. So what is learned of the covered
text tells nothing of a secret that is covered whole: docs/cover.md.
"""

import re
from pathlib import Path

from confide.errors import InputError
from confide.files.io import read_json
from confide.policies.regex import detector
from confide.policies.spans import Policy
from confide.specs import CoverPolicySpec, RegexPolicySpec
from confide.types import MASK, Span

WORD = re.compile(r"\S+")
EDGE = re.compile(r"^[\W_]+|[\W_]+$")  # punctuation around a word
DIGIT = re.compile(r"\d")
LABEL = "cover"


def cover(spec: CoverPolicySpec) -> Policy:
    """The policy of a specification; InputError where its words cannot be read."""
    suspicious = detector(RegexPolicySpec(kind="regex", patterns=spec.patterns))
    known = frozenset(words_of(Path(spec.model))) if spec.model is not None else frozenset()

    def hit(word: str) -> bool:
        if MASK in word:
            return True
        if bare(word) in known and not DIGIT.search(word):
            return False
        return suspicious(word)

    def find(text: str) -> list[Span]:
        words = [match.span() for match in WORD.finditer(text)]
        hits = [place for place, (start, end) in enumerate(words) if hit(text[start:end])]
        runs = together(hits, spec.gap)
        return [Span(words[first][0], words[last][1], LABEL) for first, last in runs]

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
    """A word as lists of words have it: without punctuation around it, whatever its case."""
    return EDGE.sub("", word).casefold()


def words_of(path: Path) -> list[str]:
    """A list of words from a JSON file."""
    words = read_json(path)
    if not isinstance(words, list) or not all(isinstance(word, str) for word in words):
        raise InputError("expected a JSON list of words", file=path)
    return words
