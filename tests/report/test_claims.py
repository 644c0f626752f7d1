"""Every claim has its study and figure; CRT's verdicts follow the numbers, branch by branch."""

from dataclasses import replace
from functools import partial
from pathlib import Path

import pytest
from edited import attacked, changed, of, one_seed, renamed, with_headline

from confide.config.params import load as load_params
from confide.report.pages.summary import judge
from confide.report.verdicts import crt
from confide.report.verdicts.claims import CLAIMS
from confide.report.verdicts.evidence import (
    APART,
    FAILS,
    HOLDS,
    ONE_SEED,
    OPEN,
    PUBLISHED,
    UNKNOWN,
    Claim,
    NotMeasured,
    Study,
    Verdict,
    settled,
)

PARAMS = load_params(Path(__file__).parents[2] / "params.yaml")


def test_every_claim_names_studies_and_a_figure_of_the_sample_sheet():
    assert len(CLAIMS) > 50 and len(set(claim[:4] for claim in CLAIMS)) == len(CLAIMS)
    for claim in CLAIMS:
        assert claim.section and claim.needs in ("", "seeds")
        assert set(claim.studies) <= set(PARAMS.papers)
        assert claim.figure in PARAMS.studies[claim.studies[0]].figures


def test_what_was_not_measured_is_said(base, results):
    claim = next(claim for claim in CLAIMS if claim.studies == ("crt_customersim",))
    bare = [replace(result, attacks={}) for result in results]
    found = claim.judge({"crt_customersim": of(base, bare)})
    assert found.word == UNKNOWN and "exposure_mean" in found.evidence
    assert claim.judge({}) is None


def test_a_claim_that_needs_seeds_never_holds_with_one(base, results):
    alone = {"crt_customersim": of(base, one_seed(results))}
    for claim in CLAIMS:
        found = claim.judge(alone)
        if found is not None and claim.needs == "seeds":
            assert found.word not in (HOLDS, PUBLISHED) and found.p is None
    assert claim_of("canaries").judge(alone).word == ONE_SEED
    assert claim_of("canaries").judge({"crt_customersim": base}).word == HOLDS
    assert claim_of("missed").judge(alone).word == HOLDS


def claim_of(verdict: str):
    """The first claim on the default study with this verdict."""
    return next(
        claim
        for claim in CLAIMS
        if claim.studies == ("crt_customersim",) and claim.verdict.func.__name__ == verdict
    )


def test_what_is_tested_is_corrected_for_the_number_of_tests():
    given = [
        Verdict(HOLDS, "a", 0.01),
        None,
        Verdict(FAILS, "b", 0.03),
        Verdict(HOLDS, "c"),
        Verdict(HOLDS, "d", 1e-9),
    ]
    found = settled(given)
    assert [one and one.word for one in found] == [HOLDS, None, FAILS, HOLDS, HOLDS]
    more = settled([*given, *[Verdict(FAILS, "e", 0.5)] * 3])
    assert [one.word for one in more if one] == [OPEN, OPEN, HOLDS, HOLDS, OPEN, OPEN, OPEN]
    assert more[0].evidence == "a; over seeds p = 0.01, corrected for 6 tests = 0.05"


def test_no_verdict_depends_on_what_else_was_run(base, results):
    def named(study, prefix):
        own = renamed(results, {r.run.name: f"{prefix}{r.run.name}" for r in results})
        return Study(base.spec.model_copy(update={"study": study}), own)

    default, five = named("crt_customersim", ""), named("crt_five", "five_")
    alone, both = (
        {one.claim.words: one.verdict for one in judge(some) if one.claim.studies == STUDIES}
        for some in ([default], [default, five])
    )
    assert alone == both and any(verdict.p is not None for verdict in alone.values() if verdict)
    others = [one for one in judge([default, five]) if one.claim.studies == ("crt_five",)]
    assert any(one.verdict.p is not None for one in others)


STUDIES = ("crt_customersim",)


def test_canaries_at_chance_and_above(base, results):
    assert crt.canaries(base, "").word == HOLDS
    assert crt.canaries(of(base, attacked(results, "crt", "exposure", mean=2.6)), "").word == FAILS
    assert crt.canaries(of(base, attacked(results, "crt", "exposure", max=9.0)), "").word == FAILS


def test_an_attack_that_finds_nothing_anywhere_shows_nothing(base, results):
    """Canaries of a model without protection at chance: then those of CRT at chance are no success
    of CRT's.
    """
    assert (
        crt.canaries(of(base, attacked(results, "nonprivate", "exposure", max=4.0)), "").word
        == OPEN
    )


