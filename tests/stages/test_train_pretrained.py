"""Training jobs of a pretrained model of transformers: every method, with adapters and whole; what
is read of the run afterwards.
"""

import shutil
from pathlib import Path
from typing import Any

import pytest
import torch
from safetensors.torch import load_file, save_file
from transformers import AutoTokenizer

from confide import models
from confide.commands.generate import generate
from confide.dp.ledger import Ledger
from confide.errors import InputError
from confide.files.io import read_json, read_jsonl, sha256
from confide.methods import METHODS
from confide.models.export import export
from confide.specs import CausalLMSpec, ReadSpec, TrainSpec
from confide.text import tokenizer as tokenizers
from tests.families import folder_of
from tests.sentencepieces import sentencepiece_folder
from tests.stages.killing import killed
from tests.stages.test_train import run, spec

ADAPTER = {"adapter": {"rank": 2, "dropout": 0.1}}


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return folder_of("llama", tmp_path_factory.mktemp("pretrained"))


@pytest.fixture(scope="module")
def vocabulary(folder: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("tokenizer") / "tokenizer.json"
    tokenizers.save(tokenizers.from_folder(folder, source="llama"), path)
    return path


def pretrained(folder: Path, method: str, **options: Any) -> TrainSpec:
    model = CausalLMSpec(kind="causal_lm", pretrained=str(folder), **options)
    return spec(method).model_copy(update={"model": model})


@pytest.mark.parametrize("method", sorted(set(METHODS) - {"selective"}))
def test_every_method_trains_adapters(
    method: str, tmp_path: Path, folder: Path, vocabulary: Path
) -> None:
    made = run(tmp_path, vocabulary, pretrained(folder, method, **ADAPTER))
    rows = list(read_jsonl(made["metrics"]))
    assert all(row["valid_ppl"] > 1 for row in rows)
    ledger = Ledger.load(made["ledger"].read_text())
    assert sum(release.count for release in ledger.releases()) == rows[-1]["step"]
    stored = load_file(made["model"])
    assert stored and all(".lora_" in name or ".new." in name for name in stored)
    assert len(read_json(made["config"])["spec"]["sha256"]) == 64


def test_selective_dp_asks_for_a_recurrent_model(
    tmp_path: Path, folder: Path, vocabulary: Path
) -> None:
    with pytest.raises(InputError, match="recurrent"):
        run(tmp_path, vocabulary, pretrained(folder, "selective", **ADAPTER))


@pytest.mark.parametrize("options", [ADAPTER, {}], ids=["adapter", "full"])
def test_killed_job_resumes_to_the_same_bytes(
    options: dict[str, Any], tmp_path: Path, folder: Path, vocabulary: Path
) -> None:
    wanted = pretrained(folder, "crt", **options).model_copy(update={"every_epoch": True})
    whole = run(tmp_path / "whole", vocabulary, wanted)
    killed(6, lambda: run(tmp_path / "killed", vocabulary, wanted))
    torch.manual_seed(12345)
    resumed = run(tmp_path / "killed", vocabulary, wanted)
    for name in ("model", "ledger", "config", "epochs"):
        assert resumed[name].read_bytes() == whole[name].read_bytes()
    final = load_file(whole["model"])
    epochs = load_file(whole["epochs"])
    last = max(int(name.partition("/")[0]) for name in epochs)
    assert len(epochs) == last * len(final) > 0
    assert all(torch.equal(epochs[f"{last}/{name}"], value) for name, value in final.items())


def test_frozen_weights_are_float32_where_a_processor_cannot_multiply_bfloat16(
    tmp_path: Path, folder: Path, vocabulary: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As from a model whose weights were rounded to bfloat16 before."""
    monkeypatch.setattr("confide.stages.train.has_bfloat16", lambda device: False)
    halved = pretrained(folder, "crt", **ADAPTER, frozen_dtype="bfloat16")
    made = run(tmp_path / "a", vocabulary, halved)
    copy = tmp_path / "rounded"
    shutil.copytree(folder, copy)
    weights = load_file(copy / "model.safetensors")
    rounded = {name: value.bfloat16().float() for name, value in weights.items()}
    save_file(rounded, copy / "model.safetensors", metadata={"format": "pt"})
    other = run(tmp_path / "b", vocabulary, pretrained(copy, "crt", **ADAPTER))
    expected = load_file(other["model"])
    found = load_file(made["model"])
    assert all(torch.equal(value, expected[name]) for name, value in found.items())


@pytest.mark.parametrize(("family", "shape"), [("gemma3_text", "gemma"), ("phi3", "llama")])
def test_vocabularies_of_sentencepiece_train_and_write(
    family: str, shape: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    base = folder_of(family, tmp_path / "base", vocab_size=420)
    sentencepiece_folder(shape, base)
    words = tokenizers.from_folder(base, source=family)
    place = tmp_path / "tokenizer.json"
    tokenizers.save(words, place)
    made = run(tmp_path / "run", place, pretrained(base, "dpsgd", **ADAPTER))
    assert list(read_jsonl(made["metrics"]))[-1]["valid_ppl"] > 1
    prompts = tmp_path / "prompts.txt"
    prompts.write_text("my code\n")
    generate(
        tmp_path / "run", tokenizer=place, prompts=prompts, output=tmp_path / "a", max_new_tokens=9
    )
    (row,) = read_jsonl(tmp_path / "a")
    assert isinstance(row["text"], str) and "▁" not in row["text"]
    files = export(tmp_path / "run", words, tmp_path / "out")
    theirs = AutoTokenizer.from_pretrained(tmp_path / "out")
    text = "please tell me what the price is"
    assert theirs(text)["input_ids"] == [words.bos_id, *words.encode(text)]
    assert theirs.decode(words.encode(text)) == text and files


def test_another_base_than_the_one_that_was_trained_on_is_refused(
    tmp_path: Path, vocabulary: Path
) -> None:
    base = folder_of("llama", tmp_path / "base")
    run(tmp_path / "run", vocabulary, pretrained(base, "nonprivate", **ADAPTER))
    assert models.load(tmp_path / "run").vocab_size
    folder_of("llama", base, rope_theta=9.0)
    with pytest.raises(InputError, match="other files than the ones"):
        models.load(tmp_path / "run")


def test_a_killed_job_does_not_go_on_with_another_base(tmp_path: Path, vocabulary: Path) -> None:
    """Else the ledger named the digest of a base that the model does not stand on."""
    base = folder_of("llama", tmp_path / "base")
    wanted = pretrained(base, "crt", **ADAPTER)
    read = ReadSpec(stage="pretrained", source=str(base), public=True, artefact=str(base))
    wanted = wanted.model_copy(update={"reads": [*wanted.reads, read]})
    killed(6, lambda: run(tmp_path / "run", vocabulary, wanted))
    folder_of("llama", base, rope_theta=9.0)
    made = run(tmp_path / "run", vocabulary, wanted)
    ledger = Ledger.load(made["ledger"].read_text())
    (line,) = [line for line in ledger.events("read") if line["stage"] == "pretrained"]
    assert line["digest"] == read_json(made["config"])["spec"]["sha256"]


def test_texts_of_a_trained_model(
    tmp_path: Path, folder: Path, vocabulary: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    run(tmp_path / "run", vocabulary, pretrained(folder, "nonprivate", **ADAPTER))
    prompts = tmp_path / "prompts.txt"
    prompts.write_text("my code\nI wait\n")
    options: dict[str, Any] = {"tokenizer": vocabulary, "prompts": prompts, "max_new_tokens": 5}
    for name in ("a", "b"):
        generate(tmp_path / "run", output=tmp_path / name, count=2, **options)
    rows = list(read_jsonl(tmp_path / "a"))
    assert [row["prompt"] for row in rows] == ["my code"] * 2 + ["I wait"] * 2
    assert (tmp_path / "a").read_bytes() == (tmp_path / "b").read_bytes()
    told = capsys.readouterr().out
    assert "4 texts" in told and "epsilon = infinity" in told
    weights = sha256(tmp_path / "run/model.safetensors")
    (tmp_path / "run/certificate.json").write_text(f'{{"weights": "{weights}"}}')
    generate(tmp_path / "run", output=tmp_path / "with", **options)
    assert "epsilon" not in capsys.readouterr().out
    with pytest.raises(InputError, match="exists"):
        generate(tmp_path / "run", output=tmp_path / "a", **options)
    with pytest.raises(InputError, match="--tokenizer"):
        generate(tmp_path / "run", output=tmp_path / "c")
