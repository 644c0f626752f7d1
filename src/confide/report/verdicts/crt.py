"""Claims of Confidentially Redacted Training (Zhao, Li and Wang 2022).

Each is put to the test on every corpus and model that was tried.
"""

import math

from confide.output.rounding import rounded_up
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
    NotMeasured,
    Study,
    Verdict,
    above_level,
    above_ratio,
    below,
    between,
    decide,
    guessing,
    log_ratios,
    paired,
    ratios,
    refuse_unlearned,
)

UNLIKELY = 2.0  # bits above the band of chance: one seed contradicts from here on
EXTRACTED = 0.5  # bits below full exposure: a canary that comes back whole needs no second seed
SAME = 1.02  # "the same": a ratio of perplexities
ALMOST = 1.1  # "almost the same"
MISSED = 0.1  # of the secrets, by the paper's policy of named entities


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


def missed(study: Study, row: str, at: str = "largest") -> Verdict:
    """Whatever the policy misses can be extracted from a model.

    One canary that comes back whole, in every seed, is enough. Less must lie above chance over
    seeds. `at`: the largest or the smallest miss rate above 0.
    """
    some = [gamma for gamma in study.gammas(row) if gamma > 0] or [0.0]
    gamma = {"largest": max, "smallest": min}[at](some)
    exposures = study.each(row, "exposure_max", gamma)
    chance = study.number(row, "exposure_null_max_high", gamma)
    whole = math.log2(study.metric(row, "exposure", "candidates", gamma))
    evidence = (
        f"γ = {gamma:g}: largest exposure {between(exposures.values())} of {show(whole)} bits, "
        f"by chance up to {show(chance)}"
    )
    if gamma == 0:
        return Verdict(APART, f"{evidence}: the policy was made to miss nothing")
    if min(exposures.values()) >= whole - EXTRACTED:
        return Verdict(HOLDS, evidence)
    samples = [[chance - value for value in exposures.values()]]
    verdict = below(samples, evidence, far=math.inf)
    return Verdict(OPEN, evidence) if verdict.word == FAILS else verdict


def perfect(study: Study, row: str) -> Verdict:
    """Canaries of a row whose policy was made to miss nothing, against the band of unseen ones."""
    gamma = min(study.gammas(row))
    ends = ("mean", "max")
    values = {end: study.number(row, f"exposure_{end}", gamma) for end in ends}
    high = {end: study.number(row, f"exposure_null_{end}_high", gamma) for end in ends}
    evidence = f"γ = {gamma:g}: " + "; ".join(
        f"{end} {show(values[end])} bits, by chance up to {show(high[end])}" for end in ends
    )
    if gamma > 0:
        return Verdict(APART, f"{evidence}: the policy was made to miss some")
    samples = [
        above_level(study, row, f"exposure_{end}", level=high[end], gamma=gamma) for end in ends
    ]
    return below(samples, evidence, far=UNLIKELY)


def vulnerable(study: Study, prefix: str, row: str) -> Verdict:
    """Whether membership inference finds secrets that the policy misses, at the largest miss rate.

    The opposite of guessing, by the same rule as `membership`.
    """
    name = f"{prefix}{row}"
    gamma = max(study.gammas(name))
    value, low, high = (
        study.metric(name, "membership", f"auc{end}", gamma) for end in ("", "_low", "_high")
    )
    blind, band = (
        study.metric(name, "membership", key, gamma) for key in ("blind_ngram_auc", "auc_null_high")
    )
    ignorant = _ignorant(study, f"{prefix}redacted", "auc")
    explained = max(0.5, blind, ignorant or 0.0)
    evidence = (
        f"AUC {show(value)} [{show(low)}, {show(high)}] at γ = {gamma:g}; by guessing up to "
        f"{show(band)}; without having seen a secret {show(explained)}"
    )
    if gamma == 0:
        return Verdict(APART, f"{evidence}: the policy was made to miss nothing")
    open_low = study.metric(f"{prefix}nonprivate", "membership", "auc_low")
    word = guessing(
        [value], low=[low], high=[high], explained=explained, band=band, open_low=open_low
    )
    return Verdict({HOLDS: FAILS, FAILS: HOLDS}.get(word, word), evidence)


def worse_in_groups(study: Study, rows: str) -> Verdict:
    """AUC of groups of secrets against that of single ones, at the paper's miss rate."""
    samples = []
    parts = []
    for row in rows.split(","):
        single, grouped = (study.each(row, column) for column in ("mia_auc", "group_mia_auc"))
        samples.append(paired(single, grouped))
        parts.append(
            f"{row} {between(grouped.values())} of groups, {between(single.values())} of one"
        )
    return below(samples, f"AUC: {'; '.join(parts)}", far=0.1)


def easier(simulated: Study, real: Study, simulated_prefix: str, real_prefix: str) -> Verdict:
    """Bits per character of simulated dialogues against those of real ones, method by method.

    Perplexities of different tokens do not compare.
    """
    samples = []
    parts = []
    for method in ("nonprivate", "dpsgd", "crt"):
        first = simulated.each(f"{simulated_prefix}{method}", "bits_per_character")
        second = real.each(f"{real_prefix}{method}", "bits_per_character")
        samples.append(log_ratios(first, second))
        parts.append(f"{method} {between(first.values())} against {between(second.values())}")
    return below(samples, f"bits per character: {'; '.join(parts)}", far=FAR)


