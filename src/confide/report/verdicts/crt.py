"""Claims of Confidentially Redacted Training (Zhao, Li and Wang 2022).

Each is put to the test on every corpus and model that was tried.
"""

import math

from confide.report.figures.amplification import PUBLISHED as PRINTED
from confide.report.figures.amplification import rows as amplification
from confide.report.tables.table import show
from confide.report.verdicts.evidence import (
    APART,
    FAILS,
    FAR,
    HOLDS,
    ONE_SEED,
    OPEN,
    PUBLISHED,
    Study,
    Verdict,
    above_level,
    below,
    between,
    guessing,
    ratios,
)

UNLIKELY = 2.0  # bits above the band of chance: one seed contradicts from here on
EXTRACTED = 0.5  # bits below full exposure: a canary that comes back whole needs no second seed
SAME = 1.02  # "the same": a ratio of perplexities
ALMOST = 1.1  # "almost the same"


def canaries(study: Study, prefix: str) -> Verdict:
    """Mean and largest exposure at every miss rate against the band of unseen canaries."""
    row = f"{prefix}crt"
    gammas = study.gammas(row)
    each = {
        end: [study.number(row, f"exposure_{end}", gamma) for gamma in gammas]
        for end in ("mean", "max")
    }
    high = {end: study.number(row, f"exposure_null_{end}_high") for end in each}
    open_ = study.number(f"{prefix}nonprivate", "exposure_max")
    words = "; ".join(
        f"{end} {between(each[end])} bits, by chance up to {show(high[end])}" for end in each
    )
    words = f"γ = {between(gammas)}: {words}; non-private {show(open_)}"
    samples = [
        above_level(study, row, f"exposure_{end}", level=high[end], gamma=gamma)
        for end in each
        for gamma in gammas
    ]
    found = below(samples, words, far=UNLIKELY)
    if open_ <= high["max"] and found.word in (HOLDS, ONE_SEED):
        return Verdict(OPEN, words)
    return found


def missed(study: Study, row: str) -> Verdict:
    """Whatever the policy misses can be extracted from a model, here at the largest miss rate.

    One canary that comes back whole, in every seed, is enough. Less must lie above chance over
    seeds.
    """
    gamma = max(study.gammas(row))
    found = study.each(row, "exposure_max", gamma)
    chance = study.number(row, "exposure_null_max_high", gamma)
    whole = math.log2(study.metric(row, "exposure", "candidates", gamma))
    words = f"γ = {gamma:g}: largest exposure {between(found.values())} of {show(whole)} bits, "
    words += f"by chance up to {show(chance)}"
    if gamma == 0:
        return Verdict(APART, f"{words}: the policy was made to miss nothing")
    if min(found.values()) >= whole - EXTRACTED:
        return Verdict(HOLDS, words)
    samples = [[chance - value for value in found.values()]]
    verdict = below(samples, words, far=math.inf)
    return Verdict(OPEN, words) if verdict.word == FAILS else verdict


def membership(study: Study, prefix: str, group: str = "") -> Verdict:
    """CRT's AUC against guessing, and against what tells members by their form.

    Form tells them without a model, or to one that never saw the secrets.
    """
    row = f"{prefix}crt"
    gammas = study.gammas(f"{prefix}crt")
    open_row = f"{prefix}nonprivate"
    blind = study.metric(row, "membership", f"{group}blind_ngram_auc")
    value, low, high = (
        [study.metric(row, "membership", f"{group}auc{end}", gamma) for gamma in gammas]
        for end in ("", "_low", "_high")
    )
    band = study.metric(row, "membership", f"{group}auc_null_high")
    open_ = [study.metric(open_row, "membership", f"{group}auc{end}") for end in ("", "_low")]
    ignorant = _ignorant(study, f"{prefix}redacted", f"{group}auc")
    words = f"AUC {between(value)} at γ = {between(gammas)}; by guessing up to {show(band)}; "
    words += f"a baseline without the model {show(blind)}; "
    words += f"a model that never saw a secret {show(ignorant)}; " if ignorant is not None else ""
    found = guessing(
        value,
        low=low,
        high=high,
        explained=max(0.5, blind, ignorant or 0.0),
        band=band,
        open_low=open_[1],
    )
    return Verdict(found, words + f"non-private {show(open_[0])}")


