"""Certificates: what each method may claim, on which condition, and that nothing finite is claimed where nothing holds."""

import json
import math

import pytest

from confide.cli import main
from confide.dp.accounting import epsilon
from confide.dp.confidentiality import amplified
from confide.dp.ledger import Ledger
from confide.errors import InputError
from confide.io import sha256
from confide.specs import CertifySpec, PrivacySpec
from confide.stages.certify import certify
from confide.types import Release, Step

DELTA = 8e-5
AUDIT = {
    "miss_rate": 0.1,
    "miss_rate_upper": 0.142,
    "delta2": 0.0,
    "delta2_upper": 0.0149,
    "confidence": 0.95,
    "multiplicity": 3,
    "multiplicity_distinct": 2,
    "note": None,
}


def step(view, pool, noisy):
    return Release(Step(view, pool, noisy), *((0.05, 2.0, 1.0) if noisy else (0.0, 0.0, 0.0)), 1)


METHODS = {
    "nonprivate": [step("original", "all", False)] * 5,
    "redacted": [step("redacted", "all", False)] * 5,
    "dpsgd": [step("original", "all", True)] * 20,
    "crt": [step("redacted", "public", False)] * 5 + [step("redacted", "private", True)] * 20,
    "crt_unredacted": [step("original", "public", False)] * 5 + [step("original", "private", True)] * 20,
}


def ledger_of(releases, epochs=3):
    ledger = Ledger()
    for number in range(1, epochs + 1):
        for release in releases:
            ledger.append(release)
        ledger.epoch(number)
    return ledger


def certificate(folder, releases, audit=None, init_ledger=None, ledger=None, **spec):
    (folder / "ledger.jsonl").write_text((ledger or ledger_of(releases)).dump())
    (folder / "audit.json").write_text(json.dumps(AUDIT | (audit or {})))
    spec = CertifySpec(**({"run": "r/g0.1-s0", "privacy": PrivacySpec(epsilon=3), "miss_rate": 0.1} | spec))
    places = {"ledger": folder / "ledger.jsonl", "audit": folder / "audit.json", "output": folder / "certificate.json"}
    certify(spec, **places, init_ledger=init_ledger)
    value = json.loads((folder / "certificate.json").read_text())
    return value, {claim["name"]: claim for claim in value["claims"]}


def number(claim):
    return float(claim["epsilon"])


NOISED = [Release(Step("redacted", "private", True), 0.05, 2.0, 1.0, 60)]


@pytest.mark.parametrize(
    ("method", "record", "caught", "missed"),
    [
        ("nonprivate", math.inf, math.inf, math.inf),
        ("redacted", math.inf, 0.0, math.inf),
        ("dpsgd", epsilon(NOISED, DELTA), epsilon(NOISED, DELTA), epsilon(NOISED, DELTA)),
        ("crt", epsilon(NOISED, DELTA), 0.0, epsilon(NOISED, DELTA)),
        ("crt_unredacted", epsilon(NOISED, DELTA), epsilon(NOISED, DELTA), epsilon(NOISED, DELTA)),
    ],
)
def test_theorem_8_part_1_by_method(tmp_path, method, record, caught, missed):
    _, claims = certificate(tmp_path, METHODS[method])
    found = [number(claims[name]) for name in ("record_replace_one_pld", "secret_caught", "secret_missed")]
    assert found == pytest.approx([record, caught, missed])
    assert number(claims["record_replace_one_pld"]) <= number(claims["record_replace_one_rdp"])
    assert number(claims["record_add_or_remove_pld"]) <= number(claims["record_replace_one_pld"])


def test_every_claim_carries_its_meaning(tmp_path):
    for method, releases in METHODS.items():
        for name, claim in certificate(tmp_path, releases)[1].items():
            keys = {"name", "unit", "relation", "epsilon", "delta", "accountant", "conversion", "condition", "sentence"}
            assert set(claim) == keys, (method, name)
            assert all(claim.values()) or claim["epsilon"] == 0
            assert ("infinity" in claim["sentence"]) == (claim["epsilon"] == "inf")


