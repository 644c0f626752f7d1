"""Trials of recipes: as many for each method, on public text alone, and all of them are told."""

import csv
import os
from itertools import product
from pathlib import Path

import pytest
import yaml

from confide.config import studies
from confide.config.params import FILE, load
from confide.errors import InputError
from confide.files.io import read_jsonl
from confide.specs import FetchSpec, SplitSpec, TuningSpec
from confide.stages.fetch import fetch
from confide.stages.split import split
from confide.stages.tuning import tuning

ROOT = Path(__file__).parents[2]
needs_mirror = pytest.mark.skipif(
    not os.environ.get("CONFIDE_MIRROR"), reason="CONFIDE_MIRROR is not set"
)


def trial(run, method, **more):
    usual = {"corpus": "trial", "model": "lstm", "covered": False, "dedup": False}
    return {"run": run, "method": method, "recipe": run, "settings": {"lr": 0.01}} | usual | more


def made(folder, scores, trials):
    for run, perplexities in scores.items():
        path = folder / run / "metrics.jsonl"
        path.parent.mkdir()
        path.write_text("".join(f'{{"epoch": 1, "valid_ppl": {p}}}\n' for p in perplexities))
    tuning(TuningSpec(trials=trials), models=folder, output=folder / "tuning.csv")
    return list(csv.DictReader((folder / "tuning.csv").read_text().splitlines()))


def test_the_last_epoch_decides_within_a_method_and_a_corpus(tmp_path):
    trials = [
        trial("a", "jft"),
        trial("b", "jft"),
        trial("c", "jft", covered=True),
        trial("d", "jft", covered=True),
        trial("e", "jft", corpus="other"),
        trial("f", "jft", corpus="other"),
        trial("g", "jft", model="gpt2"),
        trial("h", "jft", model="gpt2"),
    ]
    scores = {"a": [2.0, 5.0], "b": [9.0, 4.0], "c": [3.0], "d": [3.0], "e": [99.0], "f": [98.0]}
    rows = made(tmp_path, scores | {"g": [7.0], "h": [6.0]}, trials)
    assert [row["run"] for row in rows if row["best"] == "True"] == ["b", "c", "f", "h"]
    assert [float(row["valid_ppl"]) for row in rows] == [5, 4, 3, 3, 99, 98, 7, 6]
    assert rows[2]["method"] == "jft, behind a cover" and rows[0]["lr"] == "0.01"
    assert rows[0]["filled"] == "False"
    assert [row["corpus"] for row in rows[3:5]] == ["trial", "other"]


@pytest.mark.parametrize("scores", [{"a": ["null"]}, {"a": []}])
def test_a_trial_without_a_score_is_refused(tmp_path, scores):
    with pytest.raises(InputError, match=r"a/metrics.jsonl: valid_ppl"):
        made(tmp_path, scores, [trial("a", "jft")])
    assert not (tmp_path / "tuning.csv").exists()


def test_unequal_effort_is_refused(tmp_path):
    with pytest.raises(
        InputError, match="as the others: jft of lstm on trial: 2, crt of lstm on trial: 1"
    ):
        trials = [trial("a", "jft"), trial("b", "jft"), trial("c", "crt")]
        made(tmp_path, {"a": [1], "b": [1], "c": [1]}, trials)


@pytest.mark.parametrize("name", ["tuning", "tuning_values"])
def test_text_that_needs_protection_chooses_nothing(tmp_path, name):
    values = yaml.safe_load((ROOT / "tests/params.tiny.yaml").read_text())
    values["studies"][name] = {"title": "Trials", "runs": ["public", "dpsgd"]}
    (tmp_path / "params.yaml").write_text(yaml.safe_dump(values))
    with pytest.raises(InputError, match=rf"studies.{name}.runs.1 = 'dpsgd': has read sim, which"):
        load(tmp_path / "params.yaml")


@pytest.mark.parametrize("name", ["tuning", "tuning_values"])
def test_nor_does_what_starts_from_such_text_or_has_its_vocabulary(tmp_path, name):
    values = yaml.safe_load((ROOT / "tests/params.tiny.yaml").read_text())
    public = values["runs"]["public"]
    values["runs"]["warmed"] = public | {"init": "nonprivate"}
    values["studies"][name] = {"title": "Trials", "runs": ["public", "warmed"]}
    file = tmp_path / "params.yaml"
    file.write_text(yaml.safe_dump(values))
    with pytest.raises(InputError, match=rf"studies.{name}.runs.1 = 'warmed': has read sim, which"):
        load(file)
    values["studies"][name]["runs"] = ["public"]
    file.write_text(yaml.safe_dump(values))
    load(file)
    tokenizer = values["datasets"]["public"]["tokenizer"]
    values["tokenizers"][tokenizer]["corpus"] = "sim"
    file.write_text(yaml.safe_dump(values))
    with pytest.raises(
        InputError, match=rf"studies.{name}.runs.0 = 'public': has read {tokenizer}"
    ):
        load(file)


