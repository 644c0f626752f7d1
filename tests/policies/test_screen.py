"""A screen never rules out a text in which the expression matches."""

import re

import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from confide.data.redaction import (
    column_finder,
    column_finder_of,
    finder,
    finder_of,
    sayer_of,
)
from confide.files import arrays
from confide.policies import detector, policy, screen_of, together_of
from confide.policies.at_once import at_once, plain
from confide.policies.regex import fault
from confide.policies.screen import screen
from confide.specs import RedactSpec, RegexPolicySpec

SIGNS = "abis K1_ .-\n\t\x1cé\u017f\u212a\u0663İ"
ATOMS = [
    *("a", "b", "K", "k", "s", "é", "İ", "_", " ", r"\.", "."),
    *(r"\d", r"\D", r"\w", r"\W", r"\s", r"\S", r"\b", r"\B", "^", "$", r"\A", r"\Z"),
    *("[ab]", "[^a]", r"[\d_]", r"[^\w]", "[a-é]", "[K-k]", r"[^\s\d]"),
    *("\u0131", "\u017f", "\u212a", "[\u0100-\uffff]", "[^\u212a]", "()", "(?=)"),
]
patterns = st.recursive(
    st.sampled_from(ATOMS),
    lambda inner: st.one_of(
        st.lists(inner, min_size=1, max_size=3).map("".join),
        st.lists(inner, min_size=2, max_size=3).map(lambda some: f"(?:{'|'.join(some)})"),
        st.tuples(
            inner,
            st.sampled_from(["*", "+", "?", "*?", "+?", "??", "{2}", "{1,2}", "{,2}", "*+", "?+"]),
        ).map(lambda pair: f"(?:{pair[0]}){pair[1]}"),
        inner.map(lambda one: f"(?={one})"),
        inner.map(lambda one: f"(?!{one})"),
        inner.map(lambda one: f"(?>{one})"),
        inner.map(lambda one: rf"({one})\1"),
        inner.map(lambda one: f"(?i:{one})"),
        inner.map(lambda one: f"(?ai:{one})"),
        st.sampled_from(["a", "[^b]", r"\d", "é", r"\b"]).map(lambda one: f"(?<={one})"),
        st.sampled_from(["a", "[^b]", r"\d", "é"]).map(lambda one: f"(?<!{one})"),
    ),
    max_leaves=6,
)


@settings(deadline=None, max_examples=200)
@given(
    patterns,
    st.sampled_from(["", "(?i)", "(?s)", "(?m)", "(?a)"]),
    st.lists(st.text(SIGNS, max_size=6), min_size=1, max_size=4),
)
def test_what_re_finds_is_never_ruled_out(pattern, flags, texts):
    try:
        matches = re.compile(flags + pattern).search
    except re.error:
        assume(False)
    may_match = screen([flags + pattern])
    if may_match is not None:
        may, surely = (known.tolist() for known in may_match(arrays.texts(texts)))
        assert not [text for text, ok in zip(texts, may, strict=True) if matches(text) and not ok]
        found = [any(match[0] for match in re.finditer(flags + pattern, text)) for text in texts]
        assert not [
            text for text, sure, yes in zip(texts, surely, found, strict=True) if sure > yes
        ]


@pytest.mark.parametrize(
    ("pattern", "found", "ruled_out"),
    [
        (r"\d{3}", "١٢٣", "12 3"),  # digits beyond ASCII
        (r"\bfoo\b", "foo-é", "fo o"),
        ("(?i)k", "\u212a", "j"),  # the sign of kelvin is a k
        ("(?i)\u212a", "k", "j"),
        ("(?i)\u0130d", "id", "ed"),
        ("(?i)[\u0100-\uffff]{3}", "sik", "abc"),
        (r"(?a)\S{3}", "ab\x1c", "ab cd"),
        ("a|ab", "xab", "xb"),
        (r"(?<=[.] )[A-Z]", "so. Then", "so Then"),
        (r"(?P<q>['\"]).(?P=q)", "'x'", "x"),
        (r"\w+@\w+", "é@é", "é at é"),
        ("[^\\W\\d]{2}", "éé", "1 2"),
    ],
)
def test_screens_rule_out_what_they_can(pattern, found, ruled_out):
    may_match = screen([pattern])
    assert re.search(pattern, found) and not re.search(pattern, ruled_out)
    assert may_match(arrays.texts([found, ruled_out])).may.tolist() == [True, False]


