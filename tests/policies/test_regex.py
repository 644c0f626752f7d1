"""The combined scan against one scan per pattern; what is refused; the tables of params.yaml on
single turns.
"""

import re
from functools import cache
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from confide.config.params import load
from confide.errors import InputError
from confide.policies import POLICIES, detector, policy
from confide.specs import EverythingPolicySpec, RegexPolicySpec
from confide.types import Span

ROOT = Path(__file__).parents[2]


@cache
def tables():
    """Policies of params.yaml and of the files that it includes."""
    return load(ROOT / "params.yaml").policies


def table(name: str):
    """One of them."""
    return policy(tables()[name])


def regex(**patterns: str):
    return policy(RegexPolicySpec(kind="regex", patterns=patterns))


@given(st.text("a1-B ", max_size=30))
def test_disjoint_patterns_together_find_what_each_finds_alone(text):
    patterns = {"number": r"(?=[A-Z0-9])\b\d+\b", "capital": r"(?=[A-Z0-9])\bB+\b"}
    alone = [
        Span(*m.span(), label)
        for label, pattern in patterns.items()
        for m in re.finditer(pattern, text)
    ]
    assert regex(**patterns)(text) == sorted(alone)


@pytest.mark.parametrize(
    "patterns",
    [
        {"a": r"\bx|y", "b": r"\bz"},  # the \b of the first belongs to one alternative only
        {"a": r"(?=[ab])a", "b": r"(?=[ac])c"},
        {"a": r"(?=[x])?xy", "b": r"(?=[x])?z"},
        {"a": r"\b(?:x|y)", "b": r"\b[z|]"},
    ],
)
@given(text=st.text("xyzabc| ", max_size=12))
def test_shared_conditions_do_not_change_the_meaning(patterns, text):
    alone = {
        (m.span(), label) for label, pattern in patterns.items() for m in re.finditer(pattern, text)
    }
    assert {((s.start, s.end), s.label) for s in regex(**patterns)(text)} == alone
    assert detector(RegexPolicySpec(kind="regex", patterns=patterns))(text) == bool(alone)


def test_first_label_wins_at_the_same_character():
    assert regex(long=r"\d{3}", short=r"\d+")("12345") == [Span(0, 3, "long"), Span(3, 5, "short")]


def test_secret_group_narrows_the_span():
    found = regex(code=r"code (?P<secret>\d+)", name=r"name (?P<secret>\w+)|anon", word=r"xyz")(
        "code 12, name Al, anon xyz"
    )
    assert found == [
        Span(5, 7, "code"),
        Span(14, 16, "name"),
        Span(18, 22, "name"),
        Span(23, 26, "word"),
    ]


def test_patterns_that_cannot_be_combined_are_scanned_apart():
    patterns = {"twice": r"(\w)\1", "any": r"(?i)hello", "number": r"\d"}
    found = regex(**patterns)("HeLlo aa 7 bb")
    fires = detector(RegexPolicySpec(kind="regex", patterns=patterns))
    assert [fires(text) for text in ("HELlo", "x7", "aa", "abc")] == [True, True, True, False]
    assert found == [
        Span(0, 5, "any"),
        Span(6, 8, "twice"),
        Span(9, 10, "number"),
        Span(11, 13, "twice"),
    ]
    assert regex(quote=r"(?P<q>['\"])(?P<secret>\w+)(?P=q)")("say 'x'") == [Span(5, 6, "quote")]


@pytest.mark.parametrize(
    "pattern", ["(", "(?P<secret>a)(?P<secret>b)", "[(?P<secret>]z", r"\d*", "[z-a]"]
)
def test_unusable_pattern_is_refused_by_label(pattern):
    with pytest.raises(InputError, match=r"patterns\.bad"):
        regex(good="a", bad=pattern)


def test_everything_flags_every_text():
    flag = POLICIES["everything"](EverythingPolicySpec(kind="everything"))
    assert flag("abc") == [Span(0, 3, "everything")]
    assert flag("")  # an empty text counts as flagged


