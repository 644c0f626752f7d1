"""Verdicts follow the numbers: every branch of what decides a claim, on studies whose files say the one or the other."""

import json
import math
import re
from dataclasses import replace
from pathlib import Path

import pytest
from authored import write_authors
from studies import write_study

from confide.params import load as load_params
from confide.report.claims import CLAIMS, crt, domain, regularisation, selective
from confide.report.claims.evidence import FAILS, HOLDS, OPEN, PUBLISHED, UNKNOWN, Study
from confide.report.needs import choose
from confide.report.results import load
from confide.specs import SummarySpec
from confide.stages.summary import summary
from confide.studies import summary as summary_of

PARAMS = load_params(Path(__file__).parents[2] / "params.yaml")


def renamed(results, names):
    """The same runs under other rows of the sample sheet."""
    return [
        replace(result, run=result.run.model_copy(update={"name": names[result.run.name]}))
        for result in results
        if result.run.name in names
    ]


def changed(results, name, **values):
    """Runs of a row with other numbers in evaluate.json."""
    return [replace(r, evaluation=r.evaluation | values) if r.run.name == name else r for r in results]


def attacked(results, name, kind, **values):
    """Runs of a row with other numbers of an attack."""
    return [replace(r, attacks=r.attacks | {kind: r.attacks[kind] | values}) if r.run.name == name else r for r in results]


def claimed(results, name, claim, epsilon):
    """Runs of a row with another certified epsilon."""

    def other(result):
        claims = [one for one in result.certificate["claims"] if one["name"] != claim]
        return replace(result, certificate=result.certificate | {"claims": [*claims, {"name": claim, "epsilon": epsilon}]})

    return [other(r) if r.run.name == name else r for r in results]


@pytest.fixture
def base(study, results):
    """CRT's study: rows nonprivate, redacted, dpsgd, crt, selective."""
    return Study(study[1], results)


def of(base, results):
    return Study(base.spec, results)


def test_every_claim_names_studies_and_a_figure_of_the_sample_sheet():
    assert len(CLAIMS) > 50 and len(set(claim[:3] for claim in CLAIMS)) == len(CLAIMS)
    for claim in CLAIMS:
        assert set(claim.studies) <= set(PARAMS.papers)
        assert claim.figure in PARAMS.studies[claim.studies[0]].figures


def test_canaries_at_chance_and_above(base, results):
    assert crt.canaries(base, "").word == HOLDS
    assert crt.canaries(of(base, attacked(results, "crt", "exposure", mean=2.6)), "").word == FAILS
    assert crt.canaries(of(base, attacked(results, "crt", "exposure", max=9.0)), "").word == FAILS


def test_redaction_gives_away_what_it_misses(base, results):
    assert crt.missed(base, "").word == HOLDS
    assert crt.missed(of(base, attacked(results, "redacted", "exposure", max=4.0)), "").word == FAILS


@pytest.mark.parametrize("group", ["", "group_"])
def test_membership_must_beat_the_blind_baseline(base, results, group):
    assert crt.membership(base, "", group).word == HOLDS
    leaky = attacked(results, "crt", "membership", **{f"{group}auc": 0.7, f"{group}auc_low": 0.66})
    assert crt.membership(of(base, leaky), "", group).word == FAILS
    form = attacked(leaky, "crt", "membership", **{f"{group}blind_ngram_auc": 0.75})
    assert crt.membership(of(base, form), "", group).word == HOLDS


def test_better_on_masked_text_alone_is_no_better_perplexity(base, results):
    assert crt.utility(base, "").word == HOLDS
    worse = changed(results, "crt", ppl=20.0)
    assert crt.utility(of(base, worse), "").word == PUBLISHED
    assert crt.utility(of(base, changed(worse, "crt", ppl_masked=30.0)), "").word == FAILS


def test_amplification_is_published_for_adding_a_record(base):
    found = crt.amplified(base)
    assert found.word == PUBLISHED and "0.116" in found.evidence


ROWS = {"nonprivate": "sdp_nonprivate", "dpsgd": "sdp_dpsgd", "selective": "sdp_selective", "redacted": "sdp_redacted"}


