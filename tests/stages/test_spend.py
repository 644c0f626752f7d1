"""Several models together: updates of all ledgers composed, common starts counted once, what differs apart, nothing forged."""

import json
import math
from itertools import count
from pathlib import Path

import pytest
from certified import DELTA, METHODS, RECALL, append, certificate, step

from confide.certificate import sealed
from confide.cli import main
from confide.dp.accounting import epsilon
from confide.dp.ledger import Ledger
from confide.errors import InputError
from confide.io import read_json, write_json
from confide.spend import LISTED, spend
from confide.together import CLAIMS, Model, groups_of
from confide.types import Release, Step

STATES = count(10**7)  # of the noise: no two trainings here draw the same
UPDATES = 60


def ran(updates=UPDATES, source=None):
    """A ledger of DP-SGD, warm-started from another one if `source` is its text."""
    ledger = Ledger()
    if source is not None:
        ledger.init("start/g0-s0", public=False, ledger=source)
    for _ in range(updates):
        append(ledger, METHODS["dpsgd"][0], next(STATES))
    ledger.epoch(1)
    return ledger


@pytest.fixture
def model(tmp_path):
    """Certifies a run in a folder of its own and returns that folder."""

    def make(name, ledger=None, start=None, **given):
        folder = tmp_path / "models" / name
        folder.mkdir(parents=True)
        starts = [folder / f"start_{number}.jsonl" for number in range(len(start or []))]
        for path, text in zip(starts, start or [], strict=True):
            path.write_text(text)
        given = {"noise_seed": None, "method": "dpsgd", "everything_private": True} | given
        measured = given.pop("measured", None) or {"pools": {"public": 0}}
        certificate(folder, [], RECALL | measured, ledger=ledger or ran(), start_ledgers=starts, run=f"{name}/g0-s0", **given)
        return folder

    return make


def released(folder):
    """Text of a certified run's ledger, as one has it that starts from it."""
    return (folder / "ledger").read_text()


def priced(updates, delta, relation="replace_one"):
    return epsilon([Release(Step("original", "all", True), 0.05, 2.0, 1.0, updates)], delta, relation)


def spent(tmp_path, *folders, claim="record_replace_one_pld", **given):
    """The totals of a claim."""
    spend(list(folders), json=tmp_path / "spent.json", **given)
    return [one for one in read_json(tmp_path / "spent.json")["totals"] if one["claim"] == claim]


def test_two_equal_trainings_cost_one_of_twice_as_many_updates(tmp_path, model, capsys):
    folders = [model("a"), model("b")]
    for claim, (_, relation) in CLAIMS.items():
        (found,) = spent(tmp_path, *folders, claim=claim)
        assert math.isclose(found["epsilon"], priced(2 * UPDATES, 2 * DELTA, relation), rel_tol=1e-6)
        assert found["epsilon"] < found["sum_of_epsilons"] == pytest.approx(2 * priced(UPDATES, DELTA, relation))
        assert found["delta"] == pytest.approx(2 * DELTA) and found["runs"] == ["a/g0-s0", "b/g0-s0"]
    (found,) = spent(tmp_path, *folders, delta=1e-5)
    assert math.isclose(found["epsilon"], priced(2 * UPDATES, 1e-5), rel_tol=1e-6) and found["delta"] == 1e-5
    said = capsys.readouterr().out
    assert said.splitlines()[-1] == LISTED and "Papernot and Steinke 2022" in LISTED
    assert "No dataset is recorded of a/g0-s0, b/g0-s0: taken for the corpus of all others." in said


def test_one_model_costs_what_its_certificate_says(tmp_path, model):
    (found,) = spent(tmp_path, folder := model("a"))
    assert found["epsilon"] == pytest.approx(float(read_json(folder / "certificate.json")["headline"]["record_epsilon"]))


def test_a_start_that_two_models_share_is_counted_once(tmp_path, model, capsys):
    """Of 60 updates each for the start and its two descendants, 180 took place, not 240: with or without the start itself."""
    start = released(first := model("start"))
    two = [model(name, ran(source=start), [start]) for name in ("a", "b")]
    (found,) = spent(tmp_path, *two)
    assert math.isclose(found["epsilon"], priced(3 * UPDATES, 2 * DELTA), rel_tol=1e-6) and found["shared"] == ["start/g0-s0"]
    (found,) = spent(tmp_path, first, *two, delta=2 * DELTA)
    assert math.isclose(found["epsilon"], priced(3 * UPDATES, 2 * DELTA), rel_tol=1e-6) and found["shared"] == ["start/g0-s0"]
    assert "start/g0-s0 counted once" in capsys.readouterr().out


