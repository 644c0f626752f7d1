"""Files of studies with realistic numbers: all CRT methods (two datasets would only repeat the
first), and domains.
"""

import json
import math
from pathlib import Path

import numpy as np
from prompted import DOMAINS, PPL, domain_lira, leak
from scipy.stats import rankdata

from confide.attacks.audits.game import against_coins
from confide.attacks.exposure.budget import Ranking
from confide.attacks.exposure.exposure import judged
from confide.attacks.membership.lira import roc
from confide.attacks.statistics.metrics import accuracy_null, auc, auc_null
from confide.specs import GameSpec, ReportSpec

EPOCHS = 10
CRT = ("nonprivate", "redacted", "dpsgd", "crt", "selective")
DPT = ("nonprivate", "redacted", "dpsgd", "jft", "schedule", "domain_only")
FINAL = {
    "nonprivate": 3.1,
    "redacted": 3.9,
    "dpsgd": 11.0,
    "crt": 5.2,
    "selective": 9.0,
}  # perplexity
FINAL |= {"jft": 4.4, "schedule": 4.8, "domain_only": 7.0}
RECORD = {"nonprivate": math.inf, "redacted": math.inf, "dpsgd": 3.0, "crt": 3.0, "selective": 3.0}
RECORD |= {"jft": 3.0, "schedule": 3.0, "domain_only": math.inf}


def bayesian(method: str, gamma: float, record: float) -> float:
    """As certificates price it: redaction amplifies crt and redacted, selective is as if priced
    without misses.
    """
    if method in ("nonprivate", "dpsgd", "jft", "schedule", "domain_only"):
        return record
    if gamma == 0:
        return record * 0.8 if method == "selective" else 0.0
    return math.log1p(gamma * math.expm1(record)) if method == "crt" else math.inf


def stored(value: float) -> float | str:
    return "inf" if math.isinf(value) else value


def certificate(run: str, method: str, gamma: float) -> dict:
    unit = "one turn of a dialogue"
    epochs = []
    for epoch in range(1, EPOCHS + 1):
        record = RECORD[method] * (epoch / EPOCHS) ** 0.5
        epochs.append(
            {
                "epoch": epoch,
                "record_epsilon": stored(record),
                "bayesian_epsilon": stored(bayesian(method, gamma, record)),
            }
        )
    prices = {
        "record_epsilon": epochs[-1]["record_epsilon"],
        "bayesian_epsilon": epochs[-1]["bayesian_epsilon"],
    }
    condition = (
        "conditional on pi_c catching every miss of pi"
        if method == "crt"
        else "none beyond those of the claims"
    )
    headline = {
        "relation": "replace_one",
        "accountant": "pld",
        "unit": unit,
        "delta": 8e-5,
        "condition": condition,
    }
    headline |= prices | {
        "bayesian_epsilon_upper": "inf" if method == "selective" else prices["record_epsilon"],
        "gamma": gamma,
        "gamma_upper": min(1, round(gamma + 0.05, 2)),
    }
    claims = [{"name": "record_replace_one_pld", "epsilon": prices["record_epsilon"]}]
    claims += [{"name": "record_add_or_remove_pld", "epsilon": stored(RECORD[method] / 2)}]
    claims += [{"name": "group_after_dedup", "epsilon": stored(4 * RECORD[method])}]
    claims += [{"name": "record_replace_one_rdp", "epsilon": stored(1.2 * RECORD[method])}]
    caught = 0.0 if method in ("redacted", "crt") else RECORD[method]
    secret = (
        "one secret's tokens, their number public"
        if method == "selective"
        else f"one secret within {unit}"
    )
    means = {"relation": "replace_one", "unit": secret, "delta": 8e-5, "accountant": "pld"}
    claims += [
        {"name": "secret_caught", "epsilon": stored(caught)} | means,
        {"name": "secret_missed", "epsilon": stored(RECORD[method])} | means,
    ]
    policy = {"gamma": gamma, "census": True, "delta2": 0.0}
    noise, norm = ([0.7], [0.005]) if math.isfinite(RECORD[method]) else ([], [])
    found = {
        "run": run,
        "unit": unit,
        "headline": headline,
        "claims": claims,
        "epochs": epochs,
        "policy": policy,
    }
    return found | {"public_constants": {"noise_multipliers": noise, "max_grad_norms": norm}}


