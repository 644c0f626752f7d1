"""Certificates: what each method may claim, on which condition, and that nothing finite is claimed
where nothing holds.
"""

import math

import pytest
from certified import (
    ASKED,
    DELTA,
    HASHED,
    METHODS,
    RECIPE,
    TOKENIZER,
    append,
    certificate,
    closed,
    files_of,
    ledger_of,
    number,
    source_of,
    spec_of,
)

from confide.certify.certificate import IN_BFLOAT16
from confide.certify.confidentiality import amplified
from confide.certify.facts import CONSERVATIVE
from confide.cli import main
from confide.commands.release import own_objections
from confide.commands.verify import verified
from confide.dp.accounting.price import epsilon
from confide.dp.ledger import Ledger
from confide.errors import InputError
from confide.files.io import sha256
from confide.stages.certify import certify
from confide.types import StateRelease
from tests.releases import noised

NOISED = [noised(count=60)]


@pytest.mark.parametrize(
    ("method", "record", "caught", "missed"),
    [
        ("nonprivate", math.inf, math.inf, math.inf),
        ("redacted", math.inf, 0.0, math.inf),
        ("dpsgd", epsilon(NOISED, DELTA), epsilon(NOISED, DELTA), epsilon(NOISED, DELTA)),
        ("crt", epsilon(NOISED, DELTA), 0.0, epsilon(NOISED, DELTA)),
        ("crt_unredacted", epsilon(NOISED, DELTA), epsilon(NOISED, DELTA), epsilon(NOISED, DELTA)),
        ("selective", math.inf, epsilon(NOISED, DELTA), math.inf),
        (
            "selective_noise",
            math.inf,
            epsilon(
                [
                    *NOISED,
                    StateRelease(noise_multiplier=2.0, max_grad_norm=1.0, count=12),
                ],
                DELTA,
            ),
            math.inf,
        ),
        ("selective_published", math.inf, math.inf, math.inf),
        ("sa_adp", math.inf, math.inf, math.inf),
    ],
)
def test_theorem_8_part_1_by_method(tmp_path, method, record, caught, missed):
    _, claims = certificate(tmp_path, METHODS[method])
    found = [
        number(claims[name])
        for name in ("record_replace_one_pld", "secret_caught", "secret_missed")
    ]
    assert found == pytest.approx([record, caught, missed])
    assert number(claims["record_replace_one_pld"]) <= number(claims["record_replace_one_rdp"])
    assert number(claims["record_add_or_remove_pld"]) <= number(claims["record_replace_one_pld"])


def test_every_claim_carries_its_meaning(tmp_path):
    for method, releases in METHODS.items():
        asked = ASKED["untouched"] if method == "untouched" else {}
        for name, claim in certificate(tmp_path, releases, **asked)[1].items():
            keys = {
                "name",
                "unit",
                "relation",
                "epsilon",
                "delta",
                "accountant",
                "conversion",
                "condition",
                "sentence",
            }
            assert set(claim) == keys, (method, name)
            assert all(claim.values()) or claim["epsilon"] == 0
            assert ("infinity" in claim["sentence"]) == (claim["epsilon"] == "inf")


def test_bayesian_claims_of_crt(tmp_path):
    value, claims = certificate(tmp_path, METHODS["crt"])
    assert number(claims["bayesian"]) == pytest.approx(amplified(epsilon(NOISED, DELTA / 0.1), 0.1))
    assert number(claims["bayesian_undivided"]) == pytest.approx(
        amplified(epsilon(NOISED, DELTA), 0.1)
    )
    assert number(claims["bayesian_upper"]) == pytest.approx(
        amplified(epsilon(NOISED, DELTA / 0.142), 0.142)
    )
    published = amplified(epsilon(NOISED, DELTA / 0.1, "add_or_remove"), 0.1)
    assert number(claims["bayesian_as_published"]) == pytest.approx(published)
    assert (
        claims["bayesian_missing"]["epsilon"] == 0 and claims["bayesian_missing"]["delta"] == 0.142
    )
    assert "conditional on pi_c" in claims["bayesian"]["condition"]
    head = value["headline"]
    assert head["bayesian_epsilon"] == claims["bayesian"]["epsilon"]
    assert head["record_epsilon"] == claims["record_replace_one_pld"]["epsilon"]
    assert head["bayesian_epsilon_upper"] == claims["bayesian_upper"]["epsilon"]


