"""Where a model comes from: what earlier runs have seen is in its certificate, or nothing finite is
claimed.
"""

import math

import pytest
from certified import (
    ASKED,
    DELTA,
    METHODS,
    append,
    certificate,
    closed,
    ledger_of,
    number,
    source_of,
)

from confide.certify.certificate import IN_BFLOAT16, VALUES_BY_PLACE, lineage, on_other_terms
from confide.certify.facts import STABLE
from confide.dp.accounting.price import epsilon
from confide.dp.ledger import Ledger
from confide.errors import InputError
from tests.releases import noised

EMPTY = {"pools": {"public": 0, "private": 8}}
NOISED = [noised(count=120)]


def descended(folder, *sources, public=False, **given):
    """Certificate and claims of a run of CRT that starts from the last of some runs."""
    files = []
    for place, source in enumerate(sources):
        files.append(folder / f"source{place}.jsonl")
        files[-1].write_text(source.dump())
    ledger = Ledger()
    ledger.init("source/g0-s0", public=public, ledger=sources[-1].dump())
    for epoch in range(1, 4):
        for place, release in enumerate(METHODS["crt"]):
            append(ledger, release, 1000 * epoch + place)
        ledger.epoch(epoch)
    return certificate(folder, [], ledger=ledger, start_ledgers=files, **given)


def run_of(releases, noise="system", arithmetic="float32", **terms):
    """The finished ledger of a run that says where its noise came from."""
    ledger = ledger_of(releases)
    ledger.start("source/g0-s0", settings="0" * 64, code="abc", noise=noise, arithmetic=arithmetic)
    return closed(ledger, **terms)


def run_of_authors(authors):
    """The ledger of a run whose noise hides so many authors."""
    ledger = ledger_of(METHODS["crt"])
    data = run_of(METHODS["crt"]).events("data")[0]
    ledger.data(data["terms"], pools=data["pools"], authors=authors, states=0)
    return ledger


def test_a_start_on_the_same_terms_is_added_up(tmp_path):
    value, claims = descended(tmp_path, run_of(METHODS["crt"]))
    assert value["unaccounted"] == []
    assert number(claims["record_replace_one_pld"]) == pytest.approx(
        epsilon(NOISED, DELTA), rel=1e-3
    )


@pytest.mark.parametrize(
    "terms",
    [
        {
            "everything_private": True,
            "policies": "f" * 64,
        },  # a weak policy let secrets into the public pool, which is read exactly
        {
            "point": "dialogue"
        },  # a dialogue of nine turns is a group of nine where turns were protected
        {"dataset": "other"},
        {"corpus": "f" * 64},
        {"cut": "f" * 64},
        {"dedup": False},
        {"scope": "all"},
        {"merge_masks": True},
        {"fill": True},
    ],
)
def test_a_start_on_other_terms_leaves_nothing_to_claim(tmp_path, terms):
    measured = EMPTY if "everything_private" in terms else {}
    value, claims = descended(tmp_path, run_of(METHODS["crt"]), measured=measured, **terms)
    assert {claim["epsilon"] for claim in claims.values()} == {"inf"}
    reason, *others = value["unaccounted"]
    assert others == [VALUES_BY_PLACE] * ("fill" in terms)
    assert "source/g0-s0" in reason and all(key in reason for key in terms)
    assert reason in (tmp_path / "certificate.md").read_text()


def test_noised_updates_of_made_up_values_leave_nothing_to_claim(tmp_path):
    """One point may change what two give, here or in the run that it started from."""
    value, claims = certificate(tmp_path, METHODS["crt"], fill=True)
    assert value["unaccounted"] == [VALUES_BY_PLACE]
    assert {claim["epsilon"] for claim in claims.values()} == {"inf"}
    (tmp_path / "later").mkdir()
    value, _ = descended(tmp_path / "later", run_of(METHODS["crt"], fill=True))
    assert VALUES_BY_PLACE in value["unaccounted"]
    (tmp_path / "exact").mkdir()
    value, claims = certificate(
        tmp_path / "exact", fill=True, releases=METHODS["redacted"], **ASKED["redacted"]
    )
    assert value["unaccounted"] == [] and number(claims["secret_caught"]) == 0