def game(run: str, method: str, gamma: float, rng: np.random.Generator) -> dict:
    """Scores that know as much of the coins as the method lets through."""
    known = {
        "nonprivate": 8.0,
        "redacted": 8.0 * gamma,
        "selective": 6.0 * gamma,
        "dpsgd": 0.8,
        "crt": 0.1,
    }[method]
    spec = GameSpec(kind="game")
    row = {"attack": "game", "run": run, "delta": 8e-5, "confidence": 0.95}
    for name in ("game", "inclusion"):
        coins = rng.random(120) < 0.5
        found = against_coins(spec, rng.normal(size=120) + known * coins, coins) | {"coins": 120}
        row |= {f"{name}_{key}": value for key, value in found.items()}
    return row


def exposure(run: str, method: str, gamma: float, rng: np.random.Generator) -> dict:
    size = 10_000
    count = 10
    leaky = {"nonprivate": 1.0, "redacted": gamma, "selective": gamma, "dpsgd": 0.0, "crt": 0.0}[
        method
    ]
    scores = rng.normal(size=size)
    secrets = rng.choice(size, count, replace=False)
    missed = secrets[: round(leaky * count)]
    scores[missed] = 50 + rng.normal(size=len(missed))
    found = judged(Ranking.of(rankdata(-scores)[secrets]), len(secrets), len(scores))
    return {
        "attack": "exposure",
        "run": run,
        "candidates": size,
        "copies": 20,
        "seconds": 1.0,
    } | found


def membership(run: str, method: str, gamma: float, rng: np.random.Generator) -> dict:
    edge = {
        "nonprivate": 0.35,
        "redacted": 0.35 * gamma,
        "selective": 0.33 * gamma,
        "dpsgd": 0.005,
        "crt": 0.0,
    }[method]
    row = {
        "attack": "membership",
        "run": run,
        "members": 1000,
        "non_members": 1000,
        "group": 20,
        "groups": 50,
    }
    row |= {"label": "address", "tpr_at_fpr_0.01": 0.01 + edge / 2}
    for prefix, size, gain in (("", 1000, edge), ("group_", 50, min(0.49, 2.5 * edge))):
        for name, null, own in (
            ("auc", auc_null, gain),
            ("acc_balanced", accuracy_null, 0.75 * gain),
        ):
            low, high = null(size, size)
            half = (high - low) / 2
            value = 0.5 + own + rng.normal() * (high - low) / 5
            row |= {
                f"{prefix}{name}": value,
                f"{prefix}{name}_low": value - half,
                f"{prefix}{name}_high": value + half,
            }
            row |= {f"{prefix}{name}_null_low": low, f"{prefix}{name}_null_high": high}
            row[f"{prefix}blind_ngram_{name}"] = 0.515
    return row


def worth(run: str, method: str) -> dict:
    """What texts of a model are worth, which the better models write better."""
    texts = {"synthetic": 1.5 + FINAL[method] / 10, "real": 1.6, "redacted": 1.8, "templates": 3.0}
    found = {f"{name}_bits_per_character": value for name, value in texts.items()}
    return {"attack": "worth", "run": run, "synthetic_likeness": 0.8} | found


def along(attack: dict, epoch: int) -> dict:
    """The file of an attack as it would be after an epoch: what is above chance grows with the
    square of the epoch.
    """
    share = (epoch / EPOCHS) ** 2
    if attack["attack"] == "exposure":
        found = [min(value, 1.5) + share * max(value - 1.5, 0) for value in attack["exposures"]]
        return attack | {"exposures": found, "mean": float(np.mean(found)), "max": max(found)}
    return attack | {name: 0.5 + share * (attack[name] - 0.5) for name in ("auc", "acc_balanced")}


def likelihood_ratio(run: str, method: str, gamma: float, rng: np.random.Generator) -> dict:
    edge = {
        "nonprivate": 2.0,
        "redacted": 2 * gamma,
        "selective": 2 * gamma,
        "dpsgd": 0.1,
        "crt": 0.0,
    }[method]
    row = {
        "attack": "lira",
        "run": run,
        "members": 200,
        "non_members": 200,
        "label": "address",
        "shadow_models": 32,
    }
    for prefix, share in (("", 1.0), ("plain_", 0.7)):
        inside = rng.normal(size=200) + share * edge
        outside = rng.normal(size=200)
        row |= {f"{prefix}roc": roc(inside, outside), f"{prefix}auc": auc(inside, outside)}
    return row


