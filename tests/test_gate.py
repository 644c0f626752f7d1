"""The gate: what stands, what is refuted, what an audit could not have told; and that another model's audit is refused."""

import csv
import json
import xml.etree.ElementTree as ElementTree

import pytest

from confide.cli import main
from confide.errors import Failure, InputError
from confide.gate import cases, judged
from confide.specs import GateSpec
from confide.stages.gate import gate

RELATIONS = {"game": "replace_one", "inclusion": "add_or_remove"}


PLANTED = {"secrets": 20, "sampled": 20, "different": 2, "exposed": 0}


def certificate(epsilon, **planted):
    names = {"secret_caught": ("replace_one", 0.0), "secret_missed": ("replace_one", epsilon)}
    names |= {"record_add_or_remove_pld": ("add_or_remove", epsilon), "secret_missed_by_both": ("replace_one", "inf")}
    claims = [{"name": name, "relation": relation, "epsilon": value} for name, (relation, value) in names.items()]
    policy = {"gamma": 0.0, "census": True, "delta2": 0.0, "planted": PLANTED | planted}  # gamma is of the corpus's own secrets
    return {"run": "r/g0-s0", "claims": claims, "policy": policy}


def audit(lower, power=4.0, run="r/g0-s0"):
    found = {"attack": "game", "run": run}
    for name, relation in RELATIONS.items():
        found |= {f"{name}_epsilon_lower": lower, f"{name}_power": power, f"{name}_relation": relation}
    return found


@pytest.fixture
def written(tmp_path):
    """Writes both files; returns their paths."""

    def write(certified, measured):
        folder = tmp_path / "runs/r/g0-s0"
        folder.mkdir(parents=True, exist_ok=True)
        for name, value in (("certificate", certified), ("game", measured)):
            (folder / f"{name}.json").write_text(json.dumps(value))
        return folder / "certificate.json", folder / "game.json"

    return write


@pytest.mark.parametrize(
    ("certified", "lower", "power", "outcome"),
    [
        (3.0, 0.0, 4.0, "stands"),
        (3.0, 3.0, 4.0, "stands"),
        (3.0, 3.01, 4.0, "refuted"),
        (0.0, 0.01, 4.0, "refuted"),
        (0.0, 0.0, 4.0, "stands"),
        (3.0, 0.0, 3.0, "inconclusive"),
        (3.0, 0.0, 0.0, "inconclusive"),
        (0.0, 0.0, 0.0, "inconclusive"),
        (float("inf"), 4.0, 4.0, "skipped"),
    ],
)
def test_outcomes(certified, lower, power, outcome):
    assert judged(certified, lower, power)[0] == outcome


def test_secrets_are_held_against_the_claim_that_covers_them_all(written):
    def certified(**policy):
        game, inclusion = cases(*written(certificate(3.0, **policy), audit(0.5)))
        assert inclusion.certified == 3.0
        return game.certified, game.outcome

    assert certified(different=2) == (3.0, "stands")
    assert certified(different=0) == (0.0, "refuted")
    assert certified(different=0, sampled=19) == (3.0, "stands")  # what was not sampled may have been missed
    assert certified(different=0, sampled=0, secrets=0) == (3.0, "stands")  # nothing is known of what the audit planted
    assert certified(exposed=1) == (float("inf"), "skipped")


def test_a_study_fails_by_name_and_junit_says_why(written, tmp_path):
    written(certificate(3.0), audit(3.5))
    spec = GateSpec(study="s", runs=[{"run": "r/g0-s0", "audit": "game"}])
    with pytest.raises(Failure, match=r"r/g0-s0 game refuted: measured at least 3.5, certified 3"):
        gate(spec, results=tmp_path, output=tmp_path / "gate.csv", junit=tmp_path / "gate.xml")
    suite = ElementTree.parse(tmp_path / "gate.xml").getroot()
    assert (suite.get("tests"), suite.get("failures")) == ("2", "2")
    assert [case.find("failure").get("type") for case in suite] == ["refuted", "refuted"]
    written(certificate(3.0), audit(0.2))
    gate(spec, results=tmp_path, output=tmp_path / "gate.csv", junit=tmp_path / "gate.xml")
    with open(tmp_path / "gate.csv") as file:
        found = [(row["audit"], row["outcome"], row["certified"]) for row in csv.DictReader(file)]
    assert found == [("game", "stands", "3.0"), ("inclusion", "stands", "3.0")]


def check(capsys, *paths):
    status = main(["audit", "check", *map(str, paths)])
    return status, capsys.readouterr()


def test_on_the_command_line(written, tmp_path, capsys):
    status, said = check(capsys, *written(certificate(3.0), audit(0.2)), "--junit", tmp_path / "j.xml")
    assert status == 0 and "game: stands" in said.out and (tmp_path / "j.xml").exists()
    status, said = check(capsys, *written(certificate(3.0), audit(3.5)))
    assert status == 1 and "failed: game refuted" in said.err
    status, said = check(capsys, *written(certificate(3.0), audit(0.2, power=1.0)))
    assert status == 1 and "inconclusive" in said.err
    status, said = check(capsys, *written(certificate("inf"), audit(3.0)))
    assert status == 1 and "nothing was compared" in said.err


@pytest.mark.parametrize(
    ("measured", "message"),
    [
        (audit(0.1, run="other/g0-s0"), "run = 'other/g0-s0': belongs to another model"),
        ({"attack": "exposure", "run": "r/g0-s0"}, "attack = 'exposure': is not an audit"),
        ({key: value for key, value in audit(0.1).items() if key != "game_power"}, "game_power: is missing"),
        (audit(5.0), "game_epsilon_lower = 5.0: must lie between 0 and power"),
        (audit(float("nan")), "malformed JSON|must lie between"),
        (audit(0.1) | {"game_relation": "add_or_remove"}, "game_relation"),
        ({"run": "r/g0-s0"}, "attack: is missing"),
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
