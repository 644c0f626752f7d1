"""The cover: what it hides, and that masking a covered secret changes nothing of what is left."""

import json
from functools import partial

import pytest
from hypothesis import assume, example, given, settings
from hypothesis import strategies as st

from confide.errors import InputError
from confide.files.io import read_json, write_json, write_jsonl
from confide.policies import merged_masks, policy, redacted_text
from confide.policies.cover import needs_blank, together
from confide.specs import CoverPolicySpec, UnionPolicySpec, WordListSpec
from confide.stages.word_list import word_list
from confide.types import MASK

PATTERNS = {"digit": r"\d", "capital": "[A-Z]"}
MARK = {"mark": "!"}  # a hit that may be nothing but a mark
LETTERS = "aB1,:.! \n\t\u00a0<é"


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
    assert shown(f"id:{MASK}, and so on") == f"{MASK}, and so on"


def test_marks_behind_a_cover_stay():
    assert shown("call Ann. now", gap=0) == f"call {MASK}. now"
    assert shown("is it 5?! no", gap=0) == f"is it {MASK}?! no"
    assert shown("(see Ann)", gap=0) == f"(see {MASK}"  # a bracket may be a secret's
    assert shown("Ann, Bo. Cy", gap=0) == MASK
    assert shown("by Ann Lee, M.D. now", gap=0, marks=",;:!?") == f"by {MASK} now"
    marks = policy(CoverPolicySpec(kind="cover", patterns=MARK))
    assert not marks("wait !!! please")  # nothing but marks is nothing to hide


def test_familiar_words_are_no_hits_but_numbers_are(tmp_path):
    words = tmp_path / "words.json"
    write_json(words, ["hello", "b12", "may"])
    assert shown("Hello! it is B12, for May", model=str(words)) == f"Hello! it is {MASK}, for May"
    assert shown(f"Hello, this is {MASK}", model=str(words)) == f"Hello, this is {MASK}"
    (tmp_path / "others.json").write_text('{"hello": 1}')
    with pytest.raises(InputError, match="list of words"):
        cover(model=str(tmp_path / "others.json"))


def test_a_familiar_word_beside_a_hit_is_one(tmp_path):
    """A verb that is a first name, too, or a surname that is a colour."""
    words = tmp_path / "words.json"
    write_json(words, ["mark", "white", "then"])
    assert shown("Mark my words, Ann White", model=str(words)) == f"Mark my words, {MASK}"
    assert shown("Then Mark White Aldale came", model=str(words)) == f"{MASK} came"
    assert shown("Mark White is open", model=str(words)) == "Mark White is open"
    assert shown("Then: Ann: White", model=str(words)) == f"Then: {MASK}"


def test_a_sentence_that_has_ended_makes_no_hits_of_the_next(tmp_path):
    words = tmp_path / "words.json"
    write_json(words, ["is", "grant", "hill", "sure", "i"])
    hides = partial(shown, model=str(words), gap=0)
    assert hides("Call Ann. Is it late?") == f"{MASK}. Is it late?"
    assert hides("ask Ann, Grant") == f"ask {MASK}"
    assert hides("to Grant. 836-5392") == f"to {MASK}"  # what a hit ends may be a name
    assert hides("Sure, Ann") == f"Sure, {MASK}"
    assert hides("it is. Sure! Ann") == f"it is. Sure! {MASK}"
    assert hides("in Hill, NY") == f"in {MASK}"
    assert hides("I'm late") == "I'm late"


@pytest.fixture(scope="module")
def familiar_words(tmp_path_factory):
    """A list that has every other word of the texts that are tried."""
    words = tmp_path_factory.mktemp("words") / "words.json"
    write_json(words, ["b", "ab", "b1", "é"])
    return str(words)


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


