"""The coin game of privacy audits: which coins does a model give away, and what does that refute?

Steinke, Nasr and Jagielski 2023, Algorithm 1, with one trained model. In the set `game` a coin
decided whether a sentence holds its secret or <MASK> (replace-one, of one secret), in the set
`inclusion` whether it was planted (add-or-remove, of one record). A secret's score is its exact
exposure: its log-probability's rank among all values it could have had, on a scale where those
never seen lie alike for every model. Within a budget of `evaluations` the rank may be an estimate;
bounds hold for any score that does not look at the coins. A new token's score is its
log-probability at its place in the sentence (Panda et al. 2025): no other text has it for a target.
The highest are guessed to be in, the lowest out; bounds are those of dp/accounting/audit_bounds.py,
and the gate holds the right guesses against the certificate itself (dp/accounting/tradeoff.py).
"""

from pathlib import Path
from typing import Any

import numpy as np
import torch

from confide.attacks.exposure.exposure import checked, ranked
from confide.attacks.exposure.summary import summary
from confide.attacks.statistics.metrics import auc, auc_null, ends
from confide.attacks.statistics.scoring import NOT_FINITE, token_log_probs
from confide.attacks.target import Target
from confide.dp.accounting import audit_bounds as bounds
from confide.errors import InputError
from confide.files.io import read_file
from confide.specs import GameSpec, GradientsSpec
from confide.specs.files import AuditsFile
from confide.text.planted import NEW_TOKEN

# what a bound is compared with: the relation and the unit of a claim
CLAIMS = {
    "game": ("replace_one", "secret"),
    "inclusion": ("add_or_remove", "record"),
}
LOWER = {"": bounds.epsilon_lower, "_fdp": bounds.gdp_epsilon_lower}
BOUND = ("epsilon_lower", "guesses", "correct")
MEASURED = ("auc", "p_value", *(f"{name}{suffix}" for suffix in LOWER for name in BOUND))


def game(spec: GameSpec, target: Target) -> dict[str, Any]:
    """Bounds, AUC and exposures for each set of audit canaries.

    They are None, with a reason, where a set tells nothing.
    """
    audits = {} if target.canaries is None else read_audits(target.canaries)
    metrics: dict[str, Any] = {"delta": spec.delta, "confidence": spec.confidence}
    for name, (relation, unit) in CLAIMS.items():
        numbers: dict[str, Any] = dict.fromkeys(MEASURED)
        numbers |= {"relation": relation, "unit": unit}
        if name in audits:
            numbers |= played(spec, target, audits[name])
        else:
            numbers["reason"] = "not planted in this corpus"
        metrics |= {f"{name}_{key}": value for key, value in numbers.items()}
    return metrics


def played(spec: GameSpec, target: Target, audit: dict[str, Any]) -> dict[str, Any]:
    """All numbers of one set."""
    coins = np.array(audit["coins"], dtype=bool)
    metrics: dict[str, Any] = {"coins": len(coins), "planted": int(coins.sum())}
    if not audit["digits"]:
        scores = new_token_scores(target, audit)
        if not np.isfinite(scores).all():
            return metrics | {"reason": NOT_FINITE}
        return metrics | against_coins(spec, scores, coins)
    ranks, sizes = ranked(spec, target, audit, audit["secrets"])
    if ranks is None:
        return metrics | {"reason": NOT_FINITE}
    candidates = sizes["candidates"]
    bits = np.log2(candidates) - np.log2(ranks.rank)
    metrics |= {"exact": bool(ranks.exact.all()), "evaluations": sizes["evaluations"]}
    metrics |= against_coins(spec, bits, coins)
    if not metrics["exact"]:
        return metrics  # the means below would be of estimates
    for side, chosen in (("in", coins), ("out", ~coins)):
        numbers = mean_exposure(bits[chosen].tolist(), float(np.log2(candidates)))
        metrics |= {f"exposure_{side}_{key}": value for key, value in numbers.items()}
    return metrics


@torch.inference_mode()
def new_token_scores(target: Target, audit: dict[str, Any]) -> np.ndarray:
    """Log-probabilities in nats (m,) of m new tokens after what stands before them in the sentence.

    InputError where the model's embeddings were frozen, so that no canary can have moved one, or a
    token is not there.
    """
    weight = target.model.head.weight
    if not weight.requires_grad:
        message = (
            "are of new tokens, and the model's embeddings are frozen: nothing is learnt of them"
        )
        raise InputError(message, file=target.canaries, key="audits")
    new = target.tokenizer.new_tokens
    if not all(secret in new for secret in audit["secrets"]):
        message = "are of new tokens that the tokenizer lacks"
        raise InputError(message, file=target.canaries, key="audits")
    context = [target.tokenizer.bos_id, *target.tokenizer.encode(audit["prefix"])]
    hidden = target.model.hidden(torch.tensor([context], device=weight.device))[:, -1]
    tokens = torch.tensor(
        [new[secret] for secret in audit["secrets"]], dtype=torch.long, device=weight.device
    )
    return token_log_probs(target.model, hidden, torch.zeros_like(tokens), tokens).cpu().numpy()


def against_coins(
    spec: GameSpec | GradientsSpec, scores: np.ndarray, coins: np.ndarray
) -> dict[str, Any]:
    """What scores (m,) say of coins (m,): AUC, independence, right guesses and lower bounds.

    `attempts` are what a certificate is held against: for some numbers of guesses, how many of them
    are right.
    Guarantees: each bound alone is at most the epsilon of the training with probability
    `spec.confidence`; the one of Gaussian DP (`_fdp`) only if that epsilon is one of Gaussian
    noise.
    """
    inside = scores[coins]
    outside = scores[~coins]
    metrics: dict[str, Any] = {}
    if len(inside) and len(outside):
        from scipy.stats import mannwhitneyu

        metrics["auc"] = auc(inside, outside)
        metrics |= ends("auc_null", auc_null(len(inside), len(outside)))
        test = mannwhitneyu(inside, outside, alternative="greater")
        metrics["p_value"] = float(test.pvalue)
    for suffix, lower in LOWER.items():
        best = bounds.best_lower(
            lower,
            scores=scores,
            coins=coins,
            shares=tuple(spec.guesses),
            delta=spec.delta,
            level=1 - spec.confidence,
        )
        metrics |= {f"{key}{suffix}": value for key, value in zip(BOUND, best, strict=True)}
    return metrics | {"attempts": [list(attempt) for attempt in bounds.attempts_of(scores, coins)]}


def mean_exposure(bits: list[float], most: float) -> dict[str, float]:
    """Mean of exposures, at most so many bits, with its interval and what it would be by chance."""
    if not bits:
        return {}
    metrics = summary(bits, ["mean"], most)
    del metrics["null_mean"]
    return metrics


def read_audits(path: Path) -> dict[str, dict[str, Any]]:
    """The planted audit canaries by set.

    InputError where a key is missing or a secret has no coin.
    """
    audits = read_file(path, AuditsFile).get("audits", {})
    for name in CLAIMS.keys() & audits.keys():
        audit = audits[name]
        if audit["digits"] or not all(map(NEW_TOKEN.fullmatch, audit["secrets"])):
            checked(audit, path, ("secrets",), f"audits.{name}.")
        if len(audit["coins"]) != len(audit["secrets"]):
            key = f"audits.{name}.coins"
            raise InputError("expected a coin for each secret", file=path, key=key)
    return audits
