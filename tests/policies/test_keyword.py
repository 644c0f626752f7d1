"""Keywords as a policy, against a search that compares words one by one; and keywords mined from
text.
"""

import random
import re

import orjson
import pytest

from confide.data.redaction import finder_of
from confide.errors import InputError
from confide.files.io import write_json
from confide.policies import covered, detector, policy
from confide.policies.keyword import finder
from confide.policies.keyword_mining import log_odds, mine
from confide.specs import KeywordFitSpec, KeywordPolicySpec, RedactSpec, parse

KEYWORDS = {
    "AIRLINE": ["seat", "boarding pass", "Window Seat"],
    "INSURANCE": ["car", "proof of insurance", "claim"],
}


def spec(**fields):
    return parse(KeywordPolicySpec, {"kind": "keyword"} | fields)


def hits(text, **fields):
    return [
        (text[span.start : span.end], span.label)
        for span in policy(spec(keywords=KEYWORDS, **fields))(text)
    ]


def test_keywords_are_whole_words_whatever_their_case():
    text = "My CAR, (car) car's card scar car-pool the_car cars!"
    assert hits(text) == [(car, "INSURANCE") for car in ("CAR", "car", "car", "car")]
    assert hits("A boarding-pass; Boarding  PASS? boarding, pass. boarding my pass") == [
        (text, "AIRLINE") for text in ("boarding-pass", "Boarding  PASS", "boarding, pass")
    ]


def test_all_domains_are_flagged_in_any_text_by_default_and_named_ones_otherwise():
    text = "<_soc_> <AIRLINE> USR: a window seat for my car <_eoc_>"
    assert hits(text) == [("window seat", "AIRLINE"), ("car", "INSURANCE")]
    assert hits(text, domains=["INSURANCE"]) == [("car", "INSURANCE")]


def test_keywords_that_overlap_are_one_span():
    find = finder({"A": ["a b", "b c"], "B": ["c d", "b"]})
    assert [tuple(span)[:3] for span in find("x a b c d e b")] == [(2, 9, "A"), (12, 13, "B")]


def test_control_tokens_stay_and_what_a_customer_typed_does_not():
    find = finder({"MEDIA": ["media", "new media"]})
    text = "<MEDIA> USR: <media> new media <MEDIA> SYS: MEDIA"
    assert [text[span.start : span.end] for span in find(text)] == ["media", "new media", "MEDIA"]


def naive(keywords, text):
    """Characters of every occurrence of every keyword, found by comparing lists of words."""
    places = [(match.start(), match.end(), match[0].lower()) for match in re.finditer(r"\w+", text)]
    flagged = set()
    for phrase in keywords:
        words = phrase.lower().split()
        for index in range(len(places) - len(words) + 1):
            if [place[2] for place in places[index : index + len(words)]] == words:
                flagged |= set(range(places[index][0], places[index + len(words) - 1][1]))
    return flagged


def test_the_same_is_found_as_by_comparing_words():
    draw = random.Random(0)
    some = 0
    words = ["a", "ab", "abc", "b", "é", "Éa", "ß", "1", "a_b", "ЖА"]
    for _ in range(400):
        keywords = [
            " ".join(draw.choices(words, k=draw.randint(1, 3))) for _ in range(draw.randint(1, 8))
        ]
        written = [
            word.upper() if draw.random() < 0.5 and word != "ß" else word
            for word in draw.choices(words, k=12)
        ]
        text = "".join(word + draw.choice([" ", "", ", ", "-", "\n", " . "]) for word in written)
        found = {
            place for span in finder({"D": keywords})(text) for place in range(span.start, span.end)
        }
        assert found == naive(keywords, text), (keywords, text)
        some += bool(found)
    assert 100 < some < 400


def test_characters_that_grow_in_lower_case_move_no_span():
    text = "İİİ Σίσυφος a SEAT İSEAT ΣΊΣΥΦΟΣ, seat"
    find = finder({"D": ["seat", "Σίσυφος"]})
    assert [text[span.start : span.end] for span in find(text)] == [
        "Σίσυφος",
        "SEAT",
        "ΣΊΣΥΦΟΣ",
        "seat",
    ]


