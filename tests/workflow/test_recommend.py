"""`confide recommend` on a built project: what it says before training is what training and the
certificate then do.
"""

import json
import re

import pytest

from confide.advisor import forecast
from confide.advisor.advice import Option, Wish
from confide.commands.recommend import evaluation_of, look, time_of
from confide.config import jobs
from confide.config.params import load

pytestmark = pytest.mark.slow


def test_prices_are_those_of_the_certificates(built, monkeypatch):
    monkeypatch.chdir(built.folder)
    params = load()
    runs = [
        run
        for run in jobs.runs_of(params, params.select).values()
        if run.row.dataset == "sim" and run.gamma == 0
    ]
    assert {run.row.method for run in runs} == {"nonprivate", "dpsgd", "jft"}
    wish = Wish("secret", 3.0, 8e-5, "replace_one")
    there = {run.run: metrics for run in runs if (metrics := evaluation_of(run)) is not None}
    measured, options = look(params, runs, there, wish, "snakemake")
    assert [one.conservative for one in measured] == ["capitals", "everything"]
    priced = {option.method: option for option in options if option.dataset == "sim"}
    for run in runs:
        certificate = json.loads(
            (built.folder / "results/runs" / run.run / "certificate.json").read_text()
        )
        claims = {claim["name"]: float(claim["epsilon"]) for claim in certificate["claims"]}
        found = priced[run.row.method]
        assert found.caught == claims["secret_caught"] and found.missed == claims["secret_missed"]
        assert found.record == claims["record_replace_one_pld"]
        assert found.random == float(certificate["headline"]["bayesian_epsilon_upper"])
        assert [found.noise] == (certificate["public_constants"]["noise_multipliers"] or [None])
        evaluation = json.loads(
            (built.folder / "results/runs" / run.run / "evaluate.json").read_text()
        )
        assert found.perplexity == evaluation["ppl_public"]
        assert found.spent == claims["record_replace_one_pld"]
        assert found.trained.endswith("bits per character")
    assert priced["crt"].trained is None  # it was trained with simulated misses alone


def test_what_training_takes_is_told_where_a_row_makes_it(built, monkeypatch):
    monkeypatch.chdir(built.folder)
    params = load()
    runs = list(jobs.runs_of(params, params.select).values())
    (line,) = time_of(params, runs, Option("sim", "dpsgd"))
    assert re.match(r"- Training dpsgd takes about [\d.]+ (s|minutes) on this machine, by", line)
    assert "by what it took here before." in line
    (other,) = time_of(params, runs, Option("sim (everything)", "dpsgd"))
    assert other.startswith("- Training dpsgd, with its own conservative policy, takes about")
    assert time_of(params, runs, Option("sim", "schedule")) == []
    monkeypatch.setattr(forecast, "measured", lambda folder: {})
    (line,) = time_of(params, runs, Option("sim", "dpsgd"))
    assert "by a few of its steps." in line


def changed_at(folder):
    """When what is below a folder was last changed, but for what Snakemake keeps for itself."""
    places = (place for place in folder.iterdir() if place.name != ".snakemake")
    return sorted(path.stat().st_mtime_ns for place in places for path in place.rglob("*"))


@pytest.mark.nightly
def test_the_command_says_the_same_from_anywhere_and_changes_nothing(built, tmp_path):
    before = changed_at(built.folder)
    printed = built.run("bash", "-c", f"cd {tmp_path} && confide recommend {built.folder}")
    assert (
        "Recommended: crt on sim (everything)." in printed
        and "| sim | nonprivate | nobody | ∞ | ∞ | ∞ | ∞ | – |" in printed
    )
    assert changed_at(built.folder) == before


@pytest.mark.nightly
def test_a_corpus_that_names_no_secrets_is_told_nothing_of_what_is_missed(fresh, tmp_path):
    """Dialogues with names and account numbers, and no spans: what the tool plants and finds
    measures no policy.
    """
    texts = [
        f"Hello, my name is Anna {chr(65 + n % 26)}ova.\nMy IBAN is DE{n * 7919:020d}.\nCall {n}!"
        for n in range(400)
    ]
    project = fresh.copy(tmp_path / "project")
    (project.folder / "mine").mkdir()
    (project.folder / "mine/corpus.jsonl").write_text(
        "".join(json.dumps({"text": text}) + "\n" for text in texts)
    )
    project.run("confide", "init", "mine/corpus.jsonl")
    project.run("snakemake", "-d", "mine", "-c", "1", "prepare")
    (rates,) = (
        json.loads(path.read_text())
        for path in (project.folder / "mine/data/work").glob("mine/g0-dedup/neighbours.json")
    )
    assert rates["planted"]["secrets"] > 50 and rates["gamma"] is rates["gamma_upper"] is None
    printed = project.run("confide", "recommend", "mine")
    assert (
        "nobody can say what the policy misses" in printed
        and "0.00%" not in printed
        and " misses 0" not in printed
    )
    rows = [line.split(" | ") for line in printed.splitlines() if line.startswith("| mine")]
    assert {row[5] for row in rows} == {"–"}  # what a random secret costs


def test_what_is_not_measured_yet_is_named(fresh):
    printed = fresh.run("confide", "recommend", ".", check=False)
    assert (
        fresh.status == 2
        and "is not there yet, or of other text, settings or code" in printed
        and "`snakemake prepare` makes it" in printed
        and printed.count("\n") == 1
    )


def test_what_changed_since_is_not_taken_for_what_is_there(built, tmp_path):
    """Neither advice nor the settings beside results are of a params.yaml that these are not of."""
    project = built.copy(tmp_path / "project")
    assert "Recommended: " in project.run("confide", "recommend", ".")
    project.edit("params.yaml", "{ epsilon: 3.0 }", "{ epsilon: 1.0 }")
    assert "Recommended: " in project.run("confide", "recommend", ".")
    printed = project.run("confide", "report", check=False)
    assert project.status == 2 and "was made of other settings, files or code" in printed
    project.edit("params.yaml", "users: 500", "users: 400")
    printed = project.run("confide", "recommend", ".", check=False)
    assert project.status == 2 and "points.jsonl: is not there yet, or of other text" in printed
