"""Certificates where noise hides authors: their unit, what follows for points and secrets; and
noise in name only.
"""

import math
import re
from dataclasses import replace

import numpy as np
import pytest
from certified import ASKED, DELTA, METHODS, append, certificate, ledger_of, number, source_of, step

from confide.certify.gate import cases
from confide.commands.verify import verify
from confide.corpora import read_own as read
from confide.dp.accounting.audit_bounds import SHARES
from confide.dp.accounting.price import MEANINGLESS, epsilon, group, price
from confide.dp.ledger import Ledger
from confide.errors import InputError
from confide.files.io import write_json, write_jsonl
from confide.report.pages.card import card
from confide.specs import LinesSpec, WordCanarySpec
from confide.text.word_canaries import chosen_authors, draw
from tests.releases import exact, noised


def by_author(releases):
    """The same updates with noise for authors."""
    return [
        replace(one, step=replace(one.step, unit="author")) if one.step.noisy else one
        for one in releases
    ]


AUTHORS = by_author(METHODS["dpsgd"])
NOISED = [noised(count=60, view="original", pool="all", unit="author")]


def measured(**counts):
    """How many authors have the most frequent secret, as recall.json has it."""
    return {f"multiplicity_{name}": count for name, count in counts.items()}


def certified(tmp_path, releases, **given):
    value, claims = certificate(tmp_path, releases, **given)
    return value, claims, (tmp_path / "certificate.md").read_text()


def splits_of(path, other):
    """The splits of Zed's documents, one of which somebody else has a line in."""
    rows = [{"text": f"{n}", "doc": f"z{n}", "author": "zed"} for n in range(6)]
    rows += [{"text": "hello", "doc": "z0", "author": other}]
    write_jsonl(path, rows)
    spec = LinesSpec(reader="lines", path=str(path))
    return [record.split for record in read(spec) if record.author == "zed"]


def planted_of(path, authors):
    """The canaries of words of each author."""
    write_jsonl(path, [{"owner": author, "split": "train"} for author in authors])
    words = [f"{first}{second}" for first in "abcdef" for second in "xyz"]
    spec = WordCanarySpec(kind="words", length=2, authors=None, copies=[1], words=words, controls=0)
    source = np.random.default_rng(0)
    canaries = draw(spec, words, chosen_authors(spec, path, source), source)["canaries"]
    return {canary["author"]: canary["text"] for canary in canaries}


def test_claims_assume_that_others_keep_splits_and_canaries(tmp_path):
    """All who share documents are in one split, by a hash of one of their names: another author in
    Bob's place moves all that Zed wrote. And canaries are dealt out by the order of names.
    """
    assert splits_of(tmp_path / "bob.jsonl", "bob") != splits_of(tmp_path / "dan.jsonl", "dan")
    first, second = (
        planted_of(tmp_path / f"{other}-owners.jsonl", ["ann", other, "cy", "zed"])
        for other in ("bob", "dan")
    )
    assert first["cy"] != second["cy"] and first["zed"] == second["zed"]
    for releases in (AUTHORS, METHODS["dpsgd"]):  # the same of texts that name their author
        value, _, page = certified(tmp_path, releases)
        assert any(
            "same splits, the same planted canaries" in line for line in value["assumptions"]
        )
        assert "the same planted canaries" in page


def test_the_unit_is_an_author_and_costs_what_the_mechanism_costs(tmp_path):
    value, claims, page = certified(tmp_path, AUTHORS)
    assert value["unit"] == value["headline"]["unit"] == "one author: all points of a person"
    for relation in ("replace_one", "add_or_remove"):
        record = claims[f"record_{relation}_pld"]
        assert number(record) == pytest.approx(epsilon(NOISED, DELTA, relation))
        assert record["unit"].startswith("one author: all points of a person in a pool")
        assert (
            "Poisson batches of authors" in record["condition"]
            and "carry one name" in record["condition"]
        )
    assert (
        value["says"].startswith("Replacing one author: all points of a person")
        and "one author" in page
    )
    assert "Poisson batches normalised" not in page and "drawn author by author" in page
    assert (
        value["public_constants"]["numbers_of_authors"] == [640]
        and "pool_sizes" not in value["public_constants"]
    )
    points, theirs, other = certified(tmp_path, METHODS["dpsgd"])
    assert (
        "author" not in other.split("## Check it")[0]
        and "point_replace_one" not in theirs
        and points["unit"] == "one turn of a dialogue"
    )
    assert number(theirs["record_replace_one_pld"]) == number(
        claims["record_replace_one_pld"]
    )  # the mechanism is the same


