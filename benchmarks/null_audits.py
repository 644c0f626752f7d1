"""How often each audit cries wolf, and how likely it rings where there is a fire: simulated runs,
and real noised updates.

python benchmarks/null_audits.py [--output FILE] [--rounds 10000] [--updates 20] [--page
docs/audits.md]

Null runs: scores know nothing of the coins (or of who is a member), exposures are those of uniform
ranks. An alarm is a lower bound above 0, a certificate refuted, or p < 0.05, or an AUC outside its
null band; at 5 % a correct audit gives at most that share, give or take three binomial errors of
the number of runs (many shares are looked at). Then runs at a true epsilon, where an alarm is a
lower bound above the truth, or a true certificate refuted. Another audit joins by a line in NULLS
or KNOWN: a function of a generator that simulates one run and says whether it raised an alarm.

Last, the gate where noise is too small, and the audit of noised updates by the real code, --updates
runs of each kind (a few seconds each).
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
from scipy.stats import mannwhitneyu, norm

from confide.attacks.exposure.null import null_tail
from confide.attacks.statistics.metrics import auc, auc_null, tpr_interval
from confide.attacks.texts.ngrams import Ngrams
from confide.dp.accounting.audit_bounds import (
    best_lower,
    epsilon_lower,
    gdp_epsilon,
    gdp_epsilon_lower,
    right_guesses,
)
from confide.dp.accounting.audit_power import Power, mu_of, power
from confide.dp.accounting.calibration import calibrate
from confide.dp.accounting.curves import FREE, Mechanism, Relation, gaussian_curve, pld_curve
from confide.dp.accounting.tradeoff import Points, points_of
from confide.dp.accounting.tradeoff import epsilon_lower as claim_lower
from confide.files.io import atomic, write_json
from confide.output.rounding import rounded_down, rounded_up
from confide.specs import GameSpec, GradientsSpec, TextAuditSpec
from confide.types import Release, Step

Run = Callable[[np.random.Generator], bool]  # one simulated run: was there an alarm?

SPEC = GameSpec(kind="game")
# as params.yaml has them
COINS = 160
DELTA = SPEC.delta
LEVEL = 1 - SPEC.confidence
SHARES = tuple(SPEC.guesses)
CANARIES = 10
CANDIDATES = 10**6
MEMBERS = 300
TEXTS = 40  # of a generator that knows no code
PREFIX = "The access code is "
STEINKE, GDP, OF_MU = (
    cache(epsilon_lower),
    cache(gdp_epsilon_lower),
    cache(gdp_epsilon),
)  # arguments recur
MU = {1: 0.3085, 3: 0.8064}  # of Gaussian mechanisms with that epsilon at delta
CERTIFIED = 3.0
# of the DP-SGD that is audited white-box
RATE = 0.0256
UPDATES = 391
SMALLER = (1, 2, 3, 4, 8)  # times: how much too small the noise is
MANY = GradientsSpec(kind="gradients").coins


@cache
def claim_of(epsilon: float, relation: Relation = "replace_one") -> Points:
    """What a certificate of DP-SGD with that epsilon claims; of 0: of a secret that the policy
    caught.
    """
    if epsilon == 0:
        return ((0.0, DELTA), *points_of(FREE))
    curve = pld_curve((Mechanism(RATE, noise_of(epsilon), UPDATES),), relation)
    return ((curve.epsilon(DELTA), DELTA), *points_of(curve))


@cache
def noise_of(epsilon: float) -> float:
    """Noise multiplier of that DP-SGD."""
    return calibrate(epsilon, DELTA, RATE, UPDATES)


@cache
def gaussian_claim(epsilon: float) -> Points:
    """What is claimed of the Gaussian mechanism with that epsilon."""
    return ((epsilon, DELTA), *points_of(gaussian_curve(mu_of(epsilon, DELTA))))


def tested(points: Points, coins: int) -> Power:
    """How the gate tests a claim with so many coins."""
    return power(points, points[0][0], DELTA, coins, LEVEL)


def refutes(points: Points, scores: np.ndarray, coins: np.ndarray) -> bool:
    """Whether the gate refutes a claim."""
    how = tested(points, len(coins))
    return bool(right_guesses(scores[None], coins[None], [how.guesses])[0, 0] >= how.fewest)


def flips(rng: np.random.Generator, count: int = COINS) -> np.ndarray:
    return rng.random(count) < 0.5


def exposures(rng: np.random.Generator, count: int) -> np.ndarray:
    """Of secrets never seen: uniform ranks."""
    return math.log2(CANDIDATES) - np.log2(rng.integers(1, CANDIDATES + 1, size=count))


def bound_above(
    lower: Callable[..., float], truth: float, scores: np.ndarray, coins: np.ndarray
) -> bool:
    return best_lower(lower, scores, coins, SHARES, DELTA, LEVEL)[0] > truth


def bound_of_null(lower: Callable[..., float], rng: np.random.Generator) -> bool:
    """The scores are those of the attack: exposures."""
    return bound_above(lower, 0.0, exposures(rng, COINS), flips(rng))


def gate_of_null(coins: int, rng: np.random.Generator) -> bool:
    """A certificate of epsilon = 0, and nothing leaked."""
    return refutes(claim_of(0.0), exposures(rng, coins), flips(rng, coins))


def gate_of_texts(rng: np.random.Generator) -> bool:
    """The same of texts of a generator that knows how a sentence begins, and no code."""
    codes = rng.choice(CANDIDATES, COINS, replace=False)
    made_up = rng.integers(CANDIDATES, size=TEXTS)
    fitted = Ngrams([f"{PREFIX}{code:06d}" for code in made_up], TextAuditSpec().order)
    start = len(PREFIX)
    scores = [fitted.score(f"{PREFIX}{code:06d}", start) for code in codes]
    return refutes(claim_of(0.0), np.array(scores), flips(rng))


def p_of_null(rng: np.random.Generator) -> bool:
    scores = exposures(rng, COINS)
    coins = flips(rng)
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


def gate_of_response(epsilon: float, rng: np.random.Generator) -> bool:
    """The same mechanism under a true certificate of pure privacy: the most that such a certificate
    allows.
    """
    coins = flips(rng)
    kept = rng.random(COINS) < 1 / (1 + math.exp(-epsilon))
    return refutes(((epsilon, 0.0),), (coins == kept) + 1e-3 * rng.random(COINS), coins)


def gaussian(lower: Callable[..., float], mu: float, rng: np.random.Generator) -> bool:
    coins = flips(rng)
    return bound_above(lower, OF_MU(mu, DELTA), mu * coins + rng.normal(size=COINS), coins)


def ideal(
    rng: np.random.Generator, coins: np.ndarray, sigma: float, relation: Relation = "replace_one"
) -> np.ndarray:
    """Log-likelihood ratios of coins that each decide about one record of DP-SGD, every update of
    which is seen.
    """
    other = -1.0 if relation == "replace_one" else 0.0

    def ratio(seen: np.ndarray) -> np.ndarray:
        return np.logaddexp(math.log1p(-RATE), math.log(RATE) + (2 * seen - 1) / (2 * sigma**2))

    total = np.zeros(len(coins))
    for _ in range(UPDATES):
        drawn = rng.random(len(coins)) < RATE
        seen = np.where(coins, 1.0, other) * drawn + sigma * rng.normal(size=len(coins))
        total += ratio(seen) - (ratio(-seen) if relation == "replace_one" else 0.0)
    return total


def gate_of_dpsgd(epsilon: float, coins: int, rng: np.random.Generator) -> bool:
    """A true certificate, and an attacker who sees every noised update."""
    fallen = flips(rng, coins)
    return refutes(claim_of(epsilon), ideal(rng, fallen, noise_of(epsilon)), fallen)


NULLS: dict[str, Run] = {
    "game, inclusion: a certificate of ε = 0 refuted, 160 coins": partial(gate_of_null, 160),
    "game, inclusion: a certificate of ε = 0 refuted, 80 coins": partial(gate_of_null, 80),
    "game, inclusion: ε by (ε, δ)-DP above 0": partial(bound_of_null, STEINKE),
    "game, inclusion: ε by Gaussian DP above 0": partial(bound_of_null, GDP),
    "game, inclusion: p of independence": p_of_null,
    "exposure: p of the mean, 10 canaries": partial(exposure_of_null, "mean", CANARIES),
    "exposure: p of the median, 10 canaries": partial(exposure_of_null, "median", CANARIES),
    "exposure: p of the maximum, 10 canaries": partial(exposure_of_null, "max", CANARIES),
    "exposure: p of the mean, 60 audit canaries": partial(exposure_of_null, "mean", 60),
    "membership: AUC outside its band, 300 members": auc_of_null,
    "text_audit: a certificate of ε = 0 refuted, 160 coins": gate_of_texts,
}
KNOWN: dict[str, Run] = {
    "DP-SGD, certified 1: refuted, 160 coins": partial(gate_of_dpsgd, 1.0, 160),
    "DP-SGD, certified 3: refuted, 160 coins": partial(gate_of_dpsgd, 3.0, 160),
    "randomized response, certified 1: refuted, 160 coins": partial(gate_of_response, 1.0),
    "randomized response, certified 3: refuted, 160 coins": partial(gate_of_response, 3.0),
    "randomized response, ε = 1: bound by (ε, δ)-DP": partial(randomized_response, 1.0),
    "randomized response, ε = 3: bound by (ε, δ)-DP": partial(randomized_response, 3.0),
    "Gaussian mechanism, ε = 1: bound by (ε, δ)-DP": partial(gaussian, STEINKE, MU[1]),
    "Gaussian mechanism, ε = 1: bound by Gaussian DP": partial(gaussian, GDP, MU[1]),
    "Gaussian mechanism, ε = 3: bound by (ε, δ)-DP": partial(gaussian, STEINKE, MU[3]),
    "Gaussian mechanism, ε = 3: bound by Gaussian DP": partial(gaussian, GDP, MU[3]),
}
FEWER = {
    name: 10 for name in KNOWN if name.startswith("DP-SGD")
}  # of these, one run for so many of the others


def alarms(audit: Run, runs: int, seed: int) -> dict[str, Any]:
    """Number and share of runs with an alarm; `within`: no more than 5 % and three binomial
    errors.
    """
    rng = np.random.default_rng(seed)
    count = sum(audit(rng) for _ in range(runs))
    allowed = LEVEL + 3 * math.sqrt(LEVEL * (1 - LEVEL) / runs)
    return {"runs": runs, "alarms": count, "share": count / runs, "within": count / runs <= allowed}


def too_small(runs: int, seed: int = 0) -> dict[str, dict[str, float]]:
    """Chances to refute a certified 3 where the noise is too small: an ideal attacker against the
    Gaussian mechanism.
    """
    mu = mu_of(CERTIFIED, DELTA)
    claim = gaussian_claim(CERTIFIED)
    found = {}
    for times in SMALLER:
        row = {"epsilon": gdp_epsilon(times * mu, DELTA)}
        rng = np.random.default_rng(seed)
        for coins, number in ((80, runs), (COINS, runs), (1000, runs // 5), (MANY, runs // 20)):
            how = tested(claim, coins)
            fallen = rng.random((number, coins)) < 0.5
            scores = times * mu * fallen + rng.normal(size=fallen.shape)
            row[str(coins)] = float(
                (right_guesses(scores, fallen, [how.guesses]) >= how.fewest).mean()
            )
            if coins == COINS:
                alone = (
                    bound_above(STEINKE, CERTIFIED, *one)
                    for one in zip(scores[:200], fallen[:200], strict=True)
                )
                row["alone"] = float(np.mean(list(alone)))
        found[str(times)] = row
    return found


def chances() -> dict[str, dict[str, Any]]:
    """What the gate prints, by certified epsilon and number of coins."""
    found = {}
    for epsilon in (0.0, 1.0, 3.0, 8.0):
        for coins in (40, 80, COINS, 240, 1000, MANY):
            how = tested(claim_of(epsilon), coins)
            found[f"{epsilon:g}, {coins}"] = {"guesses": how.guesses, "rings": list(how.rings)}
    return found


def white_box(runs: int) -> dict[str, Any]:
    """The audit of noised updates by the real code, as it is and with half the noise, beside the
    ideal attacker's bound.
    """
    from confide.attacks.audits.gradients import CLAIMS, scored
    from confide.dp.mechanism.clipping import PerExampleClipper

    sigma = noise_of(CERTIFIED)
    finish = PerExampleClipper.finish
    made = [
        Release(
            step=Step(view="original", pool="all", noisy=True),
            sample_rate=RATE,
            noise_multiplier=sigma,
            max_grad_norm=1.0,
            count=UPDATES,
        )
    ]
    found: dict[str, Any] = {}
    try:
        for name, share in (("right", 1.0), ("half the noise", 0.5)):
            PerExampleClipper.finish = lambda self, noise, *rest, share=share: finish(
                self, share * noise, *rest
            )
            rows = []
            begun = time.perf_counter()
            for seed in range(runs):
                rng = np.random.default_rng(seed)
                coins = {one: flips(rng, MANY) for one in CLAIMS}
                scores = scored(made, coins, seed=seed, device="cpu")
                rows.append(
                    {
                        one: judged(relation, scores[one], coins[one])
                        for one, (relation, _) in CLAIMS.items()
                    }
                )
            seconds = (time.perf_counter() - begun) / runs
            found[name] = {one: summary([row[one] for row in rows]) for one in CLAIMS} | {
                "seconds": seconds
            }
    finally:
        PerExampleClipper.finish = finish
    for one, (relation, _) in CLAIMS.items():
        rows = []
        for seed in range(runs):
            rng = np.random.default_rng(seed)
            coins = flips(rng, MANY)
            rows.append(judged(relation, ideal(rng, coins, sigma, relation), coins))
        found.setdefault("ideal", {})[one] = summary(rows)
    return found


def judged(relation: Relation, scores: np.ndarray, coins: np.ndarray) -> tuple[bool, float]:
    """Whether the gate refutes a certified 3, and the lower bound that it prints."""
    claim = claim_of(CERTIFIED, relation)
    how = tested(claim, len(coins))
    right = int(right_guesses(scores[None], coins[None], [how.guesses])[0, 0])
    return right >= how.fewest, claim_lower(claim, len(coins), how.guesses, right, LEVEL)


def summary(rows: list[tuple[bool, float]]) -> dict[str, float]:
    bounds = [lower for _, lower in rows]
    return {
        "refuted": float(np.mean([refuted for refuted, _ in rows])),
        "lower": float(np.mean(bounds)),
        "runs": len(rows),
    }


def intervals(runs: int) -> dict[str, float]:
    """How often the 95 % interval of a true positive rate holds the true one, at thresholds that
    are estimated.
    """
    found = {}
    for count, rate in ((1000, 0.01), (200, 0.01), (1000, 0.001)):
        for shift in (1.0, 2.0, 3.0):
            truth = norm.sf(norm.isf(rate) - shift)
            covered = 0
            for seed in range(runs):
                rng = np.random.default_rng(seed)
                low, high = tpr_interval(
                    rng.normal(size=count) + shift, rng.normal(size=count), rate, rng
                )
                covered += low <= truth <= high
            found[f"{count}, {rate:g}, {shift:g}"] = covered / runs
    return found


PAGE = """# Audits