def test_bayesian_claims_of_crt(tmp_path):
    value, claims = certificate(tmp_path, METHODS["crt"])
    assert number(claims["bayesian"]) == pytest.approx(amplified(epsilon(NOISED, DELTA / 0.1), 0.1))
    assert number(claims["bayesian_undivided"]) == pytest.approx(amplified(epsilon(NOISED, DELTA), 0.1))
    assert number(claims["bayesian_upper"]) == pytest.approx(amplified(epsilon(NOISED, DELTA / 0.142), 0.142))
    published = amplified(epsilon(NOISED, DELTA / 0.1, "add_or_remove"), 0.1)
    assert number(claims["bayesian_as_published"]) == pytest.approx(published)
    assert claims["bayesian_missing"]["epsilon"] == 0 and claims["bayesian_missing"]["delta"] == 0.142
    assert "conditional on pi_c" in claims["bayesian"]["condition"]
    head = value["headline"]
    assert head["bayesian_epsilon"] == claims["bayesian"]["epsilon"]
    assert head["record_epsilon"] == claims["record_replace_one_pld"]["epsilon"]
    assert head["bayesian_epsilon_upper"] == claims["bayesian_upper"]["epsilon"]


def test_what_pi_c_may_miss_makes_the_unconditional_claim_infinite(tmp_path):
    _, claims = certificate(tmp_path, METHODS["crt"])
    assert claims["bayesian_unconditional"]["epsilon"] == "inf"  # 200 points bound delta2 by .0149 only
    assert claims["secret_missed_by_both"]["epsilon"] == "inf"
    _, claims = certificate(tmp_path, METHODS["crt"], {"delta2_upper": 1e-5})
    assert number(claims["bayesian_unconditional"]) > number(claims["bayesian_upper"])
    assert number(claims["bayesian_unconditional"]) < math.inf
    _, claims = certificate(tmp_path, METHODS["crt"], {"delta2_upper": 1e-5}, delta2=1e-4)
    assert claims["bayesian_unconditional"]["epsilon"] == "inf"
    value, claims = certificate(tmp_path, METHODS["crt"], everything_private=True)
    assert "bayesian_unconditional" not in claims and "secret_missed_by_both" not in claims
    assert "conditional" not in claims["bayesian"]["condition"] + value["headline"]["condition"]


def test_methods_that_read_everything_do_not_depend_on_pi_c(tmp_path):
    for method in ("dpsgd", "redacted", "nonprivate"):
        _, claims = certificate(tmp_path, METHODS[method])
        assert "bayesian_unconditional" not in claims
        assert "pi_c" not in claims["secret_missed"]["condition"]


def test_redaction_alone_is_bounded_only_by_its_misses(tmp_path):
    _, claims = certificate(tmp_path, METHODS["redacted"])
    assert claims["bayesian"]["epsilon"] == claims["bayesian_upper"]["epsilon"] == "inf"
    _, claims = certificate(tmp_path, METHODS["redacted"], {"miss_rate": 0.0, "miss_rate_upper": 5e-5})
    assert claims["bayesian"]["epsilon"] == claims["bayesian_upper"]["epsilon"] == 0


def test_original_text_is_not_amplified_by_a_policy(tmp_path):
    for method, expected in (
        ("dpsgd", epsilon(NOISED, DELTA)),
        ("crt_unredacted", epsilon(NOISED, DELTA)),
        ("nonprivate", math.inf),
    ):
        _, claims = certificate(tmp_path, METHODS[method], {"miss_rate": 0.0, "miss_rate_upper": 0.01})
        assert number(claims["bayesian"]) == pytest.approx(expected)
        assert "bayesian_missing" not in claims