@pytest.mark.parametrize("method", ["crt", "selective"])
def test_a_claim_that_allows_everything_is_none(tmp_path, method):
    """Where the policy may miss every secret, delta would be 1, and epsilon = 0 looks perfect."""
    some = {"gamma": 0.1, "gamma_upper": 0.9}
    assert "bayesian_missing" in certificate(tmp_path, METHODS[method], some)[1]
    every = {"gamma": 0.1, "gamma_upper": 1.0}
    _, claims = certificate(tmp_path, METHODS[method], every)
    assert "bayesian_missing" not in claims
    assert "bayesian_upper" in claims and all(claim["delta"] < 1 for claim in claims.values())


def test_what_pi_c_may_miss_makes_the_unconditional_claim_infinite(tmp_path):
    _, claims = certificate(tmp_path, METHODS["crt"])
    assert (
        claims["bayesian_unconditional"]["epsilon"] == "inf"
    )  # 200 points bound delta2 by .0149 only
    assert claims["secret_missed_by_both"]["epsilon"] == "inf"
    _, claims = certificate(tmp_path, METHODS["crt"], {"delta2_upper": 1e-5})
    assert number(claims["bayesian_unconditional"]) > number(claims["bayesian_upper"])
    assert number(claims["bayesian_unconditional"]) < math.inf
    _, claims = certificate(tmp_path, METHODS["crt"], {"delta2_upper": 1e-5}, delta2=1e-4)
    assert claims["bayesian_unconditional"]["epsilon"] == "inf"
    value, claims = certificate(
        tmp_path, METHODS["crt"], {"pools": {"public": 0, "private": 8}}, everything_private=True
    )
    assert "bayesian_unconditional" not in claims and "secret_missed_by_both" not in claims
    assert "conditional" not in claims["bayesian"]["condition"] + value["headline"]["condition"]


def test_methods_that_read_everything_do_not_depend_on_pi_c(tmp_path):
    for method in ("dpsgd", "redacted", "nonprivate", "selective"):
        _, claims = certificate(tmp_path, METHODS[method])
        assert "bayesian_unconditional" not in claims
        assert CONSERVATIVE not in claims["secret_missed"]["condition"]


def test_redaction_alone_is_bounded_only_by_its_misses(tmp_path):
    _, claims = certificate(tmp_path, METHODS["redacted"])
    assert claims["bayesian"]["epsilon"] == claims["bayesian_upper"]["epsilon"] == "inf"
    _, claims = certificate(tmp_path, METHODS["redacted"], {"gamma": 0.0, "gamma_upper": 5e-5})
    assert claims["bayesian"]["epsilon"] == claims["bayesian_upper"]["epsilon"] == 0


def test_original_text_is_not_amplified_by_a_policy(tmp_path):
    for method, expected in (
        ("dpsgd", epsilon(NOISED, DELTA)),
        ("crt_unredacted", epsilon(NOISED, DELTA)),
        ("nonprivate", math.inf),
    ):
        _, claims = certificate(tmp_path, METHODS[method], {"gamma": 0.0, "gamma_upper": 0.01})
        assert number(claims["bayesian"]) == pytest.approx(expected)
        assert "bayesian_missing" not in claims


def test_the_measured_miss_rate_governs_and_both_are_shown(tmp_path):
    value, claims = certificate(
        tmp_path, METHODS["crt"], {"gamma": 0.2, "gamma_upper": 0.3}, miss_rate=0.05
    )
    assert value["policy"]["miss_rate_simulated"] == 0.05 and value["policy"]["gamma"] == 0.2
    assert number(claims["bayesian"]) == pytest.approx(amplified(epsilon(NOISED, DELTA / 0.2), 0.2))


