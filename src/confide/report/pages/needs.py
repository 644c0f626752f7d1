"""Which method for which need: of the models that were trained, those that may be chosen, and the
best of them.

A need is a condition on what is certified, and what it asks for decides: first how well the claim
is kept, by its ε and by what attacks found, then what the model is worth. That is its perplexity on
public tokens or on masked text: perplexity on secrets, or on all tokens, punishes a model for what
it was kept from learning. All methods stand at one miss rate, for nobody can choose what a policy
misses. Nothing that was not measured is ever chosen.
"""

import math
from collections import Counter
from collections.abc import Callable, Iterable
from typing import NamedTuple

from confide.report.figures.style import look
from confide.report.tables.table import Row, groups, show, worse_than_unigram

HELP = "More text, a start from a model of public text, or a larger ε would help."
Key = tuple[float, ...]


class Need(NamedTuple):
    """What somebody needs, which models meet it, what decides among these (the smaller, the
    better), and their utility.
    """

    words: str
    met: Callable[[Row], bool]
    first: Callable[[Row], Key]
    utility: str


class Choice(NamedTuple):
    """The best model that meets a need; `row` is empty where none does."""

    need: str
    row: str
    why: str


class Advice(NamedTuple):
    """A line per need, and at which miss rate the models were compared."""

    compared: str
    choices: list[Choice]


def finite(*names: str) -> Callable[[Row], bool]:
    """Whether every one of these epsilons is claimed, and finite."""
    return lambda row: all(row[name] is not None and math.isfinite(row[name]) for name in names)


def zero(name: str) -> Callable[[Row], bool]:
    return lambda row: row[name] == 0


def leak(row: Row) -> Key:
    """How far the largest exposure is above what chance gives; not attacked comes between no leak
    and a leak.
    """
    found = row.get("exposure_max")
    chance = row.get("exposure_null_max_high")
    if found is None or chance is None:
        return (1.0, 0.0)
    return (2.0, found - chance) if found > chance else (0.0, 0.0)


def claimed(name: str) -> Callable[[Row], Key]:
    """A certified epsilon, to two digits: calibration that ends a little lower does not decide;
    then what leaked.
    """
    return lambda row: (float(f"{row[name]:.2g}"), *leak(row))


NEEDS = (
    Need("secrets that the policy catches must not be in the model at all; it is trusted to catch them",
         zero("epsilon_secret_caught"), leak, "ppl_public"),
    Need("secrets that the policy misses must be covered, too",
         finite("epsilon_secret_caught", "epsilon_secret_missed"), claimed("epsilon_secret_missed"), "ppl_public"),
    Need("any record must be covered, whatever is secret in it",
         finite("epsilon_replace_one"), claimed("epsilon_replace_one"), "ppl_public"),
    Need("nothing must be certified: the best model of redacted text",
         lambda row: row["method"] == "redacted", lambda row: (), "ppl_masked"),
    Need("nothing must be certified, and no leak matters", lambda row: True, lambda row: (), "ppl_public"),
)  # fmt: skip
SHOWN = {"epsilon_secret_caught": "ε of a caught secret", "epsilon_secret_missed": "of a missed one",
         "ppl_public": "test perplexity of public tokens", "ppl_masked": "of masked text",
         "exposure_max": "largest exposure", "mia_auc": "membership AUC"}  # fmt: skip


def choose(table: Iterable[Row]) -> Advice:
    """A line per need, over the seeds' means; rows of one corpus, whose perplexities may be
    compared.
    """
    means = [_mean(rows) for rows in groups(list(table)).values()]
    kept, words = at_one_rate(means)
    found = []
    for need in NEEDS:
        known = [row for row in kept if row[need.utility] is not None and need.met(row)]
        best = min(known, key=lambda row: (*need.first(row), row[need.utility]), default=None)
        row, words_of = (
            ("", "no model here meets it") if best is None else (best["name"], why(best))
        )
        found.append(Choice(need.words, row, words_of))
    return Advice(words, found)


def why(row: Row) -> str:
    """The numbers of a model, and what speaks against it."""
    known = [f"{words} {show(row[name])}" for name, words in SHOWN.items() if row[name] is not None]
    found = row.get("exposure_max")
    chance = row.get("exposure_null_max_high")
    if found is None:
        known.append("what it remembers was not measured")
    elif chance is not None and found > chance:
        known.append(f"⚠ it remembers: chance gives at most {show(chance)} bits")
    if worse_than_unigram(row):
        known.append(f"⚠ worse than a unigram model, {show(row['ppl_unigram_redacted'])}. {HELP}")
    return ", ".join(known)


def at_one_rate(means: list[Row]) -> tuple[list[Row], str]:
    """The rows at the one miss rate that is compared, and a sentence that says which.

    That is the policy as it is, or with the fewest misses added that most methods were trained at;
    methods that ignore the policy are the same at any.
    """
    screened = [row for row in means if look(row["method"]).policy]
    if not screened:
        return means, ""
    shared = Counter(row["gamma"] for row in screened)
    gamma = min(shared, key=lambda one: (-shared[one], one))
    kept = [row for row in means if row["gamma"] == gamma or not look(row["method"]).policy]
    left = sorted({row["name"] for row in means} - {row["name"] for row in kept})
    rates = [
        row["gamma_measured"]
        for row in kept
        if row["gamma"] == gamma and look(row["method"]).policy
    ]
    known = [rate for rate in rates if rate is not None]
    bounds = [
        row["gamma_upper"]
        for row in kept
        if row["gamma_upper"] is not None and look(row["method"]).policy
    ]
    measured = f"{show(max(known))}, at most {show(max(bounds))}" if known and bounds else "unknown"
    words = f"All stand at one miss rate, as measured: {measured}"
    words += f" (misses were simulated for a share of {gamma:g})." if gamma else "."
    return kept, words + (
        f" Trained at no such rate, so not compared: {', '.join(left)}." if left else ""
    )


def _mean(rows: list[Row]) -> Row:
    """One row for the seeds of an experiment: numbers are means, the rest is the first's; what a
    seed lacks, all lack.
    """
    found = {}
    for name, value in rows[0].items():
        values = [row[name] for row in rows]
        numeric = (
            isinstance(value, (int, float)) and not isinstance(value, bool) and None not in values
        )
        found[name] = (
            sum(values) / len(values) if numeric else value if None not in values else None
        )
    return found