def test_a_start_of_a_start_is_counted_too(tmp_path, model):
    """And none of the three is left out, whichever of them is listed."""
    first = released(one := model("first"))
    second = released(two := model("second", ran(source=first), [first]))
    three = model("third", ran(source=second), [second, first])
    for listed in ([three], [two, three], [one, three], [one, two, three]):
        (found,) = spent(tmp_path, *listed, delta=DELTA)
        assert math.isclose(found["epsilon"], priced(3 * UPDATES, DELTA), rel_tol=1e-6)
    (found,) = spent(tmp_path, three, model("other"), delta=DELTA)
    assert math.isclose(found["epsilon"], priced(4 * UPDATES, DELTA), rel_tol=1e-6)


def test_corpora_are_one_where_names_or_digests_meet():
    def of(name, *corpora):
        return Model(Path(name), name, name, "one turn", {}, None, frozenset(corpora))

    models = [of("a", ("name", "x"), ("digest", "1")), of("b", ("name", "y"), ("digest", "2")), of("c", ("name", "z"))]
    assert [[one.run for one in group.models] for group in groups_of(models)] == [["a"], ["b"], ["c"]]
    between = of("d", ("name", "y"), ("digest", "1"))  # under another name the digest of a's corpus
    assert [[one.run for one in group.models] for group in groups_of([*models, between])] == [["c"], ["a", "b", "d"]]


def test_the_same_model_twice_is_one(tmp_path, model, capsys):
    folder = model("a")
    copied = model("copy")
    for path in folder.iterdir():
        (copied / path.name).write_text(path.read_text().replace(f"{folder}/", f"{copied}/"))
    write_json(copied / "certificate.json", sealed(read_json(copied / "certificate.json")))
    (found,) = spent(tmp_path, folder, folder / "certificate.json", copied)
    assert math.isclose(found["epsilon"], priced(UPDATES, DELTA), rel_tol=1e-6) and found["runs"] == ["a/g0-s0"]
    assert "the same training as" in capsys.readouterr().out


def test_folders_are_searched_for_certificates(tmp_path, model):
    model("a"), model("b")
    (found,) = spent(tmp_path, tmp_path / "models")
    assert found["runs"] == ["a/g0-s0", "b/g0-s0"]
    (tmp_path / "empty").mkdir()
    with pytest.raises(InputError, match="empty: holds no certificate.json"):
        spend([tmp_path / "empty"])


def test_other_units_stand_apart(tmp_path, model, capsys):
    found = spent(tmp_path, model("a"), model("b", point="dialogue"), model("c", point="dialogue"))
    assert [(one["unit"], one["runs"]) for one in found] == [
        ("one turn of a dialogue", ["a/g0-s0"]),
        ("one whole dialogue", ["b/g0-s0", "c/g0-s0"]),
    ]
    assert math.isclose(found[0]["epsilon"], priced(UPDATES, DELTA), rel_tol=1e-6)
    assert math.isclose(found[1]["epsilon"], priced(2 * UPDATES, 2 * DELTA), rel_tol=1e-6)
    assert "Models of different corpora or units are not added up" in capsys.readouterr().out


def test_chunks_of_one_model_are_not_those_of_another(tmp_path, model):
    def packed():
        ledger = Ledger()
        ledger.packed(64, 2, "original")
        for _ in range(UPDATES):
            append(ledger, step("original", "all", True), next(STATES))
        ledger.epoch(1)
        return ledger

    found = spent(tmp_path, *(model(name, packed(), pack=64) for name in ("a", "b")))
    assert [one["runs"] for one in found] == [["a/g0-s0"], ["b/g0-s0"]]


