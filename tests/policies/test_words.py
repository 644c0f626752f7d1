"""Lists of words as a policy, against a search that compares every piece of a text with every
word; what a list must hold; and that no word of it is ever told.
"""

import random
import re
import unicodedata
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from confide.errors import InputError
from confide.policies import policy, redacted_text
from confide.policies.words import LETTER, add, finder, folded
from confide.specs import WordsPolicySpec
from confide.types import MASK, Span

FIRST = "# 3f9a1c5e7b2d4860a1b2c3d4e5f60718\n"


def find_in(folder: Path, *phrases: str, label: str = "word"):
    path = folder / "names.txt"
    path.write_text(FIRST + "".join(f"{phrase}\n" for phrase in phrases), encoding="utf-8")
    return policy(WordsPolicySpec(kind="words", path=str(path), label=label))


def hits(find, text: str) -> list[str]:
    return [text[span.start : span.end] for span in find(text)]


def test_words_and_phrases_whatever_their_case(tmp_path):
    find = find_in(
        tmp_path, "Ann", "Ann Lee", "O'Brien", "AT&T", "C++", "Smith-Jones", label="name"
    )
    text = "ann, ANN  LEE's (O’BRIEN) annex at&t; c++ c+ smith–jones Smith Jones"
    assert hits(find, text) == ["ann", "ANN  LEE", "O’BRIEN", "at&t", "c++", "smith–jones"]
    assert find("ann")[0] == Span(0, 3, "name")


def test_letters_that_fold_to_two_move_no_span(tmp_path):
    find = find_in(tmp_path, "Strauß", "İpek", "José", "Σίσυφος")
    decomposed = unicodedata.normalize("NFD", "JOSÉ")
    text = f"ßßß STRAUSS, Strauß ßß {decomposed} İPEK josé ΣΊΣΥΦΟΣ"
    assert hits(find, text) == ["STRAUSS", "Strauß", decomposed, "İPEK", "josé", "ΣΊΣΥΦΟΣ"]


def test_scripts_without_spaces_have_no_edges(tmp_path):
    find = find_in(tmp_path, "王芳", "김철수", "สมชาย")
    assert hits(find, "我是王芳。김철수는 คุณสมชายครับ") == ["王芳", "김철수", "สมชาย"]


def test_phrases_that_overlap_are_one_span(tmp_path):
    assert hits(find_in(tmp_path, "a b", "b c", "c d e"), "x a b c d f") == ["a b c"]


def plain(text: str) -> str:
    small = text.translate(str.maketrans("’–", "'-")).casefold()
    return re.sub(r"\s+", " ", small)


def naive(phrases: list[str], text: str) -> set[int]:
    """Characters of every piece of the text that is a phrase and stands apart."""
    wanted = {plain(phrase) for phrase in phrases}
    letter = re.compile(LETTER)
    flagged: set[int] = set()
    for start in range(len(text)):
        for end in range(start + 1, len(text) + 1):
            piece = text[start:end]
            if piece != piece.strip() or plain(piece) not in wanted:
                continue
            before = start > 0 and letter.match(piece[0]) and letter.match(text[start - 1])
            after = end < len(text) and letter.match(piece[-1]) and letter.match(text[end])
            if not before and not after:
                flagged |= set(range(start, end))
    return flagged


WORDS = st.sampled_from(
    ["a", "B", "ab", "ß", "ss", "é", "'", "’", "-", "–", "&", "1", "王", "_", "Ж"]
)
PHRASES = st.lists(WORDS, min_size=1, max_size=3).flatmap(
    lambda words: st.sampled_from([" ".join(words), "".join(words)])
)


@given(
    st.lists(PHRASES.filter(lambda phrase: any(map(str.isalnum, phrase))), min_size=1, max_size=5),
    st.lists(st.one_of(WORDS, st.sampled_from([" ", "  ", "\n", "."])), max_size=14),
)
def test_the_same_is_found_as_by_comparing_all_pieces(phrases, pieces):
    text = "".join(pieces)
    tree = {}
    for phrase in phrases:
        add(tree, folded(phrase)[0])
    found = {place for span in finder(tree, "w")(text) for place in range(span.start, span.end)}
    assert found == naive(phrases, text), (phrases, text)


@given(st.lists(st.sampled_from(["ann", "lee", "mask", "and", ",", "bob"]), max_size=8))
def test_a_masked_word_leaves_no_trace(words):
    """Of words that overlap no other; <MASK> holds no word that reaches out of it."""
    tree = {}
    for phrase in ("ann", "lee bob", "mask"):
        add(tree, phrase)
    find = finder(tree, "name")
    text = " ".join(words)
    redacted = redacted_text(text, find(text))
    for start, end, *_ in find(text):
        masked = text[:start] + MASK + text[end:]
        assert redacted_text(masked, find(masked)) == redacted


def test_many_words_take_no_longer_than_few(tmp_path):
    """A hundred thousand of them, and a text of a million characters: hours, if each were tried."""
    draw = random.Random(0)
    syllables = ["ka", "li", "mo", "ter", "son", "ra", "vi", "el", "na", "dor"]
    phrases = {
        " ".join("".join(draw.choices(syllables, k=4)) for _ in range(2)) for _ in range(100_000)
    }
    find = find_in(tmp_path, *phrases)
    some = draw.sample(sorted(phrases), 1000)
    filler = " the quick brown fox jumps over " * 30
    assert hits(find, filler.join(some).upper()) == [phrase.upper() for phrase in some]


@pytest.mark.parametrize(
    ("content", "line", "message"),
    [
        (b"Zebulon\n", 1, "is not a random comment"),
        (b"", 1, "is not a random comment"),
        (b"# 00000000000000000000000000000000\nZebulon\n", 1, "is not a random comment"),
        (FIRST.encode(), None, "holds no words"),
        (FIRST.encode() + b"Ann\n\xff\n", None, "not UTF-8 at byte 39"),
        (FIRST.encode() + b"Ann\n\nZebulon <x>\n", 4, "holds < or >"),
        (FIRST.encode() + b"...\n", 2, "holds no letter or digit"),
        (FIRST.encode() + b"Zebulon " * 40 + b"\n", 2, "is longer than 200 characters"),
    ],
)
def test_what_cannot_be_used_is_one_line_without_a_word_of_it(tmp_path, content, line, message):
    path = tmp_path / "names.txt"
    path.write_bytes(content)
    with pytest.raises(InputError) as error:
        policy(WordsPolicySpec(kind="words", path=str(path)))
    said = str(error.value)
    where = f"{path}:{line}: " if line else f"{path}: "
    assert said.startswith(where) and message in said and "\n" not in said
    assert "Zebulon" not in said and "Ann" not in said


def test_a_list_that_is_not_there(tmp_path):
    with pytest.raises(InputError, match=r"names.txt: cannot be read: No such file"):
        policy(WordsPolicySpec(kind="words", path=str(tmp_path / "names.txt")))
