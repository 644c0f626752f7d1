"""The gate: what stands, what is refuted, what an audit could not have told; and that another
model's audit is refused.
"""

import csv
import json
import xml.etree.ElementTree as ElementTree

import numpy as np
import pytest

from confide.certify.gate import cases, settled, unaudited
from confide.cli import main
from confide.dp.accounting.audit_bounds import attempts_of, best_lower, epsilon_lower
from confide.dp.accounting.audit_power import mu_of
from confide.errors import Failure, InputError
from confide.specs import GateSpec
from confide.stages.gate import gate
from confide.stages.passed import passed
from tests.certify.claimed import DELTA, RUN, WEIGHTS, certificate

COINS = 160
RELATIONS = {"game": "replace_one", "inclusion": "add_or_remove"}


def audit(distance, run=RUN, coins=COINS, seed=0, weights=WEIGHTS, best=False):
    """Coins seen through noise, `distance` standard deviations apart; `best`: all guesses are
    right.
    """
    rng = np.random.default_rng(seed)
    found = {"attack": "game", "run": run, "weights": weights}
    for name, relation in RELATIONS.items():
        flips = rng.random(coins) < 0.5
        attempts = attempts_of(
            flips * 1.0 if best else distance * flips + rng.normal(size=coins), flips
        )
        found |= {
            f"{name}_coins": coins,
            f"{name}_relation": relation,
            f"{name}_attempts": [list(one) for one in attempts],
        }
    return found


@pytest.fixture
def written(tmp_path):
    """Writes both files; returns their paths."""

    def write(certified, measured):
        folder = tmp_path / "runs" / RUN
        folder.mkdir(parents=True, exist_ok=True)
        for name, value in (("certificate", certified), ("game", measured)):
            (folder / f"{name}.json").write_text(json.dumps(value))
        return folder / "certificate.json", folder / "game.json"

    return write


def outcome(written, certified, measured):
    game, _ = cases(*written(certified, measured))
    return game


@pytest.mark.parametrize(
    ("certified", "coins", "distance", "expected"),
    [
        (3.0, 160, 0.0, "stands"),
        (3.0, 160, mu_of(3.0, DELTA), "stands"),
        (3.0, 160, mu_of(15.0, DELTA), "refuted"),
        (0.0, 160, 0.0, "stands"),
        (0.0, 160, mu_of(5.0, DELTA), "refuted"),
        (3.0, 12, 0.0, "inconclusive"),
        (8.0, 80, 9.0, "inconclusive"),  # every guess right would not refute it
        (8.0, 300, 9.0, "refuted"),
        ("inf", 160, 9.0, "skipped"),
    ],
)
def test_outcomes(written, certified, coins, distance, expected):
    found = outcome(written, certificate(certified), audit(distance, coins=coins))
    assert found.outcome == expected
    if expected == "refuted":
        assert found.lower >= found.certified
    elif expected == "stands":
        assert (
            found.lower <= found.certified
            and 0.05 < found.rings_2x < found.rings_3x <= found.rings_5x
        )


def test_a_model_that_learnt_its_secrets_by_heart_is_refuted_under_a_certificate_of_3(written):
    """AUC .99: the bound for (epsilon, delta) alone says 2.9, could have said 3.6, and let it
    pass.
    """
    rng = np.random.default_rng(3)
    flips = rng.random(COINS) < 0.5
    scores = 3.35 * flips + rng.normal(size=COINS)
    alone, _, _ = best_lower(epsilon_lower, scores, flips, (1.0, 0.5, 0.25), DELTA)
    measured = audit(0.0) | {"game_attempts": [list(one) for one in attempts_of(scores, flips)]}
    found = outcome(written, certificate(3.0), measured)
    assert 2 < alone < 3 and found.outcome == "refuted" and found.lower > 4
    bare = outcome(written, certificate(3.0, curves=False), measured)
    assert (
        bare.lower < found.lower - 1 and bare.rings_3x < 0.1 < 0.9 < found.rings_3x
    )  # what one pair of the curve sees


