"""A leaderboard's runs, made up: what each certifies, what it is worth, and what an audit says."""

import json
import math

import numpy as np

from confide.attacks.audits.game import against_coins
from confide.specs import GameSpec, LeaderboardSpec, PanelSpec, RankedRun

TURN = "one secret within one turn of a dialogue"
RECORDS = "one turn of a dialogue in a pool that is only trained on with noise"
TOKENS = "one secret's tokens, their number public"
WEIGHTS = "a" * 64
# by method: claims about a caught and a missed secret and a record (True: what was asked for), and
# whether a second policy is trusted
CLAIMS = {
    "untouched": (0.0, 0.0, 0.0, False),
    "redacted": (0.0, math.inf, math.inf, False),
    "dpsgd": (True, True, True, False),
    "crt": (0.0, True, True, True),
    "jft": (True, math.inf, math.inf, False),
    "schedule": (True, math.inf, math.inf, False),
    "selective": (True, math.inf, math.inf, False),
}


def stored(value):
    return "inf" if math.isinf(value) else value


def certificate(run, method, epsilon, dedup=False, **changed):
    caught, missed, record, second = CLAIMS[method]
    prices = [epsilon if price is True else price for price in (caught, missed, record)]
    unit = TOKENS if method == "selective" else TURN
    names = ("secret_caught", "secret_missed", "record_replace_one_pld")
    usual = {"relation": "replace_one", "delta": 8e-5, "accountant": "pld"}
    claims = [
        {"name": name, "epsilon": stored(price), "unit": about} | usual
        for name, price, about in zip(names, prices, (unit, unit, RECORDS), strict=True)
    ]
    claims.append(claims[-1] | {"name": "record_add_or_remove_pld", "relation": "add_or_remove"})
    if second:
        by_both = {"name": "secret_missed_by_both", "epsilon": "inf", "unit": unit}
        claims.append(usual | by_both)
    if dedup:
        claims.append(claims[0] | {"name": "secret_caught_literal", "epsilon": "inf"})
    claims = [claim | changed.get(claim["name"], {}) for claim in claims]
    planted = {"secrets": 9, "sampled": 9, "different": 0, "exposed": 0}
    rates = {"gamma": 0.0, "gamma_upper": 0.03, "delta2": 0.01, "delta2_upper": 0.05}
    head = usual | {"unit": unit, "record_epsilon": 3.0, "bayesian_epsilon": 3.0}
    return {
        "run": run,
        "claims": claims,
        "headline": head | {"condition": "none beyond those of the claims"},
        "epochs": [{"epoch": 1, "record_epsilon": 3.0, "bayesian_epsilon": 3.0}],
        "policy": rates | {"planted": planted},
        "files": {"model": [{"path": "model.safetensors", "sha256": WEIGHTS}]},
    }


def evaluation(run, bits):
    named = {"accuracy_public": 0.8, "accuracy_private": 0.1, "ppl_private": 9.0}
    named |= {"ppl_public": 2**bits, "bits_per_character": bits}
    return {"run": run, "ppl": 4.0, "accuracy": 0.7} | named


def game(run, telling=False):
    """Scores of coins that say nothing of them, or all."""
    rng = np.random.default_rng(5)
    row = {"attack": "game", "run": run, "weights": WEIGHTS}
    for name, relation in (("game", "replace_one"), ("inclusion", "add_or_remove")):
        coins = np.arange(300) % 2 == 0
        scores = rng.normal(size=300) + 50.0 * telling * coins
        found = against_coins(GameSpec(kind="game"), scores, coins)
        found |= {"coins": 300, "relation": relation, "reason": None}
        row |= {f"{name}_{key}": value for key, value in found.items()}
    return row


def ranked(name, method, seed, *, covered=False, dedup=False, dataset="plain", attacks=("game",)):
    return RankedRun(
        run=f"{name}/g0.1-s{seed}",
        name=name,
        method=method,
        dataset=dataset,
        model="lstm",
        gamma=0.1,
        seed=seed,
        dedup=dedup,
        attacks=list(attacks),
        recipe="usual",
        covered=covered,
    )


def write(root, run, epsilon, bits, telling=False, **changed):
    """All files of one run."""
    folder = root / "results" / "runs" / run.run
    folder.mkdir(parents=True, exist_ok=True)
    files = {
        "certificate": certificate(run.run, run.method, epsilon, run.dedup, **changed),
        "evaluate": evaluation(run.run, bits),
        "game": game(run.run, telling),
    }
    for name, value in files.items():
        (folder / f"{name}.json").write_text(json.dumps(value))
    metrics = root / "models" / run.run / "metrics.jsonl"
    metrics.parent.mkdir(parents=True, exist_ok=True)
    metrics.write_text('{"epoch": 1, "passes": 8.0}\n')


def panels_of(panels):
    """Specifications of panels: of the runs of each."""
    return [
        PanelSpec(study=f"study{number}", runs=runs) for number, runs in enumerate(panels.values())
    ]


def board(titles, **more):
    """A specification of a leaderboard of panels with these titles."""
    panels = {f"study{number}": title for number, title in enumerate(titles)}
    return LeaderboardSpec(leaderboard="leaderboard", panels=panels, **more)
