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
    evidence = "; ".join(
        f"{end} {between(each[end])} bits, by chance up to {show(high[end])}" for end in each
    )
    evidence = f"γ = {between(gammas)}: {evidence}; non-private {show(open_)}"
    samples = [
        above_level(study, row, f"exposure_{end}", level=high[end], gamma=gamma)
        for end in each
        for gamma in gammas
    ]
    verdict = below(samples, evidence, far=UNLIKELY)
    if open_ <= high["max"] and verdict.word in (HOLDS, ONE_SEED):
        return Verdict(OPEN, evidence)
    return verdict


def missed(study: Study, row: str) -> Verdict:
    """Whatever the policy misses can be extracted from a model, here at the largest miss rate.

    One canary that comes back whole, in every seed, is enough. Less must lie above chance over
    seeds.
    """
    gamma = max(study.gammas(row))
    exposures = study.each(row, "exposure_max", gamma)
    chance = study.number(row, "exposure_null_max_high", gamma)
    whole = math.log2(study.metric(row, "exposure", "candidates", gamma))
    evidence = (
        f"γ = {gamma:g}: largest exposure {between(exposures.values())} of {show(whole)} bits, "
    )
    evidence += f"by chance up to {show(chance)}"
    if gamma == 0:
        return Verdict(APART, f"{evidence}: the policy was made to miss nothing")
    if min(exposures.values()) >= whole - EXTRACTED:
        return Verdict(HOLDS, evidence)
    samples = [[chance - value for value in exposures.values()]]
    verdict = below(samples, evidence, far=math.inf)
    return Verdict(OPEN, evidence) if verdict.word == FAILS else verdict


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
    evidence = f"AUC {between(value)} at γ = {between(gammas)}; by guessing up to {show(band)}; "
    evidence += f"a baseline without the model {show(blind)}; "
    evidence += (
        f"a model that never saw a secret {show(ignorant)}; " if ignorant is not None else ""
    )
    word = guessing(
        value,
        low=low,
        high=high,
        explained=max(0.5, blind, ignorant or 0.0),
        band=band,
        open_low=open_[1],
    )
    return Verdict(word, evidence + f"non-private {show(open_[0])}")


def _ignorant(study: Study, row: str, auc: str) -> float | None:
    """The AUC of a model of redacted text whose policy missed no secret, if there is one."""
    gamma = min(study.gammas(row))
    missed = [run["gamma_measured"] for run in study.rows(row, gamma)]
    return (
        None if None in missed or max(missed) > 0 else study.metric(row, "membership", auc, gamma)
    )


def utility(study: Study, prefix: str, column: str) -> Verdict:
    """Perplexity at the paper's miss rate: the same as DP-SGD's or lower, at a smaller epsilon.

    `column`: which tokens. Of all tokens the paper speaks; of public ones alone CRT can learn.
    Nothing is compared where CRT's Bayesian epsilon is not the smaller one.
    """
    rows = f"{prefix}crt", f"{prefix}dpsgd"
    epsilon_crt, epsilon_dpsgd = study.numbers(rows, "epsilon_bayesian")
    crt, dpsgd = study.numbers(rows, column)
    evidence = f"test perplexity {show(crt)} against {show(dpsgd)}"
    evidence += f" at a Bayesian ε of {show(epsilon_crt)} and {show(epsilon_dpsgd)}"
    if epsilon_crt >= epsilon_dpsgd:
        return Verdict(APART, evidence)
    return below([_margin(ratios(study, rows, column), SAME)], evidence, far=FAR)


def near_nonprivate(study: Study, prefix: str) -> Verdict:
    """Perplexity at the paper's miss rate against training without protection; a tenth is near."""
    rows = f"{prefix}crt", f"{prefix}nonprivate"
    crt, nonprivate = study.numbers(rows, "ppl")
    public = study.numbers(rows, "ppl_public")
    evidence = (
        f"test perplexity {show(crt)} against {show(nonprivate)} without protection, of public "
    )
    evidence += f"tokens {show(public[0])} against {show(public[1])}; a tenth more counts as near"
    return below([_margin(ratios(study, rows), ALMOST)], evidence, far=FAR)


def transformers(study: Study, gpt2: str, lstm: str) -> Verdict:
    """CRT and DP-SGD with a GPT-2 against both with an LSTM, on the same text and tokens."""
    rows = {prefix: [f"{prefix}{method}" for method in ("crt", "dpsgd")] for prefix in (gpt2, lstm)}
    every = [*rows[gpt2], *rows[lstm]]
    values = ", ".join(f"{row} {show(study.number(row, 'ppl'))}" for row in every)
    evidence = f"test perplexity {values}"
    if len({result.corpus for row in every for result in study.runs(row)}) > 1:
        return Verdict(APART, f"{evidence}: on other texts or tokens")
    samples = [
        ratios(study, (with_gpt2, with_lstm))
        for with_gpt2 in rows[gpt2]
        for with_lstm in rows[lstm]
    ]
    return below(samples, evidence, far=FAR)


def _margin(logs: list[float], ratio: float) -> list[float]:
    """Logarithms of ratios, less that of the largest ratio that a claim allows."""
    return [value - math.log(ratio) for value in logs]


def amplified(study: Study) -> Verdict:
    """The printed example against the same budget for replacing a record.

    The miss rate has a bound there.
    """
    spec = study.spec.amplification
    same = (PRINTED["epsilon_prime"], PRINTED["gamma"])
    printed = min(
        amplification(spec),
        key=lambda row: abs(row["epsilon_prime"] - same[0]) + abs(row["gamma"] - same[1]),
    )
    honest = printed["replace_one_epsilon_upper"]
    scaled = printed["epsilon_scaled"]
    evidence = (
        f"ε' = 1, γ = 0.1: printed {PRINTED['epsilon']}, computed again {show(scaled)} "
        "(add-or-remove, γ known); "
    )
    evidence += (
        f"{show(honest)} for replacing a record, with γ bounded from {spec.labelled} labelled "
        "secrets"
    )
    return Verdict(FAILS if abs(scaled - PRINTED["epsilon"]) > 0.01 else PUBLISHED, evidence)