def test_groups(tmp_path):
    _, claims = certificate(tmp_path, METHODS["crt"])
    one, two, three = (
        number(claims[name])
        for name in ("secret_missed", "group_after_dedup", "group_before_dedup")
    )
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
    first = epsilon([noised(count=20)], DELTA)
    assert value["epochs"][0]["record_epsilon"] == pytest.approx(first, rel=1e-3)
    bare, _ = certificate(tmp_path, METHODS["nonprivate"])
    assert {epoch["record_epsilon"] for epoch in bare["epochs"]} == {"inf"}


def test_an_epoch_before_any_noise_costs_nothing(tmp_path):
    ledger = Ledger()
    append(ledger, METHODS["crt"][0])
    ledger.epoch(1)
    append(ledger, METHODS["crt"][-1])
    ledger.epoch(2)
    value, _ = certificate(tmp_path, [], ledger=ledger)
    assert value["epochs"][0]["record_epsilon"] == value["epochs"][0]["bayesian_epsilon"] == 0
    assert value["epochs"][1]["record_epsilon"] == value["headline"]["record_epsilon"] > 0


def test_warm_starts_are_composed_unless_public(tmp_path):
    source = source_of(METHODS["crt"])
    published = source_of(METHODS["nonprivate"], public=True, corpus="b" * 64)
    (tmp_path / "source.jsonl").write_text(source.dump())
    (tmp_path / "published.jsonl").write_text(published.dump())
    started = Ledger()
    public = Ledger()
    started.init("source/g0-s0", public=False, ledger=source.dump())
    public.init("source/g0-s0", public=True, ledger=published.dump())
    for ledger in (started, public):
        append(ledger, METHODS["crt"][-1])
        ledger.epoch(1)
    value, claims = certificate(
        tmp_path, [], ledger=started, start_ledgers=[tmp_path / "source.jsonl"]
    )
    both = [noised(count=61)]
    assert number(claims["record_replace_one_pld"]) == pytest.approx(epsilon(both, DELTA), rel=1e-3)
    assert value["epochs"][-1]["record_epsilon"] == value["headline"]["record_epsilon"]
    assert value["warm_start"] == [
        {"source": "source/g0-s0", "public": False, "ledger": source.head}
    ]
    _, claims = certificate(
        tmp_path, [], ledger=public, start_ledgers=[tmp_path / "published.jsonl"]
    )
    assert number(claims["record_replace_one_pld"]) == pytest.approx(
        epsilon(METHODS["crt"][-1:], DELTA)
    )
    (tmp_path / "other.jsonl").write_text(source_of(METHODS["dpsgd"]).dump())
    for given in (None, [tmp_path / "other.jsonl"]):
        with pytest.raises(
            InputError, match=r"ledger: init = 'source/g0-s0': the ledger of the run"
        ):
            certificate(tmp_path, [], ledger=started, start_ledgers=given)


def test_a_warm_start_from_a_bare_run_is_infinite(tmp_path):
    source = source_of(METHODS["nonprivate"])
    (tmp_path / "source.jsonl").write_text(source.dump())
    started = Ledger()
    started.init("bare", public=False, ledger=source.dump())
    append(started, METHODS["crt"][-1])
    started.epoch(1)
    value, claims = certificate(
        tmp_path, [], ledger=started, start_ledgers=[tmp_path / "source.jsonl"]
    )
    assert {claims[name]["epsilon"] for name in claims} == {"inf"}
    assert value["epochs"][0]["bayesian_epsilon"] == "inf"


def claimed(tmp_path, **given):
    value, claims = certificate(tmp_path, METHODS["crt"], **given)
    assert {claims[name]["epsilon"] for name in claims} == {"inf"} and set(value["headline"]) >= {
        "record_epsilon"
    }
    assert (
        value["headline"]["bayesian_epsilon"] == "inf"
        and value["epochs"][-1]["record_epsilon"] == "inf"
    )
    assert value["unaccounted"][0] in claims["secret_caught"]["condition"]
    assert value["unaccounted"][0] in (tmp_path / "certificate.md").read_text()
    return value["unaccounted"]