def test_redaction_gives_away_what_it_misses(base, results):
    assert crt.missed(base, "redacted").word == HOLDS
    for least in (4.0, 9.7):  # within chance, and what one lucky draw gives
        found = crt.missed(
            of(base, attacked(results, "redacted", "exposure", max=least)), "redacted"
        )
        assert (found.word, found.p) == ((OPEN, None) if least == 4.0 else (HOLDS, 1.0))
    alone = one_seed(attacked(results, "redacted", "exposure", max=9.7))
    assert crt.missed(of(base, alone), "redacted").word == ONE_SEED
    assert crt.missed(of(base, one_seed(results)), "redacted").word == HOLDS  # whole
    perfect = [r for r in results if r.run.name != "redacted" or r.run.gamma == 0]
    assert crt.missed(of(base, perfect), "redacted").word == APART


def test_selective_training_gives_away_what_its_policy_misses(base, results):
    assert crt.missed(base, "selective").word == HOLDS
    kept = attacked(results, "selective", "exposure", max=4.0)
    assert crt.missed(of(base, kept), "selective").word == OPEN


def test_any_miss_rate_is_the_smallest_above_zero(base, results):
    rates = sorted({r.run.gamma for r in results if r.run.name == "redacted"})
    assert rates[0] == 0 and len(rates) > 2
    for most, word in ((19.9, HOLDS), (4.0, OPEN)):
        smallest = [
            result
            for result in attacked(results, "redacted", "exposure", max=most)
            if result.run.gamma == rates[1]
        ]
        others = [result for result in results if result.run.gamma != rates[1]]
        study = of(base, [*smallest, *others])
        assert crt.missed(study, "redacted").word == HOLDS
        assert crt.missed(study, "redacted", at="smallest").word == word


@pytest.mark.parametrize("group", ["", "group_"])
def test_membership_must_beat_the_blind_baseline(base, results, group):
    assert crt.membership(base, "", group).word == HOLDS
    leaky = attacked(results, "crt", "membership", **{f"{group}auc": 0.7, f"{group}auc_low": 0.66})
    assert crt.membership(of(base, leaky), "", group).word == FAILS
    form = attacked(leaky, "crt", "membership", **{f"{group}blind_ngram_auc": 0.75})
    assert crt.membership(of(base, form), "", group).word == HOLDS
    ignorant = attacked(
        leaky, "redacted", "membership", **{f"{group}auc": 0.7}
    )  # without having seen a secret
    assert crt.membership(of(base, ignorant), "", group).word == HOLDS
    missed = [
        replace(
            r, certificate=r.certificate | {"headline": r.certificate["headline"] | {"gamma": 0.1}}
        )
        for r in ignorant
    ]
    assert crt.membership(of(base, missed), "", group).word == FAILS


NINE = {
    "group_auc": 0.901,
    "group_auc_low": 0.5,
    "group_auc_high": 0.99,
    "group_auc_null_high": 0.765,
}


def test_nine_groups_do_not_show_that_membership_is_guessing(base, results):
    """AUC 0.9 where guessing gives up to 0.765: neither refuted, since the interval is wide, nor
    shown.
    """
    found = crt.membership(of(base, attacked(results, "crt", "membership", **NINE)), "", "group_")
    assert found.word == OPEN and "by guessing up to 0.765" in found.evidence
    less = attacked(
        results, "crt", "membership", **NINE | {"group_auc": 0.6}
    )  # within what guessing gives, which is too much
    assert crt.membership(of(base, less), "", "group_").word == OPEN


@pytest.mark.parametrize("group", ["", "group_"])
def test_membership_is_not_shown_to_be_guessing_by_an_attack_without_power(base, results, group):
    weak = attacked(
        results, "nonprivate", "membership", **{f"{group}auc": 0.53, f"{group}auc_low": 0.48}
    )
    assert crt.membership(of(base, weak), "", group).word == OPEN
    unsure = attacked(
        results, "crt", "membership", **{f"{group}auc": 0.64, f"{group}auc_low": 0.49}
    )
    assert (
        crt.membership(of(base, unsure), "", group).word == OPEN
    )  # above what guessing gives, and yet not surely


def test_perplexity_of_all_tokens_and_of_public_ones_are_two_claims(base, results):
    assert crt.utility(base, "", "ppl").word == HOLDS
    public = of(base, changed(results, "crt", ppl_public=1e3))
    assert crt.utility(public, "", "ppl").word == HOLDS
    assert crt.utility(public, "", "ppl_public").word == FAILS
    dearer = [with_headline(r, bayesian_epsilon=9.0) if r.run.name == "crt" else r for r in results]
    assert crt.utility(of(base, dearer), "", "ppl").word == APART


