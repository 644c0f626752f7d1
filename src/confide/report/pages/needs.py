"""Which method for which need: of the models that were trained, the best of those that meet it.

A need is a condition on what is certified, and what it asks for decides: first how well the claim
is kept, by its ε and by what attacks found, then what the model is worth. That is its perplexity on
public tokens or on masked text: perplexity on secrets, or on all tokens, punishes a model for what
it was kept from learning. All methods stand at one miss rate, for nobody can choose what a policy
misses. Nothing that was not measured is ever chosen.
"""

import math
from collections import Counter
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import NamedTuple

from confide.methods import METHODS
from confide.output.rounding import rounded_up
from confide.report.figures.style import look
from confide.report.results import largest_exposure
from confide.report.tables.table import (
    Row,
    groups,
    is_promised,
    of_seeds,
    show,
    worse_than_unigram,
)

HELP = "More text, a start from a model of public text, or a larger ε would help."
Key = tuple[float, ...]


@dataclass(frozen=True, kw_only=True)
class Need:
    """What somebody needs, which models meet it, and what decides among these.

    The smaller `first` is, the better; then their utility decides.
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


def leak(row: Row) -> Key:
    """How far the largest exposure is above what chance gives.

    Not attacked comes between no leak and a leak. Of estimates the upper end counts.
    """
    largest = largest_exposure(row, "exposure_")
    chance = row.get("exposure_null_max_high")
    if largest is None or chance is None:
        return (1.0, 0.0)
    return (2.0, largest - chance) if largest > chance else (0.0, 0.0)


def claimed(name: str) -> Callable[[Row], Key]:
    """A certified epsilon, then what leaked.

    It has two digits: calibration that ends a little lower does not decide.
    """
    return lambda row: (float(f"{row[name]:.2g}"), *leak(row))


NEEDS = (
    Need(
        words="secrets that the policy catches must not be in the model at all; it is trusted to "
        "catch them",
        met=lambda row: row["epsilon_secret_caught"] == 0,
        first=leak,
        utility="ppl_public",
    ),
    Need(
        words="secrets that the policy misses must be covered, too, where a conservative one "
        "catches them",
        met=finite("epsilon_secret_caught", "epsilon_secret_missed"),
        first=claimed("epsilon_secret_missed"),
        utility="ppl_public",
    ),
    Need(
        words="any record must be covered, whatever is secret in it",
        met=finite("epsilon_any_record"),
        first=claimed("epsilon_any_record"),
        utility="ppl_public",
    ),
    Need(
        words="nothing must be certified: the best model of redacted text",
        met=lambda row: row["method"] in METHODS and METHODS[row["method"]].masked,
        first=lambda row: (),
        utility="ppl_masked",
    ),
    Need(
        words="nothing must be certified, and no leak matters",
        met=lambda row: True,
        first=lambda row: (),
        utility="ppl_public",
    ),
)
SHOWN = {
    "epsilon_secret_caught": "ε of a caught secret",
    "epsilon_secret_missed": "of a missed one",
    "ppl_public": "test perplexity of public tokens",
    "ppl_masked": "of masked text",
    "exposure_max": "largest exposure",
    "mia_auc": "membership AUC",
}


def choose(table: Iterable[Row]) -> Advice:
    """A line per need, over the seeds of each model; rows of one corpus, so that perplexities
    compare.
    """
    means = [_mean(rows) for rows in groups(list(table)).values()]
    at_rate, compared = at_one_rate(means)
    choices = []
    for need in NEEDS:
        candidates = [row for row in at_rate if row[need.utility] is not None and need.met(row)]
        if candidates:
            best = min(candidates, key=lambda row: (*need.first(row), row[need.utility]))
            choices.append(Choice(need.words, best["name"], why(best)))
        else:
            choices.append(Choice(need.words, "", "no model here meets it"))
    return Advice(compared, choices)


def why(row: Row) -> str:
    """The numbers of a model, and what speaks against it."""
    reasons = [
        f"{label} {shown(row, name)}" for name, label in SHOWN.items() if row[name] is not None
    ]
    rank, _ = leak(row)
    if row.get("exposure_max") is None:
        reasons.append("what it remembers was not measured")
    elif rank == 2:
        chance = show(row["exposure_null_max_high"])
        reasons.append(f"⚠ it may remember: chance gives {chance} bits or less, 39 times of 40")
    if worse_than_unigram(row):
        reasons.append(f"⚠ worse than a unigram model, {show(row['ppl_unigram_redacted'])}. {HELP}")
    return ", ".join(reasons)


def shown(row: Row, name: str) -> str:
    """A number of a row; what is promised is rounded up."""
    return rounded_up(row[name], 3) if is_promised(name) else show(row[name])


def at_one_rate(means: list[Row]) -> tuple[list[Row], str]:
    """The rows at the one miss rate that is compared, and a sentence that says which.

    That is the policy as it is, or with the fewest misses added that most methods were trained at;
    methods that ignore the policy are the same at any.
    """
    screened = [row for row in means if look(row["method"]).policy]
    if not screened:
        return means, ""
    shared = Counter(row["gamma"] for row in screened)
    gamma = min(shared, key=lambda rate: (-shared[rate], rate))
    at_gamma = [row for row in screened if row["gamma"] == gamma]
    at_rate = [row for row in means if row["gamma"] == gamma or row not in screened]
    rates, bounds = (
        [row[name] for row in at_gamma if row[name] is not None]
        for name in ("gamma_measured", "gamma_upper")
    )
    has_rates = rates and bounds
    rate_words = (
        f"{show(max(rates))}, at most {rounded_up(max(bounds), 3)}" if has_rates else "unknown"
    )
    sentence = f"All stand at one miss rate, as measured: {rate_words}"
    sentence += f" (misses were simulated for a share of {gamma:g})." if gamma else "."
    left_out = sorted({row["name"] for row in means} - {row["name"] for row in at_rate})
    if left_out:
        sentence += f" Trained at no such rate, so not compared: {', '.join(left_out)}."
    return at_rate, sentence


def _mean(rows: list[Row]) -> Row:
    """One row for the seeds of an experiment: means, or the largest of what is promised.

    What is no number is the first's. What a seed lacks, all lack.
    """
    mean: Row = {}
    for name, value in rows[0].items():
        values = [row[name] for row in rows]
        if None in values:
            mean[name] = None
        elif isinstance(value, (int, float)) and not isinstance(value, bool):
            mean[name] = of_seeds(name, values)
        else:
            mean[name] = value
    return mean