@settings(deadline=None, max_examples=200)
@given(
    st.sampled_from(["", r"(?=[A-Z0-9])", r"(?=[A-Z0-9])\b", r"(?<=[^.] )", r"\b"]),
    st.sampled_from([r"\d+", "[A-Z]{2}", r"[A-Z][\w-]+ [A-Z]", "a.b", r"(?:7|[A-Z]\b)", "[^a]b"]),
    st.lists(st.text("aAbZ7. -\n\x1f_", max_size=8), min_size=1, max_size=4),
)
def test_of_ascii_all_is_known_of_usual_patterns(opening, pattern, texts):
    may, surely = screen([opening + pattern])(arrays.texts(texts))
    found = [re.search(opening + pattern, text) is not None for text in texts]
    ahead = "?=" in opening and pattern in ("a.b", "[^a]b", r"(?:7|[A-Z]\b)")
    if not ahead:
        assert may.tolist() == surely.tolist() == found
    assert not [yes for yes, no in zip(found, ~may, strict=True) if yes and no]


def test_an_expression_that_is_too_large_has_no_screen():
    assert screen(["((?:a{50}){50}b){50}"]) is None


def test_presets_and_unions_have_screens_and_other_policies_have_none():
    numbers = {"kind": "regex", "patterns": {"digit": r"\d"}}
    mail = {"kind": "preset", "names": ["email"]}
    both = {"kind": "union", "policies": [numbers, mail]}
    spec = RedactSpec(policy=both, conservative={"kind": "everything"})
    may_match = screen_of(spec.policy)
    assert may_match(arrays.texts(["a@b.org", "7", "none"])).may.tolist() == [True, True, False]
    assert screen_of(spec.conservative) is None


def test_a_number_that_fails_its_check_is_not_found_by_its_shape():
    card = {"kind": "preset", "names": ["card"]}
    spec = RedactSpec(policy=card, conservative=card)
    find = column_finder_of(spec)
    wrong, right = find(arrays.texts(["4111 1111 1111 1112", "4111 1111 1111 1111"]))
    assert wrong == {} and right["conservative"]


@settings(deadline=None, max_examples=60)
@given(st.lists(st.text("aB1 9-é\n", max_size=12), max_size=6), st.sampled_from([0.0, 0.5]))
def test_screened_policies_say_what_they_say_of_each_text(texts, gamma):
    """Of many texts at once as of one, and as without a screen."""
    tables = {
        "policy": {"number": r"\b\d+(?:-\d+)*\b", "name": "[A-Z][a-z]?"},
        "conservative": {"digit": r"\d", "accent": "é"},
    }
    specs = {name: {"kind": "regex", "patterns": table} for name, table in tables.items()}
    spec = RedactSpec.model_validate(specs | {"miss_rate": gamma})
    find = column_finder_of(spec)
    found = find(arrays.texts(texts))
    alone = [find(arrays.texts([text]))[0] for text in texts]
    assert found == alone == list(map(finder_of(spec), texts))
    assert found == sayer_of(spec)(arrays.texts(texts)).findings()
    if not gamma:
        plain = column_finder(
            policy(RegexPolicySpec(**specs["policy"])),
            detector(RegexPolicySpec(**specs["conservative"])),
        )
        assert found == plain(arrays.texts(texts))


# Patterns that mean the same to RE2, but for some.
alike = st.recursive(
    st.sampled_from(
        ["a", "b", "1", " ", "[ab]", "[^a]", r"\d", r"\w", r"\s", "a", ".", r"\b", r"\B"]
    ),
    lambda inner: st.one_of(
        st.lists(inner, min_size=2, max_size=3).map("".join),
        st.lists(inner, min_size=2, max_size=3).map(lambda some: f"(?:{'|'.join(some)})"),
        st.tuples(
            inner, st.sampled_from(["*", "+", "?", "*?", "+?", "??", "{2}", "{1,2}", "{,2}?"])
        ).map(lambda pair: f"(?:{pair[0]}){pair[1]}"),
        inner.map(lambda one: f"(?=[ab1])a{one}"),
        inner.map(lambda one: f"(?=[a]){one}"),
    ),
    max_leaves=6,
)


def found_at_once(pattern: str) -> bool:
    return not fault(pattern) and at_once([pattern]) is not None


