"""What certificates say where nobody knows what the policy misses, and of masking one occurrence
alone.
"""

import math
import re
from dataclasses import replace

import pytest
from certified import ASKED, DELTA, METHODS, UNKNOWN, certificate, number
from hypothesis import given as given_some
from hypothesis import strategies as st

from confide.certify.claims import bayesian_claims
from confide.certify.facts import COPIES_FOUND, COPIES_KEPT, CUT_KEPT, MARKS_KEPT, Facts
from confide.certify.gate import secret_claim
from confide.certify.literal_claims import REPLACED
from confide.commands.verify import verified
from confide.data.neighbours import processed
from confide.data.partitioning import Raw
from confide.data.redaction import finder_of
from confide.dp.accounting.price import epsilon, group
from confide.specs import PartitionSpec, RedactSpec
from confide.stages.split import pieces
from confide.text.digests import digest
from confide.types import MASK, Record
from tests.releases import noised

NOISED = [noised(count=60)]
DIGITS = RedactSpec(
    policy={"kind": "regex", "patterns": {"digit": r"\d"}},
    conservative={"kind": "everything"},
)


def test_without_gold_secrets_nothing_that_needs_gamma_is_claimed(tmp_path):
    """Neither as finite nor as infinite: a reader must not take a claim that nobody can make for
    one that was made.
    """
    for method in ("crt", "redacted", "selective"):
        value, claims = certificate(tmp_path, METHODS[method], UNKNOWN)
        assert not [name for name in claims if name.startswith(("bayesian", "group"))]
        head = value["headline"]
        assert head["gamma"] is head["gamma_upper"] is head["gamma_literal"] is None
        assert {head[name] for name in head if name.startswith("bayesian")} == {"inf"}
        assert {epoch["bayesian_epsilon"] for epoch in value["epochs"]} == {"inf"}
        words = "the corpus names no secrets, so nobody can say what the policy misses"
        assert words in value["says"] and value["policy"]["gamma"] is None
        page = (tmp_path / "certificate.md").read_text()
        assert (
            words in page.split("## What is claimed")[0]
            and words in page.split("## What the policy misses")[1]
        )
    assert (
        certificate(tmp_path, METHODS["crt"], UNKNOWN)[1]["secret_caught"]["epsilon"] == 0
    )  # of a secret that it does catch
    value, claims = certificate(tmp_path, METHODS["dpsgd"], UNKNOWN)  # needs no gamma
    assert number(claims["bayesian"]) == pytest.approx(epsilon(NOISED, DELTA))
    assert value["headline"]["bayesian_epsilon"] == claims["bayesian"]["epsilon"]
    assert "as measured" not in str(claims["bayesian"])


def test_what_is_assumed_of_the_conservative_policy_is_no_measurement(tmp_path):
    for delta2 in (0.0, 1e-9):
        _, claims = certificate(tmp_path, METHODS["crt_unredacted"], UNKNOWN, delta2=delta2)
        assert claims["bayesian_unconditional"]["epsilon"] == "inf"
    _, claims = certificate(tmp_path, METHODS["crt_unredacted"], {"delta2_upper": 1e-6})
    assert (
        number(claims["bayesian_unconditional"]) < 10
        and "delta2" in claims["bayesian_unconditional"]["condition"]
    )


def test_what_planted_secrets_did_is_no_gamma(tmp_path):
    """All canaries caught, no gold: gamma is unknown all the same, and the audits know what was
    planted.
    """
    planted = {
        "planted": {"secrets": 239, "sampled": 239, "different": 0, "exposed": 0},
        "sampled": 0,
        "secrets": 0,
    }
    value, claims = certificate(tmp_path, METHODS["crt"], UNKNOWN | planted)
    assert value["headline"]["gamma"] is None and "bayesian_missing" not in claims
    assert (
        value["policy"]["planted"] == planted["planted"] and secret_claim(value) == "secret_caught"
    )


def test_one_occurrence_alone_costs_what_the_copy_that_comes_back_costs(tmp_path):
    value, claims = certificate(tmp_path, METHODS["crt"])
    one, two = (lambda delta, size=size: group(NOISED, delta, size)[0] for size in (1, 2))
    assert claims["secret_caught"]["epsilon"] == 0
    assert number(claims["secret_caught_literal"]) == pytest.approx(
        number(claims["record_replace_one_pld"])
    )
    assert number(claims["secret_missed_literal"]) == pytest.approx(two(DELTA))
    available = DELTA / 0.15
    expected = math.log1p(0.13 * math.expm1(one(available)) + 0.02 * math.expm1(two(available)))
    assert (
        number(claims["bayesian_literal"])
        == pytest.approx(expected)
        == value["headline"]["bayesian_epsilon_literal"]
    )
    assert expected > number(claims["bayesian"])
    assert number(claims["bayesian_literal_upper"]) > expected
    assert (
        value["headline"]["bayesian_epsilon_literal_upper"]
        == claims["bayesian_literal_upper"]["epsilon"]
    )
    assert "one occurrence alone" in claims["secret_caught_literal"]["unit"]
    assert (
        "Masking one occurrence of a caught secret alone" in value["says"]
        and "in all copies of its text" in value["says"]
    )
    assert "literal γ = 0.15, at most 0.2" in (tmp_path / "certificate.md").read_text()


