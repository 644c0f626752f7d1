"""Patterns that try every way to fail: the text becomes private, in bounded time and memory."""

import re
import subprocess
import sys
from re import _parser as parser

import pytest
from hypothesis import HealthCheck, assume, given, settings
from hypothesis import strategies as st

from confide.data.redaction import batch_finder, finder_of
from confide.errors import InputError
from confide.policies import detector, policy, redacted_text
from confide.runtime.limits import limited, repeats
from confide.specs import RedactSpec, RegexPolicySpec
from confide.types import MASK, Span

HARMLESS = {"kind": "regex", "patterns": {"x": "never"}}
TEXT = "a" * 60 + "!"


def spec(pattern):
    return {"kind": "regex", "patterns": {"evil": pattern}}


@pytest.fixture(autouse=True)
def soon(monkeypatch):
    monkeypatch.setattr("confide.runtime.limits.TICKS", 1)


@pytest.mark.parametrize("pattern", [r"(a+)+$", r"(?:a|aa)+$", r"(\w*)*\w$", r"(a)\1*(a+)+$"])
def test_a_text_that_takes_too_long_is_private(pattern):
    """As pi, as pi_c, alone and beside another pattern; the next text is searched as ever."""
    for policies, spans in (
        ({"policy": spec(pattern), "conservative": HARMLESS}, [[0, len(TEXT), "failed", 1.0]]),
        ({"policy": HARMLESS, "conservative": spec(pattern)}, []),
    ):
        find = finder_of(RedactSpec.model_validate(policies))
        assert find(TEXT) == {"spans": spans, "conservative": True, "failed": True}
        assert find("so it is never.").get("failed") is None
    with pytest.raises(TimeoutError):
        policy(RegexPolicySpec(kind="regex", patterns={"evil": pattern, "x": "never"}))(TEXT)
    with pytest.raises(TimeoutError):
        detector(RegexPolicySpec(**spec(pattern)))(TEXT)


def test_what_pi_finds_stays_hidden_where_pi_c_takes_too_long():
    """pi_c stops at the first secret; with that masked it reads on to what it fails on."""
    digits = {"kind": "regex", "patterns": {"digits": r"\d+"}}
    named = {"policy": digits, "conservative": spec(r"12|(?:a|aa)+$")}
    find = finder_of(RedactSpec.model_validate(named))
    first = f"12 and 7 {TEXT}"
    masked = first.replace("12", MASK)
    found = [find(text) for text in (first, masked)]
    assert [finding.get("failed", False) for finding in found] == [False, True]
    assert all(finding["conservative"] for finding in found)
    pairs = zip((first, masked), found, strict=True)
    shown = [redacted_text(text, finding["spans"]) for text, finding in pairs]
    assert shown[0] == shown[1] == f"{MASK} and {MASK} {TEXT}"


def test_many_texts_keep_what_pi_finds_where_pi_c_fails():
    spans = [Span(0, 2, "digits")]
    find = batch_finder(lambda texts: [spans, None, spans], lambda texts: [None, spans, []])
    assert find(["12", "12", "12"]) == [
        {"spans": [list(spans[0])], "conservative": True, "failed": True},
        {"spans": [[0, 2, "failed", 1.0]], "conservative": True, "failed": True},
        {"spans": [list(spans[0])], "conservative": False},
    ]


def test_a_text_that_surely_has_no_match_takes_no_time():
    """What `re` would try in every way, a linear-time engine rules out: there is no digit."""
    policies = {"policy": spec(r"(\w*)*\d"), "conservative": HARMLESS}
    assert finder_of(RedactSpec.model_validate(policies))(TEXT) == {}


def test_long_texts_of_quadratic_patterns_are_stopped():
    with pytest.raises(TimeoutError):
        policy(RegexPolicySpec(**spec(r"a+b")))("a" * 400_000)


def test_a_clock_that_nobody_waits_for_stops_nothing():
    """Between searches processor time may pass as it will, and after a search that was stopped,
    too.
    """
    search = limited(re.compile(r"(a+)+$").search, ticks=0)
    with pytest.raises(TimeoutError):
        search(TEXT)
    assert sum(number % 7 for number in range(10_000_000)) > 0
    assert limited(len)("abc") == 3


