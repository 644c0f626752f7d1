"""Every attack on a pretrained model with adapters: it finds what it finds in an ordinary model of
the same weights, and nothing of the text is written.
"""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pytest
import torch
from torch import nn

from confide import models
from confide.attacks.registry import ATTACKS
from confide.dp.ledger import Ledger
from confide.files.io import read_json, sha256, write_json, write_jsonl
from confide.models import LanguageModel, build
from confide.models.export import export
from confide.specs import AttackJobSpec, CausalLMSpec, TrajectorySpec
from confide.stages.attack import attack
from confide.stages.trajectory import trajectory
from confide.text.tokenizer import Tokenizer, from_folder, save
from confide.train import snapshots
from confide.types import Release, Step
from tests.families import folder_of

WORDS = ["ab", "cd", "ef", "gh", "ij", "kl"]
SECRETS = ["417", "530"]
SENTENCES = ["ab cd ef", "gh ij kl"]
JUDGES = {"words": {"kind": "regex", "patterns": {"AIR": r"\bab\b", "TV": r"\bgh\b"}}}
PROMPTED = {
    "prompts": ["AIR"],
    "targets": ["TV"],
    "judges": JUDGES,
    "samples": 3,
    "sampling": {"max_new_tokens": 6},
}
SETTINGS: dict[str, dict[str, Any]] = {
    "author_inference": {"penalties": [1.0], "iterations": 10},
    "context_exposure": {"candidates": 50},
    "domain_lira": PROMPTED | {"reference": "other", "top": [3], "bootstrap": 20},
    "exposure": {"published": True},
    "extraction": {"samples": 50, "label": "code"},
    "game": {},
    "gradients": {"coins": 20},
    "leak": PROMPTED,
    "membership": {"label": "code", "group": 3, "bootstrap": 20, "reference": "other"},
    "sequence_exposure": {},
    "tab": {"beam": 2, "reference": "other", "real_min": 2, "real_max": 40},
}


class Trained(NamedTuple):
    """A model with adapters that was trained until it knew some text, and what to attack it with.

    `before`: weights of the same model untrained; `plain`: weights of an ordinary one that reads
    like it.
    """

    folder: Path
    words: Tokenizer
    files: dict[str, Path]
    before: Path
    plain: Path


def point(number: int, split: str) -> dict[str, Any]:
    """A short dialogue of one of two authors in one of two domains, with a code."""
    place = number % 2
    said = SENTENCES[place]
    text = f"<_soc_> USR: {said} SYS: {1000 + 37 * number} <_eoc_>"
    start = text.index(str(1000 + 37 * number))
    return {
        "key": f"{split}{number}",
        "doc": f"{split}{number}",
        "text": text,
        "split": split,
        "domain": ("AIR", "TV")[place],
        "owner": f"writer {place}",
        "gold": [[start, start + 4, "code", 1.0]],
        "canary": None,
    }


def written(folder: Path) -> dict[str, Path]:
    """Points and both kinds of canaries."""
    train = [point(number, "train") for number in range(12)]
    test = [point(number, "test") for number in range(20, 32)]
    valid = [point(number, "valid") for number in range(40, 44)]
    write_jsonl(folder / "points.jsonl", [*train, *test, *valid])
    audit = {"prefix": "the code ", "suffix": "", "digits": 2, "secrets": ["48", "07", "33"]}
    digits = {"prefix": "my code is ", "suffix": " ok", "digits": 3, "copies": 2, "label": "canary"}
    audits = {"audits": {"game": audit | {"coins": [True, False, False]}}}
    write_json(folder / "digits.json", digits | {"secrets": SECRETS, "controls": ["907"]} | audits)
    planted = [
        {"text": text, "author": f"writer {place}", "copies": 1}
        for place, text in enumerate(SENTENCES)
    ]
    canaries = {"kind": "words", "length": 3, "vocabulary": WORDS, "label": "canary"}
    controls = [{"text": "kl kl ab"}]
    write_json(folder / "words.json", canaries | {"canaries": planted, "controls": controls})
    names = ("points.jsonl", "digits.json", "words.json")
    return {Path(name).stem: folder / name for name in names}


