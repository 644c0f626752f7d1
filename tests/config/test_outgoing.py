"""Only corpora declared public are public, by the rules and by the scan; what DVC pushes is read
off dvc.yaml.
"""

from pathlib import Path

import pytest
import yaml

from confide.config.jobs import public_corpora
from confide.config.outgoing import public_sources, published_tokenizers, pushed
from confide.config.params import validated
from confide.errors import Failure, InputError
from confide.files.io import read_json, write_jsonl
from confide.specs import ScanSpec, TokenizerSpec
from confide.stages.scan import scan
from confide.text.tokenizer import save, train_bpe

ROOT = Path(__file__).parents[2]
SURNAMES = ["Karenina", "Oblonsky", "Wronsky", "Shcherbatsky", "Levinson"]


def tiny(**changes):
    """The tiny parameters, with parts of them replaced."""
    params = yaml.safe_load((ROOT / "tests/params.tiny.yaml").read_text())
    for part, entries in changes.items():
        for name, keys in entries.items():
            params[part][name].update(keys)
    return validated(params, [])


def test_the_corpus_of_a_tokenizer_is_public_only_if_it_was_declared_so():
    assert public_sources(tiny(), ["sim"]) == ["public-turn"]
    assert public_sources(tiny(), ["sim", "public"]) == ["public-turn", "public"]
    assert public_sources(tiny(tokenizers={"bpe": {"corpus": "sim"}}), ["sim"]) == []
    assert public_sources(tiny(datasets={"public": {"public": False}}), ["sim", "public"]) == []


def test_a_corpus_that_two_datasets_disagree_on_is_not_public():
    with pytest.raises(InputError, match="the dataset sim of the same text says False"):
        tiny(datasets={"public": {"corpus": "sim"}})
    same = tiny().datasets["public"].model_copy(update={"corpus": "sim"})
    params = tiny().model_copy(update={"datasets": tiny().datasets | {"public": same}})
    assert public_corpora(params) == set()
    assert public_sources(params, ["sim", "public"]) == []


@pytest.mark.parametrize(
    ("tokenizer", "published"),
    [
        ({"kind": "gpt2", "source": "archive"}, True),
        ({"kind": "pretrained", "source": "data/raw/pretrained/smollm2-135m-instruct"}, True),
        # whatever is declared of a folder or of a name at the hub
        ({"kind": "pretrained", "source": "data/raw/pretrained/mine", "public": True}, False),
        ({"kind": "pretrained", "source": "smollm2-135m-instruct", "public": True}, False),
        ({"kind": "gpt2", "source": "models/gpt2", "public": True}, False),
        ({"kind": "gpt2", "source": "gpt2", "public": True}, False),
        ({"kind": "pretrained", "source": "archive"}, False),  # a folder of that name
    ],
)
def test_only_a_tokenizer_whose_digest_is_recorded_was_published(tokenizer, published):
    params = tiny()
    tokenizers = params.tokenizers | {"bpe": TokenizerSpec(**tokenizer)}
    params = params.model_copy(update={"tokenizers": tokenizers})
    assert published_tokenizers(params, ["sim", "public"]) == (["bpe"] if published else [])


def test_a_tokenizer_made_here_was_not_published():
    assert published_tokenizers(tiny(), ["sim", "public"]) == []


@pytest.fixture
def trained(tmp_path) -> Path:
    """A private corpus, and a tokenizer trained on it, in whose vocabulary surnames stand whole."""
    rows = []
    for name in SURNAMES:
        start = len("I am Mrs ")
        rows.append(
            {
                "key": name,
                "text": f"I am Mrs {name}.",
                "gold": [[start, start + len(name), "name", 1.0]],
            }
        )
    write_jsonl(tmp_path / "points.jsonl", rows)
    save(train_bpe([row["text"] for row in rows] * 50, 400), tmp_path / "tokenizer.json")
    return tmp_path


def test_a_tokenizer_trained_on_the_private_corpus_leaks_and_exempts_nothing(trained):
    vocabulary = read_json(trained / "tokenizer.json")["model"]["vocab"]
    assert {f"Ġ{name}" for name in SURNAMES} <= vocabulary.keys()
    files = {
        "points": [trained / "points.jsonl"],
        "canaries": [],
        "files": [trained / "tokenizer.json"],
        "published": [],
    }
    sources = public_sources(tiny(tokenizers={"bpe": {"corpus": "sim"}}), ["sim"])
    public = [trained / "points.jsonl" for _ in sources]
    with pytest.raises(Failure, match=r"tokenizer.json: \d+ hits \(name\)"):
        scan(ScanSpec(), **files, public=public, output=trained / "scan.json")
    found = read_json(trained / "scan.json")
    assert found["secrets"]["public"] == 0 and found["secrets"]["searched"] == len(SURNAMES)
    assert found["files"][0]["secrets"] == list(range(len(SURNAMES)))