@settings(max_examples=1000)
@given(
    before=st.text(LETTERS, max_size=12),
    secret=st.text(LETTERS, min_size=1, max_size=8),
    after=st.text(LETTERS, max_size=12),
    gap=st.none() | st.integers(0, 2),
    more=st.sampled_from([{}, MARK]),
    marks=st.sampled_from([".,;:!?", ",;:!?", "", "."]),
)
@example(before="a B a ", secret="a 1", after=" a", gap=1, more={}, marks=".,;:!?")
@example(before="id:", secret=" 1 ", after="a", gap=None, more={}, marks=".,;:!?")
@example(before="1a ", secret="a a", after=" B", gap=2, more={}, marks=".,;:!?")
@example(before="1 a B ", secret="a", after=" B 1", gap=None, more={}, marks=".,;:!?")
@example(before="1 B ", secret="B", after=" B a", gap=0, more={}, marks=".,;:!?")
@example(before="1 a B: B ", secret="B: a", after=" B: 1", gap=None, more={}, marks=".,;:!?")
@example(before="", secret="B.", after=" B a 1", gap=2, more={}, marks=".,;:!?")
@example(before="a. ", secret="B", after=", 1", gap=0, more={}, marks=".,;:!?")
@example(before="1 ", secret="! ", after="! 1", gap=1, more=MARK, marks=".,;:!?")
def test_masking_a_covered_secret_changes_nothing_of_what_is_left(
    familiar_words, before, secret, after, gap, more, marks
):
    """The claim of docs/cover.md, for every text and every stretch of it that is covered whole."""
    patterns = PATTERNS | more
    spec = CoverPolicySpec(
        kind="cover", patterns=patterns, gap=gap, model=familiar_words, marks=marks
    )
    hides = policy(spec)
    text = before + secret + after
    start = len(before)
    end = start + len(secret)
    whole = any(a <= start and end <= b for a, b, *_ in hides(text))
    assume(whole and MASK not in text)
    masked = before + MASK + after
    left = redacted_text(text, hides(text))
    left_of_masked = redacted_text(masked, hides(masked))
    assert left_of_masked == left
    assert merged_masks(left_of_masked) == merged_masks(left)


@pytest.mark.parametrize(
    "pattern", [r"[A-Z]\w+ [A-Z]\w+", r"\s\d", r"(?<=ID )\d+", r"(?:a b|c\td)", r"(?:[ \n]+x){2}"]
)
def test_a_pattern_that_no_word_holds_is_refused(pattern):
    spec = CoverPolicySpec(kind="cover", patterns={"digit": r"\d", "never": pattern})
    with pytest.raises(InputError, match="patterns.never = .*needs a blank"):
        policy(spec)


@pytest.mark.parametrize("pattern", [r"a\s*b", r"(?:a b|c)", r"(?<! )\d", r"[ \d]", r"[^ ]"])
def test_a_pattern_that_a_word_may_hold_is_taken(pattern):
    assert not needs_blank(pattern)
    policy(CoverPolicySpec(kind="cover", patterns={"some": pattern}))


def test_covers_of_a_union_may_find_more_beside_a_masked_secret():
    """So parameters refuse it (docs/cover.md): what is claimed of one is not claimed of two."""
    texts = ["1 2 a C", f"1 {MASK} a C"]
    labels = PATTERNS.items()
    parts = [{"kind": "cover", "patterns": {label: pattern}, "gap": 1} for label, pattern in labels]
    both = policy(UnionPolicySpec(kind="union", policies=parts))
    shown_by_both = [redacted_text(text, both(text)) for text in texts]
    assert shown_by_both == [f"{MASK} a {MASK}", MASK]
    assert [shown(text, gap=1) for text in texts] == [MASK, MASK]


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


def test_a_list_may_have_what_a_published_vocabulary_writes_small(tmp_path):
    write_jsonl(tmp_path / "points.jsonl", [{"text": "my order", "split": "train"}])
    tokens = [
        "Ġgreat",
        "ĠGreat",
        "ĠMark",
        "ĠHey",
        "Ġann",
        "Ġhey",
        "Ġmark",
        "Ġ",
        "ous",
        "Ġ1st",
        "ĠNEW",
    ]
    vocabulary = {token: number for number, token in enumerate(tokens)}
    member = {"path": "gpt2-bpe/vocab.json", "text": json.dumps(vocabulary)}
    write_jsonl(tmp_path / "archive.jsonl", [member])
    spec = WordListSpec(corpus="public", min_count=1, archive="gpt2-bpe")
    files = {"points": tmp_path / "points.jsonl", "output": tmp_path / "words.json"}
    word_list(spec, archive=tmp_path / "archive.jsonl", **files)
    assert read_json(tmp_path / "words.json") == ["ann", "great", "hey", "my", "order"]
    write_jsonl(tmp_path / "archive.jsonl", [{"path": "merges.txt", "text": "a b"}])
    with pytest.raises(InputError, match=r"holds no vocab\.json"):
        word_list(spec, archive=tmp_path / "archive.jsonl", **files)
