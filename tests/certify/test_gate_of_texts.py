"""The gate takes the audit of texts as it takes others: a generator that prints what it was trained
on is refuted, an honest one stands, and an audit of other texts or other weights is refused.
"""

import csv
import xml.etree.ElementTree as ElementTree
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from confide.attacks.texts.audit import Written, audited
from confide.attacks.texts.sides import Corpus, Sides
from confide.certify.gate import BY_TEXTS, SETS, cases
from confide.cli import main
from confide.errors import Failure, InputError
from confide.files.io import read_json, write_json
from confide.specs import TEXT_AUDIT, GateSpec, TextAuditSpec
from confide.stages.gate import STATED, gate
from confide.stages.passed import passed
from tests.certify.claimed import RUN, WEIGHTS, certificate

COINS = 160
TEXTS = "e" * 64  # digest of the texts
NOBODY = Corpus(Sides([], []), Sides([], []), [])
SPEC = TextAuditSpec(order=6)
NAMES = SETS[TEXT_AUDIT]


def planted(rng: np.random.Generator) -> tuple[dict[str, Any], dict[str, Any]]:
    """Canaries and both sets of coins, as a corpus has them."""
    values = [f"{value:06d}" for value in rng.choice(10**6, 2 * COINS + 10, replace=False)]
    shared = {"digits": 6, "suffix": ""}
    canaries = shared | {"prefix": "My ID is: ", "secrets": values[:10]}
    audits = {}
    for name, prefix, first in (("game", "The code is ", 10), ("inclusion", "The order is ", 170)):
        secrets = values[first : first + COINS]
        coins = (rng.random(COINS) < 0.5).tolist()
        audits[name] = shared | {"prefix": prefix, "secrets": secrets, "coins": coins}
    return canaries, audits


def trained_on(canaries: dict[str, Any], audits: dict[str, Any]) -> list[str]:
    """All planted sentences of the training text."""
    sentences = [canaries["prefix"] + secret for secret in canaries["secrets"]]
    for name, audit in audits.items():
        for secret, is_there in zip(audit["secrets"], audit["coins"], strict=True):
            if is_there:
                sentences.append(audit["prefix"] + secret)
            elif name == "game":
                sentences.append(audit["prefix"] + "<MASK>")
    return sentences


def made_up(rng: np.random.Generator) -> list[str]:
    """Texts of a generator that knows how sentences begin, and no number."""
    starts = ("The code is ", "The order is ", "My ID is: ")
    return [f"{start}{rng.integers(10**6):06d}" for start in starts for _ in range(60)]


def measured(leaks: bool, seed: int = 0, **changes: Any) -> dict[str, Any]:
    """The audit of an honest generator, or of one that prints all it was trained on."""
    rng = np.random.default_rng([seed, 3])
    canaries, audits = planted(rng)
    texts = trained_on(canaries, audits) if leaks else made_up(rng)
    written = Written(texts, texts, texts)
    of = {"attack": TEXT_AUDIT, "run": RUN, "weights": WEIGHTS, "texts_sha256": TEXTS}
    return of | audited(SPEC, written, NOBODY, canaries, audits) | changes


@pytest.fixture(scope="module")
def found() -> dict[bool, dict[str, Any]]:
    """An audit by whether the generator leaks."""
    return {leaks: measured(leaks) for leaks in (False, True)}


class Study:
    """A study of one run, with the three files that the gate reads of it."""

    def __init__(self, folder: Path):
        self.folder = folder
        self.certificate = folder / "results/runs" / RUN / "certificate.json"
        self.audit = self.certificate.with_name(f"{TEXT_AUDIT}.json")
        self.stated = folder / "data" / RUN / STATED

    def write(self, certified: dict[str, Any], audit: dict[str, Any], texts: str = TEXTS) -> None:
        files = {
            self.certificate: certified,
            self.audit: audit,
            self.stated: {
                "version": 1,
                "seal": "s",
                "says": "texts",
                "asked": {},
                "drawn": {},
                "texts": {"path": "synthetic.jsonl", "sha256": texts, "count": 10},
                "model": {"certificate": "c", "seal": "s", "weights": WEIGHTS},
                "release_note": None,
            },
        }
        for path, value in files.items():
            path.parent.mkdir(parents=True, exist_ok=True)
            write_json(path, value)

    def outcomes(self) -> dict[str, str]:
        compared = cases(self.certificate, self.audit, self.stated)
        return {case.audit: case.outcome for case in compared}

    def passes(self) -> None:
        """What makes the workflow fail where the gate's table says so."""
        passed(gate=self.folder / "gate.csv", output=self.folder / "gate.passed")

    def gate(self, *audits: str) -> list[dict[str, str]]:
        """Rows of the table."""
        spec = GateSpec(study="s", runs=[{"run": RUN, "audit": audit} for audit in audits])
        gate(
            spec,
            results=self.folder / "results",
            output=self.folder / "gate.csv",
            junit=self.folder / "gate.xml",
            html=self.folder / "gate.html",
            texts=self.folder / "data",
        )
        return self.rows()

    def rows(self) -> list[dict[str, str]]:
        with open(self.folder / "gate.csv") as file:
            return list(csv.DictReader(file))


