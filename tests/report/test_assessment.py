"""The page for whoever assesses a model: every question, each number no smaller than it is, and no
conclusion.
"""

import json
import re
from dataclasses import replace
from itertools import product
from typing import get_args

import numpy as np
import pytest

from confide.attacks.statistics.metrics import auc, auc_null
from confide.certify.certificate import ASSUMPTIONS, IN_BFLOAT16, ON_INTEGERS, ROUNDED, kind_of
from confide.certify.facts import (
    CONSERVATIVE,
    HIDDEN_TOO,
    LENGTHS,
    NEIGHBOURS,
    POISSON,
    STABLE,
    Facts,
)
from confide.certify.gate import NOT_AUDITED, REFUTED, SETS, cases
from confide.config.params import load as load_params
from confide.config.studies import assessments
from confide.corpora import READERS
from confide.report.leaderboard import standing
from confide.report.pages import assessment, everyday, readings
from confide.report.pages.assessment import ANSWERS, QUESTIONS
from confide.report.pages.attempts import (
    attempts,
    auc_p_value,
    audit,
    compared,
    in_short,
)
from confide.stages.study import study as report
from confide.types import POOLS, Release, Step, ViewName
from tests.project import ROOT
from tests.reviews.browser import CHROMIUM, Browser

WEIGHTS = "a" * 64
# sentences in which the page may use these words
ALLOWED = (
    "decided by people, case by case",
    "calls a model anonymous only where",
    "Was the text made",
)
WIDTHS = (400, 1400)


def of(results, name):
    return next(result for result in results if result.run.name == name)


def with_certificate(result, **more):
    return replace(result, certificate=result.certificate | more)


def with_attack(result, kind, **more):
    return replace(result, attacks=result.attacks | {kind: result.attacks[kind] | more})


def test_every_question_is_on_the_page_once_and_has_an_answer_or_says_why_not(results):
    text = assessment.markdown(of(results, "crt"))
    for row in QUESTIONS:
        assert text.count(row["question"]) == 1
        if not row["answer"]:
            assert f"No answer from this run: {row['otherwise']}" in text.replace("\\", "")
    assert {row["answer"] for row in QUESTIONS} - {""} == ANSWERS.keys()
    assert {row["document"] for row in QUESTIONS} == {"edpb", "nist"}


@pytest.mark.parametrize("name", ["crt", "nonprivate", "redacted", "dpsgd", "selective"])
def test_the_page_draws_no_conclusion(results, name):
    text = assessment.markdown(of(results, name))
    for line in re.findall(r"[^\n.]*\b(?:anonymous|lawful|compliant)\b[^\n]*", text):
        assert any(words in line for words in ALLOWED), line


def test_numbers_are_those_of_the_certificate_rounded_up(results):
    result = of(results, "crt")
    claims = [
        claim | {"epsilon": 3.00001} if claim["name"] == "record_replace_one_pld" else claim
        for claim in result.certificate["claims"]
    ]
    text = assessment.markdown(with_certificate(result, claims=claims))
    assert "ε is at most 3.001," in text and "ε 3.001, δ 8e-5" in text
    unknown = with_certificate(
        result, policy={"gamma_upper": None}, updates={"exact redacted all": 2}
    )
    assert "Share of secrets that the policy misses: unknown" in assessment.markdown(unknown)
    labels = {"gamma_upper": 0.08, "labels": ["mail", "name"]}
    known = with_certificate(result, policy=labels, updates={"exact redacted all": 2})
    of_which = "secrets that the corpus marks (mail, name), of the kind that fares worst,"
    assert f"Share of {of_which} that the policy misses: at most 0.08" in assessment.markdown(known)
    bare = with_certificate(result, updates={"exact original all": 2})
    assert "Nothing was masked" in assessment.markdown(bare)
    assert "made to miss" not in assessment.markdown(unknown)
    policy = result.certificate["policy"] | {"miss_rate_simulated": 0.25}
    missing = with_certificate(result, policy=policy, updates={"exact redacted all": 2})
    assert "made to miss a share of 0.25 on purpose" in assessment.markdown(missing)


def test_it_says_how_many_texts_were_read_without_noise(results):
    result = with_certificate(
        of(results, "crt"),
        updates={"exact redacted public": 1200, "noisy redacted private, state reset": 70},
        data={"pools": {"public": 3295, "private": 2230}},
    )
    text = assessment.markdown(result)
    assert "1,200 updates without noise on redacted text of 3,295 texts without a finding" in text
    assert "70 updates with noise on redacted text of 2,230 texts with a finding" in text
    assert "public" not in readings.in_words("exact redacted public", {})
    assert readings.in_words("exact original all", {}).endswith("of all texts")


