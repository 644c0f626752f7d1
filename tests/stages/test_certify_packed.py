"""Certificates where training read chunks: the group that a point and a secret are, and the
condition that lengths stay.
"""

import math
from dataclasses import replace

import pytest
from certified import ASKED, DELTA, METHODS, append, certificate, ledger_of, number, source_of, step

from confide.certify.confidentiality import amplified
from confide.certify.facts import HIDDEN_TOO, LENGTHS, UNITS
from confide.certify.gate import cases
from confide.commands.rerun import certified as of_rerun
from confide.commands.verify import verify
from confide.dp.accounting.audit_bounds import SHARES, numbers
from confide.dp.accounting.price import epsilon, group
from confide.dp.ledger import Ledger
from confide.errors import InputError
from confide.files.io import read_json, write_json
from tests.releases import noised

NOISED = [noised(count=60, view="original", pool="all")]
CRT = [step("redacted", "private", True)] * 20
JFT = [step("redacted", "all", False, "unmasked")] * 5 + [step("original", "all", True)] * 20
EMPTY = {"pools": {"public": 0, "private": 8}}
WHOLE = UNITS["dialogues"]["dialogue"]
LONGER = "anything else shifts all chunks behind it (epsilon = infinity)"


def packed(folder, releases, most=3, views="original", measured=None, ledger=None, **given):
    """A certificate of a run that read chunks of 1024 tokens, its claims, and its page."""
    ledger = ledger or ledger_of(releases)
    if most is not None:
        ledger.packed(tokens=1024, most=most, views=views)
    given = {"pack": 1024, "everything_private": True, "point": "dialogue", "dedup": False} | given
    value, claims = certificate(folder, [], EMPTY | (measured or {}), ledger=ledger, **given)
    return value, claims, (folder / "certificate.md").read_text()


def test_a_record_is_a_chunk_and_a_dialogue_is_a_group_of_chunks(tmp_path):
    value, claims, page = packed(tmp_path, METHODS["dpsgd"])
    assert value["unit"] == value["headline"]["unit"] == "one chunk of 1024 tokens"
    for relation in ("replace_one", "add_or_remove"):
        record = claims[f"record_{relation}_pld"]
        assert record["unit"].startswith("one chunk of 1024 tokens in a pool")
        assert (
            number(record) == pytest.approx(epsilon(NOISED, DELTA, relation))
            and LONGER not in record["condition"]
        )
    whole = claims["point_replace_one"]
    more = claims["point_add_or_remove"]
    assert whole["unit"].startswith(f"{WHOLE}, in at most 3 chunks")
    assert (
        number(whole) == pytest.approx(group(NOISED, DELTA, 3)[0]) and LONGER in whole["condition"]
    )
    assert number(whole) > 2 * number(claims["record_replace_one_pld"])
    assert more["epsilon"] == "inf" and "shifts every chunk" in more["condition"]
    assert (
        value["public_constants"]["chunks_of_a_point"] == 3
        and "chunks of a point 3" in page
        and LONGER in page
    )
    plain, theirs = certificate(tmp_path, METHODS["dpsgd"])
    assert "chunk" not in str(theirs) + plain["unit"] and "point_replace_one" not in theirs


@pytest.mark.parametrize(("most", "pieces"), [(1, 1), (2, 2), (7, 2)])
def test_a_secret_lies_in_two_chunks_unless_no_point_is_cut(tmp_path, most, pieces):
    """All of its occurrences lie in any of those that a point is cut into."""
    _, claims, _ = packed(tmp_path, METHODS["dpsgd"], most)
    expected = group(NOISED, DELTA, pieces)[0]
    for name in ("secret_caught", "secret_missed", "bayesian"):
        assert (
            number(claims[name]) == pytest.approx(expected) and LONGER in claims[name]["condition"]
        )
    assert claims["secret_missed"]["unit"] == (
        f"one secret{' of fewer than 1024 tokens' if pieces == 2 else ''} within {WHOLE}"
    )
    assert claims["secret_other_length"]["epsilon"] == "inf"
    assert number(claims["group_before_dedup"]) == pytest.approx(group(NOISED, DELTA, 3 * most)[0])
    assert number(claims["point_replace_one"]) == pytest.approx(group(NOISED, DELTA, most)[0])


def test_a_caught_secret_leaves_redacted_chunks_as_they_are_whatever_its_length(tmp_path):
    value, claims, _ = packed(tmp_path, CRT, views="redacted")
    assert (
        claims["secret_caught"]["epsilon"] == 0
        and LONGER not in claims["secret_caught"]["condition"]
    )
    missed = group(NOISED, DELTA, 2)[0]
    assert (
        number(claims["secret_missed"]) == pytest.approx(missed)
        and LONGER in claims["secret_missed"]["condition"]
    )
    assert number(claims["bayesian"]) == pytest.approx(
        amplified(group(NOISED, DELTA / 0.1, 2)[0], 0.1)
    )
    assert LONGER in claims["bayesian"]["condition"]
    assert "in each text that training reads, as it is or with masks" in LENGTHS
    assert not any(HIDDEN_TOO in claim["condition"] for claim in claims.values())
    assert (
        claims["bayesian_missing"]["epsilon"] == 0
        and LONGER not in claims["bayesian_missing"]["condition"]
    )
    assert (
        value["headline"]["bayesian_epsilon"]
        == claims["bayesian"]["epsilon"]
        == value["epochs"][-1]["bayesian_epsilon"]
    )
    assert value["headline"]["record_epsilon"] == claims["record_replace_one_pld"]["epsilon"]
    prices = [epoch["bayesian_epsilon"] for epoch in value["epochs"]]
    assert 0 < prices[0] < prices[1] < prices[2]
    # where both views were packed side by side, the number of chunks is that of the longer one
    _, claims, _ = packed(tmp_path, CRT, views="original redacted")
    assert (
        claims["secret_caught"]["epsilon"] == 0 and LONGER in claims["secret_caught"]["condition"]
    )


