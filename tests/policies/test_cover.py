"""The cover: what it hides, and that masking a covered secret changes nothing of what is left."""

import pytest
from hypothesis import assume, example, given, settings
from hypothesis import strategies as st

from confide.errors import InputError
from confide.files.io import read_json, write_json, write_jsonl
from confide.policies import merged_masks, policy, redacted_text
from confide.policies.cover import together
from confide.specs import CoverPolicySpec, WordListSpec
from confide.stages.word_list import word_list
from confide.types import MASK

PATTERNS = {"digit": r"\d", "capital": "[A-Z]"}
LETTERS = "aB1,. \n\t\u00a0<é"


def cover(**more):
    return policy(CoverPolicySpec(kind="cover", patterns=PATTERNS, **more))


def shown(text: str, **more) -> str:
    return redacted_text(text, cover(**more)(text))


def test_a_cover_runs_from_the_first_hit_to_the_last():
    text = "well, call Ann on Monday at 5pm please"
    assert shown(text) == f"well, call {MASK} please"
    assert shown(text, gap=0) == f"well, call {MASK} on {MASK} at {MASK} please"
    assert shown(text, gap=1) == f"well, call {MASK} please"
    assert shown("nothing to hide") == "nothing to hide"


def test_a_mask_is_a_hit_wherever_it_stands_in_a_word():
    assert shown(f"id:{MASK}, and 7") == MASK
    assert shown(f"id:{MASK}, and so on") == f"{MASK} and so on"


def test_familiar_words_are_no_hits_but_numbers_are(tmp_path):
    words = tmp_path / "words.json"
    write_json(words, ["hello", "b12", "may"])
    assert shown("Hello! B12 is for May", model=str(words)) == f"Hello! {MASK} is for May"
    assert shown(f"Hello {MASK}", model=str(words)) == f"Hello {MASK}"
    (tmp_path / "others.json").write_text('{"hello": 1}')
    with pytest.raises(InputError, match="list of words"):
        cover(model=str(tmp_path / "others.json"))


def naive(places: list[int], gap: int | None) -> list[set[int]]:
    """Runs as sets of places: two hits belong together if no longer gap lies between them."""
    runs: list[set[int]] = []
    for place in places:
        near = runs and (gap is None or len(set(range(max(runs[-1]) + 1, place))) <= gap)
        if near:
            runs[-1] |= set(range(max(runs[-1]), place + 1))
        else:
            runs.append({place})
    return runs


@given(st.sets(st.integers(0, 30)), st.none() | st.integers(0, 5))
def test_runs_are_those_of_a_naive_loop(places, gap):
    listed = sorted(places)
    assert [set(range(a, b + 1)) for a, b in together(listed, gap)] == naive(listed, gap)


@settings(max_examples=300)
@given(
    before=st.text(LETTERS, max_size=12),
    secret=st.text(LETTERS, min_size=1, max_size=8),
    after=st.text(LETTERS, max_size=12),
    gap=st.none() | st.integers(0, 2),
)
@example(before="a B a ", secret="a 1", after=" a", gap=1)
@example(before="id:", secret=" 1 ", after="a", gap=None)
@example(before="1a ", secret="a a", after=" B", gap=2)
def test_masking_a_covered_secret_changes_nothing_of_what_is_left(before, secret, after, gap):
    """The claim of docs/cover.md, for every text and every stretch of it that is covered whole."""
    text = before + secret + after
    start = len(before)
    end = start + len(secret)
    whole = any(a <= start and end <= b for a, b, *_ in cover(gap=gap)(text))
    assume(whole and MASK not in text)
    masked = before + MASK + after
    assert shown(masked, gap=gap) == shown(text, gap=gap)
    assert merged_masks(shown(masked, gap=gap)) == merged_masks(shown(text, gap=gap))


def test_a_list_has_the_words_that_a_public_text_repeats(tmp_path):
    rows = [
        {"text": "Where is my order, Ann? My order 17 is late", "split": "train"},
        {"text": "my ORDER - is 5th", "split": "train"},
        {"text": "late late late", "split": "test"},
    ]
    write_jsonl(tmp_path / "points.jsonl", rows)
    spec = WordListSpec(corpus="public", min_count=3)
    word_list(spec, points=tmp_path / "points.jsonl", output=tmp_path / "words.json")
    assert read_json(tmp_path / "words.json") == ["is", "my", "order"]
    with pytest.raises(InputError, match="no word occurs so often"):
        word_list(
            spec.model_copy(update={"min_count": 9}),
            points=tmp_path / "points.jsonl",
            output=tmp_path / "none.json",
        )
    assert not (tmp_path / "none.json").exists()
