"""A study of authors with realistic numbers: canaries of words, tab attacks, probes, perplexity by
author.
"""

import json
import math
from pathlib import Path

import numpy as np
from scipy.stats import beta

from confide.specs import ReportSpec
from studies import certificate, evaluation

EPOCHS = 8
AUTHORS = 24
BITS = 45.0
COPIES = (1, 2, 5, 10, 20, 50)
LEVELS = (40.0, 12.0)
# row -> method, label, how much it remembers, final perplexity, how much more it costs authors with
# little text (%)
ROWS = {
    "plain": ("nonprivate", None, 1.0, 9.0, 0.0),
    "dp": ("dpsgd", None, 0.0, 26.0, 60.0),
    "dp_author": ("dpsgd", "author", 0.0, 38.0, 60.0),
    "clip": ("dpsgd", "clip + noise", 0.8, 12.0, 30.0),
    "adversarial": ("adversarial", None, 0.7, 11.0, 8.0),
    "triplet": ("triplet", None, 0.75, 11.5, 0.0),
}
SECONDS = {
    "plain": (10.0, 9.0),
    "dp": (52.0, 51.0),
    "dp_author": (30.0, 29.0),
    "clip": (50.0, 49.0),
    "adversarial": (11.0, 10.0),
    "triplet": (17.0, 16.0),
}
TRAIN = (200 * 0.85 ** np.arange(AUTHORS)).astype(int) + 5  # training points, author by author


def ppl(row: str, epoch: int) -> float:
    final = ROWS[row][3]
    return final * (1 + 5 * math.exp(-epoch / 1.5))


def exposures(row: str, epoch: int, rng: np.random.Generator) -> dict:
    """Of each author one canary per number of copies; what is remembered grows with what was
    read.
    """
    copies = [count for count in COPIES for _ in range(AUTHORS)]
    chance = rng.exponential(1 / math.log(2), len(copies))
    learned = ROWS[row][2] * 7 * np.log2(np.maximum(1, epoch * np.array(copies) / 4))
    found = np.minimum(BITS, np.maximum(chance, learned + rng.normal(size=len(copies))))
    bounds = {
        "low": (found - 0.1).tolist(),
        "high": (found + 0.1).tolist(),
        "exact": False,
        "mean": float(found.mean()),
    }
    own = {
        "mean_most": 37.0,
        "count": len(copies),
        "copies": copies,
        "authors": list(range(AUTHORS)) * len(COPIES),
    }
    controls = {"count": 50, "exposures": [1.4] * 50, "mean": 1.4, "exact": False}
    canaries = own | bounds | {"exposures": found.tolist(), "fitted": (found + 1).tolist()}
    return {
        "attack": "sequence_exposure",
        "space_bits": BITS,
        "canaries": canaries,
        "controls": controls,
    }


def rates(hits: int, count: int, more: int = 1) -> dict:
    """A tab attack's numbers of one group, with Clopper-Pearson intervals."""
    found: dict = {"count": count}
    for name, k in (("greedy", hits), ("beam", min(count, hits + more))):
        low = float(beta.ppf(0.025, k, count - k + 1)) if k else 0.0
        high = float(beta.ppf(0.975, k + 1, count - k)) if k < count else 1.0
        found |= {f"rate_{name}": k / count, f"rate_{name}_low": low, f"rate_{name}_high": high}
    return found


def tab(row: str, epoch: int) -> dict:
    count = AUTHORS * len(COPIES)
    known = ROWS[row][2] * epoch / EPOCHS
    groups = {
        "canaries": rates(round(0.6 * known * count), count, 6),
        "real": rates(round(0.3 * known * 100), 100),
    }
    groups["real"]["rate_first_k"] = 0.1 + groups["real"]["rate_greedy"]
    return {"attack": "tab"} | groups | {"controls": rates(0, 50, 0)}


def probe(row: str) -> dict:
    value = 0.1 + 0.3 * ROWS[row][2]
    found = {"accuracy": value, "accuracy_low": value - 0.03, "accuracy_high": value + 0.03}
    known = {
        "authors": AUTHORS,
        "points": 900,
        "chance": 1 / AUTHORS,
        "majority": 0.12,
        "blind": 0.35,
    }
    return {"attack": "author_inference"} | known | found


def by_author(row: str, rng: np.random.Generator) -> list[dict]:
    """Authors with little text lose more where a row says so."""
    hurt = ROWS[row][4] * np.linspace(0, 1, AUTHORS) / 100
    level = (ROWS[row][3] / ROWS["plain"][3]) * (1 + 0.5 * np.sin(np.arange(AUTHORS)) ** 2) * 9
    found = level * (1 + hurt) * (1 + 0.01 * rng.normal(size=AUTHORS))
    return [
        {
            "author": a,
            "train_points": int(TRAIN[a]),
            "points": 20,
            "tokens": 300,
            "ppl": float(value),
        }
        for a, value in enumerate(found)
    ]


def write_authors(
    root: Path, seeds: int = 1, figures: tuple[str, ...] = (), rows: tuple[str, ...] = tuple(ROWS)
) -> ReportSpec:
    """Write every file of the study below root; returns its specification."""
    runs = []
    for place, row in enumerate(rows):
        method, label, *_ = ROWS[row]
        for seed in range(seeds):
            run = f"{row}/g0-s{seed}"
            rng = np.random.default_rng([place, seed])
            priced = method if method == "dpsgd" else "nonprivate"
            files = {
                "certificate": certificate(run, priced, 0.0),
                "evaluate": evaluation(run, priced, 0.0, rng),
            }
            files["certificate"]["epochs"] = files["certificate"]["epochs"][:EPOCHS]
            files["evaluate"] |= {
                "ppl": ROWS[row][3],
                "ppl_train": ROWS[row][3] * 0.8,
                "authors": by_author(row, rng),
            }
            along = [
                {"words": exposures(row, n, rng), "tab": tab(row, n)} for n in range(1, EPOCHS + 1)
            ]
            attacks = along[-1] | {"probe": probe(row)}
            files["trajectory"] = {
                "run": run,
                "epochs": [{"epoch": n} | one for n, one in enumerate(along, 1)],
            }
            folder = root / "results/runs" / run
            model = root / "models" / run
            for one in (folder, model):
                one.mkdir(parents=True)
            for name, value in (files | attacks).items():
                (folder / f"{name}.json").write_text(json.dumps(value))
            wall, cpu = (spent * (1 + 0.1 * rng.random(EPOCHS)) for spent in SECONDS[row])
            epochs = [
                {
                    "epoch": n,
                    "loss": 1.0,
                    "valid_ppl": ppl(row, n),
                    "seconds": wall[n - 1],
                    "cpu_seconds": cpu[n - 1],
                }
                for n in range(1, EPOCHS + 1)
            ]
            (model / "metrics.jsonl").write_text(
                "".join(json.dumps(line) + "\n" for line in epochs)
            )
            runs.append(
                {
                    "run": run,
                    "name": row,
                    "method": method,
                    "variant": label,
                    "dataset": "writers",
                    "model": "lstm",
                    "gamma": 0.0,
                    "seed": seed,
                    "attacks": list(attacks),
                    "trajectory": ["words", "tab"],
                }
            )
    return ReportSpec(
        study="pr", title="Authors", figures=list(figures), runs=runs, ppl_levels=list(LEVELS)
    )