def test_every_kind_of_update_has_words():
    for noisy, view, pool in product((False, True), get_args(ViewName), POOLS):
        step = Step(noisy=noisy, view=view, pool=pool, regulariser="none")
        kind = kind_of(Release(step=step, count=1))
        assert readings.in_words(kind, {}) != kind


def test_a_model_without_a_guarantee_is_said_to_have_none(results):
    text = assessment.markdown(of(results, "nonprivate"))
    assert "**What was protected**: nothing" in text
    assert "nothing is guaranteed (ε = ∞)" in text
    for answer in ("unit", "contributions", "neighbours", "means", "threats", "mechanism"):
        assert ANSWERS[answer](of(results, "nonprivate")) is None


def test_the_page_points_to_no_price_of_repeated_secrets_that_it_does_not_have(results):
    priced = of(results, "crt")
    assert ANSWERS["contributions"](priced).endswith("stands above, among the limits")
    claims = [
        claim for claim in priced.certificate["claims"] if not claim["name"].startswith("group_")
    ]
    words = ANSWERS["contributions"](with_certificate(priced, claims=claims))
    assert words.endswith("nor about a secret that the policy misses in several texts")


def test_of_a_claim_that_bounds_nothing_there_is_a_reason_or_nothing(results):
    claims = [
        claim | {"condition": "batches are drawn; none can help: exact updates read it"}
        for claim in of(results, "nonprivate").certificate["claims"]
    ]
    result = with_certificate(of(results, "nonprivate"), claims=claims)
    assert {line.where for line in assessment.claims(result)} == {
        "no condition helps: training read it without noise"
    }
    bare = [claim | {"condition": "batches are drawn"} for claim in claims]
    result = with_certificate(result, claims=bare)
    assert {line.where for line in assessment.claims(result)} == {"–"}


def test_no_letter_of_a_certificate_is_left_on_the_page(results):
    """Every condition and assumption that certificates know, in words."""
    claim = of(results, "crt").certificate["claims"][0]
    bound = Facts(releases=[], delta=8e-5).bound_words
    all_conditions = "; ".join(
        [CONSERVATIVE, STABLE, POISSON, NEIGHBOURS, LENGTHS, HIDDEN_TOO, bound]
    )
    shown = assessment.holds_if(claim | {"condition": all_conditions, "epsilon": 1.0})
    known = (*ASSUMPTIONS, ON_INTEGERS, IN_BFLOAT16, ROUNDED)
    assumed = [everyday.assumption(text) for text in known]
    for text in (shown, *assumed):
        assert not re.search(r"\b(pi|pi_c|gamma|delta2|Poisson|epsilon|N\(|hyper|chunks?)\b", text)
    assert "the careful policy finds every secret that the policy misses" in shown
    assert "95%" in shown and everyday.condition("a word of its own") == "a word of its own"


def test_an_epsilon_of_zero_is_a_sentence(results):
    text = assessment.markdown(of(results, "crt"))
    row = next(line for line in text.splitlines() if "if the policy finds it" in line)
    assert "nothing it remembers can come from it" in row
    assert "ε is 0, but for a chance of at most δ 8e-5" in row and "50.0" not in row


def test_chance_has_a_p_value_and_a_number_of_comparisons(results):
    """Against scipy, and against scores drawn again and again."""
    result = of(results, "nonprivate")
    text = assessment.markdown(result)
    assert f"{compared(result)} results were compared with chance" in text and "(p = " in text
    members = 40
    others = 40
    _, high = auc_null(members, others)
    rng = np.random.default_rng(0)
    null = [auc(rng.normal(size=members), rng.normal(size=others)) for _ in range(2000)]
    for area in (0.5, 0.6, high):
        found = auc_p_value(area, high)
        assert found == pytest.approx(np.mean(np.array(null) >= area), abs=0.03)
    assert auc_p_value(high, high) == pytest.approx(0.025)
    assert auc_p_value(0.9, 1.0) is None


@pytest.mark.parametrize(
    ("reader", "words"),
    [
        ("customersim", "This corpus is simulated"),
        ("authors", "This corpus is simulated"),
        ("wikitext", "This corpus is one that others published"),
        ("table", None),
        (None, None),
    ],
)
def test_the_page_says_where_the_corpus_is_not_a_users(results, reader, words):
    result = of(results, "crt")
    run = result.run.model_copy(update={"reader": reader})
    text = assessment.markdown(replace(result, run=run))
    assert ("This corpus is" in text) is (words is not None)
    assert words is None or words in text


