"""The attack stage: its file, and that two runs write the same."""

import json

import pytest

from confide import cli, models
from confide.dp.ledger import Ledger
from confide.errors import InputError
from confide.files.io import read_json, sha256, write_json, write_jsonl
from confide.models import build
from confide.specs import AttackJobSpec, LSTMSpec, TrajectorySpec
from confide.stages.attack import attack
from confide.stages.trajectory import trajectory
from confide.text.tokenizer import save
from confide.train import snapshots
from tests.releases import noised

SPEC = LSTMSpec(kind="lstm", embedding=8, hidden=8)


def shape(weights):
    """Size of a stored model's vocabulary, and its begin token."""
    config = read_json(weights.parent / "config.json")
    return config["vocab_size"], config["bos"]


@pytest.fixture
def paths(tmp_path, digit_tokenizer):
    """A model folder, its tokenizer, points and canaries."""
    model = build(SPEC, digit_tokenizer.vocab_size, digit_tokenizer.bos_id)
    models.save(model, tmp_path / "m/model.safetensors", tmp_path / "m/config.json")
    save(digit_tokenizer, tmp_path / "tokenizer.json")
    planted = {
        "prefix": "My ID is: ",
        "suffix": "",
        "digits": 3,
        "copies": 2,
        "secrets": ["481"],
        "controls": ["907"],
    }
    audit = {
        "prefix": "The code: ",
        "suffix": "",
        "digits": 2,
        "secrets": ["48", "07", "33"],
        "coins": [True, False, False],
    }
    write_json(tmp_path / "canaries.json", planted | {"label": "canary", "audits": {"game": audit}})
    rows = [
        {
            "key": str(i),
            "doc": str(i),
            "text": f"call {1000 + 37 * i}",
            "split": split,
            "gold": [[5, 9, "phone", 1.0]],
        }
        for i, split in enumerate(["train"] * 12 + ["test"] * 12)
    ]
    write_jsonl(tmp_path / "points.jsonl", rows)
    return {
        "model": tmp_path / "m/model.safetensors",
        "tokenizer": tmp_path / "tokenizer.json",
        "points": tmp_path / "points.jsonl",
        "canaries": tmp_path / "canaries.json",
    }


MEMBERSHIP = {"kind": "membership", "label": "phone", "group": 3, "bootstrap": 50}
PUBLISHED = {"non_members": "random", "context": "bare"}
ATTACKS = (
    {"kind": "exposure", "published": True},
    MEMBERSHIP,
    MEMBERSHIP | PUBLISHED,
    {"kind": "game"},
)


@pytest.mark.parametrize("settings", ATTACKS)
def test_two_runs_write_the_same_but_for_seconds(paths, tmp_path, settings):
    spec = AttackJobSpec.model_validate({"run": "crt/g0-s0", "attack": settings, "device": "cpu"})
    written = []
    for name in ("one.json", "two.json"):
        attack(spec, **paths, output=tmp_path / name)
        written.append(read_json(tmp_path / name))
    assert (written[0]["attack"], written[0]["run"]) == (settings["kind"], "crt/g0-s0")
    assert written[0]["weights"] == sha256(paths["model"])
    assert all(found.pop("seconds") > 0 for found in written)
    assert written[0] == written[1] and len(written[0]) > 10


def test_the_reference_model_is_read_and_must_fit_the_tokenizer(paths, merging_tokenizer, tmp_path):
    spec = AttackJobSpec.model_validate(
        {"run": "r", "attack": MEMBERSHIP | {"reference": "public"}, "device": "cpu"}
    )
    attack(spec, **paths, reference=paths["model"], output=tmp_path / "own.json")
    assert (
        read_json(tmp_path / "own.json")["reference_auc"] == 0.5
    )  # a model tells nothing beside itself
    other = build(
        LSTMSpec(kind="lstm", embedding=8, hidden=8),
        merging_tokenizer.vocab_size,
        merging_tokenizer.bos_id,
    )
    models.save(other, tmp_path / "other/model.safetensors", tmp_path / "other/config.json")
    with pytest.raises(InputError, match="other"):
        attack(
            spec,
            **paths,
            reference=tmp_path / "other/model.safetensors",
            output=tmp_path / "x.json",
        )
    assert not (tmp_path / "x.json").exists()


def test_from_the_command_line(paths, tmp_path, capsys):
    spec = {"run": "r", "attack": ATTACKS[0], "device": "cpu"}
    flags = [part for name, path in paths.items() for part in (f"--{name}", str(path))]
    output = tmp_path / "results/exposure.json"
    assert cli.main(["attack", "--spec", json.dumps(spec), *flags, "--output", str(output)]) == 0
    assert read_json(output)["candidates"] == 1000
    assert "481" not in capsys.readouterr().out