def test_a_record_that_is_replaced_changes_copies_of_two_texts(tmp_path):
    """So its claim says that these stay as they were; wherever they are it costs as much as three
    records do.
    """
    value, claims = certificate(tmp_path, METHODS["dpsgd"], **ASKED["dpsgd"])
    for relation in ("replace_one", "add_or_remove"):
        assert COPIES_KEPT in claims[f"record_{relation}_pld"]["condition"]
    alone = claims["record_replace_one_literal"]
    assert number(alone) == pytest.approx(group(NOISED, DELTA, REPLACED)[0])
    assert COPIES_KEPT not in alone["condition"] and COPIES_KEPT in value["says"]
    assert verified(tmp_path / "certificate.json")


@given_some(
    st.lists(st.sampled_from(["a 1", "b", "c 3", MASK]), min_size=1, max_size=7),
    st.sampled_from(["a 1", "b", "c 3", "d 4"]),
    st.sampled_from(["private", "all"]),
    st.data(),
)
def test_no_more_records_change_than_are_counted(texts, other, scope, data):
    place = data.draw(st.integers(0, len(texts) - 1))
    replaced = [*texts[:place], other, *texts[place + 1 :]]
    read = [processed_texts(some, scope) for some in (texts, replaced)]
    assert sum(before != after for before, after in zip(*read, strict=True)) <= REPLACED


def test_as_many_may_change():
    before, after = (processed_texts([first, "a 1", "b 2"], "private") for first in ("a 1", "b 2"))
    assert before == ["a 1", MASK, "b 2"] and after == ["b 2", "a 1", MASK]


def processed_texts(texts, scope):
    """What is read of some turns once later copies are masked."""
    points = [Raw(f"d:{at}", text, "train", None, None, ()) for at, text in enumerate(texts)]
    spec = PartitionSpec(scope=scope)
    return [row.text for row in processed(points, finder_of(DIGITS), spec, digest("hmac-sha1"))]


def test_without_deduplication_every_claim_is_about_one_occurrence(tmp_path):
    value, claims = certificate(tmp_path, METHODS["crt"], dedup=False)
    assert not [name for name in claims if "literal" in name] and "alone" not in value["says"]
    assert MARKS_KEPT not in str(claims) and COPIES_KEPT not in f"{claims} {value['says']}"
    assert value["headline"]["bayesian_epsilon_literal"] == value["headline"]["bayesian_epsilon"]
    assert value["headline"]["gamma_literal"] == value["headline"]["gamma"]


def test_later_copies_of_the_original_text_must_keep_their_marks(tmp_path):
    """DP-SGD on deduplicated text: masking a secret of a first copy unmasks the second, so a record
    is not all that changes.
    """
    for method in ("dpsgd", "crt_unredacted"):
        _, claims = certificate(tmp_path, METHODS[method])
        assert MARKS_KEPT in claims["secret_caught"]["condition"]
        assert number(claims["secret_caught_literal"]) == pytest.approx(group(NOISED, DELTA, 2)[0])
        assert number(claims["secret_caught_literal"]) > number(claims["secret_caught"]) > 0
        _, claims = certificate(tmp_path, METHODS[method], dedup=False)
        assert MARKS_KEPT not in claims["secret_caught"]["condition"]


def test_claims_about_a_secret_say_that_its_mask_moves_no_cut():
    """A mask begins no sentence, and is one word where a name is three: masked in the document, a
    secret that the policy catches changes points that do not hold it, which CRT reads exactly.
    """
    text = "I called him. Anna Maria Smith came. He left."
    masked = text.replace("Anna Maria Smith", MASK)
    for point, window in (("sentence", 0), ("window", 4)):
        found, other = (
            [piece for piece, _ in pieces(Record(whole, "doc"), point, window)]
            for whole in (text, masked)
        )
        assert {piece for piece in found if "Anna" not in piece} != {
            piece for piece in other if MASK not in piece
        }