def test_without_gold_secrets_nothing_bayesian_is_claimed(tmp_path):
    unknown = dict.fromkeys(("miss_rate", "miss_rate_upper", "delta2", "delta2_upper", "multiplicity", "multiplicity_distinct"))
    value, claims = certificate(tmp_path, METHODS["crt"], unknown)
    assert {claims[name]["epsilon"] for name in claims if name.startswith("bayesian")} == {"inf"}
    assert "no gold secrets" in claims["bayesian"]["condition"]
    assert value["headline"]["bayesian_epsilon"] == "inf" and value["headline"]["record_epsilon"] < 10
    assert "group_after_dedup" not in claims
    _, claims = certificate(tmp_path, METHODS["dpsgd"], unknown)  # needs no gamma
    assert number(claims["bayesian"]) == pytest.approx(epsilon(NOISED, DELTA))


def test_the_measured_miss_rate_governs_and_both_are_shown(tmp_path):
    value, claims = certificate(tmp_path, METHODS["crt"], {"miss_rate": 0.2, "miss_rate_upper": 0.3}, miss_rate=0.05)
    assert value["policy"]["miss_rate_simulated"] == 0.05 and value["policy"]["miss_rate"] == 0.2
    assert number(claims["bayesian"]) == pytest.approx(amplified(epsilon(NOISED, DELTA / 0.2), 0.2))


def test_groups(tmp_path):
    _, claims = certificate(tmp_path, METHODS["crt"])
    one, two, three = (number(claims[name]) for name in ("secret_missed", "group_after_dedup", "group_before_dedup"))
    assert one < two < three
    _, claims = certificate(tmp_path, METHODS["crt"], dedup=False)
    assert "group_after_dedup" not in claims and number(claims["group_before_dedup"]) == three
    _, claims = certificate(tmp_path, METHODS["redacted"])
    assert claims["group_after_dedup"]["epsilon"] == "inf"


def test_epochs_rise_to_the_headline(tmp_path):
    value, _ = certificate(tmp_path, METHODS["crt"])
    for name in ("record_epsilon", "bayesian_epsilon"):
        prices = [epoch[name] for epoch in value["epochs"]]
        assert 0 < prices[0] < prices[1] < prices[2] == value["headline"][name]
    assert [epoch["epoch"] for epoch in value["epochs"]] == [1, 2, 3]
    first = epsilon([Release(Step("redacted", "private", True), 0.05, 2.0, 1.0, 20)], DELTA)
    assert value["epochs"][0]["record_epsilon"] == pytest.approx(first, rel=1e-3)
    bare, _ = certificate(tmp_path, METHODS["nonprivate"])
    assert {epoch["record_epsilon"] for epoch in bare["epochs"]} == {"inf"}


def test_an_epoch_before_any_noise_costs_nothing(tmp_path):
    ledger = Ledger()
    ledger.append(METHODS["crt"][0])
    ledger.epoch(1)
    ledger.append(METHODS["crt"][-1])
    ledger.epoch(2)
    value, _ = certificate(tmp_path, [], ledger=ledger)
    assert value["epochs"][0]["record_epsilon"] == value["epochs"][0]["bayesian_epsilon"] == 0
    assert value["epochs"][1]["record_epsilon"] == value["headline"]["record_epsilon"] > 0


def test_warm_starts_are_composed_unless_public(tmp_path):
    source = ledger_of(METHODS["crt"])
    (tmp_path / "source.jsonl").write_text(source.dump())
    started, public = Ledger(), Ledger()
    started.init("source/g0-s0", public=False, ledger=source.dump())
    public.init("source/g0-s0", public=True, ledger=source.dump())
    for ledger in (started, public):
        ledger.append(METHODS["crt"][-1])
        ledger.epoch(1)
    value, claims = certificate(tmp_path, [], ledger=started, init_ledger=[tmp_path / "source.jsonl"])
    both = [Release(Step("redacted", "private", True), 0.05, 2.0, 1.0, 61)]
    assert number(claims["record_replace_one_pld"]) == pytest.approx(epsilon(both, DELTA), rel=1e-3)
    assert value["epochs"][-1]["record_epsilon"] == value["headline"]["record_epsilon"]
    assert value["warm_start"] == [{"source": "source/g0-s0", "public": False, "ledger": source.head}]
    _, claims = certificate(tmp_path, [], ledger=public)
    assert number(claims["record_replace_one_pld"]) == pytest.approx(epsilon(METHODS["crt"][-1:], DELTA))
    (tmp_path / "other.jsonl").write_text(ledger_of(METHODS["dpsgd"]).dump())
    for given in (None, [tmp_path / "other.jsonl"]):
        with pytest.raises(InputError, match=r"ledger.jsonl: init = 'source/g0-s0': the ledger of the run"):
            certificate(tmp_path, [], ledger=started, init_ledger=given)