def test_keywords_come_from_a_file_as_well(tmp_path):
    write_json(tmp_path / "words.json", KEYWORDS)
    found = policy(spec(model=str(tmp_path / "words.json"), domains=["AIRLINE"]))("a seat in a car")
    assert [tuple(span)[:3] for span in found] == [(2, 6, "AIRLINE")]
    redaction = RedactSpec(
        policy=spec(model=str(tmp_path / "words.json")), conservative=spec(keywords=KEYWORDS)
    )
    assert finder_of(redaction)("a seat") == {
        "spans": [[2, 6, "AIRLINE", 1.0]],
        "conservative": True,
    }
    assert finder_of(redaction)("hello") == {} and not detector(spec(keywords=KEYWORDS))("hello")


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({}, "keywords: needs either keywords or the model"),
        ({"keywords": KEYWORDS, "model": "x"}, "keywords: needs either"),
        (
            {"keywords": KEYWORDS, "domains": ["MEDIA"]},
            "domains = 'MEDIA': unknown: one of AIRLINE, INSURANCE",
        ),
        ({"keywords": {"A": []}}, "A: has no keywords"),
        ({"keywords": {}}, "keywords: there are no domains"),
        ({"keywords": {"A": ["ok", " - "]}}, r"A\[1\]: holds no word"),
        ({"keywords": {"A": ["x" * 300]}}, r"A\[0\]: is longer than 200 characters"),
    ],
)
def test_what_cannot_be_right_is_refused(fields, message):
    with pytest.raises(InputError, match=message):
        policy(spec(**fields))


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b'{"A": ["seat", "boar', "malformed JSON"),
        (b'["seat"]', "expected a JSON object"),
        (b'{"A": "seat"}', "w.json: A: expected a list of keywords"),
        (b'{"A": []}', "w.json: A: has no keywords"),
    ],
)
def test_files_that_are_damaged_are_named(tmp_path, content, message):
    (tmp_path / "w.json").write_bytes(content)
    with pytest.raises(InputError, match=message):
        policy(spec(model=str(tmp_path / "w.json")))
    with pytest.raises(InputError, match="none.json: cannot be read"):
        policy(spec(model=str(tmp_path / "none.json")))


# Mining
# --------------------------------------------------------------------------------------------------


def test_log_odds_by_hand():
    """alpha = 2 * 4/8 = 1 for both: (3+1)/(4+2-4) = 2 against (1+1)/(4+2-2) = 1/2, with a variance
    of 1/4 + 1/2.
    """
    found = log_odds({"a": 3, "b": 1}, {"a": 4, "b": 4}, prior=2)
    assert found["a"] == pytest.approx((1.3862943611, 1.3862943611 / 0.75**0.5))
    assert found["b"] == pytest.approx((-1.3862943611, -1.3862943611 / 0.75**0.5))
    even = log_odds({"a": 5, "b": 5}, {"a": 10, "b": 10}, prior=7)
    assert even["a"] == pytest.approx((0.0, 0.0))


def corpus():
    """Airline and media talk with the same function words; one customer who repeats a name, and a
    number in each.
    """
    texts = {"AIRLINE": {}, "MEDIA": {}}
    for index in range(40):
        texts["AIRLINE"][f"a{index}"] = [
            f"<AIRLINE> USR: I want the seat by a window {9000 + index % 2}"
        ]
        texts["MEDIA"][f"m{index}"] = ["<MEDIA> USR: I want the data plan by a cable 7777"]
    texts["AIRLINE"]["a0"] += ["Zaphod " * 20]
    return texts


FIT = KeywordFitSpec(kind="keyword", prior=10)


def test_words_of_one_domain_are_mined_and_shared_ones_numbers_and_one_customers_are_not():
    found = mine(FIT, corpus())
    assert set(found["AIRLINE"]) == {"seat", "window"} and set(found["MEDIA"]) == {
        "data",
        "plan",
        "cable",
    }
    few = mine(FIT.model_copy(update={"min_count": 1, "count": 1}), corpus())
    assert few["AIRLINE"] != found["AIRLINE"] and len(few["AIRLINE"]) == len(few["MEDIA"]) == 1


def test_phrases_are_mined_where_their_words_are_not_keywords_and_never_across_utterances():
    texts = {
        "A": {str(index): ["USR: check in now SYS: in check"] for index in range(30)},
        "B": {str(index): ["USR: in now check SYS: now in check"] for index in range(30)},
    }
    assert mine(FIT, texts) == {"A": ["check in"], "B": ["now check", "now in"]}


def test_a_domain_without_keywords_is_an_error():
    with pytest.raises(InputError, match="domains = 'MEDIA': has no keyword that passes"):
        mine(
            FIT.model_copy(update={"words": 1}),
            corpus() | {"MEDIA": {str(index): ["I want the by a 7777"] for index in range(40)}},
        )


def test_mined_keywords_are_what_the_policy_reads(tmp_path):
    found = mine(FIT, corpus())
    write_json(tmp_path / "w.json", found)
    assert orjson.loads((tmp_path / "w.json").read_bytes()) == found
    find = policy(spec(model=str(tmp_path / "w.json")))
    text = corpus()["AIRLINE"]["a1"][0]
    spans = find(text)
    assert covered(text.index("seat"), text.index("seat") + 4, spans) and not covered(0, 9, spans)