@pytest.mark.parametrize(
    ("pattern", "count"),
    [
        *(
            ("a", 1),
            ("a{3}", 3),
            (r"(\d{3}-){4}", 12),
            ("a{3}b{4}", 4),
            ("(a+)+$", 1),
            ("(?:a{2,}){5}", 10),
        ),
        *(
            (
                r"(?x) (?: a{2} ) {5} | b{9}",
                90,
            ),  # of the verbose kind: all counts, comments among them
            (r"(?x) (?: a{1000} # ) (\n ){1000}", 1_000_000),
            (r"[)]{3}(?:\({2}[^](]){5}", 10),
            ("(?:(?:a{2})(?#(){3}){7}", 42),
            ("a{007}{", 7),
            ("(?=a{7})(?>b{8})c", 8),
            ("(x)?(?(1)a{11}|b)", 11),
            ("(?:(?:a?){100}){20}", 2000),
        ),
    ],
)
def test_repeats_within_repeats_are_counted(pattern, count):
    assert repeats(pattern) == count


PIECES = (
    "a",
    "(",
    ")",
    "[^]a{3}]",
    "{3}",
    "{2,5}",
    "{,4}",
    "{2,}",
    "{}",
    "{x}",
    "*",
    "+?",
    "|",
    r"\(",
    r"\{",
    r"\\",
    "(?:",
)
REPEAT_KINDS = (parser.MAX_REPEAT, parser.MIN_REPEAT, parser.POSSESSIVE_REPEAT)
PIECES += (
    "(?=",
    "(?#c)",
    "(?P<n>",
    "(?>",
    "[(]",
    "(?x:",
    "(?x)",
    "#",
    "\n",
    " ",
    "(?s-i:",
    r"\N{DIGIT ONE}",
)


@given(st.lists(st.sampled_from(PIECES), max_size=12).map("".join))
@settings(max_examples=500, suppress_health_check=list(HealthCheck))
def test_no_count_is_missed(pattern):
    """Against Python's own parser, which promises nobody to stay as it is."""
    try:
        tree = parser.parse(pattern)
    except (re.error, OverflowError):
        assume(False)
    assert repeats(pattern) >= largest(tree)
    assert "(?x" in pattern or repeats(pattern) == largest(tree)


def largest(tree) -> int:
    """The largest product of counts within one another in a tree of Python's parser."""
    if not isinstance(tree, parser.SubPattern | tuple | list):
        return 1
    within = max((largest(part) for part in tree), default=1)
    if isinstance(tree, tuple) and any(
        tree[0] is kind for kind in REPEAT_KINDS
    ):  # the kinds are integers, too
        low, high, _ = tree[1]
        return max(1, low if high is parser.MAXREPEAT else high) * within
    return within


def test_patterns_that_would_fill_the_memory_are_refused():
    for pattern in ("(?:(?:(?:a?){1000}){1000}){1000}b", "(?:(?:(?:a?){,1000}){,1000}){,1000}"):
        with pytest.raises(InputError, match=r"patterns\.evil = .*repeats within repeats"):
            policy(RegexPolicySpec(**spec(pattern)))


@pytest.mark.parametrize(
    "pattern",
    ["(" * 3000 + ")" * 3000, "[" * 3000, "a{99999999999}", "(?P<secret>", "\\", "(?<=a+)b"],
)
def test_patterns_that_do_not_compile_are_named(pattern):
    with pytest.raises(InputError, match=r"patterns\.evil") as error:
        policy(RegexPolicySpec(**spec(pattern)))
    assert len(str(error.value)) < 600


def test_a_process_that_used_the_clock_ends_well():
    """No tick may come after Python's last handler is gone."""
    script = "from confide.runtime.limits import limited; limited(len)('x'); sum(range(30_000_000))"
    assert subprocess.run([sys.executable, "-c", script]).returncode == 0