@pytest.fixture
def study(tmp_path: Path) -> Study:
    return Study(tmp_path)


@pytest.mark.parametrize("epsilon", [0.0, 1.0, 3.0])
def test_a_generator_that_prints_its_training_text_is_refuted_and_an_honest_one_stands(
    epsilon: float, study: Study, found: dict[bool, dict[str, Any]]
) -> None:
    study.write(certificate(epsilon), found[False])
    assert study.outcomes().items() >= dict.fromkeys(NAMES, "stands").items()
    study.write(certificate(epsilon), found[True])
    refuted = {name for name, outcome in study.outcomes().items() if outcome == "refuted"}
    assert refuted >= set(NAMES)


def test_the_study_fails_by_name_and_table_junit_and_page_have_a_line_for_each_bound(
    study: Study, found: dict[bool, dict[str, Any]]
) -> None:
    study.write(certificate(3.0), found[True])
    study.gate(TEXT_AUDIT)
    with pytest.raises(Failure, match=r"r/g0-s0 texts_game refuted: measured at least .*, cert"):
        study.passes()
    rows = [row for row in study.rows() if row["audit"] in NAMES]
    assert [row["audit"] for row in rows] == list(NAMES)
    assert all(float(row["lower"]) > 3 and row["coins"] == str(COINS) for row in rows)
    suite = ElementTree.parse(study.folder / "gate.xml").getroot()
    failed = [case.get("name") for case in suite if case.find("failure") is not None]
    assert failed == list(NAMES)
    assert "texts_inclusion" in (study.folder / "gate.html").read_text()
    study.write(certificate("inf"), found[True])
    assert {row["outcome"] for row in study.gate(TEXT_AUDIT)} == {"skipped"}


def test_too_few_coins_are_inconclusive_as_the_game_is(study: Study) -> None:
    measured_of_few = measured(leaks=False)
    for name in NAMES:
        measured_of_few |= {f"{name}_coins": 12, f"{name}_attempts": [[k, 0] for k in range(13)]}
    study.write(certificate(3.0), measured_of_few)
    assert set(study.outcomes().values()) == {"inconclusive"}
    study.gate(TEXT_AUDIT)
    with pytest.raises(Failure, match="texts_game inconclusive: too few coins"):
        study.passes()


@pytest.mark.parametrize(
    ("changes", "texts", "outcome", "says"),
    [
        ({"weights": "c" * 64}, TEXTS, "of other weights", "the audit is of weights cccc"),
        ({"texts_sha256": "d" * 64}, TEXTS, "of other texts", "the audit is of texts dddd"),
        ({}, "f" * 64, "of other texts", "their certificate of ffff"),
    ],
)
def test_an_audit_of_other_weights_or_texts_fails(
    changes: dict[str, Any],
    texts: str,
    outcome: str,
    says: str,
    study: Study,
    found: dict[bool, dict[str, Any]],
) -> None:
    study.write(certificate(3.0), found[False] | changes, texts)
    study.gate(TEXT_AUDIT)
    with pytest.raises(Failure, match=f"texts_game {outcome}: .*{says}"):
        study.passes()
    assert {row["outcome"] for row in study.rows() if row["audit"] in BY_TEXTS} == {outcome}