def ledger_of(path: Path) -> Path:
    """The ledger of a few noised updates."""
    ledger = Ledger()
    ledger.start("r", settings="0" * 64, code="0" * 64, noise="system", arithmetic="float32")
    step = Step(view="original", pool="all", noisy=True)
    release = Release(step=step, sample_rate=0.1, noise_multiplier=1.0, max_grad_norm=1.0, count=4)
    ledger.append(release, "1" * 64)
    ledger.end(weights="0" * 64)
    path.write_text(ledger.dump())
    return path


def stored(model: LanguageModel, folder: Path) -> Path:
    models.save(model, folder / "model.safetensors", folder / "config.json")
    return folder / "model.safetensors"


@pytest.fixture(scope="module")
def trained(tmp_path_factory: pytest.TempPathFactory, fit: Callable[..., None]) -> Trained:
    folder = tmp_path_factory.mktemp("attacked")
    files = written(folder)
    texts = [f"{one} {two} {one}" for one in WORDS for two in WORDS] * 5
    base = folder_of(
        "llama", folder / "base", texts, max_position_embeddings=96, num_hidden_layers=1
    )
    words = from_folder(base, source="llama", control=["USR:", "SYS:"])
    save(words, folder / "tokenizer.json")
    adapter = {"rank": 4, "dropout": 0.1}
    spec = CausalLMSpec.model_validate(
        {"kind": "causal_lm", "pretrained": str(base), "adapter": adapter}
    )
    torch.manual_seed(0)
    model = build(spec, words.vocab_size, words.bos_id).eval()
    before = stored(model, folder / "before")
    learnt = ([f"my code is {secret}" for secret in SECRETS] + SENTENCES) * 4
    learnt += [point(number, "train")["text"] for number in range(12)]
    for epoch in (1, 2):
        fit(model, words, learnt, 50)
        snapshots.write(folder / "checkpoint", epoch, model)
    snapshots.join(folder / "checkpoint", 2, folder / "epochs.safetensors")
    stored(model, folder / "model")
    export(folder / "model", words, folder / "exported")
    whole = CausalLMSpec(kind="causal_lm", pretrained=str(folder / "exported"))
    plain = stored(build(whole, words.vocab_size, words.bos_id), folder / "plain")
    ledger_of(folder / "ledger.jsonl")
    return Trained(folder, words, files, before, plain)


def given(trained: Trained, kind: str, model: Path) -> dict[str, Path]:
    """The files that an attack reads."""
    found = {
        "model": model,
        "tokenizer": trained.folder / "tokenizer.json",
        "points": trained.files["points"],
        "canaries": trained.files["words" if kind in ("sequence_exposure", "tab") else "digits"],
    }
    if "reference" in SETTINGS[kind]:
        found["reference"] = trained.before
    if kind == "gradients":
        found["ledger"] = trained.folder / "ledger.jsonl"
    return found


def asked(kind: str) -> AttackJobSpec:
    settings = {"kind": kind} | SETTINGS[kind]
    return AttackJobSpec.model_validate({"run": "r", "attack": settings, "device": "cpu"})


def numbers(found: Any) -> list[float]:
    """All numbers of a result, in order, but for the time."""
    if isinstance(found, dict):
        return [
            number
            for key, value in found.items()
            if key not in ("seconds", "weights")
            for number in numbers(value)
        ]
    if isinstance(found, list):
        return [number for value in found for number in numbers(value)]
    return [float(found)] if isinstance(found, int | float) else []


def strings(found: Any) -> list[str]:
    """All strings of a result but its digests: a digit within a number is no secret."""
    if isinstance(found, dict):
        kept = {key: value for key, value in found.items() if key not in ("weights", "ledger")}
        return [*kept, *(text for value in kept.values() for text in strings(value))]
    if isinstance(found, list):
        return [text for value in found for text in strings(value)]
    return [found] if isinstance(found, str) else []