def test_a_stage_that_read_protected_text_unaccounted_makes_everything_infinite(tmp_path):
    for public, reasons in (
        (True, []),
        (False, ["the tokenizer bpe was made from protected text without accounting"]),
    ):
        ledger = ledger_of(METHODS["crt"])
        ledger.read("tokenizer", "bpe", public=public, digest=TOKENIZER)
        if not public:
            assert claimed(tmp_path, ledger=ledger) == reasons
        else:
            value, claims = certificate(tmp_path, METHODS["crt"], ledger=ledger)
            assert value["unaccounted"] == reasons and claims["secret_caught"]["epsilon"] == 0
        assert value["reads"][0]["source"] == "bpe"


def test_noise_that_was_drawn_twice_and_misaligned_neighbours_leave_nothing_to_claim(tmp_path):
    ledger = ledger_of(METHODS["crt"])
    append(
        ledger, METHODS["crt"][-1], 5
    )  # the state after the first epoch's first noisy update ... again
    append(ledger, METHODS["crt"][0])
    append(ledger, METHODS["crt"][-1], 5)
    assert claimed(tmp_path, ledger=ledger) == ["the same noise was drawn twice"]
    assert "changed more than one point" in claimed(tmp_path, measured={"misaligned": 3})[0]


@pytest.mark.parametrize("key", ["confidence", "sampled", "secrets"])
def test_miss_rates_without_their_sample_are_refused(tmp_path, key):
    with pytest.raises(InputError, match=key):
        claimed(tmp_path, measured={key: None})


def test_what_is_wrong_with_a_start_is_wrong_with_what_started_from_it(tmp_path):
    leaky = ledger_of(METHODS["crt"])
    same = ledger_of(METHODS["crt"])
    leaky.read("tokenizer", "bpe", public=False, digest="1" * 64)
    for source, reason in ((leaky, "made from protected text"), (same, "the same noise")):
        closed(source)
        (tmp_path / "source.jsonl").write_text(source.dump())
        started = Ledger()
        started.init("source/g0-s0", public=False, ledger=source.dump())
        append(started, METHODS["crt"][-1], 5 if source is leaky else int(source.states()[0], 16))
        started.epoch(1)
        given = {"ledger": started, "start_ledgers": [tmp_path / "source.jsonl"]}
        assert reason in claimed(tmp_path, **given)[0]