def test_the_studies_try_every_method_of_the_leaderboard_as_often():
    params = load(ROOT / FILE)
    tried = {}
    for one in studies.tuning(params, "tuning").trials:
        kinds = tried.setdefault((one.corpus, one.model), {})
        kinds.setdefault((one.method, one.covered, one.dedup), set()).add(one.recipe)
    ranked = {}
    for study in params.leaderboards["leaderboard"]:
        runs = studies.panel(params, study).runs
        kinds = {(run.method, run.covered, run.dedup) for run in runs if run.method != "untouched"}
        ranked.setdefault(trials_for(study), set()).update(kinds)
    ranked["trial", "lstm"].add(ANOTHER_ORDER)
    assert {trials: set(kinds) for trials, kinds in tried.items()} == ranked
    assert {len(recipes) for kinds in tried.values() for recipes in kinds.values()} == {5}


ANOTHER_ORDER = ("schedule", True, True)  # of updates behind a cover, tried and left
TRIALS = {"wikitext": "trial_wikitext", "sgd": "trial_sgd"}  # by a word of a study's name
TRIALS_OF = ("trial", *TRIALS.values())
TRIED = ("redacted", "behind_cover")


def trials_for(study):
    """The corpus and the model of the trials whose best recipes a study takes."""
    corpus = next((name for word, name in TRIALS.items() if word in study), "trial")
    return corpus, "gpt2_long" if study == "lead_wikitext_gpt2" else "lstm"


def kept(name):
    """The lines of the trials of a study in docs."""
    return list(csv.DictReader((ROOT / f"docs/results/leaderboard/{name}.csv").open()))


def test_the_leaderboard_takes_the_best_recipe_of_the_trials():
    """As docs/results/leaderboard/tuning.csv has them, which are those of the study."""
    params = load(ROOT / FILE)
    trials = studies.tuning(params, "tuning").trials
    rows = kept("tuning")
    known = [(row["run"], row["corpus"], row["model"], row["recipe"]) for row in rows]
    assert known == [(one.run, one.corpus, one.model, one.recipe) for one in trials]
    best = {
        (one.corpus, one.model, one.method, one.covered, one.dedup): one.recipe
        for one, row in zip(trials, rows, strict=True)
        if row["best"] == "True"
    }
    for study in params.leaderboards["leaderboard"]:
        for run in studies.panel(params, study).runs:
            kind = *trials_for(study), run.method, run.covered, run.dedup
            assert run.method == "untouched" or run.recipe == best[kind], run.name


def test_values_are_tried_in_place_of_masks_as_often_with_the_best_recipe():
    """As docs/results/leaderboard/tuning_values.csv has them, in the order of its table."""
    params = load(ROOT / FILE)
    trials = studies.tuning(params, "tuning_values").trials
    best = {
        (one.corpus, one.model, one.method, one.dedup): one.recipe
        for one, row in zip(studies.tuning(params, "tuning").trials, kept("tuning"), strict=True)
        if row["best"] == "True" and one.covered is (one.method == "behind_cover")
    }
    fills = [False, True, None]  # None: of a public dataset, whichever
    for place, one in enumerate(trials):
        assert one.recipe == best[one.corpus, one.model, one.method, one.dedup], one.run
        wanted = fills[place % 3]
        assert one.filled is wanted if wanted is not None else isinstance(one.filled, str)
    assert {(one.corpus, one.method) for one in trials} == set(product(TRIALS_OF, TRIED))
    known = [(row["run"], row["corpus"], row["filled"]) for row in kept("tuning_values")]
    assert known == [(one.run, one.corpus, str(one.filled)) for one in trials]


def test_a_trial_gets_no_values_of_its_own_text():
    """What its valid text holds would help it, and no text that is not public."""
    params = load(ROOT / FILE)
    for one in studies.tuning(params, "tuning_values").trials:
        if isinstance(one.filled, str):
            assert params.datasets[one.filled].corpus != one.corpus
    rest, trial = params.corpora["rest_wikitext"], params.corpora["trial_wikitext"]
    assert rest.skip >= trial.skip + trial.lines


@needs_mirror
def test_each_corpus_of_trials_has_text_to_judge_them_by(tmp_path):
    """What `tuning` reads is the perplexity of the valid split: at its end it is too late."""
    params = load(ROOT / FILE)
    assert {trial.corpus for trial in studies.tuning(params, "tuning").trials} == set(TRIALS_OF)
    for name in TRIALS_OF:
        corpus = params.corpora[name]
        raw = None
        if archive := getattr(corpus, "archive", None):
            raw = tmp_path / "raw.jsonl"
            fetch(FetchSpec(archive=archive), output=raw)
        split(SplitSpec(corpus=corpus, point="sentence"), raw=raw, output=tmp_path / name)
        splits = [row["split"] for row in read_jsonl(tmp_path / name)]
        assert splits.count("valid") >= 0.1 * splits.count("train") > 0, name
