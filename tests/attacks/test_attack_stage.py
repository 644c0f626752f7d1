"""The attack stage: its file, and that two runs write the same."""

import json

import pytest

from confide import cli, models
from confide.io import read_json, write_json, write_jsonl
from confide.models import build
from confide.specs import AttackJobSpec, LSTMSpec
from confide.stages.attack import attack
from confide.tokenizer import save


@pytest.fixture
def paths(tmp_path, digit_tokenizer):
    """A model folder, its tokenizer, points and canaries."""
    model = build(LSTMSpec(kind="lstm", embedding=8, hidden=8), digit_tokenizer.vocab_size, digit_tokenizer.bos_id)
    models.save(model, tmp_path / "m/model.safetensors", tmp_path / "m/config.json")
    save(digit_tokenizer, tmp_path / "tokenizer.json")
    planted = {"prefix": "My ID is: ", "suffix": "", "digits": 3, "copies": 2, "secrets": ["481"], "controls": ["907"]}
    audit = {"prefix": "The code: ", "suffix": "", "digits": 2, "secrets": ["48", "07", "33"], "coins": [True, False, False]}
    write_json(tmp_path / "canaries.json", planted | {"label": "canary", "audits": {"game": audit}})
    rows = [
        {"key": str(i), "text": f"call {1000 + 37 * i}", "split": split, "gold": [[5, 9, "phone", 1.0]]}
        for i, split in enumerate(["train"] * 12 + ["test"] * 12)
    ]
    write_jsonl(tmp_path / "points.jsonl", rows)
    return {
        "model": tmp_path / "m/model.safetensors",
        "tokenizer": tmp_path / "tokenizer.json",
        "points": tmp_path / "points.jsonl",
        "canaries": tmp_path / "canaries.json",
    }


ATTACKS = ({"kind": "exposure"}, {"kind": "membership", "label": "phone", "group": 3, "bootstrap": 50}, {"kind": "game"})


@pytest.mark.parametrize("settings", ATTACKS)
def test_two_runs_write_the_same_but_for_seconds(paths, tmp_path, settings):
    spec = AttackJobSpec.model_validate({"run": "crt/g0-s0", "attack": settings, "device": "cpu"})
    written = []
    for name in ("one.json", "two.json"):
        attack(spec, **paths, output=tmp_path / name)
        written.append(read_json(tmp_path / name))
    assert (written[0]["attack"], written[0]["run"]) == (settings["kind"], "crt/g0-s0")
    assert all(found.pop("seconds") > 0 for found in written)
    assert written[0] == written[1] and len(written[0]) > 10


def test_from_the_command_line(paths, tmp_path, capsys):
    spec = {"run": "r", "attack": ATTACKS[0], "device": "cpu"}
    flags = [part for name, path in paths.items() for part in (f"--{name}", str(path))]
    output = tmp_path / "results/exposure.json"
    assert cli.main(["attack", "--spec", json.dumps(spec), *flags, "--output", str(output)]) == 0
    assert read_json(output)["candidates"] == 1000
    assert "481" not in capsys.readouterr().out


def test_another_models_tokenizer_is_refused_before_anything_is_written(paths, merging_tokenizer, tmp_path, capsys):
    save(merging_tokenizer, paths["tokenizer"])
    spec = {"run": "r", "attack": ATTACKS[0], "device": "cpu"}
    flags = [part for name, path in paths.items() for part in (f"--{name}", str(path))]
    assert cli.main(["attack", "--spec", json.dumps(spec), *flags, "--output", str(tmp_path / "x.json")]) == 2
    assert "tokens" in capsys.readouterr().err and not (tmp_path / "x.json").exists()
