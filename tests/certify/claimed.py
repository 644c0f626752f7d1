"""Certificates as the gate reads them."""

from functools import cache
from typing import Any

from confide.dp.accounting.calibration import calibrate
from confide.dp.accounting.curves import Mechanism, pld_curve
from confide.dp.accounting.tradeoff import points_of

RUN = "r/g0-s0"
DELTA = 8e-5
WEIGHTS = "a" * 64
READ = {"sampled": 20, "different": 20, "read": 20}
PLANTED = {
    "secrets": 20,
    "sampled": 20,
    "different": 20,
    "exposed": 0,
    "sets": {"game": READ, "inclusion": READ},
}


@cache
def curve_of(epsilon: float) -> list[list[float]]:
    """The (epsilon, delta) pairs of DP-SGD with that epsilon, as a certificate has them."""
    if epsilon == 0:
        return [[0.0, 0.0]]
    sigma = calibrate(epsilon, DELTA, 0.0256, 391)
    return [
        list(pair) for pair in points_of(pld_curve((Mechanism(0.0256, sigma, 391),), "replace_one"))
    ]


def certificate(epsilon: Any, curves: bool = True, **planted: Any) -> dict[str, Any]:
    """Every claim of a planted secret that was missed, and of a record, has this epsilon."""
    names = {"secret_caught": ("replace_one", 0.0), "secret_missed": ("replace_one", epsilon)}
    names |= {
        "record_add_or_remove_pld": ("add_or_remove", epsilon),
        "secret_missed_by_both": ("replace_one", "inf"),
    }
    claims = [
        {"name": name, "relation": rel, "epsilon": value, "delta": DELTA}
        for name, (rel, value) in names.items()
    ]
    policy = {
        "gamma": 0.0,
        "census": True,
        "delta2": 0.0,
        "planted": PLANTED | planted,
    }  # gamma is of the corpus's own secrets
    found = {"run": RUN, "claims": claims, "policy": policy}
    found |= {
        "files": {"model": [{"path": "model.safetensors", "sha256": WEIGHTS}]},
        "ledger_head": "b" * 64,
    }
    if curves:
        finite = {name: value for name, (_, value) in names.items() if value != "inf"}
        found["curves"] = {name: curve_of(value) for name, value in finite.items()}
    return found
