"""docs/leaderboard.md is what tools/leaderboard_page.py makes of the panels that are kept."""

import importlib
import re
from pathlib import Path

import pytest
from leaders import panels_of, ranked, write

from confide.config import studies
from confide.config.params import FILE, load
from confide.files.io import read_json, write_json
from confide.stages.panel import panel

ROOT = Path(__file__).parents[2]
WORDS = 450  # of fixed text, at most
TITLES = {"lead_sim_lstm": "CustomerSim, LSTM", "lead_sgd_lstm": "Schema-Guided Dialogues, LSTM"}

with pytest.MonkeyPatch.context() as patch:
    patch.syspath_prepend(ROOT / "tools")  # as for a program that is run there
    leaderboard_page = importlib.import_module("leaderboard_page")


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """A page, figures and kept panels in a folder of their own."""
    monkeypatch.setattr(leaderboard_page, "PAGE", tmp_path / "leaderboard.md")
    monkeypatch.setattr(leaderboard_page, "FIGURES", tmp_path / "figures")
    monkeypatch.setattr(leaderboard_page, "KEPT", tmp_path / "kept")
    return tmp_path


def run_panel(root, study, bits):
    """Make the panel of a study as a machine would that has run this one alone."""
    runs = [
        ranked(name, method, seed, covered=covered)
        for name, method, covered in (("dpsgd", "dpsgd", False), ("cover", "jft", True))
        for seed in (0, 1, 2)
    ]
    for run in runs:
        write(root, run, 1, bits + 0.1 * run.covered + 0.001 * run.seed)
    made = root / f"results/leaderboards/panels/{study}.json"
    folders = {"results": root / "results", "models": root / "models"}
    panel(panels_of({study: runs})[0], **folders, output=made)


def test_without_results_no_page_is_written(folder, capsys):
    assert leaderboard_page.main(["--results", str(folder)]) == 1
    assert "snakemake leaderboard" in capsys.readouterr().out
    assert not list(folder.iterdir())


def test_the_page_has_panels_of_several_machines_with_day_and_commit(folder):
    for place, (study, title) in enumerate(TITLES.items()):
        run_panel(folder / study, study, 2.0 + place)
        assert leaderboard_page.main(["--results", str(folder / study / "results")]) == 0
        text = (folder / "leaderboard.md").read_text()
        assert f"\n### {title}\n" in text and f"\n| {title} | 20" in text
        line = next(line for line in text.splitlines() if line.startswith("Not run yet: "))
        named = line.removeprefix("Not run yet: ").partition(". P-values")[0].split("; ")
        for number, (other, words) in enumerate(TITLES.items()):
            assert (words in named) is (number > place)
            # its rows are none of params.yaml
            changed = f"{words}: cover, dpsgd, {other}_behind_cover_1, "
            assert any(one.startswith(changed) for one in named) is (number <= place)
    assert "(figures/leaderboard.png)" in text and "## SmolLM2 with adapters" not in text
    assert "; SmolLM2 with adapters (" in line
    assert (folder / "figures/leaderboard.png").stat().st_size > 1000
    assert leaderboard_page.commit().split("-")[0] in text
    assert "2.001 ± " in text and "3.001 ± " in text


def test_a_panel_that_is_the_same_keeps_its_day(folder):
    study = "lead_sim_lstm"
    run_panel(folder, study, 2.0)
    arguments = ["--results", str(folder / "results")]
    assert leaderboard_page.main(arguments) == 0
    dates = folder / "kept/dates.csv"
    dates.write_text(f"study,date,commit\n{study},1999-12-31,0123456789ab\n")
    assert leaderboard_page.main(arguments) == 0
    assert "| CustomerSim, LSTM | 1999-12-31 | 0123456789ab |" in leaderboard_page.PAGE.read_text()
    run_panel(folder, study, 2.5)
    assert leaderboard_page.main(arguments) == 0
    assert "1999" not in leaderboard_page.PAGE.read_text()


