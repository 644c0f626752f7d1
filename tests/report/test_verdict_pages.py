"""The pages of gate and search: the verdict first, and nothing in them that is markup."""

import json

from confide.certify.gate import NOT_AUDITED, REFUTED, SKIPPED, STANDS, Case
from confide.report.pages import gate, search

GOOD = Case("crt/g0-s0", "game", STANDS, 2.0001, 0.5, 160, 0.29, 0.94, 1.0, None, "too few")
BAD = Case("jft/g0-s0", "inclusion", REFUTED, 1.0, 4.5, 160, 0.3, 0.9, 1.0, None, "<b>x</b>|y")
OPEN = Case("dpsgd/g0-s0", "none", NOT_AUDITED, 3.0, says="no audit has tested it")
NONE = Case("plain/g0-s0", "game", SKIPPED, float("inf"), says="nothing finite is claimed")


def row(path: str, hits: int = 0, **labels: int) -> dict:
    return {
        "path": path,
        "published": False,
        "kilobytes": 1234567,
        "hits": hits,
        "labels": labels,
    }


def found(*rows: dict, warning: str | None = None) -> dict:
    totals = {
        "files": len(rows),
        "published": 0,
        "kilobytes": 2_500,
        "hits": sum(one["hits"] for one in rows),
        "leaking_files": sum(one["hits"] > 0 for one in rows),
    }
    secrets = {"secrets": 1900, "marked": 1700, "too_short": 60, "public": 33, "searched": 1807}
    return {"secrets": secrets, "totals": totals, "warning": warning, "files": list(rows)}


def test_a_gate_that_passes_says_what_was_tested():
    text = gate.page("my study", [NONE, GOOD, OPEN])
    assert "1 of 3 comparisons were tested, and no audit refutes a certificate." in text
    assert "1 model claims something that no audit of the model has tested" in text
    # what needs a look comes first
    assert text.index("dpsgd/g0-s0") < text.index("crt/g0-s0") < text.index("plain/g0-s0")
    assert "2.001" in text and "29%" in text and "∞" in text


def test_a_gate_that_fails_says_so_first():
    text = gate.page("s", [GOOD, BAD])
    assert "1 of 2 comparisons fail: a model of them must not be handed out." in text
    assert text.index("jft/g0-s0") < text.index("crt/g0-s0")
    assert "<strong>refuted</strong>" in text and "<b>x</b>" not in text


def test_a_gate_that_tested_nothing_claims_nothing():
    assert "Nothing was tested" in gate.page("s", [NONE])


def test_a_search_without_a_hit_says_how_much_was_looked_for():
    text = search.page(found(row("models/a"), row("b|c<i>")))
    assert "None of 1,807 secrets stands in any of 2 files (2.5 MB)." in text
    assert "<i>" not in text and "1,234,567" in text


def test_a_search_with_a_hit_lists_that_file_first():
    text = search.page(found(row("clean"), row("leaking", 3, name=1, address=2)))
    assert "1 of 2 files hold a secret. They must not be handed out." in text
    assert text.index("leaking") < text.index("clean") and "address, name" in text


def test_a_search_for_nothing_does_not_look_like_a_pass():
    text = search.page(found(row("a"), warning="no secret was looked for: why"))
    assert "no secret was looked for" in text and "None of" not in text


def test_of_many_clean_files_the_end_is_left_out(monkeypatch):
    monkeypatch.setattr(search, "MOST", 2)
    text = search.page(found(*(row(f"file{at}") for at in range(5)), row("bad", 1, name=1)))
    assert "3 more files without a hit are in scan.csv." in text and "bad" in text


def test_sarif_has_a_result_for_each_file_and_label():
    counts = found(row("clean"), row("models/a b", 3, name=1, address=2))
    log = json.loads(json.dumps(search.sarif(counts, "1.2")))
    (run,) = log["runs"]
    assert log["version"] == "2.1.0" and run["tool"]["driver"]["version"] == "1.2"
    assert [one["message"]["text"] for one in run["results"]] == [
        "2 secrets of the label address stand in this file",
        "1 secret of the label name stands in this file",
    ]
    places = {
        one["locations"][0]["physicalLocation"]["artifactLocation"]["uri"] for one in run["results"]
    }
    assert places == {"models/a%20b"}
    assert {one["ruleId"] for one in run["results"]} == {
        rule["id"] for rule in run["tool"]["driver"]["rules"]
    }
