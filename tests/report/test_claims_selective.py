"""Verdicts on Selective-DP follow the numbers, branch by branch."""

import math
from dataclasses import replace

import pytest
from edited import attacked, changed, claimed, of, over_epochs, renamed

from confide.report.verdicts import selective
from confide.report.verdicts.evidence import (
    APART,
    FAILS,
    HOLDS,
    OPEN,
    PUBLISHED,
    NotComparable,
    NotMeasured,
)

ROWS = {
    "nonprivate": "sdp_nonprivate",
    "dpsgd": "sdp_dpsgd",
    "selective": "sdp_selective",
    "redacted": "sdp_redacted",
}


def test_selective_has_lower_perplexity_at_equal_epsilon(base, results):
    own = renamed(results, ROWS)
    rows = {"selective": "sdp_selective", "dpsgd": "sdp_dpsgd"}
    assert selective.utility(of(base, own), **rows).word == HOLDS
    assert (
        selective.utility(of(base, changed(own, "sdp_selective", ppl=50.0)), **rows).word == FAILS
    )
    dearer = claimed(own, "sdp_selective", "secret_caught", 6.0)
    assert selective.utility(of(base, dearer), **rows).word == APART


def test_next_words_guessed_right(base, results):
    rows = {"selective": "selective", "dpsgd": "dpsgd"}
    for share, expected in ((0.9, HOLDS), (0.1, FAILS)):
        own = changed(changed(results, "dpsgd", accuracy=0.5), "selective", accuracy=share)
        found = selective.accuracy(of(base, own), **rows)
        assert found.word == expected and f"{100 * share:g} % against 50 %" in found.evidence
    dearer = claimed(results, "selective", "secret_caught", 6.0)
    assert selective.accuracy(of(base, dearer), **rows).word == APART


def test_a_printed_epsilon_that_is_not_certified(base, results):
    own = claimed(renamed(results, ROWS), "sdp_selective", "as_published", 4.5)
    assert selective.printed_epsilon(of(base, own), "sdp_selective").word == HOLDS
    nothing = claimed(own, "sdp_selective", "secret_caught", "inf")
    found = selective.printed_epsilon(of(base, nothing), "sdp_selective")
    assert found.word == PUBLISHED and "4.5" in found.evidence and "∞" in found.evidence


def test_canaries_of_selective_training(base, results):
    pair = {"honest": "sdp_selective", "published": "sdp_dpsgd", "nonprivate": "sdp_nonprivate"}
    low = attacked(
        attacked(renamed(results, ROWS), "sdp_selective", "exposure", mean=1.0, max=2.0),
        "sdp_dpsgd",
        "exposure",
        mean=1.0,
        max=2.0,
    )
    assert selective.canaries(of(base, low), **pair).word == HOLDS
    blind = attacked(
        low, "sdp_nonprivate", "exposure", max=2.0
    )  # an attack that finds nothing anywhere
    assert selective.canaries(of(base, blind), **pair).word == OPEN
    above = attacked(low, "sdp_selective", "exposure", mean=4.0)
    assert selective.canaries(of(base, above), **pair).word == PUBLISHED
    assert (
        selective.canaries(
            of(base, attacked(above, "sdp_dpsgd", "exposure", max=12.0)), **pair
        ).word
        == FAILS
    )


def test_a_missed_canary_is_extracted(base, results):
    names = {"redacted": "missed_redacted", "selective": "missed_selective", "crt": "missed_crt"}
    own = renamed(results, names)
    for name in names.values():
        own = attacked(own, name, "exposure", max=math.log2(10_000), candidates=10_000)
    assert selective.missed(of(base, own)).word == HOLDS
    assert (
        selective.missed(of(base, attacked(own, "missed_selective", "exposure", max=6.0))).word
        == FAILS
    )


def test_private_tokens_are_learned_or_not(base, results):
    names = {
        "selective": "sdp_wikitext_selective",
        "redacted": "sdp_wikitext_redacted",
        "dpsgd": "sdp_wikitext_published",
    }
    own = changed(
        renamed(results, names), "sdp_wikitext_redacted", ppl_marked=1e5, ppl_marked_backoff=2e3
    )
    for value, word in ((500.0, HOLDS), (4e3, PUBLISHED), (2e5, FAILS)):
        found = changed(own, "sdp_wikitext_published", ppl_private=value, ppl_uniform=1024.0)
        assert selective.private_tokens(of(base, found)).word == word

    def losing(run):
        return over_epochs(run, "valid_ppl_private", [8.0 + n for n in range(len(run.epochs))])

    lost = [losing(run) if run.run.name == "sdp_wikitext_selective" else run for run in own]
    with pytest.raises(NotComparable, match="its validation perplexity of private tokens is 8 at"):
        selective.private_tokens(of(base, lost))