def test_perplexity_beside_selective_training(base, results):
    better = [changed_by(result, 2.0, "selective") for result in results]
    assert crt.utility(of(base, better), "", "ppl", other="selective").word == HOLDS
    worse = [changed_by(result, 0.2, "selective") for result in results]
    assert crt.utility(of(base, worse), "", "ppl", other="selective").word == FAILS


@pytest.mark.parametrize("row", ["crt", "selective"])
def test_a_row_that_unlearns_is_not_compared(base, results, row):
    def rising(result, ratio):
        last = result.epochs[-1]
        first = last._replace(valid_ppl=last.valid_ppl / ratio)
        return replace(result, epochs=(first, last)) if result.run.name == row else result

    for ratio, expected in ((1.05, HOLDS), (1.2, APART)):
        own = [rising(changed_by(result, 2.0, "selective"), ratio) for result in results]
        claim = Claim("", "", "", "", "", ("a",), "", partial(crt.utility, **SELECTIVE))
        found = claim.judge({"a": of(base, own)})
        assert found.word == expected
    assert f"{row} unlearns" in found.evidence


SELECTIVE = {"prefix": "", "column": "ppl", "other": "selective"}


def changed_by(result, factor, row):
    """A run of a row with that many times CRT's perplexity, give or take a hundredth."""
    if result.run.name != row:
        return result
    ppl = 20.0 * factor * (1 + 0.01 * result.run.seed)
    return replace(result, evaluation=result.evaluation | {"ppl": ppl})


@pytest.mark.parametrize(
    ("ppl", "word"), [(10.0, ONE_SEED), (11.0, ONE_SEED), (11.9, ONE_SEED), (13.0, FAILS)]
)
def test_one_seed_shows_nothing_but_a_large_difference_against_a_claim(base, results, ppl, word):
    own = changed(changed(one_seed(results), "crt", ppl=ppl), "dpsgd", ppl=11.0)
    assert crt.utility(of(base, own), "", "ppl").word == word


def test_almost_the_perplexity_without_protection(base, results):
    for ratio, word in ((1.05, HOLDS), (1.4, FAILS)):
        near = [
            replace(r, evaluation=r.evaluation | {"ppl": ratio * unprotected(results, r)})
            if r.run.name == "crt"
            else r
            for r in results
        ]
        assert crt.near_nonprivate(of(base, near), "").word == word


def test_redaction_that_misses_nothing_and_no_protection(base, results):
    for ratio, word in ((1.05, HOLDS), (1.4, FAILS)):
        near = [
            replace(r, evaluation=r.evaluation | {"ppl": ratio * unprotected(results, r)})
            if r.run.name == "redacted" and r.run.gamma == 0
            else r
            for r in results
        ]
        assert crt.redacted_near_nonprivate(of(base, near), "").word == word
    missing = [r for r in results if r.run.name != "redacted" or r.run.gamma > 0]
    assert crt.redacted_near_nonprivate(of(base, missing), "").word == APART


def unprotected(results, result) -> float:
    """Perplexity of the non-private run of a run's seed, give or take a hundredth."""
    same = (r for r in results if (r.run.name, r.run.seed) == ("nonprivate", result.run.seed))
    return next(same).evaluation["ppl"] * (1 + 0.01 * result.run.seed)


def test_transformers_against_lstms_on_one_text(base, results):
    names = {"crt": "g_crt", "dpsgd": "g_dpsgd", "nonprivate": "l_crt", "redacted": "l_dpsgd"}
    own = renamed(results, names)
    lstms = of(base, [r for r in own if r.run.name.startswith("l_")])
    gpt2s = of(base, [r for r in own if r.run.name.startswith("g_")])
    assert crt.transformers(lstms, gpt2s, "l_", "g_").word == FAILS  # 5.2, 11 against 3.1, 4
    assert crt.transformers(gpt2s, lstms, "g_", "l_").word == HOLDS
    elsewhere = [
        replace(r, run=r.run.model_copy(update={"corpus": "others"})) for r in gpt2s.results
    ]
    assert crt.transformers(lstms, of(base, elsewhere), "l_", "g_").word == APART


def test_amplification_is_published_for_adding_a_record(base):
    found = crt.amplified(base)
    assert found.word == PUBLISHED and "0.116" in found.evidence


def test_what_is_tested_over_seeds_needs_no_seeds_of_other_rows(base, results):
    """A row that a claim does not look at may have one seed."""
    fewer = [r for r in results if r.run.name != "selective" or r.run.seed == 0]
    study = of(base, fewer)
    assert study.seeds == 1
    assert claim_of("canaries").judge({"crt_customersim": study}).word == HOLDS