def _ignorant(study: Study, row: str, auc: str) -> float | None:
    """The AUC of a model of redacted text whose policy missed no secret, if there is one."""
    gamma = min(study.gammas(row))
    missed = [one["gamma_measured"] for one in study.rows(row, gamma)]
    return (
        None if None in missed or max(missed) > 0 else study.metric(row, "membership", auc, gamma)
    )


def utility(study: Study, prefix: str, column: str) -> Verdict:
    """Perplexity at the paper's miss rate: the same as DP-SGD's or lower, at a smaller epsilon.

    `column`: which tokens. Of all tokens the paper speaks; of public ones alone CRT can learn.
    Nothing is compared where CRT's Bayesian epsilon is not the smaller one.
    """
    rows = f"{prefix}crt", f"{prefix}dpsgd"
    spent, allowed = study.numbers(rows, "epsilon_bayesian")
    own, other = study.numbers(rows, column)
    words = f"test perplexity {show(own)} against {show(other)}"
    words += f" at a Bayesian ε of {show(spent)} and {show(allowed)}"
    if spent >= allowed:
        return Verdict(APART, words)
    return below([_margin(ratios(study, rows, column), SAME)], words, far=FAR)


def near_nonprivate(study: Study, prefix: str) -> Verdict:
    """Perplexity at the paper's miss rate against training without protection; a tenth is near."""
    rows = f"{prefix}crt", f"{prefix}nonprivate"
    own, other = study.numbers(rows, "ppl")
    public = study.numbers(rows, "ppl_public")
    words = f"test perplexity {show(own)} against {show(other)} without protection, of public "
    words += f"tokens {show(public[0])} against {show(public[1])}; a tenth more counts as near"
    return below([_margin(ratios(study, rows), ALMOST)], words, far=FAR)


def transformers(study: Study, gpt2: str, lstm: str) -> Verdict:
    """CRT and DP-SGD with a GPT-2 against both with an LSTM, on the same text and tokens."""
    rows = {prefix: [f"{prefix}{method}" for method in ("crt", "dpsgd")] for prefix in (gpt2, lstm)}
    every = [*rows[gpt2], *rows[lstm]]
    values = ", ".join(f"{row} {show(study.number(row, 'ppl'))}" for row in every)
    words = f"test perplexity {values}"
    if len({result.corpus for row in every for result in study.runs(row)}) > 1:
        return Verdict(APART, f"{words}: on other texts or tokens")
    samples = [ratios(study, (own, other)) for own in rows[gpt2] for other in rows[lstm]]
    return below(samples, words, far=FAR)


def _margin(logs: list[float], ratio: float) -> list[float]:
    """Logarithms of ratios, less that of the largest ratio that a claim allows."""
    return [value - math.log(ratio) for value in logs]


def amplified(study: Study) -> Verdict:
    """The printed example against the same budget for replacing a record.

    The miss rate has a bound there.
    """
    spec = study.spec.amplification
    same = (PRINTED["epsilon_prime"], PRINTED["gamma"])
    own = min(
        amplification(spec),
        key=lambda row: abs(row["epsilon_prime"] - same[0]) + abs(row["gamma"] - same[1]),
    )
    honest = own["replace_one_epsilon_upper"]
    scaled = own["epsilon_scaled"]
    words = (
        f"ε' = 1, γ = 0.1: printed {PRINTED['epsilon']}, computed again {show(scaled)} "
        "(add-or-remove, γ known); "
    )
    words += (
        f"{show(honest)} for replacing a record, with γ bounded from {spec.labelled} labelled "
        "secrets"
    )
    return Verdict(FAILS if abs(scaled - PRINTED["epsilon"]) > 0.01 else PUBLISHED, words)