def test_one_model_without_a_bound_leaves_none_for_all(tmp_path, model, capsys):
    bare = Ledger()
    append(bare, METHODS["nonprivate"][0])
    bare.epoch(1)
    folders = model("a"), model("bare", bare, method="nonprivate", privacy=None)
    for claim in CLAIMS:
        (found,) = spent(tmp_path, *folders, claim=claim)
        assert found["epsilon"] == "inf" and found["why"] == "nothing bounds bare/g0-s0"
    assert "(nothing bounds bare/g0-s0)" in capsys.readouterr().out


def test_noise_that_two_trainings_share_hides_neither(tmp_path, model):
    """Whoever subtracts one model's updates from the other's has no noise left."""
    states = list(range(UPDATES))
    folders = []
    for name in ("a", "b"):
        ledger = Ledger()
        for state in states:
            append(ledger, METHODS["dpsgd"][0], state)
        ledger.epoch(1)
        folders.append(model(name, ledger))
    (found,) = spent(tmp_path, *folders)
    assert found["epsilon"] == "inf" and found["why"] == "the same noise was drawn in two trainings"


def test_without_its_ledger_a_certificate_is_taken_at_its_word_and_added(tmp_path, model, capsys):
    folders = [model("a"), model("b")]
    (folders[1] / "ledger").unlink()
    (found,) = spent(tmp_path, *folders)
    assert math.isclose(found["epsilon"], 2 * priced(UPDATES, DELTA), rel_tol=1e-6)
    assert found["how"] == "updates composed and epsilons and deltas added" and found["delta"] == pytest.approx(2 * DELTA)
    said = capsys.readouterr().out
    assert f"{folders[1]}/certificate.json: the files that it follows from are not here" in said
    assert [one["verified"] for one in read_json(tmp_path / "spent.json")["models"]] == [True, False]
    with pytest.raises(InputError, match="delta = .*leaves nothing"):
        spend(folders, delta=DELTA)


@pytest.mark.parametrize("name", ["ledger", "recall", "neighbours"])
def test_a_certificate_that_does_not_hold_is_refused(tmp_path, model, name):
    folders = [model("a"), model("b")]
    (folders[1] / name).write_text((folders[1] / name).read_text() + " ")
    with pytest.raises(InputError, match="other bytes"):
        spend(folders, json=tmp_path / "spent.json")
    assert not (tmp_path / "spent.json").exists()


def test_a_certificate_that_claims_less_than_follows_is_refused(model):
    folder = model("a")
    value = read_json(folder / "certificate.json")
    for claim in value["claims"]:
        claim["epsilon"] = 0.1
    write_json(folder / "certificate.json", sealed(value))
    with pytest.raises(InputError, match="but .* follows from the files"):
        spend([folder])


def of_dataset(folder, name):
    """The certificate says of which dataset it is; its ledger is taken away, since nothing here writes that."""
    (folder / "ledger").unlink()
    value = read_json(folder / "certificate.json")
    write_json(folder / "certificate.json", sealed(value | {"asked": value["asked"] | {"dataset": name}}))
    return folder


def test_datasets_stand_apart_and_who_names_none_is_counted_with_each(tmp_path, model, capsys):
    folders = [of_dataset(model(name), name[0]) for name in ("x1", "x2", "y1")]
    found = spent(tmp_path, *folders)
    assert [(one["corpora"], one["runs"]) for one in found] == [
        (["x"], ["x1/g0-s0", "x2/g0-s0"]),
        (["y"], ["y1/g0-s0"]),
    ]
    found = spent(tmp_path, *folders, model("none"))
    assert [one["runs"] for one in found] == [["x1/g0-s0", "x2/g0-s0", "none/g0-s0"], ["y1/g0-s0", "none/g0-s0"]]
    assert [one["assumed"] for one in found] == [["none/g0-s0"]] * 2
    assert "No dataset is recorded of none/g0-s0" in capsys.readouterr().out


def test_on_the_command_line(tmp_path, model, capsys):
    folders = [str(model("a")), str(model("b"))]
    assert main(["spend", *folders, "--delta", "1e-4", "--json", str(tmp_path / "spent.json")]) == 0
    said = capsys.readouterr().out
    assert "together" in said and json.loads((tmp_path / "spent.json").read_text())["notes"][-1] == LISTED
    assert main(["spend", *folders, "--delta", "2"]) == 2
    assert "delta = 2.0: must lie between 0 and 1" in capsys.readouterr().err
    with pytest.raises(SystemExit):
        main(["spend"])
