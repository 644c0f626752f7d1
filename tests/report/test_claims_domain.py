"""Verdicts on Domain Private Transformers follow the numbers, branch by branch."""

from dataclasses import replace
from functools import partial

import pytest
from edited import claimed, in_each_epoch, renamed

from confide.attacks.domains.judges import GOLD
from confide.report.figures.domains import judges
from confide.report.results import load
from confide.report.seeds import Estimate
from confide.report.verdicts import domain
from confide.report.verdicts.evidence import (
    FAILS,
    HOLDS,
    ONE_SEED,
    OPEN,
    PUBLISHED,
    NotMeasured,
    Study,
)


@pytest.fixture
def keywords(domain_study):
    root, spec = domain_study
    names = {
        "nonprivate": "d_nonprivate",
        "redacted": "d_k_redacted",
        "jft": "d_k_jft",
        "schedule": "d_k_schedule",
        "domain_only": "d_only",
    }
    return Study(spec, renamed(load(spec.runs, root / "results", root / "models"), names))


def test_schedules_and_leaks(keywords):
    own = keywords
    spec = keywords.spec
    assert domain.order(own, "d_k_schedule", "d_k_jft").word == FAILS  # 4.8 against 4.4
    assert domain.order(own, "d_k_jft", "d_k_schedule").word == HOLDS
    found = domain.leaks(own, "d", "k")
    leaky = Study(
        spec, [replace(r, attacks=own.runs("d_nonprivate")[0].attacks) for r in own.results]
    )
    assert (
        domain.leaks(leaky, "d", "k").word == FAILS
        and "above the judges' false alarms" in found.evidence
    )
    assert domain.ratio(own, "d").word in (HOLDS, OPEN)


def test_leaks_of_every_seed_count(keywords):
    own = keywords.results
    spec = keywords.spec
    seeds = sorted({result.run.seed for result in own})
    assert len(seeds) > 1 and {asked.seed for asked in domain.rates(keywords, "d_k_jft")} == set(
        seeds
    )
    quiet = next(r.attacks for r in own if r.run.name == "d_k_redacted")
    loud = next(r.attacks for r in own if r.run.name == "d_nonprivate")

    def leaking(seed: int | None) -> Study:
        return Study(
            spec,
            [
                replace(
                    r, attacks=loud if seed == r.run.seed or r.run.name == "d_nonprivate" else quiet
                )
                for r in own
            ],
        )

    assert domain.leaks(leaking(None), "d", "k").word == OPEN  # intervals of few prompts are wide
    assert [domain.leaks(leaking(seed), "d", "k").word for seed in seeds] == [FAILS] * len(seeds)


def test_the_judge_of_secrets_is_no_judge_of_domains(keywords):
    judged = {case.judge for case in domain.rates(keywords, "d_nonprivate")}
    assert judged == set(judges(keywords.results)) - {GOLD} != set(judges(keywords.results))


@pytest.mark.parametrize(
    ("low", "high", "word"), [(0.0, 0.04, HOLDS), (0.0, 0.2, OPEN), (0.06, 0.2, FAILS)]
)
def test_no_more_leaks_than_a_judge_errs_are_shown_by_intervals_within(
    keywords, monkeypatch, low, high, word
):
    case = domain.Case(0, None, "judge")
    redacted = Estimate((low + high) / 2, low=low, high=high)
    monkeypatch.setattr(domain, "_errs", lambda study, case: 0.05)
    monkeypatch.setattr(
        domain,
        "rates",
        lambda study, name: {
            case: Estimate(0.5, low=0.4, high=0.6) if name == "d_nonprivate" else redacted
        },
    )
    found = domain.leaks(keywords, "d", "k")
    assert found.word == word
    within = 3 if word == HOLDS else 0
    assert f"of 3 intervals {3 if word == FAILS else 0} above" in found.evidence
    assert f"{within} within" in found.evidence