HITS = {
    "name": [
        "USR: Yes, {John Smith}.",
        "USR: Yep - I'm {Mary O'Neil}.",
        "USR: {Anne-Marie Li}",
        "USR: {Ed Mcdonald} ",
    ],
    "address": [
        "USR: {19848 Jennifer Views Suite 333 New Sandraport, DE 43857}.",
        "USR: Ok, it is {322 Khan Mews Allisonville, ME 20072}.",
        "USR: My address is {PSC 1234, Box 123 APO AE 01234}.",
        "USR: Sure, {Unit 7316 Box 9108 DPO AA 07028}.",
        "USR: {USS Jones FPO AE 12345}",
        "USR: Shipping address is {USNV Smith FPO AP 96521}.",
    ],
    "phone": ["USR: {980.322.8737} is my number.", "USR: {9947454410}.", "USR: {561-553-8287}"],
    "order": ["USR: It's {843-58572-7002}."],
    "tracking": [
        "SYS: The tracking number is {XEGRCC001R}. Anything else?",
        "SYS: It is {QWERTYUIOP}.",
    ],
    "canary": ["USR: My ID is: {341752}", "My ID is: {000000}"],
}


@pytest.mark.parametrize(
    "label, marked", [(label, text) for label, texts in HITS.items() for text in texts]
)
def test_customersim_hits(label, marked):
    text = marked.replace("{", "").replace("}", "")
    start = marked.index("{")
    assert table("customersim")(text) == [Span(start, marked.index("}") - 1, label)]
    assert table("customersim_conservative")(text)


@pytest.mark.parametrize(
    "text",
    [
        "USR: Hello robot. I ordered a floor lamp several days ago but I can't track it.",
        "USR: What's up? Where is my package?",
        "USR: That's it. Thanks! Thank you.",
        "SYS: May I have your full name?",
        "SYS: Hello, I am the customer support bot. What can I do for you?",
        "SYS: Have a nice day! Bye.",
    ],
)
def test_customersim_leaves_templates_public(text):
    assert table("customersim")(text) == []
    assert table("customersim_conservative")(text) == []


@pytest.mark.parametrize(
    "text", ["USR: It is 12345.", "USR: call 12-345", "USR: Order 12-58572-7002", "USR: AB12"]
)
def test_customersim_near_misses(text):
    assert table("customersim")(text) == []
    assert table("customersim_conservative")(text)  # which is what the conservative policy is for


def test_digits_find_every_number_whole():
    text = "In 1998 , 3.5 % of 1,234,567 people ; B2B"
    assert [text[s.start : s.end] for s in table("digits")(text)] == [
        "1998",
        "3.5",
        "1,234,567",
        "2",
    ]
    assert table("digits_conservative")("no number") == []


def test_customersim_finds_the_gold_of_the_simulator():
    from confide.corpora import READERS
    from confide.specs import CustomerSimSpec

    sizes = {"train": 150, "valid": 1, "test": 1}
    policies = table("customersim"), table("customersim_conservative")
    gold = caught = noticed = found = right = public = turns = 0
    for record in READERS["customersim"](
        CustomerSimSpec(reader="customersim", sizes=sizes, users=500), None
    ):
        start = 0
        for turn in record.text.split("\n"):
            here = [
                (s.start - start, s.end - start)
                for s in record.spans
                if start <= s.start < start + len(turn)
            ]
            spans = policies[0](turn)
            gold += len(here)
            caught += sum(any(s.start <= a and b <= s.end for s in spans) for a, b in here)
            noticed += len(here) * bool(policies[1](turn))
            found += len(spans)
            right += sum(any(s.start < b and a < s.end for a, b in here) for s in spans)
            public += not spans and not policies[1](turn)
            turns += 1
            start += len(turn) + 1
    assert gold > 400
    assert caught >= 0.99 * gold
    assert noticed == gold
    assert right >= 0.95 * found
    assert public > turns / 2