def test_selective_has_lower_perplexity_at_equal_epsilon(base, results):
    own = renamed(results, ROWS)
    rows = {"selective": "sdp_selective", "dpsgd": "sdp_dpsgd"}
    assert selective.utility(of(base, own), **rows).word == HOLDS
    assert selective.utility(of(base, changed(own, "sdp_selective", ppl=50.0)), **rows).word == FAILS
    dearer = claimed(own, "sdp_selective", "secret_caught", 6.0)
    assert selective.utility(of(base, dearer), **rows).word == FAILS


def test_a_printed_epsilon_that_is_not_certified(base, results):
    own = claimed(renamed(results, ROWS), "sdp_selective", "as_published", 4.5)
    assert selective.printed_epsilon(of(base, own), "sdp_selective").word == HOLDS
    nothing = claimed(own, "sdp_selective", "secret_caught", "inf")
    found = selective.printed_epsilon(of(base, nothing), "sdp_selective")
    assert found.word == PUBLISHED and "4.5" in found.evidence and "∞" in found.evidence


def test_canaries_of_selective_training(base, results):
    pair = {"honest": "sdp_selective", "published": "sdp_dpsgd"}
    low = attacked(attacked(renamed(results, ROWS), "sdp_selective", "exposure", mean=1.0, max=2.0), "sdp_dpsgd", "exposure",
                   mean=1.0, max=2.0)  # fmt: skip
    assert selective.canaries(of(base, low), **pair).word == HOLDS
    above = attacked(low, "sdp_selective", "exposure", mean=4.0)
    assert selective.canaries(of(base, above), **pair).word == PUBLISHED
    assert selective.canaries(of(base, attacked(above, "sdp_dpsgd", "exposure", max=12.0)), **pair).word == FAILS


def test_a_missed_canary_is_extracted(base, results):
    names = {"redacted": "missed_redacted", "selective": "missed_selective", "crt": "missed_crt"}
    own = renamed(results, names)
    for name in names.values():
        own = attacked(own, name, "exposure", max=math.log2(10_000), candidates=10_000)
    assert selective.missed(of(base, own)).word == HOLDS
    assert selective.missed(of(base, attacked(own, "missed_selective", "exposure", max=6.0))).word == FAILS


def test_private_tokens_are_learned_or_not(base, results):
    names = {"selective": "sdp_wikitext_selective", "redacted": "sdp_wikitext_redacted", "dpsgd": "sdp_wikitext_published"}
    own = changed(renamed(results, names), "sdp_wikitext_redacted", ppl_marked=1e5, ppl_marked_backoff=2e3)
    for value, word in ((500.0, HOLDS), (4e3, PUBLISHED), (2e5, FAILS)):
        found = changed(own, "sdp_wikitext_published", ppl_private=value, ppl_uniform=1024.0)
        assert selective.private_tokens(of(base, found)).word == word


def test_membership_as_published_is_form(base, results):
    names = {"nonprivate": "sdp_nonprivate", "selective": "sdp_selective"}
    own = [replace(r, attacks=r.attacks | {"membership_published": r.attacks["membership"]}) for r in renamed(results, ROWS)]
    for name, auc in (("sdp_nonprivate", 0.7), ("sdp_selective", 0.5)):
        own = attacked(own, name, "membership", auc=auc, auc_low=auc - 0.02, blind_ngram_auc=0.6)
        own = attacked(own, name, "membership_published", auc=auc, blind_ngram_auc=0.6)
    pair = {name: row for name, row in zip(("nonprivate", "selective"), names.values(), strict=True)}
    assert selective.membership(of(base, own), **pair).word == HOLDS
    form = attacked(own, "sdp_selective", "membership_published", blind_ngram_auc=0.8)
    assert selective.membership(of(base, form), **pair).word == PUBLISHED
    caught = attacked(own, "sdp_selective", "membership", auc_low=0.65)
    assert selective.membership(of(base, caught), **pair).word == FAILS