def test_a_start_on_pools_of_other_sizes_leaves_nothing_to_claim(tmp_path):
    start = ledger_of(METHODS["crt"])
    start.start("source/g0-s0", settings="0" * 64, code="abc", noise="system", arithmetic="float32")
    terms = run_of(METHODS["crt"]).events("data")[0]["terms"]
    start.data(
        terms, pools={"all": 10, "public": 5, "private": 5, "marked": 5}, authors=None, states=0
    )
    start.end(weights="e" * 64)
    value, _ = descended(tmp_path, start)
    assert "sizes of pools" in value["unaccounted"][0]


def test_a_start_that_hid_other_authors_leaves_nothing_to_claim(tmp_path):
    start = ledger_of(METHODS["crt"])
    start.start("source/g0-s0", settings="0" * 64, code="abc", noise="system", arithmetic="float32")
    data = run_of(METHODS["crt"]).events("data")[0]
    for authors, differs in (({"private": 5}, True), (None, False)):
        start = ledger_of(METHODS["crt"])
        start.start(
            "source/g0-s0", settings="0" * 64, code="abc", noise="system", arithmetic="float32"
        )
        start.data(data["terms"], pools=data["pools"], authors=authors, states=0)
        reasons = on_other_terms(start, run_of_authors({"private": 8}))
        assert ("numbers of authors" in "".join(reasons)) is differs


def test_public_text_after_protected_text_stays_in_the_price(tmp_path):
    """Its own updates read nothing protected, and its weights did."""
    first = run_of(METHODS["crt"])
    second = ledger_of(METHODS["nonprivate"])
    second.init("first", public=False, ledger=first.dump())
    closed(second, public=True, corpus="b" * 64)
    ledger = Ledger()
    ledger.init("second", public=False, ledger=second.dump())
    given = lineage(ledger, tmp_path, [first, second])
    assert [one.head for one in given[:-1]] == [first.head, second.head]


@pytest.mark.parametrize("start", ["dpsgd", "crt_unredacted"])
def test_what_noised_updates_read_redacted_must_not_hang_on_the_secret(tmp_path, start):
    """The start read the text itself, so that a caught secret has a price; but the run's own
    updates are in it only if masking the secret changes nothing else that policies find.
    """
    _, claims = descended(tmp_path, run_of(METHODS[start]))
    assert claims["secret_caught"]["epsilon"] not in (0, "inf")
    assert STABLE in claims["secret_caught"]["condition"]


def test_a_start_whose_ledger_does_not_say_what_it_read_leaves_nothing_to_claim(tmp_path):
    start = ledger_of(METHODS["crt"])
    start.end(weights="e" * 64)
    value, claims = descended(tmp_path, start)
    assert "does not say what it was trained on" in value["unaccounted"][0]
    assert claims["secret_caught"]["epsilon"] == "inf"


def test_the_models_of_policies_are_terms(tmp_path):
    start = ledger_of(METHODS["crt"])
    start.read("policy", "ner: service", public=True, digest="1" * 64)
    value, _ = descended(tmp_path, closed(start))
    assert "models of policies" in value["unaccounted"][0]


def test_an_ancestor_s_recorded_noise_can_be_drawn_again(tmp_path):
    for noise, expected in (("system", False), ("recorded", True)):
        value, _ = descended(tmp_path, run_of(METHODS["crt"], noise=noise), noise_seed=None)
        assert value["noise_reproducible"] is expected
        assert (value["release_note"] is not None) is expected