def evaluation(run: str, method: str, gamma: float, rng: np.random.Generator) -> dict:
    ppl = FINAL[method] * (1 + 0.02 * rng.normal())
    private = dict.fromkeys(FINAL, 5000.0)
    private |= {
        "nonprivate": 150,
        "redacted": 9000 / (1 + 20 * gamma),
        "dpsgd": 30_000,
        "crt": 4000,
        "selective": 20_000,
    }
    row = {
        "run": run,
        "split": "test",
        "ppl": ppl,
        "ppl_public": ppl**0.6,
        "ppl_private": private[method],
    }
    marked = {"nonprivate": 120, "redacted": 3e7, "dpsgd": 30_000, "crt": 9e6}.get(method, 20_000)
    row |= {
        "marked_share": 0.1,
        "ppl_marked": marked * (1 + 0.2 * rng.random()),
        "ppl_uniform": 50_258.0,
        "bits_per_character": 2.1,
    }
    row |= {"ppl_marked_backoff": 60_000 * (1 + 0.2 * rng.random()), "ppl_unigram_private": 3000.0}
    row |= {
        "ppl_masked": ppl**0.8,
        "accuracy": 0.75 - ppl / 100,
        "accuracy_public": 0.8,
        "accuracy_private": 0.1,
    }
    return row | {"tokens": 9000, "tokens_private": 900}


def each_domain(ppl: float) -> dict:
    return {
        name: {"ppl": ppl * PPL[name], "ppl_public": ppl * 0.7, "ppl_private": None}
        for name in DOMAINS
    }


def metrics(method: str, rng: np.random.Generator) -> list[dict]:
    rows = []
    for epoch in range(1, EPOCHS + 1):
        ppl = FINAL[method] * (1 + 3.5 * math.exp(-epoch / 2.2)) * (1 + 0.02 * rng.normal())
        row = {
            "epoch": epoch,
            "step": epoch * 40,
            "loss": math.log(ppl),
            "valid_ppl": ppl,
            "seconds": 12.5,
            "cpu_seconds": 12.5,
        }
        row["peak_mb"] = 300.0 + epoch
        rows.append(row | {"valid_ppl_public": ppl**0.6, "valid_ppl_private": ppl**3})
    return rows


def answers(method: str, rng: np.random.Generator) -> dict[str, dict]:
    """Attacks on domains, each with the prompts of one."""
    found = {
        f"leak_{name}": {"attack": "leak"} | leak(method, (name,), rng) for name in DOMAINS[:2]
    }
    return found | {
        "ratio_AIRLINE": {"attack": "domain_lira"} | domain_lira(method, "AIRLINE", rng)
    }


def write_study(
    root: Path,
    seeds: int = 2,
    figures: tuple[str, ...] = (),
    methods: tuple[str, ...] = CRT,
    gammas: tuple[float, ...] = (0, 0.1, 0.3, 0.5),
) -> ReportSpec:
    """Write every file of a study below root; returns its specification."""
    runs = []
    for method in methods:
        for gamma in gammas if method not in ("nonprivate", "dpsgd", "domain_only") else (0.0,):
            for seed in range(seeds):
                run = f"{method}/g{gamma:g}-s{seed}"
                rng = np.random.default_rng([len(run), seed, int(gamma * 100), ord(method[0])])
                files = {
                    "certificate": certificate(run, method, gamma),
                    "evaluate": evaluation(run, method, gamma, rng),
                }
                shown = {}
                attacks = {}
                if methods == CRT:
                    shown = {
                        "canaries": exposure(run, method, gamma, rng),
                        "mia": membership(run, method, gamma, rng),
                    }
                    attacks = {
                        "coins": game(run, method, gamma, rng),
                        "ratio": likelihood_ratio(run, method, gamma, rng),
                        "worth": worth(run, method),
                    }
                    course = [
                        {"epoch": n} | {key: along(shown[key], n) for key in shown}
                        for n in range(1, EPOCHS + 1)
                    ]
                    files |= {"trajectory": {"run": run, "epochs": course}}
                else:
                    attacks = answers(method, rng)
                    files["evaluate"]["domains"] = each_domain(files["evaluate"]["ppl"])
                attacks = shown | attacks
                for name, value in (files | attacks).items():
                    path = root / "results" / "runs" / run / f"{name}.json"
                    path.parent.mkdir(parents=True, exist_ok=True)
                    path.write_text(json.dumps(value))
                path = root / "models" / run / "metrics.jsonl"
                path.parent.mkdir(parents=True, exist_ok=True)
                path.write_text("".join(json.dumps(row) + "\n" for row in metrics(method, rng)))
                runs.append(
                    {
                        "run": run,
                        "name": method,
                        "method": method,
                        "dataset": "customersim",
                        "model": "lstm",
                        "gamma": gamma,
                        "seed": seed,
                        "attacks": list(attacks),
                        "trajectory": list(shown),
                    }
                )
    return ReportSpec(study="crt", title="CRT on CustomerSim", figures=list(figures), runs=runs)
