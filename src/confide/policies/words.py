"""A list of the user's own words and phrases as a policy: customers' names, products, places.

Words match as whole words whatever their case (Unicode's case folding), composed or decomposed;
white space between the words of a phrase may be any, and typographic apostrophes and dashes count
as plain ones. Scripts that write no spaces between words, and Korean, whose particles follow
without one, have no edges: there a word is found wherever it stands. Whether a word is found
depends on it and the character beside it alone. Time is linear in the text, whatever the number of
words: each place of the text walks down a tree of phrases.

A list may tell more than the text that it protects. It is never copied, and no error shows a word
of it; but its digest stands in ledgers and certificates, so its first line must be random: nobody
can then try what the other lines may be.
"""

import re
import unicodedata
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from confide.errors import InputError
from confide.files.io import read_bytes
from confide.policies.spans import Policy, merge
from confide.specs import WordsPolicySpec
from confide.text.scripts import LETTER
from confide.types import Span

TOKEN = re.compile(rf"{LETTER}+|\S")
NEXT = re.compile(rf"(\s*)({LETTER}+|\S)")
TYPOGRAPHY = str.maketrans("’‘ʼ‐‑‒–—", "'''-----")
RANDOM = re.compile(r"#\s*[0-9A-Za-z+/=]{22,}\s*")
HOW = """{ echo "# $(openssl rand -hex 16)"; cat LIST; } > NEW"""
NOT_RANDOM = (
    "is not a random comment: certificates have the digest of the list, from which a short one "
    f"could be guessed without it; write {HOW}"
)
LONGEST = 200  # characters of a phrase
END = ""  # key of a node at which a phrase ends

Tree = dict[str, Any]  # token, with a blank before it if white space stands there -> what follows


def words(spec: WordsPolicySpec) -> Policy:
    """The policy of a list; InputError names the line of it that cannot be used."""
    tree: Tree = {}
    for phrase in read(Path(spec.path)):
        for form in ("NFC", "NFD"):
            add(tree, folded(unicodedata.normalize(form, phrase))[0])
    return finder(tree, spec.label)


def is_random(line: str) -> bool:
    """Whether the first line of a list is a comment that nobody can guess."""
    return RANDOM.fullmatch(line) is not None and len(set(line)) >= 8


def read(path: Path) -> Iterator[str]:
    """The phrases of a list, stripped; blank lines are left out."""
    try:
        lines = read_bytes(path).decode("utf-8-sig").splitlines()
    except UnicodeDecodeError as error:
        raise InputError(f"not UTF-8 at byte {error.start}", file=path) from None
    if not lines or not is_random(lines[0]):
        raise InputError(NOT_RANDOM, file=path, line=1)
    has_phrase = False
    for number, line in enumerate(lines[1:], 2):
        if phrase := line.strip():
            if fault := fault_of(phrase):
                raise InputError(fault, file=path, line=number)
            has_phrase = True
            yield phrase
    if not has_phrase:
        raise InputError("holds no words", file=path)


def fault_of(phrase: str) -> str | None:
    """Why a phrase cannot be looked for; None where it can be."""
    if len(phrase) > LONGEST:
        return f"is longer than {LONGEST} characters"
    if not any(map(str.isalnum, phrase)):
        return "holds no letter or digit"
    if "<" in phrase or ">" in phrase:
        return "holds < or >, which masks are written with"
    return None


def folded(text: str) -> tuple[str, list[int] | None]:
    """The text as words are compared, and the place in the text of each of its characters.

    None: each is where it was; a few characters, such as ß, become two.
    """
    plain = text.translate(TYPOGRAPHY)
    small = plain.casefold()
    if len(small) == len(plain):
        return small, None
    places = [place for place, sign in enumerate(plain) for _ in sign.casefold()]
    return small, places


def add(tree: Tree, phrase: str) -> None:
    """Add a folded phrase to a tree."""
    for blank, token in NEXT.findall(phrase):
        tree = tree.setdefault(f" {token}" if blank else token, {})
    tree[END] = True


def finder(tree: Tree, label: str) -> Policy:
    """The policy that flags each occurrence of each phrase; those that overlap are one span."""

    def ends(small: str, start: int, first: str) -> int:
        """Where the longest phrase that begins here ends; 0 if none does."""
        longest = 0
        end = start + len(first)
        node = tree[first]
        while node is not None:
            if END in node:
                longest = end
            follows = NEXT.match(small, end)
            if follows is None:
                break
            blank, token = follows.groups()
            node = node.get(f" {token}" if blank else token)
            end = follows.end()
        return longest

    def find(text: str) -> list[Span]:
        small, places = folded(text)
        spans = []
        for token in TOKEN.finditer(small):
            if token[0] in tree:
                start = token.start()
                if end := ends(small, start, token[0]):
                    if places is None:
                        spans.append(Span(start, end, label))
                    else:
                        spans.append(Span(places[start], places[end - 1] + 1, label))
        return merge(spans)

    return find