def test_a_warm_start_from_a_bare_run_is_infinite(tmp_path):
    source = ledger_of(METHODS["nonprivate"])
    (tmp_path / "source.jsonl").write_text(source.dump())
    started = Ledger()
    started.init("bare", public=False, ledger=source.dump())
    started.append(METHODS["crt"][-1])
    started.epoch(1)
    value, claims = certificate(tmp_path, [], ledger=started, init_ledger=[tmp_path / "source.jsonl"])
    assert {claims[name]["epsilon"] for name in claims} == {"inf"}
    assert value["epochs"][0]["bayesian_epsilon"] == "inf"


def test_reproducible_noise_is_not_for_release(tmp_path):
    value, _ = certificate(tmp_path, METHODS["crt"])
    assert value["noise_reproducible"] and "not for release" in value["release_note"]
    value, _ = certificate(tmp_path, METHODS["crt"], noise_seed=None)
    assert not value["noise_reproducible"] and value["release_note"] is None
    assert not certificate(tmp_path, METHODS["redacted"])[0]["noise_reproducible"]


def test_units_hashes_and_updates(tmp_path):
    value, claims = certificate(tmp_path, METHODS["crt"], point="dialogue")
    assert value["unit"] == "one whole dialogue" and "one whole dialogue" in claims["record_replace_one_pld"]["unit"]
    assert value["hashes"]["ledger"] == sha256(tmp_path / "ledger.jsonl")
    assert value["hashes"]["audit"] == sha256(tmp_path / "audit.json")
    assert value["hashes"]["ledger_head"] == ledger_of(METHODS["crt"]).head
    assert value["updates"] == {"exact redacted public": 15, "noisy redacted private": 60}


@pytest.mark.parametrize(
    ("audit", "message"),
    [
        ({"miss_rate": 1.5}, "miss_rate = 1.5"),
        ({"delta2_upper": "x"}, "delta2_upper = 'x'"),
        ({"miss_rate_upper": -1}, "miss_rate_upper"),
    ],
)
def test_bad_audits_are_refused(tmp_path, audit, message):
    with pytest.raises(InputError, match=message):
        certificate(tmp_path, METHODS["crt"], audit)
    assert not (tmp_path / "certificate.json").exists()


def test_a_warm_start_that_the_ledger_does_not_know_is_refused(tmp_path):
    with pytest.raises(InputError, match="init = 'source': the run was warm-started"):
        certificate(tmp_path, METHODS["crt"], init="source")


def test_empty_ledgers_are_refused(tmp_path):
    with pytest.raises(InputError, match="holds no update"):
        certificate(tmp_path, [], ledger=Ledger())


def test_a_tampered_ledger_is_one_line_on_the_command_line(tmp_path, capsys):
    certificate(tmp_path, METHODS["crt"])
    (tmp_path / "certificate.json").unlink()
    path = tmp_path / "ledger.jsonl"
    path.write_text(path.read_text().replace('"noise_multiplier":2.0', '"noise_multiplier":20.0', 1))
    places = [item for name in ("ledger", "audit") for item in (f"--{name}", str(next(tmp_path.glob(f"{name}.*"))))]
    status = main(["certify", "--spec", '{"run": "r"}', *places, "--output", str(tmp_path / "certificate.json")])
    err = capsys.readouterr().err
    assert status == 2 and err.count("\n") == 1 and "ledger.jsonl:2: hash: was altered" in err
    assert not (tmp_path / "certificate.json").exists()
