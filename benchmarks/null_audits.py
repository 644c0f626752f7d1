"""How often each audit cries wolf: simulated runs in which nothing leaked, and mechanisms whose epsilon is known.

    python benchmarks/null_audits.py --output benchmarks/null_audits.json [--rounds 10000] [--page docs/audits.md]

Null runs: scores know nothing of the coins (or of who is a member), exposures are those of uniform ranks. An alarm is a lower
bound above 0, or p < 0.05, or an AUC outside its null band; at 5 % a correct audit gives at most that share, give or take
three binomial errors of the number of runs (many shares are looked at). Then runs at a true epsilon, where an alarm is a
lower bound above the truth. Another audit joins by a line in NULLS or KNOWN: a function of a generator that simulates one run
and says whether it raised an alarm.
"""

import math
import time
from collections.abc import Callable
from functools import cache, partial
from pathlib import Path
from typing import Any

import numpy as np
from machine import machine
from runner import arguments_of, shown
from scipy.stats import mannwhitneyu

from confide.attacks.exposure import null_tail
from confide.attacks.metrics import auc, auc_null
from confide.dp.audit_bounds import best_lower, epsilon_lower, gdp_epsilon, gdp_epsilon_lower, power
from confide.io import atomic, write_json
from confide.specs import GameSpec

Run = Callable[[np.random.Generator], bool]  # one simulated run: was there an alarm?

SPEC = GameSpec(kind="game")
COINS, DELTA, LEVEL = 120, SPEC.delta, 1 - SPEC.confidence  # as params.yaml has them
SHARES = tuple(SPEC.guesses)
CANARIES, CANDIDATES = 10, 10**6
MEMBERS = 300
STEINKE, GDP, OF_MU = cache(epsilon_lower), cache(gdp_epsilon_lower), cache(gdp_epsilon)  # arguments recur
MU = {1: 0.3085, 3: 0.8064}  # of Gaussian mechanisms with that epsilon at delta


def flips(rng: np.random.Generator, count: int = COINS) -> np.ndarray:
    return rng.random(count) < 0.5


def exposures(rng: np.random.Generator, count: int) -> np.ndarray:
    """Of secrets never seen: uniform ranks."""
    return math.log2(CANDIDATES) - np.log2(rng.integers(1, CANDIDATES + 1, size=count))


def bound_above(lower: Callable[..., float], truth: float, scores: np.ndarray, coins: np.ndarray) -> bool:
    return best_lower(lower, scores, coins, SHARES, DELTA, LEVEL)[0] > truth


def bound_of_null(lower: Callable[..., float], rng: np.random.Generator) -> bool:
    """The scores are those of the attack: exposures."""
    return bound_above(lower, 0.0, exposures(rng, COINS), flips(rng))


def p_of_null(rng: np.random.Generator) -> bool:
    scores, coins = exposures(rng, COINS), flips(rng)
    return bool(mannwhitneyu(scores[coins], scores[~coins], alternative="greater").pvalue < LEVEL)


def exposure_of_null(statistic: str, count: int, rng: np.random.Generator) -> bool:
    function = {"mean": np.mean, "median": np.median, "max": np.max}[statistic]
    return null_tail(statistic, count, float(function(exposures(rng, count)))) < LEVEL


def auc_of_null(rng: np.random.Generator) -> bool:
    scores = rng.normal(size=2 * MEMBERS)
    low, high = auc_null(MEMBERS, MEMBERS)
    return not low <= auc(scores[:MEMBERS], scores[MEMBERS:]) <= high


def randomized_response(epsilon: float, rng: np.random.Generator) -> bool:
    coins = flips(rng)
    kept = rng.random(COINS) < 1 / (1 + math.exp(-epsilon))
    return bound_above(STEINKE, epsilon, (coins == kept) + 1e-3 * rng.random(COINS), coins)


def gaussian(lower: Callable[..., float], mu: float, rng: np.random.Generator) -> bool:
    coins = flips(rng)
    return bound_above(lower, OF_MU(mu, DELTA), mu * coins + rng.normal(size=COINS), coins)


