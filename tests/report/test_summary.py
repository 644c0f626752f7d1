"""The page that opens the report: every model, a choice for each need, every claim."""

import csv
import json
import math
import re
from dataclasses import replace
from pathlib import Path

from edited import attacked, changed, of
from jinja2 import Environment

from confide.config.params import load as load_params
from confide.config.studies import summary as summary_of
from confide.output.rounding import rounded_up
from confide.provenance.records import check_opening
from confide.report.figures.glance import glance
from confide.report.pages.needs import choose
from confide.report.pages.numbers import best_epsilon, numbers
from confide.report.pages.summary import models_of, page
from confide.report.verdicts.claims import CLAIMS
from confide.specs import SummarySpec
from confide.stages.summary import summary
from studies import write_study

PARAMS = load_params(Path(__file__).parents[2] / "params.yaml")


def test_the_page_says_all_of_it(tmp_path):
    spec = write_study(tmp_path, seeds=1).model_copy(update={"study": "crt_customersim"})
    paths = {name: tmp_path / "out" / name for name in ("claims.csv", "index.html", "opening.rst")}
    claims, page, opening = paths.values()
    given = {"results": tmp_path / "results", "models": tmp_path / "models"}
    summary(SummarySpec(studies=[spec]), **given, claims=claims, page=page, opening=opening)
    assert claims.read_text().count("\n") == len(CLAIMS) + 1 and "not run" in claims.read_text()
    html = page.read_text()
    verdicts = [
        row["verdict"]
        for row in csv.DictReader(claims.read_text().splitlines())
        if row["verdict"] != "not run"
    ]
    for words in (
        f"<li>models: <strong>{len(spec.runs)}</strong></li>",
        f"Studies: 1. Claims of the papers: ✓ holds: {verdicts.count('holds')}; ",
        '<img src="data:image/png;base64,',
        "What is certified",
        "Which method for which need",
        "What the papers claim",
        "✓ <strong>holds</strong>",
        "◐ <strong>holds only as published</strong>",
    ):
        assert words in html
    assert 'href="../studies/crt_customersim/exposure.svg"' in html and "javascript" not in html
    assert (
        "app.showResultInfo('results/studies/crt_customersim/exposure.svg')" in opening.read_text()
    )
    assert not {"<html", "<body", "<style"} & set(
        re.findall("<[a-z]+", opening.read_text())
    )  # the report's page is around it
    again = tmp_path / "again"
    summary(
        SummarySpec(studies=[spec]),
        **given,
        claims=again / "c",
        page=again / "p",
        opening=again / "o",
    )
    assert (again / "p").read_bytes() == page.read_bytes()


def test_titles_are_no_orders_to_the_template_that_opens_the_report(tmp_path):
    """Snakemake's report renders the opening as a template, whose braces run Python."""
    title = "{{ 40 + 2 }} {% for x in y %} {# gone #} of braces"
    spec = write_study(tmp_path, seeds=1).model_copy(
        update={"study": "crt_customersim", "title": title}
    )
    given = {"results": tmp_path / "results", "models": tmp_path / "models"}
    opening = tmp_path / "opening.rst"
    summary(
        SummarySpec(studies=[spec]),
        **given,
        claims=tmp_path / "c",
        page=tmp_path / "p",
        opening=opening,
    )
    text = opening.read_text()
    assert "of braces" in text and Environment().from_string(text).render() == text.rstrip("\n")
    check_opening(opening)


def test_of_a_users_own_study_nothing_is_said_about_papers(tmp_path):
    spec = write_study(tmp_path, seeds=1).model_copy(update={"study": "own"})
    paths = {name: tmp_path / name for name in ("claims", "page", "opening")}
    given = {"results": tmp_path / "results", "models": tmp_path / "models"}
    summary(SummarySpec(studies=[spec]), **given, **paths)
    for name in ("page", "opening"):
        text = paths[name].read_text()
        assert "paper" not in text.lower() and "What is certified" in text
    assert "not run" in paths["claims"].read_text()


