"""`confide recommend` takes only measurements of the text and policies that params.yaml has now."""

from pathlib import Path

import orjson
import pytest
import yaml

from confide.commands import recommend
from confide.config import jobs
from confide.config.params import load
from confide.errors import InputError
from confide.provenance.terms import read_before, terms

TINY = Path(__file__).parents[1] / "params.tiny.yaml"
RATES = {
    "gamma": 0.0,
    "gamma_upper": 0.01,
    "delta2": 0.0,
    "delta2_upper": 0.01,
    "misaligned": 0,
    "confidence": 0.95,
    "sampled": 400,
    "secrets": 400,
}
OFTEN = {"multiplicity": 1, "multiplicity_distinct": 1, "pools": {"public": 9}}


@pytest.fixture
def measured(tmp_path, monkeypatch):
    """A folder with params.yaml and what its policies miss, measured; the parameters' values."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(recommend, "load_partition", lambda *files: None)
    values = yaml.safe_load(TINY.read_text())
    Path("params.yaml").write_text(yaml.safe_dump(values))
    Path("data/tokenizers").mkdir(parents=True)
    params, run = selected()
    tokenizer = Path("data/tokenizers", f"{params.datasets['sim'].tokenizer}.json")
    tokenizer.write_text("{}")
    recall = jobs.recall(params, "sim", 0.0)
    neighbours = jobs.neighbours(params, "sim", 0.0, run.row.dedup)
    for file, spec, content in (
        (Path("data/work", run.redaction, "recall.json"), recall, OFTEN),
        (Path("data/work", run.partition, "neighbours.json"), neighbours, RATES),
    ):
        file.parent.mkdir(parents=True, exist_ok=True)
        measured_on = {
            "terms": terms(spec.text, spec.redact, getattr(spec, "partition", None)),
            "reads": list(read_before(spec.reads, tokenizer)),
        }
        file.write_bytes(orjson.dumps(content | measured_on))
    return values


def selected():
    """The parameters, and a run whose files are there."""
    params = load()
    runs = jobs.runs_of(params, params.select).values()
    return params, next(run for run in runs if run.row.dataset == "sim" and run.gamma == 0)


def checked() -> None:
    recommend.read(*selected(), "snakemake")


def test_measurements_of_these_parameters_are_taken(measured):
    checked()


@pytest.mark.parametrize(
    ("key", "value", "named"),
    [
        ("conservative", "digits", "terms.policies"),
        ("point", "dialogue", "terms.cut"),
        ("merge_masks", True, "terms.merge_masks"),
    ],
)
def test_measurements_of_other_policies_or_text_are_refused(measured, key, value, named):
    measured["datasets"]["sim"][key] = value
    Path("params.yaml").write_text(yaml.safe_dump(measured))
    with pytest.raises(InputError, match=rf"{named}: is not what params.yaml says"):
        checked()


def test_measurements_with_another_vocabulary_are_refused(measured):
    (tokenizer,) = Path("data/tokenizers").iterdir()
    tokenizer.write_text("{ }")
    with pytest.raises(InputError, match=r"neighbours.json: reads: is not what"):
        checked()


def test_measurements_of_nothing_that_is_named_are_refused(measured):
    _, run = selected()
    path = Path("data/work", run.redaction, "recall.json")
    path.write_bytes(orjson.dumps(OFTEN))
    with pytest.raises(InputError, match=r"recall.json: terms\.\w+: is not what params.yaml says"):
        checked()


def test_a_folder_without_parameters_is_told_from_one_that_is_not_there(tmp_path):
    with pytest.raises(InputError, match="there is no such folder"):
        recommend.recommend(tmp_path / "nosuch")
    with pytest.raises(InputError, match=r"params\.yaml: is not there: `confide init CORPUS`"):
        recommend.recommend(tmp_path)