def test_where_nobody_leaks_nothing_is_shown(keywords, monkeypatch):
    quiet = Estimate(0.0, low=0.0, high=0.04)
    monkeypatch.setattr(domain, "_errs", lambda study, case: 0.05)
    monkeypatch.setattr(domain, "rates", lambda study, name: {domain.Case(0, None, "judge"): quiet})
    assert domain.leaks(keywords, "d", "k").word == OPEN


def test_leaks_without_tokens_that_name_the_domain(keywords):
    def under(name: str, like: str) -> Study:
        own = next(r.attacks for r in keywords.results if r.run.name == like)
        results = renamed(keywords.results, {"d_nonprivate": name})
        return Study(keywords.spec, [replace(r, attacks=own) for r in results])

    leaky, quiet = (under("plain_nonprivate", like) for like in ("d_nonprivate", "d_only"))
    with_names = under("dogo_nonprivate", "d_nonprivate")
    assert domain.without_tokens(leaky, with_names).word == HOLDS  # as many: less than twice
    assert domain.without_tokens(quiet, with_names).word == HOLDS
    assert domain.without_tokens(leaky, under("dogo_nonprivate", "d_only")).word == FAILS
    single = [r for r in leaky.results if r.run.seed == 0]
    assert domain.without_tokens(Study(keywords.spec, single), with_names).word == ONE_SEED
    with pytest.raises(NotMeasured):
        others = [r for r in with_names.results if r.run.seed != 0]
        domain.without_tokens(Study(keywords.spec, single), Study(keywords.spec, others))


def test_a_saving_that_is_budget_not_used(domain_study):
    root, spec = domain_study
    results = load(spec.runs, root / "results", root / "models")
    names = {
        "jft": "dogo_keyword_jft",
        "schedule": "dogo_keyword_schedule",
        "dpsgd": "dogo_schedule_published",
    }
    own = renamed(results, names)
    for every, drawn, word in ((0.7, 3.0, PUBLISHED), (0.7, 0.8, HOLDS), (2.9, 3.0, FAILS)):
        found = claimed(
            claimed(own, "dogo_schedule_published", "secret_caught", every),
            "dogo_keyword_schedule",
            "secret_caught",
            drawn,
        )
        assert domain.saving(Study(spec, found)).word == word


def test_who_leaks_more_than_a_model_of_one_domain(keywords, monkeypatch):
    """Public and private training surely above it, what was redacted in part not: else no claim."""
    monkeypatch.setattr(domain, "JUDGE", "keywords")
    names = ("d_nonprivate", "d_dpsgd", "d_k_redacted", "d_k_jft", "d_k_schedule", "d_only")

    def study(*leaks: str) -> Study:
        """Each row with the leaks of another one; l: of the open model, q: of the quiet one."""
        own = {r.run.name: r for r in keywords.results if r.run.seed == 0}
        given = {"l": own["d_nonprivate"].attacks, "q": own["d_only"].attacks}
        shape = own["d_k_jft"]
        results = [
            replace(shape, run=shape.run.model_copy(update={"name": name}), attacks=given[leak])
            for name, leak in zip(names, leaks, strict=True)
        ]
        return Study(keywords.spec, results)

    assert domain.baseline(study(*"llqqqq"), "d", "k").word == HOLDS
    wide = [
        replace(r, attacks={key: one | {"keywords_high": 0.9} for key, one in r.attacks.items()})
        if r.run.name == "d_k_jft"
        else r
        for r in study(*"llqqqq").results
    ]  # whose interval shows nothing
    assert domain.baseline(Study(keywords.spec, wide), "d", "k").word == OPEN
    assert domain.baseline(study(*"lqqqqq"), "d", "k").word == OPEN
    assert domain.baseline(study(*"lllqqq"), "d", "k").word == FAILS
    assert domain.baseline(study(*"lqqqql"), "d", "k").word == FAILS
    with pytest.raises(NotMeasured):
        domain.baseline(Study(keywords.spec, study(*"llqqqq").results[:5]), "d", "k")