def test_membership_as_published_is_form(base, results):
    names = {"nonprivate": "sdp_nonprivate", "selective": "sdp_selective"}
    own = [
        replace(r, attacks=r.attacks | {"membership_published": r.attacks["membership"]})
        for r in renamed(results, ROWS)
    ]
    for name, auc in (("sdp_nonprivate", 0.7), ("sdp_selective", 0.5)):
        own = attacked(own, name, "membership", auc=auc, auc_low=auc - 0.02, blind_ngram_auc=0.6)
        own = attacked(own, name, "membership_published", auc=auc, blind_ngram_auc=0.6)
    pair = {
        name: row for name, row in zip(("nonprivate", "selective"), names.values(), strict=True)
    }
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
    models = renamed(
        results,
        dict(zip(("nonprivate", "redacted", "crt", "selective", "dpsgd"), names, strict=True)),
    )
    for *values, word in (
        (22.0, 24.0, 25.0, 38.0, 27.0, HOLDS),
        (25.0, 24.0, 25.0, 38.0, 27.0, FAILS),  # one policy alone
        (22.0, 24.0, 30.0, 38.0, 27.0, FAILS),  # worse than DP-SGD
    ):
        own = models
        for name, ppl in zip(names, values, strict=True):
            own = changed(own, name, ppl=ppl)
        assert selective.twice(of(base, own)).word == word


def test_membership_that_fails_without_protection(base, results):
    for accuracy, word in ((0.6, HOLDS), (0.9, FAILS)):
        own = attacked(results, "nonprivate", "membership", acc_balanced=accuracy)
        assert selective.unsuccessful(of(base, own), "nonprivate").word == word


def test_the_advantage_is_larger_where_fewer_tokens_are_private(base, results):
    def with_ratio(ratio: float):
        own = changed(changed(results, "dpsgd", ppl=10.0), "selective", ppl=10.0 * ratio)
        return of(base, own)

    assert selective.gap(with_ratio(0.5), with_ratio(0.9), "", "").word == HOLDS
    found = selective.gap(with_ratio(0.9), with_ratio(0.5), "", "")
    assert found.word == FAILS and "0.9 times DP-SGD's perplexity where 10 %" in found.evidence


def test_less_noise_costs_more_epsilon(base, results):
    less = claimed(changed(results, "selective", ppl=5.0), "selective", "secret_caught", 90.0)
    assert selective.noise(of(base, less), "selective", "dpsgd").word == HOLDS
    worse = changed(less, "selective", ppl=20.0)
    assert selective.noise(of(base, worse), "selective", "dpsgd").word == FAILS
    cheap = claimed(less, "selective", "secret_caught", 1.0)
    assert selective.noise(of(base, cheap), "selective", "dpsgd").word == APART


def along(results, name, ppl, value, kind="exposure", key="mean"):
    """Runs of a row with other validation perplexities, and an attack's number as a function."""
    return [
        replace(
            over_epochs(r, "valid_ppl", ppl),
            trajectory={
                e.epoch: {kind: {key: value(p)}} for e, p in zip(r.epochs, ppl, strict=True)
            },
        )
        if r.run.name == name
        else r
        for r in results
    ]


def test_attacks_are_compared_in_the_middle_of_common_perplexities(base, results):
    """Ranges 4 to 40 and 2 to 16 have 4 to 16 in common, whose middle is 8."""
    first = [4 * 10 ** (step / 9) for step in range(9, -1, -1)]
    second = [2 * 8 ** (step / 9) for step in range(9, -1, -1)]
    below = along(results, "selective", first, lambda ppl: 4 - math.log2(ppl))
    own = along(below, "redacted", second, lambda ppl: 5 * math.log2(ppl) - 10)
    found = selective.safer(of(base, own), "selective", "redacted")
    assert found.word == HOLDS and "perplexity 8: selective 1, redacted 5" in found.evidence
    assert selective.safer(of(base, own), "redacted", "selective").word == FAILS
    rising = along(own, "redacted", second[::-1], lambda ppl: 5 * math.log2(ppl) - 10)
    assert selective.safer(of(base, rising), "selective", "redacted") == found
    apart = along(own, "redacted", [50.0 + step for step in range(10)], lambda ppl: 5.0)
    coarse = along(own, "redacted", [16.0] * 5 + [2.0] * 5, lambda ppl: 5.0)
    for other in (apart, coarse):
        with pytest.raises(NotComparable):
            selective.safer(of(base, other), "selective", "redacted")
    with pytest.raises(NotMeasured):
        selective.safer(of(base, own), "selective", "redacted", "membership")
