"""Only corpora declared public are public, by the rules and by the scan; what DVC pushes is read off dvc.yaml."""

import shutil
from pathlib import Path

import pytest
import yaml

from confide.errors import Failure, InputError
from confide.io import read_json, write_jsonl
from confide.outgoing import public_corpora, public_sources, pushed
from confide.params import check
from confide.specs import ScanSpec
from confide.stages.scan import scan
from confide.tokenizer import save, train_bpe

ROOT = Path(__file__).parents[1]
SURNAMES = ["Karenina", "Oblonsky", "Wronsky", "Shcherbatsky", "Levinson"]


def tiny(**changes):
    """The tiny parameters, with parts of them replaced."""
    params = yaml.safe_load((ROOT / "tests/params.tiny.yaml").read_text())
    for part, entries in changes.items():
        for name, keys in entries.items():
            params[part][name].update(keys)
    return check(params)


def test_the_corpus_of_a_tokenizer_is_public_only_if_it_was_declared_so():
    assert public_sources(tiny(), ["sim"]) == ["public-turn"]
    assert public_sources(tiny(), ["sim", "public"]) == ["public-turn", "public"]
    assert public_sources(tiny(tokenizers={"bpe": {"corpus": "sim"}}), ["sim"]) == []
    assert public_sources(tiny(datasets={"public": {"public": False}}), ["sim", "public"]) == []


def test_a_corpus_that_two_datasets_disagree_on_is_not_public():
    params = tiny(datasets={"public": {"corpus": "sim"}})
    assert public_corpora(params) == set()
    assert public_sources(params, ["sim", "public"]) == []


@pytest.fixture
def trained(tmp_path) -> Path:
    """A private corpus, and a tokenizer trained on it, in whose vocabulary surnames stand whole."""
    rows = []
    for name in SURNAMES:
        start = len("I am Mrs ")
        rows.append({"key": name, "text": f"I am Mrs {name}.", "gold": [[start, start + len(name), "name", 1.0]]})
    write_jsonl(tmp_path / "points.jsonl", rows)
    save(train_bpe([row["text"] for row in rows] * 50, 400), tmp_path / "tokenizer.json")
    return tmp_path


def test_a_tokenizer_trained_on_the_private_corpus_leaks_and_exempts_nothing(trained):
    vocabulary = read_json(trained / "tokenizer.json")["model"]["vocab"]
    assert {f"Ġ{name}" for name in SURNAMES} <= vocabulary.keys()
    files = {"points": [trained / "points.jsonl"], "canaries": [], "files": [trained / "tokenizer.json"]}
    sources = public_sources(tiny(tokenizers={"bpe": {"corpus": "sim"}}), ["sim"])
    public = [trained / "points.jsonl" for _ in sources]
    with pytest.raises(Failure, match=r"tokenizer.json: \d+ hits \(name\)"):
        scan(ScanSpec(), **files, public=public, output=trained / "scan.json")
    found = read_json(trained / "scan.json")
    assert found["secrets"]["public"] == 0 and found["secrets"]["searched"] == len(SURNAMES)
    assert found["files"][0]["secrets"] == list(range(len(SURNAMES)))


def test_the_rule_calls_nothing_public_that_a_tokenizer_alone_makes_so(fresh, tmp_path):
    flag = "--public data/work/public-turn/points.jsonl"
    assert flag in fresh.snakemake("-n", "-p", "results/studies/tiny/scan.json")
    project = fresh.copy(tmp_path / "project")
    project.edit("params.yaml", "{ kind: bpe, corpus: public", "{ kind: bpe, corpus: sim")
    plan = project.snakemake("-n", "-p", "results/studies/tiny/scan.json")
    assert "confide scan --spec" in plan and "data/work/sim-turn/points.jsonl" not in scan_command(plan)
    assert flag not in plan.replace("data/work/public/", "")


def scan_command(plan: str) -> str:
    """The command line of the search, in the printed plan."""
    (command,) = [line for line in plan.splitlines() if "confide scan" in line]
    return command


def test_what_dvc_pushes_is_what_is_not_kept_back(tmp_path):
    assert pushed(ROOT / "dvc.yaml") == [
        *("data/tokenizers", "models", "results/runs", "results/studies", "results/summary", ".snakemake/metadata"),
    ]
    path = tmp_path / "dvc.yaml"
    shutil.copy(ROOT / "dvc.yaml", path)
    path.write_text(path.read_text().replace("outs:\n      - models", "outs:\n      - extra\n      - models"))
    assert "extra" in pushed(path)


@pytest.mark.parametrize(
    "text", ["", "[]", "stages: [a]", "stages: {a: {outs: [[x]]}}", "stages: {a: {outs: [{x: false}]}}", "{"]
)
def test_a_file_that_names_no_outputs_is_refused(tmp_path, text):
    path = tmp_path / "dvc.yaml"
    path.write_text(text)
    with pytest.raises(InputError, match=r"dvc\.yaml"):
        pushed(path)
