"""The five lines above a page about a model: rounded up alone, and nothing promised that is not."""

import math
from decimal import Decimal

import numpy as np
import pytest

from confide.certify.facts import AUTHOR
from confide.output.rounding import rounded_up
from confide.report.pages.certificate import delta_words
from confide.report.pages.opening import (
    NO_AUDIT,
    NOT_TRIED,
    audited,
    in_words,
    lines,
    right_guesses,
)
from studies import certificate

FOUND_OUT = "How much could still be found out"
LABELS = [
    "What was protected",
    "Against whom",
    FOUND_OUT,
    "What was tried against it",
    "What is not promised",
]


@pytest.mark.parametrize(
    ("value", "digits", "text"),
    [
        (3.00004, 4, "3.001"),
        (3.0, 4, "3"),
        (0.142, 4, "0.142"),
        (1 / 3, 4, "0.3334"),
        (8e-5, 3, "8e-5"),
        (8.001e-5, 3, "8.01e-5"),
        (9.99951, 4, "10"),
        (1234.2, 4, "1,235"),
        (1e300, 3, "1e+300"),
        (0, 4, "0"),
        ("inf", 4, "∞"),
        (math.inf, 4, "∞"),
    ],
)
def test_numbers_are_rounded_up(value, digits, text):
    assert rounded_up(value, digits) == text


def test_no_number_is_told_smaller_than_it_is():
    rng = np.random.default_rng(0)
    for value in np.exp(rng.uniform(-18, 300, 2000)).tolist():
        told = Decimal(rounded_up(value).replace(",", ""))
        assert Decimal(value) <= told <= Decimal(value) * Decimal("1.001") + Decimal("1e-30")


@pytest.mark.parametrize("epsilon", [0.0, 0.1, 1.0, 3.0, 8.0])
@pytest.mark.parametrize("delta", [0.0, 8e-5, 0.05])
def test_the_share_of_right_guesses_is_that_of_the_worst_pair(epsilon, delta):
    """Four outcomes: those that one world alone has, and a coin that is biased by epsilon."""
    bias = math.exp(epsilon) / (1 + math.exp(epsilon))
    one = [delta, 0.0, (1 - delta) * bias, (1 - delta) * (1 - bias)]
    other = [0.0, delta, (1 - delta) * (1 - bias), (1 - delta) * bias]
    best = sum(max(pair) for pair in zip(one, other, strict=True)) / 2
    assert right_guesses(epsilon, delta) == pytest.approx(best, rel=1e-12)


def test_an_epsilon_in_words():
    assert in_words(3.0, 8e-5).startswith(
        "whoever guesses which of two equally likely ones was there is right in at most 95.26 of "
        "100 cases, where 50 is chance (ε is at most 3, δ 8e-5)"
    )
    assert "next to nothing" not in in_words(3.0, 8e-5) and "next to nothing" in in_words(8.0, 0.0)
    assert in_words(math.inf, 8e-5) == "nothing is guaranteed (ε = ∞)"


def told(method, **more):
    return lines(certificate("r/g0-s0", method, 0.0) | more, NOT_TRIED)


def test_a_model_with_a_guarantee():
    found = told("crt")
    assert list(found) == LABELS
    assert found["What was protected"].startswith("one turn of a dialogue. Somebody who wrote")
    assert "ε is at most 3, δ 8e-5" in found[FOUND_OUT] and "conditions" in found[FOUND_OUT]
    assert found["What was tried against it"].startswith("not tried here")
    assert "in a prompt" in found["What is not promised"]


def test_a_secret_that_stands_in_several_texts_is_not_passed_over():
    """Without known secrets no claim prices it, and then it must be said to be promised nothing."""
    unpriced = "that the policy misses in several texts"
    priced = told("crt")
    assert "a secret that the policy misses in several" in priced["What was protected"]
    assert unpriced not in priced["What is not promised"]
    frequent = {"name": "group_after_dedup", "epsilon": 174.2301, "delta": 8e-5}
    for unit, said in (
        (
            "all occurrences of one secret that the corpus marks (7 distinct texts)",
            "(7 distinct texts)",
        ),
        ("all occurrences of one secret (chunks: 7 distinct texts)", "(chunks: 7 distinct texts)"),
    ):
        claims = [*certificate("r", "crt", 0.0)["claims"][:1], frequent | {"unit": unit}]
        words = told("crt", claims=claims)["What was protected"]
        assert words.endswith(f": of the one that stands in most of all {said} ε is 174.3")
    alone = frequent | {"unit": "all occurrences of one secret (1 distinct texts)"}
    claims = [*certificate("r", "crt", 0.0)["claims"][:1], alone]
    assert "most of all" not in told("crt", claims=claims)["What was protected"]
    all_claims = certificate("r", "crt", 0.0)["claims"]
    single = [claim for claim in all_claims if not claim["name"].startswith("group_")]
    assert unpriced in told("crt", claims=single)["What is not promised"]
    of_nobody = certificate("r", "nonprivate", 0.0)["claims"]
    single = [claim for claim in of_nobody if not claim["name"].startswith("group_")]
    assert unpriced not in told("nonprivate", claims=single)["What is not promised"]


def test_a_miss_rate_of_one_is_as_unknown_as_none():
    headline = certificate("r", "crt", 0.0)["headline"]
    for bound, words in ((None, "unknown"), (1.0, "The policy may miss all secrets"), (0.9, None)):
        found_out = told("crt", headline=headline | {"gamma_upper": bound})[FOUND_OUT]
        assert words is None or words in found_out
        assert words is not None or found_out.endswith("on the conditions of the certificate")