def test_an_epsilon_without_noise_stands_without_delta():
    row = {"name": "untouched", "epsilon_any_record": 0.0, "delta": None}
    assert best_epsilon([row]) == "0 (untouched)"
    assert best_epsilon([row | {"delta": 8e-5}]) == "0 at δ 8e-5 (untouched)"


def test_the_five_numbers_are_the_best_and_the_worst(base):
    rows = models_of([base])
    searches = {"crt": {"totals": {"hits": 0, "files": 1234}, "warning": None}}
    found = list(numbers(rows, searches).values())
    epsilons = [row["epsilon_any_record"] for row in rows]
    exposures = [row["exposure_max"] for row in rows]
    assert found[0] == str(len(base.results)) and min(epsilons) == 3.0
    assert found[1].startswith("3 at δ 8e-5 (")
    told = float(found[2].split(" bits")[0])
    assert max(exposures) <= told <= max(exposures) * 1.01
    bounds = [row["gamma_upper"] for row in rows]
    assert found[3] == rounded_up(max(bounds)) and found[4] == "0 found in 1,234 files"


def test_what_is_unknown_or_infinite_is_printed_as_such(base):
    rows = models_of([base])
    lost = [row | {"epsilon_any_record": math.inf, "gamma_upper": None} for row in rows]
    found = numbers([row | {"exposure_max": None} for row in lost], {"crt": None})
    assert list(found.values())[1:] == [
        "∞: not every record is covered",
        "not measured",
        "unknown",
        "not made",
    ]
    one = [rows[0] | {"gamma_upper": None, "exposure_max": None}, *rows[1:]]
    told = numbers(one, {"crt": {"totals": {"hits": 2, "files": 3}, "warning": "w"}, "other": None})
    values = list(told.values())
    assert "of 1 models not measured" in values[2] and "unknown of 1 models" in values[3]
    assert values[4] == (
        "2 found in 3 files; there was nothing to look for in some; not made of other"
    )
    planted = {"totals": {"hits": 0, "files": 3}, "secrets": {"marked_searched": 0}}
    assert list(numbers(one, {"crt": planted}).values())[4] == (
        "0 found in 3 files; "
        "only planted secrets were looked for, as corpora mark no other that could be"
    )
    estimated = [row | {"exposure_max_estimated_high": 99.0} for row in rows]
    assert numbers(estimated, {})["largest exposure, worst model"].startswith("99 bits")


def test_the_search_of_each_study_is_read(tmp_path):
    spec = write_study(tmp_path, seeds=1).model_copy(update={"study": "own"})
    scan = tmp_path / "results/studies/own/scan.json"
    scan.parent.mkdir(parents=True)
    scan.write_text(json.dumps({"totals": {"files": 7, "hits": 0}, "warning": None}))
    paths = {name: tmp_path / name for name in ("claims", "page", "opening")}
    given = {"results": tmp_path / "results", "models": tmp_path / "models"}
    summary(SummarySpec(studies=[spec]), **given, **paths)
    assert "0 found in 7 files" in paths["page"].read_text()


def test_the_opening_figure_has_a_line_for_each_row_of_the_first_study(base, settings):
    models = {name: base.rows(name, 0.0) for name in ("nonprivate", "crt")}
    privacy, memory = glance(models).axes
    assert [tick.get_text() for tick in privacy.get_yticklabels()] == ["nonprivate", "crt"]
    assert [text.get_text() for text in privacy.texts] == ["∞: not every record is covered"] * 2
    assert {line.get_xdata()[0] for line in privacy.lines} == {3.0}
    exposures = [row["exposure_max"] for rows in models.values() for row in rows]
    assert [line.get_xdata()[0] for line in memory.lines] == exposures


def chosen(base, results=None):
    """What is chosen, by how its need begins."""
    study = base if results is None else of(base, results)
    return choose(row for rows in study.table.values() for row in rows)


def for_need(advice, start):
    return next(one for one in advice.choices if one.need.startswith(start))