def test_a_point_more_costs_what_another_author_costs(tmp_path):
    """Adding a point moves an author's mean as far as replacing him: add_or_remove of points is no
    cheaper here.
    """
    _, claims, _ = certified(tmp_path, AUTHORS)
    for relation in ("add_or_remove", "replace_one"):
        found = claims[f"point_{relation}"]
        assert found["relation"] == relation and found["unit"].startswith("one turn of a dialogue")
        assert number(found) == pytest.approx(epsilon(NOISED, DELTA, "replace_one"))
    assert number(claims["point_add_or_remove"]) > 1.3 * epsilon(NOISED, DELTA, "add_or_remove")


def test_a_secret_within_a_point_changes_one_author(tmp_path):
    _, claims, _ = certified(tmp_path, AUTHORS)
    for name in ("secret_caught", "secret_missed", "bayesian"):
        assert number(claims[name]) == pytest.approx(epsilon(NOISED, DELTA))
    assert claims["secret_missed"]["unit"] == "one secret within one turn of a dialogue"
    _, crt, _ = certified(tmp_path, by_author(METHODS["crt"]))
    assert crt["secret_caught"]["epsilon"] == 0 and crt["bayesian_missing"]["epsilon"] == 0
    assert number(crt["secret_missed"]) == pytest.approx(epsilon(NOISED, DELTA))
    assert "stays in its pool" in crt["record_replace_one_pld"]["condition"]


@pytest.mark.parametrize(
    ("counts", "authors"),
    [
        ({}, 3),  # not counted: k points have at most k authors
        ({"authors": 1}, 1),  # all of them by one person
        ({"authors": 2}, 2),
    ],
)
def test_groups_are_of_authors(tmp_path, monkeypatch, counts, authors):
    import certified as helpers

    monkeypatch.setattr(helpers, "RECALL", helpers.RECALL | measured(**counts))
    value, claims, _ = certified(tmp_path, AUTHORS)
    assert number(claims["group_before_dedup"]) == pytest.approx(group(NOISED, DELTA, authors)[0])
    assert ("authors'" in claims["group_before_dedup"]["unit"]) == bool(counts)
    assert value["policy"]["multiplicity_authors"] == counts.get("authors")
    _, claims, _ = certified(
        tmp_path, METHODS["dpsgd"]
    )  # points stay what they are, whoever wrote them
    assert number(claims["group_before_dedup"]) == pytest.approx(group(NOISED, DELTA, 3)[0])


@pytest.mark.parametrize(
    ("releases", "reason"),
    [
        ([*METHODS["dpsgd"], *AUTHORS], "some noise hides points and some hides authors"),
        ([*METHODS["crt"], *AUTHORS], "some noise hides points and some hides authors"),
        (by_author(METHODS["selective"]), "tokens of a point were told apart"),
        ([*AUTHORS, METHODS["selective_noise"][-1]], "some noise"),
        *(
            ([*METHODS[other], *METHODS["selective"]], "some did not, and nothing here composes")
            for other in ("redacted", "dpsgd", "crt")
        ),
    ],
)
def test_units_that_do_not_compose_leave_nothing_to_claim(tmp_path, releases, reason):
    value, claims, _ = certified(tmp_path, releases)
    assert {claim["epsilon"] for claim in claims.values()} == {"inf"} and value["headline"][
        "record_epsilon"
    ] == "inf"
    assert reason in claims["record_replace_one_pld"]["condition"]
    assert price(releases).reason is not None


def test_a_warm_start_with_noise_for_points_is_not_composed(tmp_path):
    source = source_of(METHODS["dpsgd"])
    (tmp_path / "source.jsonl").write_text(source.dump())
    started = Ledger()
    started.init("source/g0-s0", public=False, ledger=source.dump())
    append(started, AUTHORS[0])
    started.epoch(1)
    _, claims = certificate(tmp_path, [], ledger=started, start_ledgers=[tmp_path / "source.jsonl"])
    assert {claim["epsilon"] for claim in claims.values()} == {"inf"}


def test_exact_updates_expose_authors_as_they_expose_points(tmp_path):
    _, claims, _ = certified(tmp_path, [step("original", "all", False), *AUTHORS])
    assert {claim["epsilon"] for claim in claims.values()} == {"inf"}