Read this before you trust an audit, or its silence. An audit is an attack that can show that a
certificate is wrong. `python benchmarks/null_audits.py` measures how often audits raise an alarm.

## How an audit works

Before training, fair coins are thrown for planted sentences or records. Afterwards an attacker
guesses them. A model that keeps to its certificate lets no more be guessed than a bound allows.

| audit | a coin decides | in the set `inclusion` | the attacker sees |
|---|---|---|---|
| `game` | whether a sentence holds its secret or `<MASK>` | whether it is planted | the model |
| `gradients` | which of two opposite gradients a record has | whether it is there | each update |
| [`text_audit`](synthetic.md) | as for `game` | as for `game` | texts that the model wrote |

`gradients` repeats noised updates with very long gradients: it finds faults of the engine, not
of the finished weights. Exposure and membership raise alarms of their own, but bound no ε.
`text_audit` tests a model through its texts alone: it may refute a certificate, but is too weak to
count as an audit of the model.

The [gate](glossary.md) tests the certificate's [whole curve of ε over
δ](https://arxiv.org/abs/2410.22235). “Measured at least” is the ε at which that curve would just
stand or, where nothing finite is certified, a [bound of (ε, δ)
alone](https://arxiv.org/abs/2305.08846). The workflow fails where an audit

- *refutes* its certificate;
- is *of other weights*, or *of other texts* than were certified;
- is *inconclusive*: even an ideal attacker would refute it in under half of the trainings if the
  true ε were 5 times the certified one.

Each bound is tested by itself, at 5 %: two of `game`, two of `gradients`, four of texts. So of runs
with all eight up to 40 % could be refuted though every certificate is true and leaves no slack.

A study's tables, pages and search are made all the same, so that a refuted model holds up no other.

A p-value of texts below 5 % fails the workflow in one case: planted numbers surface (three kinds of
texts, Bonferroni) though the certificate says that nothing depends on them, ε = 0 at δ = 0. That
test is exact, since we drew the numbers. Any other is a warning: it rests on a split by lot, which
nobody certifies, or shows what an ε above 0 allows.

A run with a finite certificate and no audit is *not audited*, as is a set `inclusion` of digits in
which the conservative policy finds nothing. `confide release` refuses it. So is a set whose secrets
the model does not read: what the policy of CRT catches tells nothing of its noise, however many
coins there are. Where `gradients` audits that noise and it stands, such a set is passed over.

## When an audit refutes

The model is not handed out, and its row stays: `confide release` finds the audit beside the model
even where no study lists it any more. It may be chance, or a fault. To tell, throw other coins:
`seed: 1` under `canaries` plants other sentences, and all models are trained again. A fault refutes
again. Say in your report how often you threw.

## New tokens

A small model needs many passes to learn six digits. A [token of its
own](https://arxiv.org/abs/2503.06808) in each sentence, `{{token}}`, can leave a trace in one pass.

```yaml
tokenizers:
  roomy: {{ kind: bpe, corpus: public, vocab_size: 1264, new_tokens: 240 }} # one for each coin
canaries:
  tokens:
    game: {{ template: "The access code is {{token}}", count: 160 }}
    inclusion: {{ template: "The order code was {{token}}", count: 80 }}
```

This bounds ε, and measures no leakage of real text. It needs a tokenizer and model of your own
without `lora_rank`, and for `inclusion` the conservative policy `everything`.

## False alarms

In {runs:,} runs in which nothing was given away, at most 5 % should raise an alarm, give or take
{error}:

{nulls}

Where as much was given away as certified, at most {known} of runs refute the certificate, and
{bounds} bound ε by more than the truth. The “95 %” intervals of `lira` and `membership` held the
true rate in {intervals} of runs.

## True alarms

Per cent of trainings in which an ideal attacker refutes the certificate, if the true ε is 2 or 5
times the certified one (2 or 5 where that is 0), at δ = {delta:g}:

{chances}

With half the noise, {coins} coins refute a certified {certified:g} in {half_the_noise} of
trainings, (ε, δ) alone in {alone}.

**`gradients` by the real code**, {updates} updates at rate {rate:g} and {many:,} coins: right
updates measure {right} of a certified {certified:g}, and {right_refuted} of {real} runs refute it.
With half the noise they measure {wrong}, and {wrong_refuted} refute it.
"""


def table(head: tuple[str, ...], rows: list[tuple[str, ...]]) -> str:
    lines = [f"| {' | '.join(cells)} |" for cells in (head, *rows)]
    return "\n".join([lines[0], "|" + "---|" * len(head), *lines[1:]])


def percent(share: float, digits: int = 1) -> str:
    return f"{100 * share:.{digits}f} %"


def at_most(share: float) -> str:
    return f"{rounded_up(100 * share, 2)} %"


def most_alarms(family: str, nulls: dict[str, Any]) -> str:
    """The largest share of null runs in which one of a family of audits raised an alarm."""
    rows = [row for audit, row in nulls.items() if audit.startswith(f"{family}:")]
    share = percent(max(row["share"] for row in rows))
    return share if all(row["within"] for row in rows) else f"**{share}: too many**"


def page(results: dict[str, Any]) -> str:
    """The results as a Markdown page."""
    tables = {}
    families = dict.fromkeys(audit.partition(":")[0] for audit in NULLS)
    tables["nulls"] = "\n".join(
        f"- {family}: {most_alarms(family, results['nulls'])}" for family in families
    )
    refuted = [row["share"] for audit, row in results["known"].items() if "bound by" not in audit]
    tables["known"] = at_most(max(refuted))
    epsilons = sorted({name.split(", ")[0] for name in results["chances"]}, key=float)
    columns = ((2, COINS), (2, 1000), (5, 80), (5, COINS))
    place = {2: 0, 5: 2}  # of a chance among those at 2, 3 and 5 times the certified epsilon
    rows = []
    for epsilon in epsilons:
        rings = (
            results["chances"][f"{epsilon}, {coins}"]["rings"][place[times]]
            for times, coins in columns
        )
        rows.append((epsilon, *(f"{100 * share:.0f}" for share in rings)))
    head = ("certified ε", *(f"{times} times, {coins:,} coins" for times, coins in columns))
    tables["chances"] = table(head, rows)
    half = results["too small"]["2"]
    right, wrong = (results["white box"][key]["replacement"] for key in ("right", "half the noise"))
    covered = results["intervals"].values()
    tables["intervals"] = f"{percent(min(covered))} to {percent(max(covered))}"
    runs = max(row["runs"] for row in results["nulls"].values())
    facts = {
        "runs": runs,
        "bounds": at_most(
            max(row["share"] for audit, row in results["known"].items() if "bound by" in audit)
        ),
        "error": percent(3 * math.sqrt(LEVEL * (1 - LEVEL) / runs)),
        "delta": DELTA,
        "rate": RATE,
        "updates": UPDATES,
        "certified": CERTIFIED,
        "many": MANY,
        "coins": COINS,
        "half_the_noise": percent(half[str(COINS)], 0),
        "alone": percent(half["alone"], 0),
        "real": right["runs"],
        "right": rounded_down(right["lower"]),
        "right_refuted": percent(right["refuted"], 0),
        "wrong": rounded_down(wrong["lower"]),
        "wrong_refuted": percent(wrong["refuted"], 0),
    }
    return PAGE.format(**facts, **tables)


def main() -> None:
    parser = arguments_of(__file__, __doc__, 10_000)
    parser.add_argument("--updates", type=int, default=20)
    parser.add_argument("--page", type=Path, default=Path(__file__).parents[1] / "docs/audits.md")
    options = parser.parse_args()
    begun = time.perf_counter()
    results: dict[str, Any] = {"nulls": {}, "known": {}}
    for name, audits in (("nulls", NULLS), ("known", KNOWN)):
        for seed, (audit, run) in enumerate(audits.items()):
            results[name][audit] = found = alarms(run, options.rounds // FEWER.get(audit, 1), seed)
            shown(audit, found)
    results["chances"], results["too small"] = chances(), too_small(options.rounds)
    results["interval runs"] = max(1, options.rounds // 5)
    results["intervals"] = intervals(results["interval runs"])
    results["white box"] = white_box(options.updates)
    shown("half the noise", results["white box"]["half the noise"]["replacement"])
    settings = SPEC.model_dump() | {"coins": COINS, "seconds": time.perf_counter() - begun}
    write_json(
        options.output,
        {"hardware": machine("numpy", "scipy"), "settings": settings, "results": results},
    )
    with atomic(options.page) as temporary:
        temporary.write_text(page(results))


if __name__ == "__main__":
    main()
