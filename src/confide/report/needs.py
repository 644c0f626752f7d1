"""Which method for which need: of the models that were trained, those that may be chosen, and the best of them.

A need is a condition on what is certified and a number to be small; nothing that was not measured is ever chosen.
"""

import math
from collections.abc import Callable, Iterable
from typing import NamedTuple

from confide.report.tables import Row, groups, show


class Need(NamedTuple):
    """What somebody needs, which models meet it, and the column that then decides (the smaller, the better)."""

    words: str
    met: Callable[[Row], bool]
    column: str


class Choice(NamedTuple):
    """The best model that meets a need; `row` is empty where none does."""

    need: str
    row: str
    why: str


def finite(*names: str) -> Callable[[Row], bool]:
    """Whether every one of these epsilons is claimed, and finite."""
    return lambda row: all(row[name] is not None and math.isfinite(row[name]) for name in names)


def zero(name: str) -> Callable[[Row], bool]:
    return lambda row: row[name] == 0


NEEDS = (
    Need("secrets that the policy catches must not be in the model at all; it is trusted to catch them",
         zero("epsilon_secret_caught"), "ppl_public"),
    Need("secrets that the policy misses must be covered, too",
         finite("epsilon_secret_caught", "epsilon_secret_missed"), "ppl_public"),
    Need("the model must know how secrets look, and each must be covered",
         finite("epsilon_secret_caught", "epsilon_secret_missed"), "ppl_private"),
    Need("any record must be covered, whatever is secret in it", finite("epsilon_replace_one"), "ppl"),
    Need("nothing must be certified: the best model of redacted text", lambda row: row["method"] == "redacted", "ppl_masked"),
    Need("nothing must be certified, and no leak matters", lambda row: True, "ppl"),
)  # fmt: skip
SHOWN = {"epsilon_secret_caught": "ε of a caught secret", "epsilon_secret_missed": "of a missed one", "ppl": "test perplexity",
         "ppl_public": "public tokens", "ppl_private": "private tokens", "exposure_max": "largest exposure",
         "mia_auc": "membership AUC"}  # fmt: skip


def choose(table: Iterable[Row]) -> list[Choice]:
    """A line per need, over the seeds' means; rows of one corpus, whose perplexities may be compared."""
    means = [_mean(rows) for rows in groups(list(table)).values()]
    found = []
    for need in NEEDS:
        known = [row for row in means if row[need.column] is not None and need.met(row)]
        best = min(known, key=lambda row: row[need.column], default=None)
        if best is None:
            found.append(Choice(need.words, "", "no model here meets it"))
            continue
        why = ", ".join(f"{words} {show(best[name])}" for name, words in SHOWN.items() if best[name] is not None)
        found.append(Choice(need.words, f"{best['name']}, γ = {best['gamma']:g}", why))
    return found


def _mean(rows: list[Row]) -> Row:
    """One row for the seeds of an experiment: numbers are means, the rest is the first's; what a seed lacks, all lack."""
    found = {}
    for name, value in rows[0].items():
        values = [row[name] for row in rows]
        numeric = isinstance(value, (int, float)) and not isinstance(value, bool) and None not in values
        found[name] = sum(values) / len(values) if numeric else value if None not in values else None
    return found
