"""The coin game of privacy audits: which coins of the audit canaries does a model give away, and
what epsilon does that refute?

Steinke, Nasr and Jagielski 2023, Algorithm 1, with one trained model. In the set `game` a coin
decided whether a sentence holds its secret or <MASK> (replace-one, of one secret), in the set
`inclusion` whether it was planted (add-or-remove, of one record). A secret's score is its exact
exposure: its log-probability's rank among all values it could have had, on a scale where those
never seen lie alike for every model. A new token's score is its log-probability at its place in the
sentence (Panda et al. 2025): no other text has it for a target. The highest are guessed to be in,
the lowest out; bounds are those of dp/accounting/audit_bounds.py, and the gate holds the right
guesses against the certificate itself (dp/accounting/tradeoff.py).
"""

from pathlib import Path
from typing import Any

import numpy as np
import torch

from confide.attacks.exposure.exposure import checked, mean_interval, ranked
from confide.attacks.exposure.null import null_band, null_tail
from confide.attacks.statistics.metrics import auc, auc_null
from confide.attacks.statistics.scoring import token_log_probs
from confide.attacks.target import Target
from confide.dp.accounting import audit_bounds as bounds
from confide.errors import InputError
from confide.files.io import read_file
from confide.specs import GameSpec, GradientsSpec
from confide.specs.files import AuditsFile
from confide.text.planted import NEW_TOKEN

CLAIMS = {
    "game": ("replace_one", "secret"),
    "inclusion": ("add_or_remove", "record"),
}  # what a bound is compared with
NOT_FINITE = "the model's probabilities are not finite"
LOWER = {"": bounds.epsilon_lower, "_fdp": bounds.gdp_epsilon_lower}
MEASURED = (
    "auc",
    "p_value",
    *(f"{name}{suffix}" for suffix in LOWER for name in ("epsilon_lower", "guesses", "correct")),
)


def game(spec: GameSpec, target: Target) -> dict[str, Any]:
    """Bounds, AUC and exposures for each set of audit canaries; None, with a reason, where a set
    tells nothing.
    """
    audits = {} if target.canaries is None else read_audits(target.canaries)
    metrics: dict[str, Any] = {"delta": spec.delta, "confidence": spec.confidence}
    for name, (relation, unit) in CLAIMS.items():
        found: dict[str, Any] = {"relation": relation, "unit": unit} | dict.fromkeys(MEASURED)
        found |= (
            played(spec, target, audits[name])
            if name in audits
            else {"reason": "not planted in this corpus"}
        )
        metrics |= {f"{name}_{key}": value for key, value in found.items()}
    return metrics


def played(spec: GameSpec, target: Target, audit: dict[str, Any]) -> dict[str, Any]:
    """All numbers of one set."""
    coins = np.array(audit["coins"], dtype=bool)
    metrics = {"coins": len(coins), "planted": int(coins.sum())}
    if not audit["digits"]:
        scores = new_token_scores(target, audit)
        finite = bool(np.isfinite(scores).all())
        return metrics | (against_coins(spec, scores, coins) if finite else {"reason": NOT_FINITE})
    ranks, sizes = ranked(target, audit, audit["secrets"], spec.chunk)
    if ranks is None:
        return metrics | {"reason": NOT_FINITE}
    bits = np.log2(sizes["candidates"]) - np.log2(ranks)
    metrics |= against_coins(spec, bits, coins)
    for name, own in (("in", bits[coins]), ("out", bits[~coins])):
        metrics |= {
            f"exposure_{name}_{key}": value
            for key, value in seen(own.tolist(), sizes["candidates"]).items()
        }
    return metrics


@torch.inference_mode()
def new_token_scores(target: Target, audit: dict[str, Any]) -> np.ndarray:
    """Log-probabilities in nats (m,) of m new tokens after what stands before them in the sentence.

    InputError where the model's embeddings were frozen, so that no canary can have moved one, or a
    token is not there.
    """
    if not target.model.head.weight.requires_grad:
        message = (
            "are of new tokens, and the model's embeddings are frozen: nothing is learnt of them"
        )
        raise InputError(message, file=target.canaries, key="audits")
    new = target.tokenizer.new_tokens
    if not all(secret in new for secret in audit["secrets"]):
        raise InputError(
            "are of new tokens that the tokenizer lacks", file=target.canaries, key="audits"
        )
    device = target.model.head.weight.device
    context = [target.tokenizer.bos_id, *target.tokenizer.encode(audit["prefix"])]
    hidden = target.model.hidden(torch.tensor([context], device=device))[:, -1]
    tokens = torch.tensor(
        [new[secret] for secret in audit["secrets"]], dtype=torch.long, device=device
    )
    return token_log_probs(target.model, hidden, torch.zeros_like(tokens), tokens).cpu().numpy()


def against_coins(
    spec: GameSpec | GradientsSpec, scores: np.ndarray, coins: np.ndarray
) -> dict[str, Any]:
    """What scores (m,) say of coins (m,): AUC with its null band, the p-value of independence,
    right guesses, lower bounds.

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

        low, high = auc_null(len(inside), len(outside))
        p_value = float(mannwhitneyu(inside, outside, alternative="greater").pvalue)
        metrics = {
            "auc": auc(inside, outside),
            "auc_null_low": low,
            "auc_null_high": high,
            "p_value": p_value,
        }
    shares = tuple(spec.guesses)
    level = 1 - spec.confidence
    for suffix, lower in LOWER.items():
        best = bounds.best_lower(
            lower, scores=scores, coins=coins, shares=shares, delta=spec.delta, level=level
        )
        metrics |= {
            f"{key}{suffix}": value
            for key, value in zip(("epsilon_lower", "guesses", "correct"), best, strict=True)
        }
    return metrics | {"attempts": [list(attempt) for attempt in bounds.attempts_of(scores, coins)]}


def seen(bits: list[float], candidates: int) -> dict[str, float]:
    """Mean exposure with its bootstrap interval, beside the mean's band and one-sided p-value for
    secrets never seen.
    """
    if not bits:
        return {}
    mean = float(np.mean(bits))
    (low, high), (_, null_low, null_high) = (
        mean_interval(bits),
        null_band("mean", len(bits), most=float(np.log2(candidates))),
    )
    keys = ("mean", "mean_low", "mean_high", "null_mean_low", "null_mean_high", "p_mean")
    return dict(
        zip(
            keys,
            (mean, low, high, null_low, null_high, null_tail("mean", len(bits), mean)),
            strict=True,
        )
    )


def read_audits(path: Path) -> dict[str, dict[str, Any]]:
    """The planted audit canaries by set; InputError where a key is missing or a secret has no
    coin.
    """
    audits = read_file(path, AuditsFile).get("audits", {})
    for name in CLAIMS.keys() & audits.keys():
        audit = audits[name]
        if audit["digits"] or not all(map(NEW_TOKEN.fullmatch, audit["secrets"])):
            checked(audit, path, ("secrets",), f"audits.{name}.")
        if len(audit["coins"]) != len(audit["secrets"]):
            raise InputError(
                "expected a coin for each secret", file=path, key=f"audits.{name}.coins"
            )
    return audits
