"""The gate takes the audit of noised updates: of the ledger that was certified, and of no other."""

import json

import pytest
from certified import certificate, ledger_of
from torch import nn

from confide.attacks.audits.gradients import CLAIMS
from confide.attacks.registry import ATTACKS
from confide.attacks.target import Target
from confide.certify.gate import cases
from confide.dp.accounting.calibration import calibrate
from confide.dp.ledger import Ledger
from confide.errors import InputError
from confide.files.io import read_json, write_json
from confide.specs import GradientsSpec
from tests.releases import exact, noised

RATE = 0.1
STEPS = 40
DELTA = 8e-5
COINS = 1000


def updates(norm=1.0, count=STEPS):
    sigma = calibrate(3.0, DELTA, RATE, STEPS)
    return noised(rate=RATE, sigma=sigma, norm=norm, count=count, view="original", pool="all")


@pytest.fixture
def audited(tmp_path):
    """Writes a certificate of some updates and the audit that repeats them; returns both paths."""

    def write(releases, coins=COINS):
        certificate(tmp_path, [], ledger=ledger_of(releases, epochs=1))
        target = Target(nn.Linear(1, 1), None, tmp_path, ledger=tmp_path / "ledger")
        found = ATTACKS["gradients"](GradientsSpec(kind="gradients", coins=coins), target)
        sealed = read_json(tmp_path / "certificate.json")
        of = {
            "attack": "gradients",
            "run": sealed["run"],
            "weights": sealed["files"]["model"][0]["sha256"],
        }
        write_json(tmp_path / "updates.json", of | found)
        return tmp_path / "certificate.json", tmp_path / "updates.json"

    return write


def test_the_gate_takes_it(audited):
    for releases in ([updates()], [updates(count=20), updates(norm=0.3, count=20)]):
        certified, measured = audited(releases)
        found = {case.audit: case for case in cases(certified, measured)}
        assert {name: case.outcome for name, case in found.items()} == dict.fromkeys(
            CLAIMS, "stands"
        )
        assert (
            found["replacement"].certified == pytest.approx(3, abs=0.01)
            and found["replacement"].lower > 0.9
        )
        assert found["inclusion"].certified < 2 and found["replacement"].rings_2x > 0.85
    metrics = json.loads(measured.read_text())
    assert (
        metrics["updates"] == STEPS
        and metrics["replacement_auc"] > 0.6 > 0.5 < metrics["inclusion_auc"]
    )
    write_json(measured, {key: value for key, value in metrics.items() if key != "ledger"})
    with pytest.raises(InputError, match="ledger: is missing"):
        list(cases(certified, measured))
    write_json(measured, metrics)
    certificate(certified.parent, [], ledger=ledger_of([updates(count=STEPS + 1)], epochs=1))
    assert {case.outcome for case in cases(certified, measured)} == {"of other weights"}


def test_where_nothing_was_noised_there_is_nothing_to_repeat(audited, tmp_path):
    open_ = [exact(view="original", pool="all", count=5)]
    assert {case.outcome for case in cases(*audited(open_, coins=20))} == {"skipped"}
    assert (
        Ledger.from_file(tmp_path / "ledger").head == read_json(tmp_path / "updates.json")["ledger"]
    )
    with pytest.raises(InputError, match="needs the ledger"):
        ATTACKS["gradients"](
            GradientsSpec(kind="gradients"), Target(nn.Linear(1, 1), None, tmp_path)
        )
