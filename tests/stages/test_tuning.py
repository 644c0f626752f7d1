"""Trials of recipes: as many for each method, on public text alone, and all of them are told."""

import csv
from pathlib import Path

import pytest
import yaml

from confide.config import studies
from confide.config.params import FILE, load
from confide.errors import InputError
from confide.specs import TuningSpec
from confide.stages.tuning import tuning

ROOT = Path(__file__).parents[2]


def trial(run, method, **more):
    usual = {"covered": False, "dedup": False, "recipe": run, "settings": {"lr": 0.01}}
    return {"run": run, "method": method} | usual | more


def made(folder, scores, trials):
    for run, perplexities in scores.items():
        path = folder / run / "metrics.jsonl"
        path.parent.mkdir()
        path.write_text("".join(f'{{"epoch": 1, "valid_ppl": {p}}}\n' for p in perplexities))
    tuning(TuningSpec(trials=trials), models=folder, output=folder / "tuning.csv")
    return list(csv.DictReader((folder / "tuning.csv").read_text().splitlines()))


def test_the_last_epoch_decides_within_a_method(tmp_path):
    trials = [
        trial("a", "jft"),
        trial("b", "jft"),
        trial("c", "jft", covered=True),
        trial("d", "jft", covered=True),
    ]
    scores = {"a": [2.0, 5.0], "b": [9.0, 4.0], "c": [3.0], "d": [3.0]}
    rows = made(tmp_path, scores, trials)
    assert [row["best"] for row in rows] == ["False", "True", "True", "False"]
    assert [float(row["valid_ppl"]) for row in rows] == [5, 4, 3, 3]
    assert rows[2]["method"] == "jft, behind a cover" and rows[0]["lr"] == "0.01"


@pytest.mark.parametrize("scores", [{"a": ["null"]}, {"a": []}])
def test_a_trial_without_a_score_is_refused(tmp_path, scores):
    with pytest.raises(InputError, match=r"a/metrics.jsonl: valid_ppl"):
        made(tmp_path, scores, [trial("a", "jft")])
    assert not (tmp_path / "tuning.csv").exists()


def test_unequal_effort_is_refused(tmp_path):
    with pytest.raises(InputError, match="as many trials as the others: jft: 2, crt: 1"):
        trials = [trial("a", "jft"), trial("b", "jft"), trial("c", "crt")]
        made(tmp_path, {"a": [1], "b": [1], "c": [1]}, trials)


def test_text_that_needs_protection_chooses_no_recipe(tmp_path):
    values = yaml.safe_load((ROOT / "tests/params.tiny.yaml").read_text())
    values["studies"]["tuning"] = {"title": "Trials", "runs": ["public", "dpsgd"]}
    (tmp_path / "params.yaml").write_text(yaml.safe_dump(values))
    with pytest.raises(InputError, match=r"studies.tuning.runs.1 = 'dpsgd': is trained on sim"):
        load(tmp_path / "params.yaml")


def test_the_studies_try_every_method_of_the_leaderboard_as_often():
    params = load(ROOT / FILE)
    spec = studies.tuning(params)
    tried = {}
    for one in spec.trials:
        tried.setdefault((one.method, one.covered, one.dedup), set()).add(one.recipe)
    assert {len(recipes) for recipes in tried.values()} == {4}
    panels = studies.leaderboard(params, "leaderboard").panels
    ranked = {(run.method, run.covered, run.dedup) for panel in panels for run in panel.runs}
    assert set(tried) == ranked
    for panel in panels:
        for row in {run.name for run in panel.runs}:
            run = params.runs[row]
            covered = studies.is_covered(params, run)
            assert run.recipe in tried[run.method, covered, run.dedup], row