def test_clips_and_two_policies(base, results):
    rows = {"dpsgd": "sdp_sgd_n05_c1e3", "crt": "sdp_sgd_n05_c1e2", "selective": "sdp_sgd_n05_c5e6"}
    clips = changed(renamed(results, rows), "sdp_sgd_n05_c1e3", ppl=50.0)
    for large, small, word in ((60.0, 70.0, HOLDS), (60.0, 50.1, FAILS), (50.1, 70.0, FAILS)):
        own = changed(changed(clips, "sdp_sgd_n05_c1e2", ppl=large), "sdp_sgd_n05_c5e6", ppl=small)
        assert selective.parameters(of(base, own)).word == word
    names = ("ner_jft", "ner_redacted", "contextual_jft", "contextual_redacted", "ner_dpsgd")
    models = renamed(results, dict(zip(("nonprivate", "redacted", "crt", "selective", "dpsgd"), names, strict=True)))
    for *values, word in (
        (22.0, 24.0, 25.0, 38.0, 27.0, HOLDS),
        (25.0, 24.0, 25.0, 38.0, 27.0, FAILS),  # one policy alone
        (22.0, 24.0, 30.0, 38.0, 27.0, FAILS),  # worse than DP-SGD
    ):
        own = models
        for name, ppl in zip(names, values, strict=True):
            own = changed(own, name, ppl=ppl)
        assert selective.twice(of(base, own)).word == word


def test_what_was_not_measured_is_said(base, results):
    claim = next(claim for claim in CLAIMS if claim.studies == ("crt_customersim",))
    bare = [replace(result, attacks={}) for result in results]
    found = claim.judge({"crt_customersim": of(base, bare)})
    assert found.word == UNKNOWN and "exposure_mean" in found.evidence
    assert claim.judge({}) is None


@pytest.fixture
def keywords(domain_study):
    root, spec = domain_study
    names = {"nonprivate": "d_nonprivate", "redacted": "d_k_redacted", "jft": "d_k_jft", "schedule": "d_k_schedule",
             "domain_only": "d_only"}  # fmt: skip
    return Study(spec, renamed(load(spec.runs, root / "results", root / "models"), names))


def test_schedules_and_leaks(keywords):
    own, spec = keywords, keywords.spec
    assert domain.utility(own, "d", "k").word == FAILS  # 4.8 against 4.4
    better = Study(spec, changed(own.results, "d_k_schedule", ppl=4.0))
    assert domain.utility(better, "d", "k").word == HOLDS
    found = domain.leaks(own, "d", "k")
    leaky = Study(spec, [replace(r, attacks=own.runs("d_nonprivate")[0].attacks) for r in own.results])
    assert domain.leaks(leaky, "d", "k").word == FAILS and "above the judges' false alarms" in found.evidence
    assert domain.ratio(own, "d").word in (HOLDS, OPEN)


def test_leaks_of_every_seed_count(keywords):
    own, spec = keywords.results, keywords.spec
    seeds = sorted({result.run.seed for result in own})
    assert len(seeds) > 1 and {asked.seed for asked in domain.rates(keywords, "d_k_jft")} == set(seeds)
    quiet = next(r.attacks for r in own if r.run.name == "d_k_redacted")
    loud = next(r.attacks for r in own if r.run.name == "d_nonprivate")

    def leaking(seed: int | None) -> Study:
        return Study(
            spec, [replace(r, attacks=loud if seed == r.run.seed or r.run.name == "d_nonprivate" else quiet) for r in own]
        )

    assert domain.leaks(leaking(None), "d", "k").word == HOLDS
    assert [domain.leaks(leaking(seed), "d", "k").word for seed in seeds] == [FAILS] * len(seeds)


def test_leaks_without_tokens_that_name_the_domain(keywords):
    def under(name: str, like: str) -> Study:
        own = next(r.attacks for r in keywords.results if r.run.name == like)
        results = renamed(keywords.results, {"d_nonprivate": name})
        return Study(keywords.spec, [replace(r, attacks=own) for r in results])

    leaky, quiet = (under("plain_nonprivate", like) for like in ("d_nonprivate", "d_only"))
    assert domain.without_tokens(leaky, under("dogo_nonprivate", "d_nonprivate")).word == HOLDS
    assert domain.without_tokens(quiet, under("dogo_nonprivate", "d_nonprivate")).word == HOLDS
    assert domain.without_tokens(leaky, under("dogo_nonprivate", "d_only")).word == FAILS


def test_a_saving_that_is_budget_not_used(domain_study):
    root, spec = domain_study
    results = load(spec.runs, root / "results", root / "models")
    names = {"jft": "dogo_keyword_jft", "schedule": "dogo_keyword_schedule", "dpsgd": "dogo_schedule_published"}
    own = renamed(results, names)
    for every, drawn, word in ((0.7, 3.0, PUBLISHED), (0.7, 0.8, HOLDS), (2.9, 3.0, FAILS)):
        found = claimed(claimed(own, "dogo_schedule_published", "secret_caught", every), "dogo_keyword_schedule",
                        "secret_caught", drawn)  # fmt: skip
        assert domain.saving(Study(spec, found)).word == word