def test_jft_protects_what_is_caught_and_as_long(tmp_path):
    _, claims, _ = packed(tmp_path, JFT, views="original redacted")
    assert claims["secret_missed"]["epsilon"] == claims["point_replace_one"]["epsilon"] == "inf"
    assert number(claims["secret_caught"]) == pytest.approx(group(NOISED, DELTA, 2)[0])
    assert LONGER in claims["secret_caught"]["condition"]
    # no mask is as long as the secret, and what the policy does not hide exact updates read
    for name in ("secret_caught", "bayesian_missing"):
        assert HIDDEN_TOO in claims[name]["condition"]
    assert number(claims["group_caught"]) == pytest.approx(group(NOISED, DELTA, 3 * 3)[0])
    assert number(claims["bayesian_missing"]) == pytest.approx(number(claims["secret_caught"]))
    assert "caught_replace_one_rdp" not in claims
    _, claims, _ = packed(tmp_path, JFT, 1, views="original redacted")  # no dialogue is cut
    assert (
        number(claims["secret_caught"]) == pytest.approx(epsilon(NOISED, DELTA))
        and "caught_replace_one_rdp" in claims
    )


def test_exact_updates_on_the_original_text_stay_infinite(tmp_path):
    _, claims, _ = packed(tmp_path, METHODS["nonprivate"])
    assert {claim["epsilon"] for claim in claims.values()} == {"inf"}
    assert "exact updates" in claims["point_replace_one"]["condition"]
    _, claims, _ = packed(tmp_path, METHODS["redacted"], views="redacted")
    assert claims["secret_caught"]["epsilon"] == 0 and claims["secret_missed"]["epsilon"] == "inf"


@pytest.mark.parametrize(
    ("most", "given", "message"),
    [
        (None, {}, "packed: the ledger does not say once"),
        (3, {"pack": None}, "packed: the ledger does not say once"),
        (3, {"pack": 512}, "packed: the ledger does not say once"),
        (3, {"everything_private": False}, "everything_private = False: chunks mix"),
    ],
)
def test_ledger_and_settings_must_agree(tmp_path, most, given, message):
    with pytest.raises(InputError, match=message):
        packed(tmp_path, METHODS["dpsgd"], most, **given)


def test_a_warm_start_from_protected_text_is_not_composed(tmp_path):
    source = source_of(METHODS["dpsgd"])
    started = Ledger()
    (tmp_path / "source.jsonl").write_text(source.dump())
    started.init("source/g0-s0", public=False, ledger=source.dump())
    append(started, METHODS["dpsgd"][0])
    started.epoch(1)
    _, claims, _ = packed(tmp_path, [], ledger=started, start_ledgers=[tmp_path / "source.jsonl"])
    assert {claim["epsilon"] for claim in claims.values()} == {"inf"}
    assert "read in chunks" in claims["record_replace_one_pld"]["condition"]


@pytest.mark.parametrize("event", [{"tokens": 1, "most": 1}, {"tokens": 1024, "most": 0}])
def test_a_ledger_cannot_make_a_group_of_nobody(event):
    ledger = Ledger()
    ledger.packed(**event, views="original")
    with pytest.raises(InputError, match="chunks have at least 2 tokens"):
        Ledger.load(ledger.dump())


def test_verify_makes_it_again(tmp_path, capsys):
    packed(tmp_path, METHODS["dpsgd"], **ASKED["dpsgd"])
    verify(tmp_path / "certificate.json", root=tmp_path)
    assert "one chunk of 1024 tokens" in capsys.readouterr().out


def test_the_gate_holds_masks_and_planted_points_against_nothing_finite(tmp_path):
    """The games put a mask in a secret's place, or a point more: neither is what is claimed of
    texts of equal length.
    """

    def judged():
        value = read_json(tmp_path / "certificate.json")
        audit = {
            "attack": "game",
            "run": "r/g0.1-s0",
            "weights": value["files"]["model"][0]["sha256"],
        }
        for game, relation in (("game", "replace_one"), ("inclusion", "add_or_remove")):
            right = [[guesses, guesses] for guesses in numbers(1000, SHARES)]
            audit |= {
                f"{game}_coins": 1000,
                f"{game}_attempts": right,
                f"{game}_relation": relation,
            }
        write_json(tmp_path / "game.json", audit)
        return {
            case.audit: case.outcome
            for case in cases(tmp_path / "certificate.json", tmp_path / "game.json")
        }

    packed(tmp_path, METHODS["dpsgd"])
    assert judged() == {"game": "skipped", "inclusion": "skipped"}
    planted = {"secrets": 9, "sampled": 9, "different": 0, "exposed": 0}
    packed(tmp_path, CRT, views="redacted", measured={"planted": planted})
    assert judged()["game"] == "refuted"  # nothing of a caught secret may show
    certificate(tmp_path, METHODS["dpsgd"])
    assert judged() == {"game": "refuted", "inclusion": "refuted"}


def test_a_rerun_with_a_mask_certifies_only_what_leaves_no_trace():
    crt = [replace(one, count=60) for one in CRT[:1]]
    assert (
        of_rerun("same", crt, DELTA, packed=True) == 0
        and of_rerun("private", crt, DELTA, packed=True) == math.inf
    )
    assert of_rerun("private", crt, DELTA) == pytest.approx(epsilon(NOISED, DELTA))
