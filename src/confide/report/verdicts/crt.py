"""Claims of Confidentially Redacted Training (Zhao, Li and Wang 2022).

Each is put to the test on every corpus and model that was tried.
"""

from confide.report.figures.amplification import PUBLISHED as PRINTED
from confide.report.figures.amplification import rows as amplification
from confide.report.tables.table import show
from confide.report.verdicts.evidence import (
    FAILS,
    HOLDS,
    OPEN,
    PUBLISHED,
    Study,
    Verdict,
    between,
    decide,
    guessing,
)


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
    inside = all(max(each[end]) <= high[end] for end in each)
    return Verdict(FAILS if not inside else HOLDS if open_ > high["max"] else OPEN, words)


def missed(study: Study, prefix: str) -> Verdict:
    """Whatever the policy misses can be extracted from training without noise.

    What chance explains shows nothing.
    """
    row = f"{prefix}redacted"
    gamma = max(study.gammas(row))
    found = study.number(row, "exposure_max", gamma)
    chance = study.number(row, "exposure_null_max_high", gamma)
    return decide(
        found > chance,
        f"γ = {gamma:g}: largest exposure {show(found)} bits, by chance up to {show(chance)}",
        OPEN,
    )


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


def utility(study: Study, prefix: str) -> Verdict:
    """Perplexity and Bayesian epsilon at the paper's miss rate, against DP-SGD's."""
    rows = f"{prefix}crt", f"{prefix}dpsgd"
    spent = study.numbers(rows, "epsilon_bayesian")
    kinds = {"all": "ppl", "public": "ppl_public", "masked": "ppl_masked"}
    ppl = {name: study.numbers(rows, column) for name, column in kinds.items()}
    better = {name: found[0] < found[1] for name, found in ppl.items()}
    words = "; ".join(
        f"{name} tokens {show(found[0])} against {show(found[1])}" for name, found in ppl.items()
    )
    words = f"Bayesian ε {show(spent[0])} against {show(spent[1])}; test perplexity, {words}"
    if spent[0] < spent[1] and better["all"] and better["public"]:
        return decide(True, words)
    fair = spent[0] < spent[1] and better["masked"]
    return Verdict(
        PUBLISHED if fair else FAILS,
        words + (": better where no secret is asked for" if fair else ""),
    )


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