def test_seeds_are_compared_in_pairs(base, results):
    """Seeds that differ by far more than two methods do: paired, the difference is certain."""
    hard = {0: 1.0, 1: 3.0}
    own = [
        replace(
            r,
            evaluation=r.evaluation
            | {"ppl": hard[r.run.seed] * (5.0 if r.run.name == "crt" else 5.5)},
        )
        for r in results
    ]
    found = crt.utility(of(base, own), "", "ppl")
    assert found.word == HOLDS and found.p < 1e-6
    crossed = [
        replace(r, run=r.run.model_copy(update={"seed": 1 - r.run.seed}))
        if r.run.name == "crt"
        else r
        for r in own
    ]
    assert crt.utility(of(base, crossed), "", "ppl").p > 0.5


def test_estimated_exposures_judge_no_claim(base):
    rows = [row | {"exposure_estimated": 0.5} for row in base.rows("crt", 0.1)]
    base.table["crt", 0.1], kept = rows, base.table["crt", 0.1]
    try:
        with pytest.raises(NotMeasured):
            base.each("crt", "exposure_max", 0.1)
        assert set(base.each("crt", "ppl", 0.1)) == {0, 1}
    finally:
        base.table["crt", 0.1] = kept


def test_redaction_protects_where_nothing_is_missed(base, results):
    assert crt.perfect(base, "redacted").word == HOLDS
    leaky = attacked(results, "redacted", "exposure", mean=6.0)
    assert crt.perfect(of(base, leaky), "redacted").word == FAILS
    missing = [r for r in results if r.run.name != "redacted" or r.run.gamma > 0]
    assert crt.perfect(of(base, missing), "redacted").word == APART
    assert crt.perfect(of(base, one_seed(results)), "redacted").word == ONE_SEED


def test_membership_finds_what_is_missed(base, results):
    """The opposite of guessing: an attack that surely finds members, in a model that leaks them."""
    assert crt.vulnerable(base, "", "redacted").word == HOLDS
    assert crt.vulnerable(base, "", "crt").word == FAILS
    most = [r for r in results if r.run.gamma == 0.5]
    rest = [r for r in results if r.run.gamma < 0.5]
    unsure = [*rest, *attacked(most, "redacted", "membership", auc=0.64, auc_low=0.49)]
    assert crt.vulnerable(of(base, unsure), "", "redacted").word == OPEN
    form = attacked(results, "redacted", "membership", blind_ngram_auc=0.99)
    assert crt.vulnerable(of(base, form), "", "redacted").word != HOLDS
    perfect = [r for r in results if r.run.name != "redacted" or r.run.gamma == 0]
    assert crt.vulnerable(of(base, perfect), "", "redacted").word == APART


def test_groups_are_found_more_easily_than_single_secrets(base, results):
    for single, grouped, word in ((0.55, 0.7, HOLDS), (0.7, 0.55, FAILS)):
        own = attacked(results, "redacted", "membership", auc=single, group_auc=grouped)
        found = crt.worse_in_groups(of(base, own), "redacted")
        assert found.word == word and f"{grouped} of groups" in found.evidence
    both = attacked(own, "selective", "membership", auc=0.5, group_auc=0.7)
    assert crt.worse_in_groups(of(base, both), "redacted,selective").word == FAILS  # one is enough


def test_simulated_dialogues_in_bits_per_character(base, results):
    def costing(bits: float):
        own = results
        for row in ("nonprivate", "dpsgd", "crt"):
            own = changed(own, row, bits_per_character=bits, ppl=7.0)
        return of(base, own)

    assert crt.easier(costing(0.5), costing(1.1), "", "").word == HOLDS
    assert crt.easier(costing(1.1), costing(0.5), "", "").word == FAILS


def test_recall_of_named_entities(base, results):
    def missing(gamma, delta2):
        policy = {"gamma": gamma, "delta2": delta2}
        own = [replace(r, certificate=r.certificate | {"policy": policy}) for r in results]
        return crt.recall(of(base, own), "crt").word

    assert missing(0.1, 0.0) == HOLDS
    assert missing(0.11, 0.0) == FAILS and missing(0.05, 0.01) == FAILS
    with pytest.raises(NotMeasured):
        missing(None, 0.0)


def test_transformers_against_selective_lstms(base, results):
    names = {"crt": "g_crt", "nonprivate": "g_dpsgd", "selective": "l_selective"}
    own = of(base, renamed(results, names))  # 5.2 and 3.1 against 9
    assert crt.transformers(own, own, "l_", "g_", "selective").word == HOLDS
    worse = of(base, changed(own.results, "g_dpsgd", ppl=12.0))
    assert crt.transformers(own, worse, "l_", "g_", "selective").word == FAILS