def test_noised_updates_are_audited_by_the_ledger_of_the_run(paths, tmp_path, capsys):
    ledger = Ledger()
    ledger.start("r", settings="0" * 64, code="0" * 64, noise="system", arithmetic="float32")
    ledger.append(
        noised(rate=0.1, sigma=1.0, count=4, view="original", pool="all"),
        "1" * 64,
    )
    ledger.end(weights="0" * 64)
    (tmp_path / "ledger.jsonl").write_text(ledger.dump())
    spec = {"run": "r", "attack": {"kind": "gradients", "coins": 50}, "device": "cpu"}
    flags = [part for name, path in paths.items() for part in (f"--{name}", str(path))]
    flags += ["--output", str(tmp_path / "updates.json")]
    assert cli.main(["attack", "--spec", json.dumps(spec), *flags]) == 2
    assert "needs the ledger of the run" in capsys.readouterr().err
    assert (
        cli.main(
            [
                "attack",
                "--spec",
                json.dumps(spec),
                *flags,
                "--ledger",
                str(tmp_path / "ledger.jsonl"),
            ]
        )
        == 0
    )
    found = read_json(tmp_path / "updates.json")
    assert (found["ledger"], found["weights"]) == (ledger.head, sha256(paths["model"]))
    assert (found["updates"], found["replacement_coins"], found["inclusion_relation"]) == (
        4,
        50,
        "add_or_remove",
    )


def test_another_models_tokenizer_is_refused_before_anything_is_written(
    paths, merging_tokenizer, tmp_path, capsys
):
    save(merging_tokenizer, paths["tokenizer"])
    spec = {"run": "r", "attack": ATTACKS[0], "device": "cpu"}
    flags = [part for name, path in paths.items() for part in (f"--{name}", str(path))]
    assert (
        cli.main(
            ["attack", "--spec", json.dumps(spec), *flags, "--output", str(tmp_path / "x.json")]
        )
        == 2
    )
    assert "tokens" in capsys.readouterr().err and not (tmp_path / "x.json").exists()


def test_attacks_after_every_epoch_are_those_on_the_model_of_that_epoch(paths, tmp_path):
    attacks = {"canaries": {"kind": "exposure"}, "phones": MEMBERSHIP}
    spec = TrajectorySpec.model_validate({"run": "crt/g0-s0", "attacks": attacks, "device": "cpu"})
    final = models.load(paths["model"].parent)
    second = build(SPEC, *shape(paths["model"]))
    for epoch, model in ((1, second), (2, final)):
        snapshots.write(tmp_path, epoch, model)
    snapshots.join(tmp_path, 2, tmp_path / "epochs.safetensors")
    trajectory(spec, epochs=tmp_path / "epochs.safetensors", **paths, output=tmp_path / "out.json")
    found = read_json(tmp_path / "out.json")
    assert found["weights"] == sha256(tmp_path / "epochs.safetensors")
    assert found["run"] == "crt/g0-s0" and [row["epoch"] for row in found["epochs"]] == [1, 2]
    for name, settings in attacks.items():
        alone = AttackJobSpec.model_validate(
            {"run": "crt/g0-s0", "attack": settings, "device": "cpu"}
        )
        attack(alone, **paths, output=tmp_path / "one.json")
        expected = read_json(tmp_path / "one.json")
        last = found["epochs"][1][name]
        assert last == {
            key: value
            for key, value in expected.items()
            if key not in ("run", "seconds", "weights")
        }
    assert (
        found["epochs"][0]["canaries"]["exposures"] != found["epochs"][1]["canaries"]["exposures"]
    )


def test_weights_of_epochs_that_are_of_another_model_or_cut_off_are_refused(paths, tmp_path):
    spec = TrajectorySpec.model_validate(
        {"run": "r", "attacks": {"canaries": {"kind": "exposure"}}, "device": "cpu"}
    )
    other = build(LSTMSpec(kind="lstm", embedding=4, hidden=4), *shape(paths["model"]))
    for name, model in (("other", other), ("none", None)):
        if model is not None:
            snapshots.write(tmp_path, 1, model)
        snapshots.join(tmp_path, 1 if model is not None else 0, tmp_path / name)
    (tmp_path / "cut").write_bytes((tmp_path / "other").read_bytes()[:99])
    for name in ("other", "none", "cut", "missing"):
        with pytest.raises(InputError, match=name):
            trajectory(spec, epochs=tmp_path / name, **paths, output=tmp_path / "out.json")
    assert not (tmp_path / "out.json").exists()