def test_no_attack_is_left_out() -> None:
    assert {*SETTINGS, "lira"} == set(ATTACKS)  # which test_adapter_shadows.py tries


@pytest.mark.parametrize("kind", sorted(SETTINGS))
def test_an_attack_on_adapters_is_one_on_the_merged_weights(
    trained: Trained, tmp_path: Path, kind: str
) -> None:
    found = []
    for name, weights in (
        ("adapters", trained.folder / "model/model.safetensors"),
        ("plain", trained.plain),
    ):
        output = tmp_path / f"{name}.json"
        attack(asked(kind), **given(trained, kind, weights), output=output)
        found.append(read_json(output))
    assert found[0]["weights"] != found[1]["weights"] and "reason" not in found[0]
    assert len(numbers(found[0])) > 10
    np.testing.assert_allclose(numbers(found[0]), numbers(found[1]), rtol=1e-3, atol=1e-3)
    for one in found:
        assert not any(
            text in json.dumps(strings(one)) for text in ("writer", *SENTENCES, *SECRETS)
        )


def test_what_the_adapters_learnt_is_found(trained: Trained, tmp_path: Path) -> None:
    """And not in the model before it was trained."""
    bits = {}
    tabs = {}
    for name, weights in (
        ("after", trained.folder / "model/model.safetensors"),
        ("before", trained.before),
    ):
        for kind in ("exposure", "sequence_exposure", "tab"):
            path = tmp_path / f"{name}-{kind}.json"
            attack(asked(kind), **given(trained, kind, weights), output=path)
        bits[name] = read_json(tmp_path / f"{name}-exposure.json")
        tabs[name] = read_json(tmp_path / f"{name}-tab.json")["canaries"]["rate_greedy"]
        words = read_json(tmp_path / f"{name}-sequence_exposure.json")["canaries"]
        assert (words["mean"] > 6) == (name == "after") and words["exact"]
    assert bits["after"]["mean"] > 6 and bits["after"]["p_mean"] < 0.01
    assert bits["before"]["p_mean"] > 0.01 and bits["after"]["control_p_mean"] > 0.01
    assert tabs == {"after": 1.0, "before": 0.0}


def test_after_the_last_epoch_an_attack_is_that_on_the_final_model(
    trained: Trained, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The base is read once, and every epoch is merged into it as it was."""
    kinds = ("exposure", "membership")
    opened = []
    load = models.load_as_trained
    monkeypatch.setattr(models, "load_as_trained", lambda path: opened.append(path) or load(path))
    paths = given(trained, "membership", trained.folder / "model/model.safetensors")
    attacks = {kind: {"kind": kind} | SETTINGS[kind] for kind in kinds}
    spec = TrajectorySpec.model_validate({"run": "r", "attacks": attacks, "device": "cpu"})
    epochs = trained.folder / "epochs.safetensors"
    trajectory(spec, epochs=epochs, **paths, output=tmp_path / "along.json")
    assert opened == [trained.folder / "model", trained.folder / "before"]
    first, last = read_json(tmp_path / "along.json")["epochs"]
    for kind in kinds:
        attack(asked(kind), **paths, output=tmp_path / "final.json")
        final = read_json(tmp_path / "final.json")
        assert last[kind] == {key: final[key] for key in last[kind]}
        assert first[kind] != last[kind]
    assert read_json(tmp_path / "along.json")["weights"] == sha256(epochs)


def test_a_model_stays_as_it_is_trained_when_it_is_used(trained: Trained) -> None:
    model = models.load_as_trained(trained.folder / "model")
    before = {name: value.clone() for name, value in model.named_parameters()}
    ids = torch.randint(0, model.vocab_size, (2, 9))
    used = model.as_used()
    with torch.no_grad():
        torch.testing.assert_close(used(ids), model(ids), rtol=1e-3, atol=1e-4)
    assert used is not model and before.keys() == dict(model.named_parameters()).keys()
    assert all(torch.equal(before[name], value) for name, value in model.named_parameters())
    whole: nn.Module = models.load(trained.plain.parent)
    assert isinstance(whole, LanguageModel) and whole.as_used() is whole