@pytest.mark.parametrize(
    ("method", "point", "dedup"),
    [("crt", "sentence", True), ("crt", "sentence", False), ("dpsgd", "window", True)],
)
def test_where_words_decide_the_cut_every_claim_about_a_secret_wants_it_kept(
    tmp_path, method, point, dedup
):
    _, claims = certificate(tmp_path, METHODS[method], point=point, dedup=dedup)
    of_secrets = [claim for name, claim in claims.items() if not name.startswith("record")]
    finite = [claim for claim in of_secrets if claim["epsilon"] != "inf"]
    assert finite and all(CUT_KEPT in claim["condition"] for claim in finite)
    records = [claim for name, claim in claims.items() if name.startswith("record")]
    assert CUT_KEPT not in str(records)
    assert CUT_KEPT not in str(certificate(tmp_path, METHODS[method], point="turn", dedup=dedup))


def test_copies_that_no_policy_finds_anything_in_are_read_too(tmp_path):
    """Of what both policies miss, ten copies of one text are ten records, and not one.

    CRT says already that its claims want the conservative policy to find it.
    """
    names = ("secret_missed", "bayesian", "group_after_dedup")
    _, claims = certificate(tmp_path, METHODS["dpsgd"])
    assert all(COPIES_FOUND in claims[name]["condition"] for name in names)
    others = [name for name in claims if name not in names and not name.startswith("bayesian")]
    assert not any(COPIES_FOUND in claims[name]["condition"] for name in others)
    empty = {"pools": {"public": 0, "private": 8}}
    for method, measured, given in (
        ("dpsgd", {}, {"dedup": False}),
        ("dpsgd", {}, {"scope": "all"}),
        ("dpsgd", empty, {"everything_private": True}),
        ("crt", {}, {}),
    ):
        _, claims = certificate(tmp_path, METHODS[method], measured, **given)
        assert COPIES_FOUND not in str(claims)


def test_a_copy_that_exact_updates_read_is_not_bounded(tmp_path):
    value, claims = certificate(tmp_path, METHODS["redacted"])
    assert claims["secret_caught"]["epsilon"] == 0
    assert (
        claims["secret_caught_literal"]["epsilon"] == claims["bayesian_literal"]["epsilon"] == "inf"
    )
    assert "without bound" in value["says"].split("Masking one occurrence")[1]


@pytest.mark.parametrize("method", ["redacted", "crt", "dpsgd", "selective"])
def test_the_words_are_no_stronger_than_the_claims(tmp_path, method):
    """Each stands with its condition, and numbers are rounded up."""
    privacy = {"noise_multiplier": 2.0, "delta": 1.049e-5}
    value, claims = certificate(tmp_path, METHODS[method], **ASKED[method] | {"privacy": privacy})
    for name in ("record_replace_one_pld", "secret_caught", "secret_missed"):
        assert f"(if: {claims[name]['condition']})" in value["says"]
        told = re.search(r"at most (\S+) at delta = (\S+)\.$", claims[name]["sentence"])
        assert (told is None) is (number(claims[name]) == math.inf)
        if told is not None:
            assert float(told[1]) >= number(claims[name]) and told[2] == "1.05e-5"
    # of tokens that are told apart, a mask in their place may change those that are public
    by_token = "changing the tokens of a secret that the policy catches" in value["says"]
    assert by_token is (method == "selective")
    assert ("masking a secret that" in value["says"]) is not by_token


@pytest.mark.parametrize(
    ("texts", "point", "unit"),
    [
        ("dialogues", "turn", "one turn of a dialogue"),
        ("dialogues", "dialogue", "one whole dialogue as one row or file has it"),
        ("documents", "turn", "one line of a document"),
        ("documents", "dialogue", "one whole text"),
        ("documents", "sentence", "one sentence"),
    ],
)
def test_a_certificate_says_what_a_point_of_its_corpus_is(tmp_path, texts, point, unit):
    value, claims = certificate(tmp_path, METHODS["crt"], texts=texts, point=point)
    assert value["unit"] == value["headline"]["unit"] == unit
    assert claims["record_replace_one_pld"]["unit"].startswith(f"{unit} in a pool")
    assert claims["secret_missed"]["unit"] == f"one secret within {unit}"
    page = (tmp_path / "certificate.md").read_text()
    assert unit in page and ("dialogue" in page) is (texts == "dialogues" and point != "sentence")
    assert verified(tmp_path / "certificate.json")["unit"] == unit


def test_a_certificate_says_which_labels_count_as_secrets():
    facts = Facts(releases=NOISED, delta=DELTA, gamma=0.1, gamma_upper=0.2)
    (usual, *_) = bayesian_claims(facts)
    (named, *_) = bayesian_claims(replace(facts, labels=("name", "phone")))
    marked = "one random secret of a kind that is marked within one turn of a dialogue"
    assert usual["unit"] == marked
    kinds = 'one random secret of the labels "name", "phone" within one turn of a dialogue'
    assert named == usual | {"unit": kinds}