def test_a_ledger_that_was_cut_off_is_refused(tmp_path):
    places = files_of(tmp_path, METHODS["crt"])
    lines = places["ledger"].read_text().splitlines(keepends=True)
    for count in (len(lines) - 1, len(lines) // 2):
        places["ledger"].write_text("".join(lines[:count]))
        with pytest.raises(InputError, match="does not end with the number of its updates"):
            certify(**places)


def test_reproducible_noise_is_not_for_release(tmp_path):
    value, _ = certificate(tmp_path, METHODS["crt"])
    assert value["noise_reproducible"] and "not for release" in value["release_note"]
    value, _ = certificate(tmp_path, METHODS["crt"], noise_seed=None)
    assert not value["noise_reproducible"] and value["release_note"] is None
    assert not certificate(tmp_path, METHODS["redacted"])[0]["noise_reproducible"]


def test_what_was_trained_on_texts_of_a_model_is_not_for_release_by_itself(tmp_path):
    """Its claims are of these texts. A secret that the model before has told in all of them is in
    this one, too, and no noise on one text hides it.
    """
    value, _ = certificate(
        tmp_path, METHODS["dpsgd"], noise_seed=None, synthetic=True, **ASKED["dpsgd"]
    )
    assert "a model wrote the text" in value["release_note"]
    assert own_objections(value) == [value["release_note"]]
    assert verified(tmp_path / "certificate.json")["release_note"] == value["release_note"]
    value, _ = certificate(tmp_path, METHODS["dpsgd"], synthetic=True, **ASKED["dpsgd"])
    assert all(words in value["release_note"] for words in ("recorded seed", "a model wrote"))


def test_units_hashes_and_updates(tmp_path):
    value, claims = certificate(tmp_path, METHODS["crt"], point="dialogue")
    assert (
        value["unit"] == "one whole dialogue as one row or file has it"
        and "one whole dialogue as one row or file has it"
        in claims["record_replace_one_pld"]["unit"]
    )
    for name in ("ledger", "recall", "neighbours", *HASHED):
        assert value["files"][name] == [
            {"path": str(tmp_path / name), "sha256": sha256(tmp_path / name)}
        ]
    assert value["ledger_head"] == Ledger.from_file(tmp_path / "ledger").head
    assert value["updates"] == {"exact redacted public": 15, "noisy redacted private": 60}
    found = certificate(tmp_path, METHODS["selective"])[0]["updates"]
    exact = "exact original all, public tokens, state reset"
    noisy = "noisy original marked, private tokens, state reset"
    assert found == {exact: 15, noisy: 60}


@pytest.mark.parametrize(
    ("recall", "message"),
    [
        ({"gamma": 1.5}, "gamma: Input should be less than"),
        ({"delta2_upper": "x"}, "delta2_upper: Input should be a valid number"),
        ({"gamma_upper": -1}, "gamma_upper"),
    ],
)
def test_bad_measurements_are_refused(tmp_path, recall, message):
    with pytest.raises(InputError, match=message):
        certificate(tmp_path, METHODS["crt"], recall)
    assert not (tmp_path / "certificate.json").exists()


def test_a_warm_start_that_the_ledger_does_not_know_is_refused(tmp_path):
    with pytest.raises(InputError, match="init = 'source': the run was warm-started"):
        certificate(tmp_path, METHODS["crt"], init="source")


def test_empty_ledgers_are_refused(tmp_path):
    with pytest.raises(InputError, match="holds no update"):
        certificate(tmp_path, [], ledger=Ledger())


def test_a_model_without_training_tells_nothing(tmp_path):
    claims = certificate(tmp_path, METHODS["untouched"], **ASKED["untouched"])[1]
    names = ("record_replace_one_pld", "record_add_or_remove_pld", "secret_missed", "secret_caught")
    assert [number(claims[name]) for name in names] == [0, 0, 0, 0]


def test_a_tampered_ledger_is_one_line_on_the_command_line(tmp_path, capsys):
    places = files_of(tmp_path, METHODS["crt"])
    path = tmp_path / "ledger"
    path.write_text(
        path.read_text().replace('"noise_multiplier":2.0', '"noise_multiplier":20.0', 1)
    )
    spec = places.pop("spec").model_dump_json()
    flags = [item for name, place in places.items() if place for item in (f"--{name}", str(place))]
    status = main(["certify", "--spec", spec, *flags])
    err = capsys.readouterr().err
    assert status == 2 and err.count("\n") == 1 and "ledger:2: hash: was altered" in err
    assert (
        not (tmp_path / "certificate.json").exists() and not (tmp_path / "certificate.md").exists()
    )


@pytest.mark.parametrize(("method", "assumed"), [("dpsgd", True), ("redacted", False)])
def test_what_a_batch_rounds_together_is_named_where_it_is_much(tmp_path, method, assumed):
    """Without noise there is nothing that it could be too much for."""
    for precision in ("bfloat16", "float32"):
        folder = tmp_path / precision
        folder.mkdir()
        recipe = ASKED[method].get("recipe", RECIPE) | {"precision": precision}
        value, _ = certificate(folder, METHODS[method], **(ASKED[method] | {"recipe": recipe}))
        assert (IN_BFLOAT16 in value["assumptions"]) is (assumed and precision == "bfloat16")


def test_what_frozen_weights_round_is_named():
    """All activations pass through them, so that it is as much as with products in bfloat16."""
    for frozen in ("bfloat16", "float32"):
        model = {"kind": "causal_lm", "pretrained": "a/b", "adapter": {}, "frozen_dtype": frozen}
        assert spec_of(model=model).train.arithmetic == frozen


def test_a_ledger_of_another_arithmetic_is_refused(tmp_path):
    with pytest.raises(InputError, match="arithmetic = 'bfloat16': is not that of the settings"):
        certificate(tmp_path, METHODS["crt"], arithmetic="bfloat16")
