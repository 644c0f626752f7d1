"""The page that opens the report: every model, a choice for each need, every claim."""

import csv
import json
import math
import re
from pathlib import Path

from jinja2 import Environment
from studies import write_study

from confide.params import load as load_params
from confide.provenance import check_opening
from confide.report.claims import CLAIMS
from confide.report.needs import choose
from confide.specs import SummarySpec
from confide.stages.summary import summary
from confide.studies import summary as summary_of

PARAMS = load_params(Path(__file__).parents[2] / "params.yaml")


def test_the_page_says_all_of_it(tmp_path):
    spec = write_study(tmp_path, seeds=1).model_copy(update={"study": "crt_customersim"})
    paths = {name: tmp_path / "out" / name for name in ("claims.csv", "index.html", "opening.rst")}
    claims, page, opening = paths.values()
    given = {"results": tmp_path / "results", "models": tmp_path / "models"}
    summary(SummarySpec(studies=[spec]), **given, claims=claims, page=page, opening=opening)
    assert claims.read_text().count("\n") == len(CLAIMS) + 1 and "not run" in claims.read_text()
    html = page.read_text()
    verdicts = [row["verdict"] for row in csv.DictReader(claims.read_text().splitlines()) if row["verdict"] != "not run"]
    for words in (
        f"Models: {len(spec.runs)}. Studies: 1. Claims of the papers: ✓ holds: {verdicts.count('holds')}; ",
        "What is certified",
        "Which method for which need",
        "What the papers claim",
        "✓ <strong>holds</strong>",
        "◐ <strong>holds only as published</strong>",
    ):
        assert words in html
    assert 'href="../studies/crt_customersim/exposure.svg"' in html and "javascript" not in html
    assert "app.showResultInfo('results/studies/crt_customersim/exposure.svg')" in opening.read_text()
    assert not {"<html", "<body", "<style"} & set(re.findall("<[a-z]+", opening.read_text()))  # the report's page is around it
    again = tmp_path / "again"
    summary(SummarySpec(studies=[spec]), **given, claims=again / "c", page=again / "p", opening=again / "o")
    assert (again / "p").read_bytes() == page.read_bytes()


def test_titles_are_no_orders_to_the_template_that_opens_the_report(tmp_path):
    """Snakemake's report renders the opening as a template, whose braces run Python."""
    title = "{{ 40 + 2 }} {% for x in y %} {# gone #} of braces"
    spec = write_study(tmp_path, seeds=1).model_copy(update={"study": "crt_customersim", "title": title})
    given = {"results": tmp_path / "results", "models": tmp_path / "models"}
    opening = tmp_path / "opening.rst"
    summary(SummarySpec(studies=[spec]), **given, claims=tmp_path / "c", page=tmp_path / "p", opening=opening)
    text = opening.read_text()
    assert "of braces" in text and Environment().from_string(text).render() == text.rstrip("\n")
    check_opening(opening)


def test_choices_are_of_measured_models_that_meet_the_need(base):
    table = [row for rows in base.table.values() for row in rows]
    found = {one.need: one for one in choose(table)}
    missed = next(one for need, one in found.items() if need.startswith("secrets that the policy misses"))
    best = min((row for row in table if math.isfinite(row["epsilon_secret_missed"])), key=lambda row: row["ppl_public"])
    assert missed.row.startswith(best["name"])
    redacted = next(one for need, one in found.items() if need.startswith("secrets that the policy catches"))
    assert redacted.row.split(",")[0] in ("redacted", "crt")
    assert all(one.row == "" for one in choose([]))


def test_every_selected_study_is_in_the_summary():
    found = summary_of(PARAMS, ["crt_customersim", "sdp_missed"])
    assert [study.study for study in found.studies] == ["crt_customersim", "sdp_missed"]
    assert json.loads(found.model_dump_json())