def test_chances_to_ring_are_those_of_simulated_trainings(written):
    """Each training is one of an ideal attacker, at twice and three times the certified epsilon."""
    certified = certificate(3.0)
    for times, field in ((2, "rings_2x"), (3, "rings_3x")):
        found = [
            outcome(written, certified, audit(mu_of(3.0 * times, DELTA), seed=seed))
            for seed in range(60)
        ]
        share = np.mean([case.outcome == "refuted" for case in found])
        chance = getattr(found[0], field)
        assert abs(share - chance) < 4 * (chance * (1 - chance) / 60) ** 0.5 + 0.01


def sets_of(**different):
    """Of twenty secrets of each set so many leave a trace and are read, or all."""
    counts = {name: different.get(name, 20) for name in ("game", "inclusion")}
    return {
        name: {"sampled": 20, "different": count, "read": count} for name, count in counts.items()
    }


@pytest.mark.parametrize("different", [{"game": 2}, {"inclusion": 0}, {"inclusion": 19}])
def test_coins_that_the_model_does_not_read_say_nothing_of_its_noise(written, different):
    """A tenth of the planted secrets is missed, and given away whole: no guess of the others can
    tell, though as many coins would show an epsilon of five times the certified one.
    """
    certified = certificate(3.0, different=20, sets=sets_of(**different))
    found = {case.audit: case for case in cases(*written(certified, audit(0.0)))}
    for name, case in found.items():
        assert case.outcome == ("not audited" if name in different else "stands")
        assert (case.rings_5x is None) == (name in different)
    leaking = audit(mu_of(15.0, DELTA))
    refuted = {case.audit: case.outcome for case in cases(*written(certified, leaking))}
    assert refuted == {"game": "refuted", "inclusion": "refuted"}


def test_a_trace_beside_a_secret_that_is_hidden_tells_nothing_of_its_coin(written):
    """The policy hides more than the secret, so that its mask is another: `31<MASK>`."""
    sets = {name: counts | {"read": 0} for name, counts in sets_of().items()}
    certified = certificate(3.0, sets=sets)
    assert {case.outcome for case in cases(*written(certified, audit(0.0)))} == {"not audited"}


def test_coins_that_the_model_does_not_read_are_passed_over_where_its_updates_stand(written):
    certified = certificate(3.0, different=20, sets=sets_of(inclusion=0))
    found = list(cases(*written(certified, audit(0.0))))
    assert [case.outcome for case in settled(found)] == ["stands", "not audited"]
    updates = found[0]._replace(audit="replacement")
    outcomes = [case.outcome for case in settled([*found, updates])]
    assert outcomes == ["stands", "skipped", "stands"]
    inconclusive = updates._replace(outcome="inconclusive")
    outcomes = [case.outcome for case in settled([*found, inconclusive])]
    assert outcomes == ["stands", "not audited", "inconclusive"]


def test_secrets_are_held_against_the_claim_that_covers_them_all(written):
    def certified(**policy):
        game, inclusion = cases(
            *written(certificate(3.0, **policy), audit(mu_of(6.0, DELTA), seed=1))
        )
        assert inclusion.certified == 3.0
        return game.certified, game.outcome

    assert certified(different=20) == (3.0, "stands")
    assert certified(different=0, sets={}) == (0.0, "refuted")
    # those of other sets do not count
    assert certified(different=5, sets=sets_of(game=0)) == (0.0, "refuted")
    assert certified(different=5, sets=sets_of(game=20)) == (3.0, "stands")
    # what was not sampled may have been missed or caught
    assert certified(different=0, sampled=19, sets={}) == (3.0, "not audited")
    # nothing is known of what the audit planted
    assert certified(different=0, sampled=0, secrets=0, sets={}) == (3.0, "not audited")
    assert certified(exposed=1) == (float("inf"), "skipped")


def test_planted_sentences_in_the_public_pool_speak_neither_for_nor_against_a_record(written):
    """The model knows them by heart, and what is certified of records read with noise is true."""
    leaky = audit(0.0, best=True)
    _, closed = cases(*written(certificate(3.0), leaky))
    assert closed.outcome == "refuted"
    _, open_ones = cases(*written(certificate(3.0, exposed=1), leaky))
    assert (open_ones.outcome, open_ones.certified) == ("not audited", 3.0)
    assert "read without noise" in open_ones.says
    everywhere = certificate(3.0, exposed=1)
    del everywhere["claims"][-1]  # all points are read with noise
    _, hidden = cases(*written(everywhere, leaky))
    assert hidden.outcome == "refuted"