UNREAD = "  unread: { reader: customersim, sizes: { train: 40, valid: 5, test: 5 }, seed: 9 }\n"


def command_of(plan: str, study: str) -> list[str]:
    """Words of the command line that searches for a study or for a page, in the printed plan."""
    (command,) = [
        line
        for line in plan.splitlines()
        if "confide scan" in line and f"{study}/scan.json" in line
    ]
    return command.split()


@pytest.fixture(scope="module")
def plan(fresh) -> str:
    """What `snakemake` would run, with its commands."""
    return fresh.snakemake("-n", "-p")


def test_the_rule_calls_nothing_public_that_a_tokenizer_alone_makes_so(plan, fresh, tmp_path):
    declared = "data/work/public-turn/points.jsonl"
    assert declared in command_of(plan, "tiny") and declared in command_of(plan, "summary")
    project = fresh.copy(tmp_path / "project")
    project.edit("params.yaml", "{ kind: bpe, corpus: public", "{ kind: bpe, corpus: sim")
    other = project.snakemake("-n", "-p")
    for study in ("tiny", "summary"):
        command = command_of(other, study)
        assert "data/work/sim/points.jsonl" in command and not any(
            "-turn/" in word for word in command
        )


def test_what_a_private_tokenizer_is_made_of_is_looked_for(plan, fresh, tmp_path):
    """No run reads that text, and its names may be tokens."""
    project = fresh.copy(tmp_path / "project")
    project.edit("params.yaml", "tokenizers:", UNREAD + "tokenizers:")
    project.edit("params.yaml", "{ kind: bpe, corpus: public", "{ kind: bpe, corpus: unread")
    other = project.snakemake("-n", "-p")
    for study in ("tiny", "summary"):
        command = command_of(other, study)
        points = command[command.index("--points") : command.index("--canaries")]
        assert "data/work/unread-turn/points.jsonl" in points
        assert "data/work/unread-turn/points.jsonl" not in command_of(plan, study)


def test_all_that_is_pushed_is_searched_after_everything_else(plan):
    command = command_of(plan, "summary")
    files = command[command.index("--files") : command.index("--output")]
    assert set(pushed(ROOT / "dvc.yaml")) <= set(files) and "results/summary" in files
    inputs = plan.split("rule search_summary:")[1].split("output:")[0]
    for last in (
        "results/summary/index.html",
        "results/studies/tiny/scan.json",
        "results/runs/jft/g0-s0/certificate.json",
    ):
        assert last in inputs


def test_a_new_output_is_searched_without_another_word(fresh, tmp_path):
    project = fresh.copy(tmp_path / "project")
    project.edit("dvc.yaml", "outs:\n      - models", "outs:\n      - extra/new\n      - models")
    assert "extra/new" in command_of(project.snakemake("-n", "-p"), "summary")


def test_what_dvc_pushes_is_what_is_not_kept_back(tmp_path):
    assert pushed(ROOT / "dvc.yaml") == [
        *(
            "data/tokenizers",
            "models",
            "results/runs",
            "results/studies",
            "results/summary",
            ".snakemake/metadata",
        ),
    ]
    path = tmp_path / "dvc.yaml"
    outputs = (
        "[a, b: {push: false}, c: {cache: false}, d: {persist: true}], metrics: [e: {cache: "
        "false}, f], plots: [g], deps: [h]"
    )
    path.write_text(
        f"stages: {{first: {{cmd: x, outs: {outputs}}}, second: {{cmd: y, outs: [a, i]}}}}"
    )
    assert pushed(path) == ["a", "d", "f", "g", "i"]


@pytest.mark.parametrize(
    "text",
    [
        *(
            "",
            "[]",
            "{",
            "stages: [a]",
            "stages: {a: {outs: [[x]]}}",
            "stages: {a: {outs: [{x: false}]}}",
        ),
        *(
            "stages: {a: {wdir: x, outs: [a]}}",
            "stages: {a: {outs: ['a b']}}",
            "stages: {a: {outs: ['$(id)']}}",
        ),
        "stages: {a: {foreach: [1], do: {outs: [x]}}}",
    ],
)
def test_a_file_that_does_not_tell_what_is_pushed_is_refused(tmp_path, text):
    path = tmp_path / "dvc.yaml"
    path.write_text(text)
    with pytest.raises(InputError, match=r"dvc\.yaml"):
        pushed(path)