def test_seeds_of_another_machine_stay(folder):
    """A panel that was made in part replaces what it has, and nothing else."""
    study = "lead_sim_lstm"
    run_panel(folder / "first", study, 2.0)
    run_panel(folder / "second", study, 2.5)
    file = folder / f"second/results/leaderboards/panels/{study}.json"
    part = read_json(file)
    for row in part["rows"]:
        row["runs"] = row["runs"][:1]
        row["claims"]["missed"]["epsilon"] = 2.0 if row["name"] == "cover" else 0.5
    write_json(file, part)
    assert leaderboard_page.main(["--results", str(folder / "first/results")]) == 0
    given = ["--results", str(folder / "second/results"), "--machine", "a faster one"]
    assert leaderboard_page.main(given) == 0
    kept = read_json(folder / f"kept/{study}.json")["rows"]
    for row in kept:
        bits = {run["seed"]: run["numbers"]["bits_per_character"] for run in row["runs"]}
        first = 2.1 if row["covered"] else 2.0
        assert bits == pytest.approx({0: first + 0.5, 1: first + 0.001, 2: first + 0.002})
    epsilons = {row["name"]: row["claims"]["missed"]["epsilon"] for row in kept}
    assert epsilons == {"dpsgd": 1.0, "cover": 2.0}  # the largest of the seeds
    assert "unknown; a faster one" in leaderboard_page.PAGE.read_text()
    whole = folder / "first/results"
    assert leaderboard_page.main(["--results", str(whole)]) == 0
    assert read_json(folder / f"kept/{study}.json")["rows"][1]["claims"]["missed"]["epsilon"] == 1.0
    part["rows"][0]["recipe"] = "another"
    write_json(file, part)
    assert leaderboard_page.main(["--results", str(folder / "second/results")]) == 0
    other = read_json(folder / f"kept/{study}.json")["rows"][0]
    assert len(other["runs"]) == 1, "what was asked otherwise is nothing to add to"


def test_the_page_shows_the_trials(folder):
    run_panel(folder, "lead_sim_lstm", 2.0)
    header = "corpus,model,method,recipe,lr,run,valid_ppl,best\n"
    trials = ["plain,lstm,dpsgd,low,.01,a,4.123,False\n", "plain,lstm,dpsgd,high,.02,b,3.5,True\n"]
    (folder / "results/tuning.csv").write_text(header + "".join(trials))
    values = ["plain,lstm,dpsgd,False,a,4.1,False\n", "plain,lstm,dpsgd,True,b,4.2,False\n"]
    values += ["plain,lstm,dpsgd,public,c,4.02,True\n"]
    header = "corpus,model,method,filled,run,valid_ppl,best\n"
    (folder / "results/tuning_values.csv").write_text(header + "".join(values))
    assert leaderboard_page.main(["--results", str(folder / "results")]) == 0
    text = leaderboard_page.PAGE.read_text()
    assert "| plain | lstm | dpsgd | 4.123 | 3.5 | `high` |" in text
    assert "| plain | dpsgd | 4.1 | 4.2 | 4.02 |" in text


@pytest.mark.parametrize(("field", "value"), [("init", "other"), ("model", "gpt2")])
def test_a_row_that_started_elsewhere_is_named_as_changed(folder, field, value):
    params = load(ROOT / FILE)
    kept = read_json(ROOT / "docs/results/leaderboard/lead_sim_lstm.json")
    write_json(folder / "kept/lead_sim_lstm.json", kept)
    assert not leaderboard_page.changed(params, "lead_sim_lstm")
    row = kept["rows"][3]
    row[field] = value
    write_json(folder / "kept/lead_sim_lstm.json", kept)
    words = f"CustomerSim, LSTM: {row['name']} (added, left out or changed since)"
    assert leaderboard_page.changed(params, "lead_sim_lstm") == words


def test_what_is_kept_belongs_to_leaderboards():
    params = load(ROOT / FILE)
    known = {study for board in params.leaderboards.values() for study in board}
    kept = {path.stem for path in (ROOT / "docs/results/leaderboard").glob("*.json")}
    assert kept <= known
    assert set(leaderboard_page.BOARDS) == set(params.leaderboards)
    assert all(params.studies[study].title == title for study, title in TITLES.items())
    assert studies.leaderboard(params, "leaderboard").panels.items() >= TITLES.items()


def test_the_page_is_that_of_what_is_kept(tmp_path, monkeypatch):
    """No number of it was changed by hand, and none is older than its panel."""
    monkeypatch.setattr(leaderboard_page, "FIGURES", tmp_path / "figures")
    if leaderboard_page.PAGE.exists():
        assert leaderboard_page.PAGE.read_text() == leaderboard_page.page(load(ROOT / FILE))


def test_fixed_words_are_few():
    template = (ROOT / "tools/leaderboard_page.jinja").read_text()
    words = re.sub(r"{[{%].*?[%}]}|[|-]", "", template).split()
    assert 300 < len(words) <= WORDS


def test_nothing_links_to_a_page_that_is_not_there():
    if not leaderboard_page.PAGE.exists():
        pages = [*(ROOT / "docs").glob("*.md"), ROOT / "mkdocs.yml", ROOT / "README.md"]
        assert not [page.name for page in pages if "leaderboard.md" in page.read_text()]