def rows_of(path):
    with open(path) as file:
        return list(csv.DictReader(file))


def test_a_study_fails_by_name_and_junit_says_why(written, tmp_path):
    written(certificate(3.0), audit(0.0, best=True))
    spec = GateSpec(study="s", runs=[{"run": RUN, "audit": "game"}])
    made = {"output": tmp_path / "gate.csv", "junit": tmp_path / "gate.xml"}
    gate(spec, results=tmp_path, **made)
    why = r"r/g0-s0 game refuted: measured at least .*, certified 3: (\d+) of \1 guesses are right"
    with pytest.raises(Failure, match=why):
        passed(gate=tmp_path / "gate.csv", output=tmp_path / "gate.passed")
    assert not (tmp_path / "gate.passed").exists()
    suite = ElementTree.parse(tmp_path / "gate.xml").getroot()
    assert (suite.get("tests"), suite.get("failures")) == ("2", "2")
    assert [case.find("failure").get("type") for case in suite] == ["refuted", "refuted"]
    written(certificate(3.0), audit(0.0))
    gate(spec, results=tmp_path, **made)
    passed(gate=tmp_path / "gate.csv", output=tmp_path / "gate.passed")
    assert (tmp_path / "gate.passed").read_text().startswith("2 comparisons")
    found = [
        (row["audit"], row["outcome"], row["certified"], row["weights"])
        for row in rows_of(tmp_path / "gate.csv")
    ]
    assert found == [("game", "stands", "3.0", WEIGHTS), ("inclusion", "stands", "3.0", WEIGHTS)]


def test_an_audit_of_other_weights_fails_though_it_has_the_same_name(written, tmp_path):
    """A run that was trained again keeps its name; the old audit of it says nothing of the new
    weights.
    """
    written(certificate(3.0), audit(0.0, weights="c" * 64))
    spec = GateSpec(study="s", runs=[{"run": RUN, "audit": "game"}])
    gate(spec, results=tmp_path, output=tmp_path / "gate.csv", junit=tmp_path / "gate.xml")
    with pytest.raises(Failure, match="game of other weights: the audit is of weights cccc"):
        passed(gate=tmp_path / "gate.csv", output=tmp_path / "gate.passed")
    assert {row["outcome"] for row in rows_of(tmp_path / "gate.csv")} == {"of other weights"}
    other = list(cases(*written(certificate(3.0), audit(0.0) | {"ledger": "d" * 64})))
    assert {case.outcome for case in other} == {"of other weights"} and "other updates" in other[
        0
    ].says
    assert {
        case.outcome
        for case in cases(*written(certificate(3.0), audit(0.0) | {"ledger": "b" * 64}))
    } == {"stands"}


def test_a_run_that_nobody_audited_is_a_row_and_a_warning(written, tmp_path, capsys):
    spec = GateSpec(study="s", runs=[{"run": RUN, "audit": None}])
    where = {"results": tmp_path, "output": tmp_path / "gate.csv", "junit": tmp_path / "gate.xml"}
    path, _ = written(certificate(3.0), audit(0.0))
    gate(spec, **where)
    (row,) = rows_of(tmp_path / "gate.csv")
    assert (row["audit"], row["outcome"], row["certified"]) == ("none", "not audited", "3.0")
    assert "warning: r/g0-s0 is not audited" in capsys.readouterr().out
    assert ElementTree.parse(tmp_path / "gate.xml").getroot().get("skipped") == "1"
    nothing = audit(0.0)
    for name in RELATIONS:
        nothing |= {f"{name}_coins": None, f"{name}_attempts": None}
        nothing |= {f"{name}_reason": "not planted in this corpus"}
    written(certificate(3.0), nothing)
    gate(GateSpec(study="s", runs=[{"run": RUN, "audit": "game"}]), **where)
    assert [row["outcome"] for row in rows_of(tmp_path / "gate.csv")] == [
        "skipped",
        "skipped",
        "not audited",
    ]
    capsys.readouterr()
    path.write_text(json.dumps(certificate("inf")))
    assert unaudited(path).outcome == "skipped"
    gate(spec, **where)
    assert "warning" not in capsys.readouterr().out


