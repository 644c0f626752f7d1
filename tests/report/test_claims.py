"""Every claim has its study and figure; CRT's verdicts follow the numbers, branch by branch."""

from dataclasses import replace
from pathlib import Path

import pytest
from edited import attacked, changed, of

from confide.config.params import load as load_params
from confide.report.verdicts import crt
from confide.report.verdicts.claims import CLAIMS
from confide.report.verdicts.evidence import FAILS, HOLDS, OPEN, PUBLISHED, UNKNOWN

PARAMS = load_params(Path(__file__).parents[2] / "params.yaml")


def test_every_claim_names_studies_and_a_figure_of_the_sample_sheet():
    assert len(CLAIMS) > 50 and len(set(claim[:3] for claim in CLAIMS)) == len(CLAIMS)
    for claim in CLAIMS:
        assert set(claim.studies) <= set(PARAMS.papers)
        assert claim.figure in PARAMS.studies[claim.studies[0]].figures


def test_what_was_not_measured_is_said(base, results):
    claim = next(claim for claim in CLAIMS if claim.studies == ("crt_customersim",))
    bare = [replace(result, attacks={}) for result in results]
    found = claim.judge({"crt_customersim": of(base, bare)})
    assert found.word == UNKNOWN and "exposure_mean" in found.evidence
    assert claim.judge({}) is None


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
    assert crt.missed(base, "").word == HOLDS
    assert crt.missed(of(base, attacked(results, "redacted", "exposure", max=4.0)), "").word == OPEN


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


def test_better_on_all_tokens_alone_is_not_better(base, results):
    """Fewer bits on secrets make a lower perplexity of all tokens; of public ones it must be lower,
    too.
    """
    assert crt.utility(of(base, changed(results, "crt", ppl_public=1e3)), "").word == PUBLISHED


def test_better_on_masked_text_alone_is_no_better_perplexity(base, results):
    assert crt.utility(base, "").word == HOLDS
    worse = changed(results, "crt", ppl=20.0)
    assert crt.utility(of(base, worse), "").word == PUBLISHED
    assert crt.utility(of(base, changed(worse, "crt", ppl_masked=30.0)), "").word == FAILS


def test_amplification_is_published_for_adding_a_record(base):
    found = crt.amplified(base)
    assert found.word == PUBLISHED and "0.116" in found.evidence
