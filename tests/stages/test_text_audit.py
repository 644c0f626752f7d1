"""The audit of texts as a job: it draws what it asks for itself, and writes numbers alone."""

from pathlib import Path

import pytest
import torch

from confide import models
from confide.attacks.target import opened
from confide.errors import InputError
from confide.files.io import read_json, write_jsonl
from confide.specs import LSTMSpec, TextAuditJobSpec, parse
from confide.stages.text_audit import asked_for, text_audit
from confide.text.tokenizer import load
from tests.points import read_points
from tests.stages.corpus_of_texts import made

AUDIT = {"probes": 20, "max_new_tokens": 12, "limit": 60, "permutations": 50, "device": "cpu"}


@pytest.fixture(scope="module")
def files(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """A corpus, and a model that has learnt nothing of it."""
    folder = tmp_path_factory.mktemp("corpus")
    files = made(folder)
    torch.manual_seed(0)
    spec = LSTMSpec(kind="lstm", embedding=8, hidden=8)
    model = models.build(spec, load(files["tokenizer"]).vocab_size, 1)
    models.save(model, folder / models.WEIGHTS, folder / models.CONFIG)
    return files | {"model": folder / models.WEIGHTS}


def audited(files: dict[str, Path], folder: Path, texts: list[str]) -> dict:
    write_jsonl(folder / "texts", [{"synthetic": {}}, *({"text": text} for text in texts)])
    given = {name: files[name] for name in ("model", "tokenizer", "points", "canaries")}
    spec = parse(TextAuditJobSpec, {"run": "a/g0-s0", "audit": AUDIT})
    text_audit(spec, texts=folder / "texts", output=folder / "audit.json", **given)
    return read_json(folder / "audit.json")


def test_texts_of_the_corpus_are_caught_and_none_of_it_is_written(
    files: dict[str, Path], tmp_path: Path
) -> None:
    rows = [row for row in read_points(files["points"]) if row["split"] == "train"]
    metrics = audited(files, tmp_path, [row["text"] for row in rows])
    assert metrics["attack"] == "text_audit" and metrics["p_value"] < 1e-6
    assert metrics["canaries_texts_surfaced"] == 5 and metrics["scan_texts_found"] > 30
    assert metrics["canaries_prompted_texts"] == 3 * 20
    assert metrics["texts_game_epsilon_lower"] > 1
    # a sentence that is not there tells as much as one that is
    assert metrics["texts_inclusion_epsilon_lower"] > 1
    written = (tmp_path / "audit.json").read_text()
    secrets = {row["text"][start:end] for row in rows for start, end, *_ in row["gold"]}
    assert not [secret for secret in secrets if len(secret) > 5 and secret in written]


def test_texts_of_the_model_itself_are_not(files: dict[str, Path], tmp_path: Path) -> None:
    valid = [row["text"] for row in read_points(files["points"]) if row["split"] == "valid"]
    metrics = audited(files, tmp_path, valid)
    assert metrics["p_value"] > 0.001
    assert metrics["texts_game_epsilon_lower"] < 1


def test_what_is_asked_for_begins_as_asked_and_repeats(files: dict[str, Path]) -> None:
    spec = parse(TextAuditJobSpec, {"run": "a", "audit": AUDIT}).audit
    target = opened(
        files["model"], files["tokenizer"], "cpu", points=files["points"], canaries=None
    )
    prompts = ["My ID is: ", ""]
    texts = asked_for(target, prompts, spec, temperature=1.0)
    assert len(texts) == 40 and all(text.startswith("My ID is:") for text in texts[:20])
    assert texts == asked_for(target, prompts, spec, temperature=1.0)
    assert texts != asked_for(target, prompts, spec, temperature=2.0)
    assert asked_for(target, [], spec, temperature=1.0) == []


def test_no_texts_are_refused(files: dict[str, Path], tmp_path: Path) -> None:
    with pytest.raises(InputError, match="holds no text"):
        audited(files, tmp_path, [])
    assert not (tmp_path / "audit.json").exists()