def test_a_model_that_gives_no_answer_is_not_audited(written):
    """Though an audit of its updates may stand, which `release` would take for enough."""
    silent = audit(0.0)
    for name in RELATIONS:
        silent |= {f"{name}_attempts": None, f"{name}_reason": "logits are not finite"}
    found = cases(*written(certificate(3.0), silent))
    assert [case.outcome for case in found] == ["not audited", "not audited"]
    assert outcome(written, certificate("inf"), silent).outcome == "skipped"


def check(capsys, *paths):
    status = main(["audit", "check", *map(str, paths)])
    return status, capsys.readouterr()


def test_on_the_command_line(written, tmp_path, capsys):
    status, said = check(
        capsys, *written(certificate(3.0), audit(0.0)), "--junit", tmp_path / "j.xml"
    )
    assert status == 0 and "game: stands" in said.out and (tmp_path / "j.xml").exists()
    assert (
        "an ideal attacker would refute it if epsilon were 6 (" in said.out
        and "could have shown" not in said.out
    )
    status, said = check(capsys, *written(certificate(3.0), audit(0.0, best=True)))
    assert status == 1 and "failed: game refuted" in said.err
    status, said = check(capsys, *written(certificate(3.0), audit(0.0, coins=12)))
    assert status == 1 and "inconclusive" in said.err
    status, said = check(capsys, *written(certificate("inf"), audit(0.0)))
    assert status == 1 and "nothing was compared" in said.err
    reason = "logits are not finite"
    silent = audit(0.0) | {"game_reason": reason, "inclusion_reason": reason}
    status, said = check(capsys, *written(certificate(3.0), silent))
    assert "not audited" in said.out
    assert status == 1 and "nothing was compared" in said.err


def without(*keys):
    return {key: value for key, value in audit(0.0).items() if key not in keys}


@pytest.mark.parametrize(
    ("measured", "message"),
    [
        (audit(0.1, run="other/g0-s0"), "run = 'other/g0-s0': belongs to another model"),
        ({"attack": "exposure", "run": RUN}, "attack = 'exposure': is not an audit"),
        (without("game_attempts"), "game_attempts: is missing"),
        (without("weights"), "weights: is missing"),
        (audit(0.0) | {"game_attempts": [[160, 80]]}, "game_attempts: says nothing of 56 guesses"),
        (
            audit(0.0) | {"game_attempts": [[56, 57]]},
            "game_attempts: has more right guesses than guesses",
        ),
        (audit(0.0) | {"game_attempts": [[56]]}, "game_attempts"),
        (audit(0.0) | {"game_coins": 10**9}, "game_coins"),
        (audit(float("nan")) | {"game_coins": float("nan")}, "malformed JSON|game_coins"),
        (audit(0.1) | {"game_relation": "add_or_remove"}, "game_relation"),
        ({"run": RUN}, "attack: is missing"),
    ],
)
def test_bad_audits_are_one_line_and_never_ok(written, capsys, measured, message):
    paths = written(certificate(3.0), measured)
    with pytest.raises(InputError, match=message):
        list(cases(*paths))
    status, said = check(capsys, *paths)
    assert status == 2 and said.err.count("\n") == 1 and not said.out


@pytest.mark.parametrize("text", ["", "[]", "{", '{"claims": []}'])
def test_truncated_certificates_are_refused(written, text):
    paths = written(certificate(3.0), audit(0.1))
    paths[0].write_text(text)
    with pytest.raises(InputError, match="certificate.json"):
        list(cases(*paths))
    for change, message in (
        ({"delta": 1.0}, "delta = 1.0: must lie between 0 and 1"),
        ({"epsilon": 1e9}, "no bound of anything"),
    ):
        broken = certificate(3.0)
        broken["claims"] = [
            claim | change if claim["epsilon"] == 3.0 else claim for claim in broken["claims"]
        ]
        paths[0].write_text(json.dumps(broken))
        with pytest.raises(InputError, match=message):
            list(cases(*paths))
    paths[0].write_text(json.dumps(certificate(3.0) | {"files": {}}))
    with pytest.raises(InputError, match=r"files.model: names 0 files instead of one"):
        list(cases(*paths))