def test_ledgers_hold_no_unit_that_could_not_be_priced():
    for wrong in (
        exact(view="original", pool="all", unit="author"),
        noised(view="original", pool="all", unit="person"),
    ):
        with pytest.raises(ValueError, match="only noise has another unit"):
            Ledger().append(wrong, "0" * 64 if wrong.step.noisy else None)
    assert (
        '"unit"' not in ledger_of(METHODS["crt"]).dump()
        and '"unit":"author"' in ledger_of(AUTHORS).dump()
    )


def test_verify_makes_it_again_and_a_ledger_that_hides_the_unit_is_refused(tmp_path, capsys):
    certificate(tmp_path, AUTHORS, method="dpsgd")
    verify(tmp_path / "certificate.json", root=tmp_path)
    assert "all text of one person" in capsys.readouterr().out
    path = tmp_path / "ledger"
    path.write_text(path.read_text().replace(',"unit":"author"', ""))
    with pytest.raises(InputError, match="ledger"):
        verify(tmp_path / "certificate.json", root=tmp_path)


def test_the_gate_holds_a_planted_point_against_the_claim_for_points(tmp_path):
    """0.5 (replace_one) > the audit's bound > add_or_remove: one point more refutes only what was
    claimed of points.
    """
    coins = 5000
    guesses = 250
    found = {}
    for releases, correct in ((AUTHORS, 200), (METHODS["dpsgd"], 200)):
        value, _ = certificate(tmp_path, releases)
        audit = {
            "attack": "game",
            "run": "r/g0.1-s0",
            "game_reason": "none",
            "inclusion_relation": "add_or_remove",
        }
        audit |= {"weights": value["files"]["model"][0]["sha256"], "inclusion_coins": coins}
        audit["inclusion_attempts"] = [
            [round(share * coins), round(share * coins * correct / guesses)] for share in SHARES
        ]
        write_json(tmp_path / "game.json", audit)
        both = cases(tmp_path / "certificate.json", tmp_path / "game.json")
        (case,) = (case for case in both if case.audit == "inclusion")
        found[case.says.rsplit("(", 1)[1]] = case.outcome
    assert found == {"point_add_or_remove)": "stands", "record_add_or_remove_pld)": "refuted"}


# Noise in name only
# --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("noise", [1e-4, 1e-6])
@pytest.mark.parametrize("method", ["dpsgd", "crt", "selective"])
def test_noise_in_name_only_is_infinity_in_numbers_and_words(tmp_path, method, noise):
    tiny = [
        replace(one, noise_multiplier=noise) if one.step.noisy else one for one in METHODS[method]
    ]
    value, claims, page = certified(
        tmp_path, tiny, **ASKED[method], privacy={"noise_multiplier": noise}
    )
    priced = {name: claim for name, claim in claims.items() if claim["epsilon"] != 0}
    assert {claim["epsilon"] for claim in priced.values()} == {"inf"} and value["headline"][
        "record_epsilon"
    ] == "inf"
    assert {epoch["record_epsilon"] for epoch in value["epochs"]} == {"inf"}
    assert "epsilon = infinity" in value["says"] and not re.search(
        r"\d{7}", page.split("## Check it")[0]
    )
    verify(tmp_path / "certificate.json", root=tmp_path)
    reason = claims["secret_caught" if method == "selective" else "secret_missed"]["condition"]
    assert "so little noise bounds nothing" in reason and "exact updates" not in reason


def test_what_is_large_but_says_something_stays_a_number(tmp_path):
    some = [replace(one, noise_multiplier=0.05) for one in METHODS["dpsgd"]]
    found = number(certificate(tmp_path, some)[1]["record_replace_one_pld"])
    assert 1000 < found < MEANINGLESS and math.isfinite(found)


@pytest.mark.parametrize("method", ["crt", "dpsgd"])
def test_the_card_of_a_model_says_which_records_its_epsilon_is_of(tmp_path, method):
    """What exact updates read of somebody has no bound, and other pools of CRT are read so."""
    value, claims = certificate(tmp_path, by_author(METHODS[method]), **ASKED[method])
    text = card(value, base=None, adapter=False, audits=[], against=[])
    record = claims["record_replace_one_pld"]
    first = text.split("## Audits")[0]
    assert record["unit"].endswith("in a pool that is only trained on with noise")
    assert first.count(record["unit"]) == 2, "in words and in the metadata"
    assert ("the record stays in its pool" in first) is (method == "crt")
    whose = {"crt": "all private points of one author", "dpsgd": "one author: all points"}
    assert record["unit"].startswith(whose[method]) and value["unit"].startswith(whose[method])
    page = (tmp_path / "certificate.md").read_text()
    assert ("What else an author wrote was read as it is" in page) is (method == "crt")