@pytest.fixture(scope="module")
def authors(tmp_path_factory):
    root = tmp_path_factory.mktemp("claims")
    spec = write_authors(root, seeds=1)
    names = {"plain": "writers_nonprivate", "dp": "writers_dpsgd", "dp_author": "writers_by_author",
             "clip": "writers_clip_noise", "adversarial": "writers_adversarial", "triplet": "writers_triplet"}  # fmt: skip
    return Study(spec, renamed(load(spec.runs, root / "results", root / "models"), names))


def test_regularisers_against_their_batches(authors):
    measure = {"measure": regularisation.exposed, "unit": "bits"}
    found = regularisation.protected(authors, "writers", **measure)
    plain = authors.runs("writers_nonprivate")[0]
    as_plain = [replace(plain, run=r.run) if r.run.name == "writers_adversarial" else r for r in authors.results]
    assert regularisation.protected(Study(authors.spec, as_plain), "writers", **measure).word in (FAILS, OPEN)
    assert found.word in (PUBLISHED, OPEN) and "batches of one author" in found.evidence


def like(study: Study, name: str, other: str) -> Study:
    """The same study, with one row's measurements in the place of another's."""
    own = {result.run.seed: result for result in study.runs(other)}
    results = [replace(own[result.run.seed], run=result.run) if result.run.name == name else result for result in study.results]
    return Study(study.spec, results)


def test_canaries_that_come_back_need_intervals_apart(authors):
    def judged(study: Study) -> str:
        return regularisation.protected(study, "writers", measure=regularisation.extracted, unit="%").word

    assert judged(authors) == OPEN  # fewer, with intervals that overlap
    none = like(like(authors, "writers_adversarial", "writers_dpsgd"), "writers_triplet", "writers_dpsgd")
    assert judged(none) == PUBLISHED  # but no fewer than with batches of one author
    assert judged(like(like(none, "writers_by_author", "writers_nonprivate"), "writers_nonprivate", "writers_dpsgd")) == FAILS


def test_often_repeated_canaries_against_noise(authors):
    def judged(other: str) -> str:
        return regularisation.against_noise(like(authors, "writers_clip_noise", other)).word

    assert judged("writers_nonprivate") == HOLDS and judged("writers_dpsgd") == FAILS
    same = like(like(authors, "writers_clip_noise", "writers_triplet"), "writers_adversarial", "writers_triplet")
    assert regularisation.against_noise(same).word == OPEN


def test_gaps_between_authors_need_intervals_apart(authors):
    found = regularisation.fair(authors, "writers", "dpsgd")
    assert found.word == HOLDS
    assert regularisation.fair(authors, "writers", "adversarial").word == OPEN  # against itself
    assert regularisation.fair(authors, "writers", "triplet").word == FAILS  # whose gap is smaller than the adversarial one's


def test_an_author_is_hidden_only_from_every_probe(authors):
    assert regularisation.hidden(authors, "writers").word == HOLDS
    seen = attacked(authors.results, "writers_triplet", "author_inference", accuracy=0.4, accuracy_low=0.3, accuracy_high=0.5)
    assert regularisation.hidden(Study(authors.spec, seen), "writers").word == FAILS


def test_time_of_regularisers(authors):
    assert regularisation.quick(authors, "writers").word in (HOLDS, FAILS)
    assert "printed 1.06 and 1.80" in regularisation.quick(authors, "writers").evidence
    assert regularisation.equal_utility(authors, "writers").word == FAILS  # 11 and 11.5 against 9


def test_the_page_says_all_of_it(tmp_path):
    spec = write_study(tmp_path, seeds=1).model_copy(update={"study": "crt_customersim"})
    paths = {name: tmp_path / "out" / name for name in ("claims.csv", "index.html", "opening.rst")}
    claims, page, opening = paths.values()
    given = {"results": tmp_path / "results", "models": tmp_path / "models"}
    summary(SummarySpec(studies=[spec]), **given, claims=claims, page=page, opening=opening)
    assert claims.read_text().count("\n") == len(CLAIMS) + 1 and "not run" in claims.read_text()
    html = page.read_text()
    for words in (
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
