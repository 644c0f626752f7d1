"""What an audit must be: it rings for what is certified, of the weights that are certified, as
likely as it says.
"""

import json
import tempfile
from pathlib import Path

import numpy as np
from scipy.stats import norm

from confide.attacks.statistics.metrics import tpr_interval
from confide.certify.gate import Case, cases, cases_of
from confide.dp.accounting.audit_bounds import attempts_of, gdp_refuted, right_guesses
from confide.dp.accounting.audit_power import mu_of, power
from confide.dp.accounting.curves import gaussian_curve
from confide.dp.accounting.tradeoff import fewest, points_of, trade_off

DELTA, COINS, CERTIFIED, WEIGHTS = 8e-5, 160, 3.0, "a" * 64
CURVE = points_of(gaussian_curve(mu_of(CERTIFIED, DELTA)))
RUN = "r/g0-s0"


def compared(scores: np.ndarray, coins: np.ndarray, weights: str = WEIGHTS) -> Case:
    """A certificate of epsilon = 3 against an audit of secrets."""
    names = {
        "secret_caught": "replace_one",
        "secret_missed": "replace_one",
        "record_add_or_remove_pld": "add_or_remove",
    }
    claims = [
        {"name": name, "relation": rel, "epsilon": CERTIFIED, "delta": DELTA}
        for name, rel in names.items()
    ]
    certified = {"run": RUN, "claims": claims, "policy": {}, "curves": {"secret_missed": CURVE}}
    certified["files"] = {"model": [{"path": "model.safetensors", "sha256": WEIGHTS}]}
    attempts = [list(attempt) for attempt in attempts_of(scores, coins)]
    audit = {
        "run": RUN,
        "attack": "game",
        "weights": weights,
        "game_coins": len(coins),
        "game_attempts": attempts,
    }
    audit |= {"game_relation": "replace_one", "inclusion_reason": "not planted"}
    with tempfile.TemporaryDirectory() as folder:
        paths = [Path(folder) / name for name in ("certificate.json", "game.json")]
        for path, value in zip(paths, (certified, audit), strict=True):
            path.write_text(json.dumps(value))
        return next(iter(cases(*paths)))


def of_public_records(scores: np.ndarray, coins: np.ndarray) -> str:
    """What the gate says of planted records that exact updates have read."""
    claims = [
        {"name": name, "relation": relation, "epsilon": epsilon, "delta": DELTA}
        for name, relation, epsilon in (
            ("secret_caught", "replace_one", 0.0),
            ("secret_missed", "replace_one", CERTIFIED),
            ("secret_missed_by_both", "replace_one", "inf"),
            ("record_add_or_remove_pld", "add_or_remove", CERTIFIED),
        )
    ]
    planted = {"secrets": 9, "sampled": 9, "different": 9, "exposed": 9}
    certified = {"run": RUN, "claims": claims, "policy": {"planted": planted}}
    certified["files"] = {"model": [{"path": "model.safetensors", "sha256": WEIGHTS}]}
    audit = {"run": RUN, "attack": "game", "weights": WEIGHTS, "game_reason": "not planted"}
    audit |= {"inclusion_coins": len(coins), "inclusion_relation": "add_or_remove"}
    audit["inclusion_attempts"] = [list(one) for one in attempts_of(scores, coins)]
    with tempfile.TemporaryDirectory() as folder:
        paths = [Path(folder) / name for name in ("certificate.json", "game.json")]
        for path, value in zip(paths, (certified, audit), strict=True):
            path.write_text(json.dumps(value))
        return list(cases(*paths))[1].outcome


def of_caught_secrets(scores: np.ndarray, coins: np.ndarray) -> str:
    """What the gate says of planted secrets of which a tenth is missed, and the rest not read."""
    claims = [
        {"name": name, "relation": "replace_one", "epsilon": epsilon, "delta": DELTA}
        for name, epsilon in (("secret_caught", 0.0), ("secret_missed", CERTIFIED))
    ]
    claims.append(claims[1] | {"name": "record_add_or_remove_pld", "relation": "add_or_remove"})
    sets = {"game": {"sampled": 160, "different": 16, "read": 16}}
    planted = {"secrets": 160, "sampled": 160, "different": 16, "exposed": 0, "sets": sets}
    certified = {"run": RUN, "claims": claims, "policy": {"planted": planted}}
    certified["files"] = {"model": [{"path": "model.safetensors", "sha256": WEIGHTS}]}
    audit = {"run": RUN, "attack": "game", "weights": WEIGHTS, "inclusion_reason": "not planted"}
    audit |= {"game_coins": len(coins), "game_relation": "replace_one"}
    audit["game_attempts"] = [list(one) for one in attempts_of(scores, coins)]
    found = cases_of(certified, Path("certificate"), measured=audit, audit=Path("audit"))
    return next(iter(found)).outcome


