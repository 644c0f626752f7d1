"""Membership inference on secrets: does the model find secrets of its training text likelier than
others of their kind?

The score is the mean log-probability of the secret's tokens in their text, minus log perplexity
(and their total, `total_`); a group's score is the sum over it (CRT, section 5). Further scores are
those of Shi et al. 2022 and Min-K%++ (`scores.py`), and `members.py` says who is asked about. The
metrics name the setting, and what blind baselines make of it.
"""

from typing import Any

import numpy as np

from confide.attacks.membership.members import candidates_of, tokens_of
from confide.attacks.membership.scores import SCORES, Asked, secret_log_probs
from confide.attacks.statistics.blind import BASELINES
from confide.attacks.statistics.metrics import (
    accuracy_null,
    auc,
    auc_interval,
    auc_null,
    balanced_accuracy,
    bootstrap,
    calibrated_accuracy,
    share_interval,
    tpr_at_fpr,
    tpr_interval,
)
from confide.attacks.target import Target
from confide.specs import MembershipSpec

FEWEST = 10  # of each class; below, no number means anything
RATES = (0.01, 0.001)


def judged(
    scores: np.ndarray, member: np.ndarray, repeats: int, seed: int, prefix: str
) -> dict[str, Any]:
    """AUC and balanced accuracy of scores (M,), each with its interval and the null band at these
    sizes.

    The interval is that of the bootstrap, but never narrower than what so few scores can tell:
    where all members lie above all others, every resample says the same.

    Beside them the accuracy with a threshold that was chosen on other candidates: the papers' knows
    how many are members.
    """
    inside = scores[member]
    outside = scores[~member]
    metrics: dict[str, Any] = {}
    for name, metric, null in (
        ("auc", auc, auc_null),
        ("acc_balanced", balanced_accuracy, accuracy_null),
    ):
        value = metric(inside, outside)
        fewer = min(len(inside), len(outside))
        low, high = bootstrap(metric, inside, outside, repeats, np.random.default_rng(seed))
        known = (
            share_interval(value, fewer)
            if name == "acc_balanced"
            else auc_interval(value, len(inside), len(outside))
        )
        null_low, null_high = null(len(inside), len(outside))
        metrics |= {
            name: value,
            f"{name}_low": min(low, known[0]),
            f"{name}_high": max(high, known[1]),
        }
        metrics |= {f"{name}_null_low": null_low, f"{name}_null_high": null_high}
    metrics["acc_calibrated"] = calibrated_accuracy(inside, outside, np.random.default_rng(seed))
    return {f"{prefix}{key}": value for key, value in metrics.items()}


def at_few_false_positives(
    inside: np.ndarray, outside: np.ndarray, prefix: str, seed: int
) -> dict[str, float | None]:
    """True positive rates at the usual false positive rates, each with its interval."""
    metrics: dict[str, float | None] = {}
    for rate in RATES:
        name = f"{prefix}tpr_at_fpr_{rate}"
        low, high = tpr_interval(inside, outside, rate, np.random.default_rng(seed)) or (None, None)
        metrics |= {
            name: tpr_at_fpr(inside, outside, rate),
            f"{name}_low": low,
            f"{name}_high": high,
        }
    return metrics


def grouped(
    scores: np.ndarray, member: np.ndarray, size: int, rng: np.random.Generator
) -> tuple[np.ndarray, np.ndarray]:
    """Sums over disjoint random groups of `size` members or non-members each; what does not fill a
    group is left out.
    """
    sums = []
    kinds = []
    for kind in (True, False):
        order = rng.permutation(np.flatnonzero(member == kind))
        groups = order[: len(order) // size * size].reshape(-1, size)
        sums.append(scores[groups].sum(1))
        kinds.append(np.full(len(groups), kind))
    return np.concatenate(sums), np.concatenate(kinds)


def report_on(
    spec: MembershipSpec, scores: np.ndarray, member: np.ndarray, prefix: str
) -> dict[str, Any]:
    """All numbers of one score, single secrets and groups; the groups are the same ones for every
    score.
    """
    metrics = judged(scores, member, spec.bootstrap, spec.seed, prefix)
    sums, kinds = grouped(scores, member, spec.group, np.random.default_rng(spec.seed))
    if kinds.sum() < 2:
        return metrics | {f"group_{prefix}auc": None, f"group_{prefix}acc_balanced": None}
    return metrics | judged(sums, kinds, spec.bootstrap, spec.seed, f"group_{prefix}")


def membership(spec: MembershipSpec, target: Target) -> dict[str, Any]:
    """Attack the secrets of `spec.label`; metrics are None, with a reason, where the corpus has too
    few of them.
    """
    chosen = candidates_of(spec, target.points)
    member = np.array([candidate.member for candidate in chosen], dtype=bool)
    metrics: dict[str, Any] = {
        "label": spec.label,
        "members": int(member.sum()),
        "non_members": int((~member).sum()),
    }
    metrics |= {"non_members_from": spec.non_members, "context": spec.context}
    metrics |= {"group": spec.group, "groups": int(member.sum()) // spec.group}
    if member.sum() < FEWEST:
        return metrics | {
            "auc": None,
            "acc_balanced": None,
            "reason": f"fewer than {FEWEST} members or non-members",
        }
    view = tokens_of(chosen, target.tokenizer)
    total, count = secret_log_probs(target.model, view)
    if not np.isfinite(total).all():
        return metrics | {
            "auc": None,
            "acc_balanced": None,
            "reason": "the model's probabilities are not finite",
        }
    metrics |= report_on(spec, total / count, member, "") | report_on(spec, total, member, "total_")
    metrics |= at_few_false_positives(
        (total / count)[member], (total / count)[~member], "", spec.seed
    )
    asked = Asked(spec, target, chosen, view, total / count)
    for name in [*spec.scores, *(["reference"] if spec.reference is not None else [])]:
        metrics |= _further(name, asked, member)
    secrets = [candidate.secret for candidate in chosen]
    for name, baseline in BASELINES.items():
        metrics |= report_on(spec, baseline(secrets, member, spec.seed), member, f"blind_{name}_")
    return metrics | {"reasons": _reasons(metrics)}


def _further(name: str, asked: Asked, member: np.ndarray) -> dict[str, Any]:
    """Numbers of one of the further scores; None where another model or text gives probabilities
    that are not finite.
    """
    scores = SCORES[name](asked)
    if not np.isfinite(scores).all():
        return {f"{name}_auc": None, f"{name}_acc_balanced": None}
    return judged(scores, member, asked.spec.bootstrap, asked.spec.seed, f"{name}_")


def _reasons(metrics: dict[str, Any]) -> dict[str, str]:
    """Why a metric is None."""
    few = {rate: f"fewer than {round(1 / rate)} non-members" for rate in RATES}
    reasons = {
        f"tpr_at_fpr_{rate}{end}": few[rate] for rate in RATES for end in ("", "_low", "_high")
    }
    reasons |= {
        key: "fewer than 2 groups of each kind" for key in metrics if key.startswith("group_")
    }
    reasons |= {
        f"{name}_{key}": "the score is not finite"
        for name in SCORES
        for key in ("auc", "acc_balanced")
    }
    return {key: reasons[key] for key, value in metrics.items() if value is None and key in reasons}