NULLS: dict[str, Run] = {
    "game, inclusion: ε by (ε, δ)-DP above 0": partial(bound_of_null, STEINKE),
    "game, inclusion: ε by Gaussian DP above 0": partial(bound_of_null, GDP),
    "game, inclusion: p of independence": p_of_null,
    "exposure: p of the mean, 10 canaries": partial(exposure_of_null, "mean", CANARIES),
    "exposure: p of the median, 10 canaries": partial(exposure_of_null, "median", CANARIES),
    "exposure: p of the maximum, 10 canaries": partial(exposure_of_null, "max", CANARIES),
    "exposure: p of the mean, 60 audit canaries": partial(exposure_of_null, "mean", COINS // 2),
    "membership: AUC outside its band, 300 members": auc_of_null,
}
KNOWN: dict[str, Run] = {
    "randomized response, ε = 1: bound by (ε, δ)-DP": partial(randomized_response, 1.0),
    "randomized response, ε = 3: bound by (ε, δ)-DP": partial(randomized_response, 3.0),
    "Gaussian mechanism, ε = 1: bound by (ε, δ)-DP": partial(gaussian, STEINKE, MU[1]),
    "Gaussian mechanism, ε = 1: bound by Gaussian DP": partial(gaussian, GDP, MU[1]),
    "Gaussian mechanism, ε = 3: bound by (ε, δ)-DP": partial(gaussian, STEINKE, MU[3]),
    "Gaussian mechanism, ε = 3: bound by Gaussian DP": partial(gaussian, GDP, MU[3]),
}


def alarms(audit: Run, runs: int, seed: int) -> dict[str, Any]:
    """Number and share of runs with an alarm; `within`: no more than 5 % and three binomial errors."""
    rng = np.random.default_rng(seed)
    count = sum(audit(rng) for _ in range(runs))
    allowed = LEVEL + 3 * math.sqrt(LEVEL * (1 - LEVEL) / runs)
    return {"runs": runs, "alarms": count, "share": count / runs, "within": count / runs <= allowed}


def reach() -> dict[str, dict[str, float]]:
    """The largest epsilon that each bound can show with so many coins, all guessed right."""
    found = {}
    for coins in (40, COINS, 240, 1000):
        by = {"(ε, δ)-DP": STEINKE, "Gaussian DP": GDP}
        found[str(coins)] = {name: power(lower, coins, SHARES, DELTA, LEVEL) for name, lower in by.items()}
    return found


PAGE = """# Audits: do they cry wolf, and how far do they see?

Simulated runs, written by `python benchmarks/null_audits.py` from {runs:,} runs each. An audit is an alarm bell: it may ring
without a fire in at most 5 % of runs, give or take {error} at this number of runs (three binomial errors).

- **`game`, `inclusion`**: {coins} fair coins, flipped before training, decide whether a sentence holds its secret or `<MASK>`
  (replace-one, one secret), or whether it is planted at all (add-or-remove, one record). Guessing them from the trained model
  gives lower bounds on ε that hold with 95 %: by [(ε, δ)-DP](https://arxiv.org/abs/2305.08846), or, for Gaussian noise only, by
  [Gaussian DP](https://arxiv.org/abs/2410.22235). The guesses are a function of the scores; {shares} of the coins are
  guessed in turn, and each of these attempts has a third of the 5 %.
- **exposure**: exact, among all 10⁶ values that a secret could have had; of a secret never seen it is exponential.
- **membership**: AUC against the band that scores without any knowledge have.

## Nothing leaked

{nulls}

## A known ε leaked: bounds above it

{known}

A bound by Gaussian DP says nothing of a mechanism that is (ε, δ)-DP and no more, such as randomized response.

## What could have been found

The bound if every guess were right, at δ = {delta:g} and 95 %: a model that passes has been shown to be no better than this.

{reach}
"""


def table(head: tuple[str, ...], rows: list[tuple[str, ...]]) -> str:
    return "\n".join(f"| {' | '.join(cells)} |" for cells in (head, ("---",) * len(head), *rows))


def percent(share: float, digits: int = 1) -> str:
    return f"{100 * share:.{digits}f} %"


def page(results: dict[str, Any]) -> str:
    """The results as a Markdown page."""
    tables = {}
    for name, audits in (("nulls", NULLS), ("known", KNOWN)):
        rows = [
            (audit, f"{row['alarms']} of {row['runs']:,}", percent(row["share"]), "yes" if row["within"] else "**no**")
            for audit in audits
            if (row := results[name][audit])
        ]
        tables[name] = table(("audit", "alarms", "share", "at most 5 %, give or take the error"), rows)
    reached = sorted(results["reach"].items(), key=lambda item: int(item[0]))
    rows = [(coins, *(f"{value:.2f}" for value in row.values())) for coins, row in reached]
    runs = max(row["runs"] for row in results["nulls"].values())
    words = ", ".join(percent(share, 0) for share in SHARES)
    facts = {
        "runs": runs,
        "error": percent(3 * math.sqrt(LEVEL * (1 - LEVEL) / runs)),
        "coins": COINS,
        "delta": DELTA,
        "shares": words,
    }
    return PAGE.format(**facts, **tables, reach=table(("coins", "ε by (ε, δ)-DP", "ε by Gaussian DP"), rows))


def main() -> None:
    parser = arguments_of(__file__, __doc__, 10_000)
    parser.add_argument("--page", type=Path, default=Path(__file__).parents[1] / "docs/audits.md")
    options = parser.parse_args()
    begun = time.perf_counter()
    results: dict[str, Any] = {"nulls": {}, "known": {}, "reach": reach()}
    for name, audits in (("nulls", NULLS), ("known", KNOWN)):
        for seed, (audit, run) in enumerate(audits.items()):
            results[name][audit] = found = alarms(run, options.rounds, seed)
            shown(audit, found)
    settings = SPEC.model_dump() | {"coins": COINS, "seconds": time.perf_counter() - begun}
    write_json(options.output, {"hardware": machine("numpy", "scipy"), "settings": settings, "results": results})
    with atomic(options.page) as temporary:
        temporary.write_text(page(results))


if __name__ == "__main__":
    main()