def recall(study: Study, row: str) -> Verdict:
    """What the two policies of named entities miss, against the paper's 10 % and nothing."""
    policy = study.runs(row)[0].certificate["policy"]
    missed, both = policy["gamma"], policy["delta2"]
    if missed is None or both is None:
        raise NotMeasured(f"{study.spec.study}: what the policies of {row} miss")
    evidence = (
        f"of the kind of secrets that fares worst the policy misses {show(100 * missed)} %, the "
        f"conservative one {show(100 * both)} % (printed: 10 % and 0 % of 200 labelled points)"
    )
    return decide(missed <= MISSED and both == 0, evidence)


def membership(study: Study, prefix: str, group: str = "") -> Verdict:
    """CRT's AUC against guessing, and against what tells members by their form.

    Form tells them without a model, or to one that never saw the secrets.
    """
    row = f"{prefix}crt"
    gammas = study.gammas(row)
    open_row = f"{prefix}nonprivate"
    blind = study.metric(row, "membership", f"{group}blind_ngram_auc")
    value, low, high = (
        [study.metric(row, "membership", f"{group}auc{end}", gamma) for gamma in gammas]
        for end in ("", "_low", "_high")
    )
    band = study.metric(row, "membership", f"{group}auc_null_high")
    open_ = [study.metric(open_row, "membership", f"{group}auc{end}") for end in ("", "_low")]
    ignorant = _ignorant(study, f"{prefix}redacted", f"{group}auc")
    evidence = (
        f"AUC {between(value)} at γ = {between(gammas)}; by guessing up to {show(band)}; "
        f"a baseline without the model {show(blind)}; "
    )
    if ignorant is not None:
        evidence += f"a model that never saw a secret {show(ignorant)}; "
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
    if None in missed or max(missed) > 0:
        return None
    return study.metric(row, "membership", auc, gamma)


def utility(study: Study, prefix: str, column: str, other: str = "dpsgd") -> Verdict:
    """Perplexity at the paper's miss rate: the same as another method's or lower.

    `column`: which tokens. Of all tokens the paper speaks; of public ones alone CRT can learn.
    Nothing is compared where CRT's Bayesian epsilon is not the smaller one.
    """
    rows = f"{prefix}crt", f"{prefix}{other}"
    refuse_unlearned(study, rows)
    own_epsilon, other_epsilon = study.numbers(rows, "epsilon_bayesian")
    own, others = study.numbers(rows, column)
    evidence = (
        f"test perplexity {show(own)} against {show(others)} at a Bayesian ε of "
        f"{rounded_up(own_epsilon, 3)} and {rounded_up(other_epsilon, 3)}"
    )
    if own_epsilon >= other_epsilon:
        return Verdict(APART, evidence)
    return below([above_ratio(ratios(study, rows, column), SAME)], evidence, far=FAR)


def near_nonprivate(study: Study, prefix: str) -> Verdict:
    """Perplexity at the paper's miss rate against training without protection; a tenth is near."""
    return _near(study, (f"{prefix}crt", f"{prefix}nonprivate"))


def redacted_near_nonprivate(study: Study, prefix: str) -> Verdict:
    """The same of redaction alone whose policy was made to miss nothing."""
    names = f"{prefix}redacted", f"{prefix}nonprivate"
    if min(study.gammas(names[0])) > 0:
        return Verdict(APART, "the policy was made to miss some")
    return _near(study, names, gamma=0.0)


def _near(study: Study, names: tuple[str, str], gamma: float | None = None) -> Verdict:
    """Perplexity of the first row, a tenth more than the second's at most."""
    refuse_unlearned(study, names[1:])
    first, second = study.numbers(names, "ppl", gamma)
    public = study.numbers(names, "ppl_public", gamma)
    evidence = (
        f"test perplexity {show(first)} against {show(second)} without protection, of public "
        f"tokens {show(public[0])} against {show(public[1])}; a tenth more counts as near"
    )
    return below([above_ratio(ratios(study, names, gamma=gamma), ALMOST)], evidence, far=FAR)


def transformers(
    lstms: Study, gpt2s: Study, lstm: str, gpt2: str, others: str = "crt,dpsgd"
) -> Verdict:
    """CRT and DP-SGD with a GPT-2 against other methods with an LSTM, on the same text and tokens.

    `lstm` and `gpt2`: what names of rows begin with in each of the two studies. `others`: names of
    the other methods, with commas between them.
    """
    with_lstm = [f"{lstm}{method}" for method in others.split(",")]
    with_gpt2 = [f"{gpt2}{method}" for method in ("crt", "dpsgd")]
    every = [(gpt2s, row) for row in with_gpt2] + [(lstms, row) for row in with_lstm]
    values = ", ".join(f"{row} {show(study.number(row, 'ppl'))}" for study, row in every)
    evidence = f"test perplexity {values}"
    if len({result.corpus for study, row in every for result in study.runs(row)}) > 1:
        return Verdict(APART, f"{evidence}: on other texts or tokens")
    samples = [
        log_ratios(gpt2s.each(row, "ppl"), lstms.each(other, "ppl"))
        for row in with_gpt2
        for other in with_lstm
    ]
    return below(samples, evidence, far=FAR)


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
        f"{rounded_up(honest, 3)} for replacing a record, with γ bounded from "
        f"{spec.labelled} labelled secrets"
    )
    return Verdict(FAILS if abs(scaled - PRINTED["epsilon"]) > 0.01 else PUBLISHED, evidence)