def test_where_nothing_is_guaranteed_nothing_is_said_to_be():
    found = told("nonprivate")
    assert found["What was protected"] == "nothing"
    assert found["Against whom"] == "it is protected against nobody"
    assert found[FOUND_OUT] == "nothing is guaranteed (ε = ∞)"


def test_where_secrets_alone_are_covered_no_record_is():
    found = told("redacted")
    assert found["What was protected"].startswith("no turn of a dialogue as a whole")
    assert found[FOUND_OUT].startswith(
        "nothing is guaranteed of a whole turn of a dialogue (ε = ∞)"
    )


def test_the_larger_of_the_claim_and_the_headline_counts():
    claims = certificate("r", "crt", 0.0)["claims"]
    claims[0] = claims[0] | {"epsilon": 3.4001}
    assert "ε is at most 3.401," in told("crt", claims=claims)[FOUND_OUT]


def test_no_claim_of_a_record_is_unknown():
    rest = [one for one in certificate("r", "crt", 0.0)["claims"] if "record" not in one["name"]]
    assert told("crt", claims=rest)[FOUND_OUT].startswith("unknown")


def test_what_a_certificate_calls_no_bound_guarantees_nothing():
    claims = certificate("r", "nonprivate", 0.0)["claims"]
    quoted = [*claims, claims[0] | {"name": "as_published", "epsilon": 2.0}]
    assert told("nonprivate", claims=quoted)["What was protected"] == "nothing"


def test_a_claim_with_a_delta_of_one_protects_nothing():
    """Earlier certificates have such lines; the page marks them."""
    certified = certificate("r", "nonprivate", 0.0)
    claims = [one for one in certified["claims"] if float(one["epsilon"]) == math.inf]
    empty = claims[0] | {"name": "bayesian_missing", "epsilon": 0.0, "delta": 1.0}
    assert told("nonprivate", claims=[*claims, empty])["What was protected"] == "nothing"
    some = told("nonprivate", claims=[*claims, empty | {"delta": 0.9}])
    assert some["What was protected"] != "nothing"
    for delta, words in ((1.0, "1: promises nothing"), (0.9996, "1: promises nothing")):
        assert delta_words(certified, empty | {"delta": delta}) == words
    assert delta_words(certified, empty | {"delta": 0.142}) == "0.142"


def test_a_delta_without_noise_is_no_number():
    """Nothing was noised: what is finite holds at a delta of 0."""
    for method, finite in (("nonprivate", "–"), ("redacted", "–"), ("crt", "8e-5")):
        certified = certificate("r", method, 0.0)
        claim = certified["claims"][-2] | {"epsilon": 0.0}
        assert delta_words(certified, claim) == finite
        assert delta_words(certified, claim | {"epsilon": "inf"}) == "–"
    # of a random secret it is the chance that the policy misses it
    random = certified["claims"][-2] | {"name": "bayesian_upper", "epsilon": 0.0}
    assert delta_words(certificate("r", "redacted", 0.0), random) == "8e-5"
    untouched = certificate("r", "redacted", 0.0)
    record = untouched["claims"][0] | {"epsilon": 0.0, "delta": 8e-5}
    headline = untouched["headline"] | {"record_epsilon": 0.0}
    found = lines(untouched | {"claims": [record], "headline": headline}, NOT_TRIED)
    assert "(ε is 0)" in found[FOUND_OUT]
    noised = {"source": "a/g0-s0", "public": False}
    for more in (
        {"warm_start": [noised]},
        {"updates": {"noisy redacted private": 3}},
        {"updates": {"noised recurrent states of one point, not sampled": 1}},
        {"public_constants": {}},
    ):
        assert delta_words(untouched | more, record) == "8e-5", more
        other = untouched | {"claims": [record], "headline": headline} | more
        assert "at most δ 8e-5" in lines(other, NOT_TRIED)[FOUND_OUT]


def test_recorded_noise_authors_and_a_pretrained_model_are_told():
    found = told("crt", noise_reproducible=True, public_constants={"pretrained": "small"})
    assert "do not hand out this model" in found["Against whom"]
    assert "the text that small was trained on" in found["What is not promised"]
    claims = [one | {"unit": AUTHOR} for one in certificate("r", "dpsgd", 0.0)["claims"]]
    assert told("dpsgd", claims=claims)["What was protected"] == "all text of one person"


def test_an_unknown_miss_rate_is_told():
    known = certificate("r", "crt", 0.0)
    unknown = known | {"headline": known["headline"] | {"gamma": None, "gamma_upper": None}}
    words = "How many secrets the policy catches is unknown"
    assert words in lines(unknown, "")[FOUND_OUT]
    assert words not in lines(known, "")[FOUND_OUT]


def test_it_says_which_labels_count_where_not_all_do():
    """Names that the policy never finds are no miss if cards alone are said to be secrets."""
    words = 'what the corpus marks as "card", "iban": no other label counts'
    found = told("crt", data={"terms": {"labels": ["card", "iban"]}})
    assert words in found["What is not promised"]
    for terms in ({}, {"labels": None}):
        assert "marks as" not in told("crt", data={"terms": terms})["What is not promised"]


def test_audits_that_go_with_a_release():
    assert audited([]) == audited([{"audit": "none", "outcome": "not audited"}]) == NO_AUDIT
    rows = [{"audit": "game", "outcome": "stands"}, {"audit": "inclusion", "outcome": "refuted"}]
    assert audited(rows) == "audits by planted coins (game: stands; inclusion: refuted)"