def judged_by(results, name, judge, share):
    """Runs of a row where a judge flags a share of the answers, give or take a hundredth."""

    def of_attack(metrics):
        own = {f"{judge}_rate": share, f"{judge}_low": share - 0.01}
        own |= {f"{judge}_high": share + 0.01}
        return metrics | own if metrics["attack"] == "leak" else metrics

    return [
        replace(r, attacks={key: of_attack(metrics) for key, metrics in r.attacks.items()})
        if r.run.name == name
        else r
        for r in results
    ]


def test_the_classifier_finds_more_leaks(keywords):
    own = keywords.results
    own = [
        replace(r, run=r.run.model_copy(update={"name": NAMED.get(r.run.name, r.run.name)}))
        for r in own
    ]
    for classifier, other, word in ((0.3, 0.2, HOLDS), (0.2, 0.3, FAILS)):
        for name in {r.run.name for r in own}:
            own = judged_by(judged_by(own, name, "classifier", classifier), name, "keywords", other)
        found = domain.stricter(Study(keywords.spec, own), "d", "k", "keywords")
        assert found.word == word and f"classifier {100 * classifier:g}" in found.evidence
    with pytest.raises(NotMeasured):
        domain.stricter(Study(keywords.spec, own), "d", "k", "nobody")


NAMED = {"d_only": "d_dpsgd"}


def test_a_schedule_leaks_no_more_than_fine_tuning_twice(keywords):
    def leaking(open_, schedule, jft):
        own = keywords.results
        for judge in ("keywords", "classifier", "gold"):
            own = judged_by(own, "d_nonprivate", judge, open_)
            own = judged_by(own, "d_k_schedule", judge, schedule)
            own = judged_by(own, "d_k_jft", judge, jft)
        return domain.comparable(Study(keywords.spec, own), "d", "k_schedule", "k_jft")

    assert leaking(0.3, 0.1, 0.1).word == HOLDS
    assert leaking(0.3, 0.02, 0.1).word == HOLDS
    assert leaking(0.3, 0.12, 0.1).word == HOLDS  # a tenth of 0.3 does not count
    assert leaking(0.3, 0.2, 0.1).word == FAILS
    assert leaking(0.1, 0.1, 0.1).word == OPEN  # nothing leaks: no attack could tell


def changed_row(results, name, change):
    return [change(r) if r.run.name == name else r for r in results]


def test_half_the_training_of_fine_tuning_twice(keywords):
    def lasting(seconds):
        each = partial(in_each_epoch, cpu_seconds=seconds)
        own = changed_row(keywords.results, "d_k_schedule", each)
        return domain.cheaper(Study(keywords.spec, own), "d_k_schedule", "d_k_jft").word

    assert lasting(6.0) == HOLDS and lasting(9.0) == FAILS  # of 12.5 an epoch


def test_the_best_of_several_rows(keywords):
    assert domain.best(keywords, "d_k_redacted", "d_k_jft,d_k_schedule").word == HOLDS
    assert domain.best(keywords, "d_k_jft", "d_k_redacted,d_k_schedule").word == FAILS


def test_what_learning_rates_move(keywords):
    """JFT: leaks from 5 to 25 %, perplexity alike; the schedule: the other way round."""

    def with_ppl(value):
        return lambda r: replace(r, evaluation=r.evaluation | {"ppl": value})

    rows = {"j1": (5.0, 0.05), "j2": (5.1, 0.25), "s1": (5.0, 0.1), "s2": (9.0, 0.12)}
    own = []
    for name, (ppl, leaked) in rows.items():
        same = renamed(keywords.results, {"d_k_jft": name})
        same = changed_row(same, name, with_ppl(ppl))
        for judge in ("keywords", "classifier", "gold"):
            same = judged_by(same, name, judge, leaked)
        own += same
    study = Study(keywords.spec, own)
    assert domain.sensitive(study, "j1,j2", "s1,s2").word == HOLDS
    found = domain.sensitive(study, "s1,s2", "j1,j2")
    assert found.word == FAILS and "leaks by 20 percentage points" in found.evidence