def test_texts_of_another_model_fail(study: Study, found: dict[bool, dict[str, Any]]) -> None:
    study.write(certificate(3.0), found[False])
    stated = read_json(study.stated)
    stated["model"]["weights"] = "b" * 64
    write_json(study.stated, stated)
    study.gate(TEXT_AUDIT)
    with pytest.raises(Failure, match="of other texts: the texts are certified of weights bbbb"):
        study.passes()


def test_an_audit_of_texts_needs_their_certificate_and_names_its_texts(
    study: Study, found: dict[bool, dict[str, Any]]
) -> None:
    study.write(certificate(3.0), found[False])
    with pytest.raises(InputError, match="their certificate is not given"):
        list(cases(study.certificate, study.audit))
    study.write(certificate(3.0), found[False] | {"texts_sha256": None})
    with pytest.raises(InputError, match="texts_sha256: is missing: of which texts"):
        study.outcomes()


def test_on_the_command_line(
    study: Study, found: dict[bool, dict[str, Any]], capsys: pytest.CaptureFixture[str]
) -> None:
    paths = [str(study.certificate), str(study.audit)]
    study.write(certificate(3.0), found[True])
    assert main(["audit", "check", *paths, "--texts", str(study.stated)]) == 1
    assert "probed_game: refuted: measured at least" in capsys.readouterr().out
    assert main(["audit", "check", *paths]) == 2


def test_texts_alone_are_no_audit_of_the_model(
    study: Study, found: dict[bool, dict[str, Any]], capsys: pytest.CaptureFixture[str]
) -> None:
    study.write(certificate(3.0), found[False])
    rows = {row["audit"]: row["outcome"] for row in study.gate(TEXT_AUDIT)}
    assert rows == dict.fromkeys(NAMES, "stands") | {"none": "not audited"}
    assert "no audit of the model has tested it" in capsys.readouterr().out
    renamed = {key.removeprefix("texts_"): value for key, value in found[False].items()}
    game = renamed | {"attack": "game"}
    write_json(study.audit.with_name("game.json"), game)
    rows = {row["audit"]: row["outcome"] for row in study.gate("game", TEXT_AUDIT)}
    assert rows == dict.fromkeys(("game", "inclusion", *NAMES), "stands")


def test_planted_numbers_that_surface_refute_that_nothing_depends_on_them_and_no_more(
    study: Study, found: dict[bool, dict[str, Any]]
) -> None:
    """Where every planted secret was caught, (0, 0) is claimed of each."""
    study.write(certificate(3.0, different=0, sets={}), found[True])
    assert study.outcomes()["canaries"] == "refuted"
    study.write(certificate(3.0, different=0, sets={}), found[False])
    assert study.outcomes()["canaries"] == "stands"
    # without the curve, epsilon = 0 is claimed with a delta, and so no independence
    for certified in (certificate(3.0), certificate(3.0, curves=False, different=0, sets={})):
        study.write(certified, found[True])
        assert "canaries" not in study.outcomes()


def test_other_p_values_warn_where_something_is_claimed_and_never_fail(
    study: Study, found: dict[bool, dict[str, Any]], capsys: pytest.CaptureFixture[str]
) -> None:
    suspicious = found[False] | {"p_value": 1e-9, "points_p_value": 1e-10}
    study.write(certificate(3.0), suspicious)
    study.gate(TEXT_AUDIT)
    assert "tell of their training text (p = 1e-09)" in capsys.readouterr().out
    study.write(certificate(3.0), suspicious | {"p_value": 0.2})
    study.gate(TEXT_AUDIT)
    assert "tell of their training text" not in capsys.readouterr().out
    nothing = certificate("inf")
    nothing["claims"] = [claim | {"epsilon": "inf"} for claim in nothing["claims"]]
    study.write(nothing, suspicious)
    study.gate(TEXT_AUDIT)
    assert "tell of their training text" not in capsys.readouterr().out


def test_honest_generators_are_seldom_refuted_where_epsilon_is_0(study: Study) -> None:
    """Each of the bounds has a level of 5 %: of 30 generators no bound rings more than five times,
    which it would once in 3,000 such tests.
    """
    rings: dict[str, int] = {}
    for seed in range(30):
        study.write(certificate(0.0, different=0), measured(leaks=False, seed=seed + 10))
        for name, outcome in study.outcomes().items():
            rings[name] = rings.get(name, 0) + (outcome == "refuted")
    assert rings.keys() == set(BY_TEXTS) and max(rings.values()) <= 5
