"""Pages of results are what tools/results_page.py makes of the results kept beside them."""

import csv
import importlib.util
import json
import shutil
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]

spec = importlib.util.spec_from_file_location("results_page", ROOT / "tools/results_page.py")
results_page = importlib.util.module_from_spec(spec)
spec.loader.exec_module(results_page)


@pytest.fixture
def copy(tmp_path, monkeypatch):
    """The kept results and the page in a folder of their own."""
    shutil.copytree(results_page.KEPT, tmp_path / "results")
    for file in results_page.PAGES.values():
        shutil.copy(file, tmp_path / file.name)
    pages = {name: tmp_path / file.name for name, file in results_page.PAGES.items()}
    monkeypatch.setattr(results_page, "PAGES", pages)
    for name, place in {
        "KEPT": "results",
        "DATES": "results/dates.csv",
        "CLAIMS": "results/claims.csv",
    }.items():
        monkeypatch.setattr(results_page, name, tmp_path / place)
    return tmp_path


def test_no_number_of_the_page_is_typed():
    assert results_page.main(["--check"]) == 0


def test_documented_numbers_are_a_metric_without_those_of_the_machine(copy):
    documented = json.loads((copy / "results/crt_customersim.json").read_text())
    assert not [key for key in documented if key.endswith(("seconds", "peak_mb"))]
    for row in csv.DictReader((copy / "results/crt_customersim.csv").open()):
        key = f"{row['name']}.g{float(row['gamma']):g}"
        assert documented[f"{key}.ppl_public"] == float(row["ppl_public"])
        assert documented[f"{key}.exposure_max"] == float(row["exposure_max"])
    made = copy / "made/studies/crt_customersim/summary.json"
    made.parent.mkdir(parents=True)
    made.write_text(json.dumps({"crt.g0.ppl": 1.5, "crt.g0.seconds": 3.0}))
    shutil.copy(copy / "results/crt_customersim.csv", made.with_name("table.csv"))
    results_page.main(["--results", str(copy / "made")])
    assert json.loads((copy / "results/crt_customersim.json").read_text()) == {"crt.g0.ppl": 1.5}


def test_seeds_above_a_limit_are_counted(copy):
    made = copy / "made/studies/limits/table.csv"
    made.parent.mkdir(parents=True)
    made.write_text("name,method,gamma,seed,x\na,m,0,0,1.5\na,m,0,1,9\nb,m,0,0,9\n")
    results = results_page.Results(copy / "made")
    assert results.above("limits", "a", "x", 1.5) == "1 of 2"
    assert results.above("limits", "b", "x", 9.5) == "0 of 1"


def test_differences_are_of_equal_seeds(copy):
    rows = [
        {"name": name, "method": "m", "gamma": "0.0", "seed": seed, "ppl": ppl}
        for name, seed, ppl in [("a", 1, 5), ("a", 0, 3), ("b", 0, 1), ("b", 1, 2), ("c", 0, 1)]
    ]
    made = copy / "made/studies/pairs/table.csv"
    made.parent.mkdir(parents=True)
    results_page.write(made, list(rows[0]), rows)
    results = results_page.Results(copy / "made")
    assert results.difference("pairs", ("a", "b"), "ppl") == "2.5 ± 6.4"
    with pytest.raises(SystemExit, match="a and c have different seeds"):
        results.difference("pairs", ("a", "c"), "ppl")


def test_what_a_claim_rests_on_is_quoted(copy):
    summary = copy / "made/summary/claims.csv"
    summary.parent.mkdir(parents=True)
    evidence = "at perplexity 7.5: a 1,234.5, b -2 bits; p = 0.02"
    row = {"paper": "P", "claim": "c", "verdict": "not shown (one seed)", "evidence": evidence}
    results_page.write(summary, list(row), [row])
    results = results_page.Results(copy / "made")
    assert results.verdict("c") == "**Not shown (one seed):**"
    quoted = [results.evidence("c", words) for words in ("perplexity", "a", "b", "p =")]
    assert quoted == ["7.5", "1,234.5", "-2", "0.02"]
    for claim, words in (("c", "d"), ("c", "bits;"), ("d", "a")):
        with pytest.raises(SystemExit, match="no "):
            results.evidence(claim, words)


def test_another_number_makes_another_page(copy):
    kept = copy / "results/crt_customersim.csv"
    kept.write_text(kept.read_text().replace("19.931", "18.765"))
    assert results_page.main(["--check"]) == 1


def test_a_study_whose_results_are_there_replaces_what_is_kept_of_it(copy):
    made = copy / "made/studies/crt_customersim/table.csv"
    made.parent.mkdir(parents=True)
    shutil.copy(copy / "results/crt_customersim.csv", made)
    made.write_text(made.read_text().replace("19.931", "18.765"))
    summary = copy / "made/summary/claims.csv"
    summary.parent.mkdir()
    first, *_ = results_page.read(copy / "results/claims.csv")
    results_page.write(summary, list(first), [first | {"verdict": "does not hold"}])
    before = {
        path.name: path.read_text() for path in (copy / "results").iterdir() if path.is_file()
    }
    assert results_page.main(["--results", str(copy / "made")]) == 0
    after = {path.name: path.read_text() for path in (copy / "results").iterdir() if path.is_file()}
    changed = {name for name in after if after[name] != before.get(name)}
    assert changed <= {"crt_customersim.csv", "claims.csv", "dates.csv"}
    assert "18.765" in after["crt_customersim.csv"]
    verdict = next(csv.DictReader(after["claims.csv"].splitlines()))["verdict"]
    assert verdict == "does not hold"
    assert results_page.main(["--check"]) == 0
    assert "18.8" in (copy / "results.md").read_text()