def test_what_an_ancestor_rounded_is_named(tmp_path):
    """Where its updates were noised: without noise it could be too much for nothing."""
    for method, arithmetic, expected in (
        ("crt", "bfloat16", True),
        ("crt", "float32", False),
        ("redacted", "bfloat16", False),
    ):
        start = run_of(METHODS[method], arithmetic=arithmetic)
        folder = tmp_path / f"{method}-{arithmetic}"
        folder.mkdir()
        value, _ = descended(folder, start)
        assert (IN_BFLOAT16 in value["assumptions"]) is expected


def test_a_run_that_drew_no_noise_has_none_to_draw_again(tmp_path):
    value, _ = descended(tmp_path, run_of(METHODS["redacted"], noise="recorded"), noise_seed=None)
    assert not value["noise_reproducible"]


def test_a_start_is_public_only_if_its_own_ledger_says_so(tmp_path):
    published = run_of(METHODS["nonprivate"], public=True, corpus="b" * 64)
    value, claims = descended(tmp_path, published, public=True)
    assert value["unaccounted"] == [] and claims["secret_caught"]["epsilon"] == 0
    with pytest.raises(InputError, match="on the corpus that this run protects"):
        descended(tmp_path, run_of(METHODS["nonprivate"], public=True), public=True)
    with pytest.raises(InputError, match="is said to be public"):
        descended(tmp_path, run_of(METHODS["nonprivate"]), public=True)


@pytest.mark.parametrize("stage", ["tokenizer", "policy", "pretrained"])
def test_public_text_read_through_what_saw_protected_text_is_not_public(tmp_path, stage):
    start = ledger_of(METHODS["nonprivate"])
    start.read(stage, "own", public=False, digest="1" * 64)
    with pytest.raises(InputError, match="is said to be public"):
        descended(tmp_path, closed(start, public=True), public=True)


def test_a_public_start_of_a_start_counts_no_more_than_what_it_came_from(tmp_path):
    first = run_of(METHODS["nonprivate"])
    second = ledger_of(METHODS["nonprivate"])
    second.init("first", public=True, ledger=first.dump())
    closed(second, public=True)
    with pytest.raises(InputError, match="is said to be public"):
        descended(tmp_path, first, second, public=True)


@pytest.mark.parametrize("public", [True, False])
def test_no_start_however_far_back_has_read_as_public_what_a_run_protects(tmp_path, public):
    """Its updates are in no price, whatever the starts after it read."""
    first = run_of(METHODS["nonprivate"], public=True)
    second = ledger_of(METHODS["nonprivate"])
    second.init("first", public=True, ledger=first.dump())
    closed(second, public=public, corpus="b" * 64)
    with pytest.raises(InputError, match="on the corpus that this run protects"):
        descended(tmp_path, first, second, public=public)


def test_a_public_start_s_ledger_must_be_there(tmp_path):
    published = run_of(METHODS["nonprivate"], public=True)
    ledger = Ledger()
    ledger.init("source/g0-s0", public=True, ledger=published.dump())
    append(ledger, METHODS["crt"][-1])
    ledger.epoch(1)
    with pytest.raises(InputError, match="is not given"):
        certificate(tmp_path, [], ledger=ledger)


def test_deduplication_ties_authors_and_chunks_together(tmp_path):
    """Replacing one author then changes what others contribute: an attainable pair has 20.6 where
    3.0 was certified.
    """
    from test_certify_authors import AUTHORS

    for dedup, expected in ((True, {"inf"}), (False, None)):
        value, claims = certificate(tmp_path, AUTHORS, dedup=dedup)
        assert bool(value["unaccounted"]) is dedup
        if expected is not None:
            assert {claim["epsilon"] for claim in claims.values()} == expected
    chunks = ledger_of(METHODS["dpsgd"])
    chunks.packed(tokens=1024, most=3, views="original")
    given = {"pack": 1024, "everything_private": True, "dedup": True, "measured": EMPTY}
    value, claims = certificate(tmp_path, [], ledger=chunks, **given, **ASKED["dpsgd"])
    assert "several chunks" in value["unaccounted"][0]
    assert math.isinf(number(claims["record_replace_one_pld"]))
    assert source_of(METHODS["dpsgd"]).ended()