def test_every_reader_is_simulated_published_or_a_users_own():
    own = {"lines", "mail", "messages", "table"}
    assert {*assessment.SIMULATED, *assessment.PUBLISHED} | own == READERS.keys()


def test_what_attacks_found_stands_beside_what_chance_gives(results):
    leaky = of(results, "nonprivate")
    found = {attempt.kind: attempt.found for attempt in attempts(leaky)}
    found_at_once = found["exposure"]
    assert found["exposure"].startswith("more than chance: largest exposure")
    assert found["membership"].startswith("more than chance: AUC")
    assert "Found more than chance: guessing planted secrets" in in_short(leaky)
    assert found["lira"].startswith("more than chance: AUC")
    by_form = with_attack(leaky, "membership", blind_ngram_auc=0.999)
    told = {attempt.kind: attempt.found for attempt in attempts(by_form)}["membership"]
    assert told.startswith("no more than chance: AUC") and "strings alone" in told
    quiet = with_attack(
        of(results, "crt"), "exposure", max=1.0, null_max_high=9.0, mean=1.0, null_mean_high=2.5
    )
    found = {attempt.kind: attempt.found for attempt in attempts(quiet)}
    assert found["exposure"].startswith(
        "no more than chance: largest exposure 1 bits, where chance gives up to 9 (p = "
    )
    standing_out = with_attack(quiet, "exposure", mean=3.0, null_mean_high=2.5)
    assert in_words_of(standing_out, "exposure").startswith("more than chance")
    estimated = with_attack(quiet, "exposure", max_estimated_low=8.0, max_estimated_high=12.0)
    told = in_words_of(estimated, "exposure")
    assert told.startswith("perhaps more than chance: largest exposure at most 12")
    surely = with_attack(quiet, "exposure", max_estimated_low=10.0, max_estimated_high=12.0)
    assert in_words_of(surely, "exposure").startswith("more than chance")
    bounded = with_attack(leaky, "exposure", max_estimated_low=13.0, max_estimated_high=14.0)
    assert "first guess" in found_at_once
    assert "first guess" not in in_words_of(bounded, "exposure")
    silent = with_attack(quiet, "exposure", reason="logits are not finite")
    assert in_words_of(silent, "exposure") == "could not tell: logits are not finite"
    assert in_short(replace(quiet, attacks={})) == "not tried"


def in_words_of(result, kind):
    return next(attempt.found for attempt in attempts(result) if attempt.kind == kind)


def test_made_up_records_test_no_membership_of_somebody_s_text(results):
    result = of(results, "dpsgd")
    game = next(name for name in result.attacks if name == "game")
    only = {"gradients": result.attacks[game] | {"attack": "gradients"}}
    assert assessment.outcomes_of(replace(result, attacks=only), assessment.MEMBERSHIP) is None


def test_prompts_for_another_domain_s_text_count_as_asking(results):
    asked = {"domain_lira": {"attack": "domain_lira", "reason": "the model wrote nothing"}}
    result = replace(of(results, "crt"), attacks=asked)
    for kinds in (assessment.ASKING, assessment.REGURGITATION):
        assert "picking out texts of another domain" in assessment.outcomes_of(result, kinds)