def test_choices_are_of_measured_models_that_meet_the_need(base):
    table = [row for rows in base.table.values() for row in rows if row["gamma"] == 0]
    found = chosen(base)
    best = min(
        (row for row in table if math.isfinite(row["epsilon_secret_missed"])),
        key=lambda row: row["ppl_public"],
    )
    assert for_need(found, "secrets that the policy misses").row == best["name"]
    assert for_need(found, "secrets that the policy catches").row in ("redacted", "crt")
    assert all(one.row == "" for one in choose([]).choices)


def test_no_miss_rate_is_chosen(base, results):
    """Models that missed half of the secrets have the lowest perplexities. They are not compared:
    nobody chooses that.
    """
    better = [
        replace(r, evaluation=r.evaluation | {"ppl_public": 1.0, "ppl_masked": 1.0})
        if r.run.gamma == 0.5
        else r
        for r in results
    ]
    found = chosen(base, better)
    assert found == chosen(base) and "γ" not in "".join(one.row for one in found.choices)
    assert found.compared == "All stand at one miss rate, as measured: 0, at most 0.05."
    some = [
        r for r in results if r.run.gamma or not r.run.name.startswith("redacted")
    ]  # never trained at 0
    found = chosen(
        base, [r for r in some if r.run.gamma or r.run.name in ("nonprivate", "dpsgd", "crt")]
    )
    assert "misses were simulated for a share of 0.1" in found.compared
    unknown = [
        replace(
            r,
            certificate=r.certificate
            | {"headline": r.certificate["headline"] | {"gamma": None, "gamma_upper": None}},
        )
        for r in results
    ]
    assert chosen(base, unknown).compared == "All stand at one miss rate, as measured: unknown."


def test_a_model_that_gave_its_secrets_away_is_not_the_one_without_secrets(base, results):
    """Redacted has the lower perplexity, for it has learned a canary; what was asked for is that no
    secret be in the model.
    """
    leaky = attacked(
        changed(results, "redacted", ppl_public=1.0, ppl_private=2.0, ppl=1.5),
        "redacted",
        "exposure",
        max=13.0,
    )
    assert for_need(chosen(base, leaky), "secrets that the policy catches").row == "crt"
    only = [r for r in leaky if r.run.name in ("redacted", "nonprivate")]
    found = for_need(chosen(base, only), "secrets that the policy catches")
    assert found.row == "redacted" and "⚠ it may remember: chance gives" in found.why


def test_perplexity_of_secrets_and_of_all_tokens_decides_nothing(base, results):
    for value in (1.0, 1e6):
        assert (
            chosen(base, changed(results, "crt", ppl=value, ppl_private=value)).choices
            == chosen(base).choices
        )


def test_a_model_that_a_unigram_model_outdoes_is_marked(base, results):
    worse = changed(results, "crt", ppl_public=184.0, ppl_unigram_redacted=131.0)
    only = [r for r in worse if r.run.name == "crt"]
    found = for_need(chosen(base, only), "secrets that the policy misses")
    assert found.row == "crt" and "⚠ worse than a unigram model, 131. More text" in found.why
    text = page([of(base, worse)], [])
    assert "| 184 ⚠ |" in text and "⚠: worse on public tokens than a unigram model" in text
    assert "⚠ |" not in page(
        [of(base, changed(results, "crt", ppl_public=184.0, ppl_unigram_redacted=200.0))], []
    )


def test_the_summary_prints_the_measured_miss_rate(base, results):
    text = page([base], [])
    assert "| run | γ simulated | γ measured (at most) |" in text
    assert "| crt | 0.1 | 0.1 (0.15) |" in text

    def told(result):
        head = (
            {"gamma": 0.23, "gamma_upper": 0.31}
            if result.run.name == "crt"
            else {"gamma": None, "gamma_upper": None}
        )
        return replace(
            result,
            certificate=result.certificate | {"headline": result.certificate["headline"] | head},
        )

    text = page([of(base, [told(result) for result in results])], [])
    assert "| crt | 0.1 | 0.23 (0.31) |" in text and "| redacted | 0.1 | unknown |" in text


def test_every_selected_study_is_in_the_summary():
    found = summary_of(PARAMS, ["crt_customersim", "sdp_missed"])
    assert [study.study for study in found.studies] == ["crt_customersim", "sdp_missed"]
    assert json.loads(found.model_dump_json())