known = alike.filter(found_at_once)
tables = st.one_of(
    st.lists(known, min_size=1, max_size=3),
    known.map(lambda one: [f"(?s){one}"]),
    known.map(lambda one: f"(?P<x>{one})").filter(found_at_once).map(lambda one: [one]),
)


@settings(deadline=None, max_examples=400)
@given(tables, st.lists(st.text("ab1 -\n\t\x1c", max_size=9), max_size=5))
def test_what_is_found_at_once_is_what_re_finds(some, texts):
    """The same spans and labels, not only the same texts."""
    table = {f"l{number}": pattern for number, pattern in enumerate(some)}
    spec = RegexPolicySpec(kind="regex", patterns=table)
    together = together_of(spec)
    assert together is not None
    find = policy(spec)
    found = together(arrays.texts(texts))
    columns = (found.text, found.start, found.end, found.label)
    spans = [[] for _ in texts]
    for text, start, end, label in zip(*(column.tolist() for column in columns), strict=True):
        spans[text].append((start, end, f"l{label}", 1.0))
    assert spans == [list(map(tuple, find(text))) for text in texts]


@pytest.mark.parametrize(
    "pattern",
    [
        r"\b\d{3}-\d{5}\b",
        r"(?=[A-Z0-9])\b[A-Z][a-z]+(?: [A-Z][a-z]+)+",
        "a+?b",
        "(?:ab|a)(?:c|bcd)?",
        r"[\w.'’-]+@[a-z]+",
    ],
)
def test_ordinary_patterns_are_looked_for_at_once(pattern):
    text = "ab a Ann Lee 123-45678 aaab abcd a.b@c X. Y"
    found = at_once([pattern])(arrays.texts(["", text]))
    assert found.text.tolist() == [1] * len(found.text) and len(found.text)
    places = list(zip(found.start.tolist(), found.end.tolist(), strict=True))
    assert places == [match.span() for match in re.finditer(pattern, text)]


@pytest.mark.parametrize(
    "pattern", ["(?<=x)a", "(?!b)a", "(?:a*)+b", r"(a)\1", "(?i:k)", "^a", "a$", "(?>a|ab)", "a*+b"]
)
def test_patterns_that_may_mean_something_else_are_left_to_re(pattern):
    assert at_once([pattern]) is None


def test_a_pattern_with_a_scan_of_its_own_is_left_to_re():
    """What it finds uses no text up that another one finds, too."""
    for own in (r"(?P<x>ID-\d+)", r"(?s)ID-\d+"):
        table = {"id": own, "word": r"\d+ [A-Z][a-z]+"}
        spec = RegexPolicySpec(kind="regex", patterns=table)
        assert together_of(spec) is None
        assert policy(spec)("Ask ID-123 Smith now") == [(4, 16, "id", 1.0)]


def test_texts_beyond_ascii_and_with_the_bytes_of_marks_are_left_to_re():
    texts = arrays.texts(["a 1", "é 1", "\x02 1", "\x03", "\x01"])
    assert plain(texts).tolist() == [True, False, False, False, True]


def test_secret_groups_and_many_patterns_are_left_to_re():
    named = RegexPolicySpec(kind="regex", patterns={"id": r"id (?P<secret>\d+)"})
    assert together_of(named) is None
    many = {f"l{number}": rf"{number}\d" for number in range(10)}
    assert together_of(RegexPolicySpec(kind="regex", patterns=many)) is None


TABLES = {"order": r"\b\d{2}-\d+\b", "name": "[A-Z][a-z]+(?: [A-Z][a-z]+)*", "e": "é+"}


@settings(deadline=None, max_examples=150)
@given(st.lists(st.text("aAb 12-é\x02\n", max_size=14), max_size=6))
def test_what_is_said_at_once_is_what_is_said_of_each(texts):
    conservative = {"digit": r"\d", "space": r"(?<!a) b"}
    for only in (conservative, {"digit": conservative["digit"]}):
        spec = RedactSpec(
            policy={"kind": "regex", "patterns": TABLES},
            conservative={"kind": "regex", "patterns": only},
        )
        find = finder(policy(spec.policy), detector(spec.conservative))
        said = sayer_of(spec)(arrays.texts(texts))
        assert said.findings() == list(map(find, texts))
        assert not said.failed.any()