def of_texts(digest: str) -> set[str]:
    """What the gate says of an audit of texts with this digest; texts of c... are certified."""
    model = {"path": "model.safetensors", "sha256": WEIGHTS}
    certified = {"run": RUN, "claims": [], "policy": {}, "files": {"model": [model]}}
    for name, relation in (
        ("secret_missed", "replace_one"),
        ("record_add_or_remove_pld", "add_or_remove"),
    ):
        claim = {"name": name, "relation": relation, "epsilon": CERTIFIED, "delta": DELTA}
        certified["claims"].append(claim)
    audit = {"run": RUN, "attack": "text_audit", "weights": WEIGHTS, "texts_sha256": digest}
    texts = {"texts": {"sha256": "c" * 64}, "model": {"weights": WEIGHTS}}
    found = cases_of(
        certified, Path("certificate"), measured=audit, audit=Path("audit"), texts=texts
    )
    return {case.outcome for case in found}


def seen(epsilon: float, seed: int) -> tuple[np.ndarray, np.ndarray]:
    """Scores and coins of an ideal attacker against that epsilon."""
    rng = np.random.default_rng(seed)
    coins = rng.random(COINS) < 0.5
    return mu_of(epsilon, DELTA) * coins + rng.normal(size=COINS), coins


def the_gate_rings_for_what_is_certified_of_these_weights() -> None:
    """Three times the certified epsilon is refuted and the certified one is not, nor is an audit of
    other weights taken.
    """
    refuted = [compared(*seen(3 * CERTIFIED, seed)).outcome for seed in range(10)]
    assert refuted.count("refuted") >= 7, (
        f"of ten models that leak three times what is certified: {refuted}"
    )
    held = [compared(*seen(CERTIFIED, seed)).outcome for seed in range(10)]
    assert set(held) == {"stands"}, f"of ten models that leak what is certified: {held}"
    other = compared(*seen(CERTIFIED, 0), weights="b" * 64)
    assert other.outcome == "of other weights", "an audit of other weights speaks for these"
    assert of_public_records(*seen(8 * CERTIFIED, 0)) == "not audited", (
        "records that were read without noise refute what is certified of others"
    )
    assert of_caught_secrets(*seen(0.0, 0)) == "not audited", (
        "guesses at secrets that the model never read speak for its noise"
    )
    assert of_texts("d" * 64) == {"of other texts"}, "an audit of other texts speaks for these"


def a_claim_is_refuted_as_in_the_closed_form() -> None:
    """The curve of Gaussian noise refutes as many right guesses as its closed form, give or take
    one.
    """
    for mu in (0.4, 0.8064, 2.0):
        claim = trade_off(points_of(gaussian_curve(mu)))
        for guesses in (40, 80, 160):
            least = next(
                (c for c in range(guesses + 1) if gdp_refuted(COINS, guesses, c, mu)), guesses + 1
            )
            found = fewest(claim, COINS, guesses, 0.05)
            assert least <= found <= least + 1, (
                f"{found} right guesses of {guesses} refute mu = {mu}, not {least}"
            )


def an_audit_rings_as_often_as_it_says() -> None:
    """The chance to refute twice and three times the certified epsilon is that of trainings
    simulated anew.
    """
    points = ((CERTIFIED, DELTA), *CURVE)
    how = power(points, CERTIFIED, DELTA, COINS)
    rng = np.random.default_rng(7)
    coins = rng.random((1000, COINS)) < 0.5
    for times, said in zip((2, 3), how.rings, strict=False):
        scores = mu_of(times * CERTIFIED, DELTA) * coins + rng.normal(size=coins.shape)
        rung = float((right_guesses(scores, coins, [how.guesses]) >= how.fewest).mean())
        assert abs(rung - said) < 0.08, f"rings in {rung:.0%} of trainings, and says {said:.0%}"


def intervals_of_rates_cover_them() -> None:
    """The 95 % interval of a true positive rate holds the true one, the threshold being
    estimated.
    """
    truth, covered = norm.sf(norm.isf(0.01) - 2), 0
    for seed in range(100):
        rng = np.random.default_rng(seed)
        low, high = tpr_interval(rng.normal(size=1000) + 2, rng.normal(size=1000), 0.01, rng)
        covered += low <= truth <= high
    assert covered >= 88, f"an interval of 95 % holds the rate in {covered} of 100 runs"