def test_an_audit_of_texts_is_told_beside_others_and_is_none_of_the_model(results):
    result = with_certificate(
        of(results, "dpsgd"), files={"model": [{"path": "m", "sha256": WEIGHTS}]}
    )
    claims = [
        {"relation": "add_or_remove" if "add" in claim["name"] else "replace_one"} | claim
        for claim in result.certificate["claims"]
    ]
    result = with_certificate(result, claims=claims)
    right = [[guesses, guesses] for guesses in range(161)]
    searched = {"attack": "text_audit", "run": result.certificate["run"], "weights": WEIGHTS}
    searched |= {"p_value": 0.3, "tests": 12}
    for name in SETS["text_audit"]:
        relation = "add_or_remove" if "inclusion" in name else "replace_one"
        searched |= {f"{name}_coins": 160, f"{name}_relation": relation}
        searched |= {f"{name}_attempts": [[guesses, guesses // 2] for guesses in range(161)]}
    # what texts are worth is no attack
    quiet = replace(result, attacks={"text_audit": searched, "worth": {"attack": "worth"}})
    told = [attempt.found for attempt in attempts(quiet)]
    assert len(told) == 5 and "no more than chance: the strongest of 12 tests" in told[-1]
    assert all("stands; 160 planted tests show" in one for one in told[:4])
    assert standing.audited(quiet) == NOT_AUDITED
    page = assessment.markdown(quiet)
    for question in ("that asks the model for text was run", "no audit by planted coins was run"):
        assert question not in page
    loud = replace(quiet, attacks={"text_audit": searched | {"texts_game_attempts": right}})
    assert "REFUTED by searching texts that the model wrote" in in_short(loud)
    assert standing.audited(loud) == REFUTED


def test_audits_are_judged_as_the_gate_judges_them(results, tmp_path):
    """The gate reads the same two files."""
    for name in ("dpsgd", "crt", "nonprivate"):
        result = of(results, name)
        model = {"model": [{"path": "m", "sha256": WEIGHTS}]}
        result = with_certificate(result, files=model)
        claims = [
            {"relation": "add_or_remove" if "add" in claim["name"] else "replace_one"} | claim
            for claim in result.certificate["claims"]
        ]
        relations = {"game_relation": "replace_one", "inclusion_relation": "add_or_remove"}
        reasons = dict.fromkeys(("game_reason", "inclusion_reason"))
        result = with_attack(
            with_certificate(result, claims=claims),
            "game",
            weights=WEIGHTS,
            run=result.certificate["run"],
            **relations,
            **reasons,
        )
        (tmp_path / "certificate.json").write_text(json.dumps(result.certificate))
        (tmp_path / "game.json").write_text(json.dumps(result.attacks["game"]))
        expected = [
            audit(case, result.attacks["game"])
            for case in cases(tmp_path / "certificate.json", tmp_path / "game.json")
        ]
        told = [attempt.found for attempt in attempts(result) if attempt.kind == "game"]
        assert told == expected and len(told) == 2
    other = with_attack(result, "game", weights="b" * 64)
    assert "of other weights" in in_words_of(other, "game")


def test_an_audit_that_cannot_be_compared_says_so(results):
    assert "not compared" in in_words_of(of(results, "crt"), "game")


def test_a_run_of_two_rows_has_the_attacks_of_both(results):
    result = of(results, "crt")
    halves = [
        replace(
            result,
            run=result.run.model_copy(update={"attacks": [name]}),
            attacks={kind: result.attacks[kind]},
        )
        for name, kind in (("canaries", "exposure"), ("mia", "membership"))
    ]
    (text,) = assessment.of_each_run(halves).values()
    assert "guessing planted secrets" in text and "telling secrets of the training" in text
    assert "2, each once (canaries, mia)" in text


def test_the_study_has_a_page_of_every_run_that_needs_no_other_file(study, tmp_path):
    root, spec = study
    report(spec, results=root / "results", models=root / "models", output=tmp_path / "out")
    pages = {path.name for path in (tmp_path / "out").glob("assessment*.html")}
    assert pages == {run.assessment for run in spec.runs} and len(pages) == len(spec.runs)
    for page in (tmp_path / "out").glob("*.html"):
        text = page.read_text()
        assert not re.search(r"<(script|link|img|iframe)|url\(|@import|(src|href)=", text)
        assert len(text) < 100_000


def test_the_workflow_expects_the_same_files():
    params = load_params(ROOT / "tests/params.tiny.yaml")
    assert assessments(params, "tiny")["crt/g0.1-s0"] == "assessment_crt_g0.1-s0.html"


@pytest.mark.skipif(CHROMIUM is None, reason="no Chromium")
def test_the_page_fits_a_telephone_and_a_desk(results, tmp_path):
    page = tmp_path / "page.html"
    page.write_text(assessment.html(of(results, "crt")))
    with Browser(tmp_path / "profile") as browser:
        browser.open(page.as_uri(), "document.readyState == 'complete'")
        for width in WIDTHS:
            browser.size(width)
            assert browser.ask("document.documentElement.scrollWidth") <= width
            narrowest = (
                "Math.min(...[...document.querySelectorAll('td')].map((e) => e.clientWidth))"
            )
            assert browser.ask(narrowest) > 120  # pixels: several words to a line
            size = "parseFloat(getComputedStyle(document.querySelector('td')).fontSize)"
            assert browser.ask(size) >= 14
            browser.picture(tmp_path / f"{width}.png")
        messages = [event["method"] for event in browser.events]
        requests = [
            event["params"]["request"]["url"]
            for event in browser.events
            if event["method"] == "Network.requestWillBeSent"
        ]
        assert requests == [page.as_uri()] and "Log.entryAdded" not in messages
