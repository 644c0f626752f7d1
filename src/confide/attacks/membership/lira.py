"""Likelihood-ratio membership attack (LiRA; Carlini et al. 2022, Algorithm 1 and its offline
variant) on secrets.

A secret's score is the log-probability of its tokens in their text, in all or per token; the
paper's log p / (1 - p) is the same wherever a model does not know a secret by heart. Shadow models
say how the score of this very secret is distributed where it was trained on (in) and where not
(out), a Gaussian each; below 64 models with one variance for all secrets, as in the paper.

The shadow models are smaller than the target and differ from it in what they find hard, so its
scores are first brought to their scale: what the shadow models' mean score of a secret explains of
the target's (by least squares, looking at no label) is replaced by that mean, and the rest
stretched to the deviation that it has in a shadow model. The offline score is the distance from the
models that did not see the secret; only its calibration uses the others.
"""

from typing import Any, NamedTuple

import numpy as np

from confide.attacks.membership import shadows
from confide.attacks.membership.members import choose, first_occurrences, tokens_of
from confide.attacks.membership.membership import at_few_false_positives, report_on
from confide.attacks.membership.scores import secret_log_probs
from confide.attacks.statistics.metrics import auc, tpr_at_fpr, tpr_interval
from confide.attacks.target import Target
from confide.errors import InputError
from confide.specs import LiraSpec, MembershipSpec

ENOUGH = 64  # shadow models for a variance per secret
FEWEST = 6  # shadow models for judging one by the others
POINTS = 200  # of a curve
LEVEL = 0.95


class Moments(NamedTuple):
    """Gaussians of each secret's score in shadow models that saw it and in those that did not."""

    mean_in: np.ndarray  # (M,)
    mean_out: np.ndarray  # (M,)
    var_in: np.ndarray  # (M,)
    var_out: np.ndarray  # (M,)


def moments(scores: np.ndarray, seen: np.ndarray) -> Moments:
    """Means and unbiased variances of scores (K, M) by seen (K, M); variances are pooled over
    secrets where K is small.
    """
    means = []
    variances = []
    for chosen in (seen, ~seen):
        count = chosen.sum(0)
        mean = np.where(chosen, scores, 0).sum(0) / count
        squares = (np.where(chosen, scores - mean, 0) ** 2).sum(0)
        own = (
            squares / (count - 1)
            if len(scores) >= ENOUGH
            else np.full(len(mean), squares.sum() / (count - 1).sum())
        )
        means.append(mean)
        variances.append(np.maximum(own, np.finfo(np.float64).tiny))
    return Moments(*means, *variances)


def log_ratio(scores: np.ndarray, fitted: Moments) -> np.ndarray:
    """log N(score; in) - log N(score; out), (M,) for scores (M,)."""
    inside = (scores - fitted.mean_in) ** 2 / fitted.var_in + np.log(fitted.var_in)
    outside = (scores - fitted.mean_out) ** 2 / fitted.var_out + np.log(fitted.var_out)
    return (outside - inside) / 2


def distance(scores: np.ndarray, fitted: Moments) -> np.ndarray:
    """Standard deviations above the mean of models that did not see the secret, (M,): the offline
    attack's statistic.
    """
    return (scores - fitted.mean_out) / np.sqrt(fitted.var_out)


def calibrated(scores: np.ndarray, reference: np.ndarray) -> np.ndarray:
    """Scores (M,) on the scale of the reference (K, M): its mean over models, plus the stretched
    rest that this leaves open.
    """
    usual = reference.mean(0)
    rest = unexplained(scores, usual)
    spread = np.mean([unexplained(own, usual).std() for own in reference])
    return usual + rest * (spread / rest.std() if rest.std() > 0 else 0.0)


def unexplained(scores: np.ndarray, usual: np.ndarray) -> np.ndarray:
    """What is left of scores (M,) after least squares on the usual ones (M,)."""
    centred = usual - usual.mean()
    own = scores - scores.mean()
    return own - centred * (centred @ own) / max(centred @ centred, np.finfo(np.float64).tiny)


def leave_one_out(scores: np.ndarray, seen: np.ndarray) -> dict[str, float | None]:
    """The attack's success on each shadow model by the others, on average: its positive control.

    The model's complement is left out with it: otherwise what is in would be told by how many
    models remain. None below six models, where the rest has no variance.
    """
    found: dict[str, list[float | None]] = {
        "shadow_auc": [],
        "shadow_offline_auc": [],
        "shadow_tpr_at_fpr_0.01": [],
    }
    for k in range(len(scores) if len(scores) >= FEWEST else 0):
        rest = np.arange(len(scores)) // 2 != k // 2
        fitted = moments(scores[rest], seen[rest])
        own = calibrated(scores[k], scores[rest])
        ratio = log_ratio(own, fitted)
        offline = distance(own, fitted)
        found["shadow_auc"].append(auc(ratio[seen[k]], ratio[~seen[k]]))
        found["shadow_offline_auc"].append(auc(offline[seen[k]], offline[~seen[k]]))
        found["shadow_tpr_at_fpr_0.01"].append(tpr_at_fpr(ratio[seen[k]], ratio[~seen[k]], 0.01))
    return {
        name: None if None in values or not values else float(np.mean(values))
        for name, values in found.items()
    }


def roc(inside: np.ndarray, outside: np.ndarray) -> dict[str, list[float]]:
    """The curve's corners at up to 200 numbers of false positives, even on a log axis, and the band
    of knowing nothing.

    tpr: the largest with at most so many false positives. Null: with j of n false positives, the
    hits among m members are beta-binomial (m, j + 1, n - j).
    """
    from scipy.stats import betabinom

    m = len(inside)
    n = len(outside)
    false = np.unique(np.concatenate([[0], np.geomspace(1, n, POINTS - 1).round().astype(int)]))
    bars = np.append(np.sort(outside)[::-1], -np.inf)[false]
    hits = m - np.searchsorted(np.sort(inside), bars, side="right")
    null = betabinom(m, false[:-1] + 1, n - false[:-1])
    ends = {
        name: [*(null.ppf(p) / m).tolist(), 1.0]
        for name, p in (("low", (1 - LEVEL) / 2), ("high", (1 + LEVEL) / 2))
    }
    return {
        "fpr": (false / n).tolist(),
        "tpr": (hits / m).tolist(),
        "null_low": ends["low"],
        "null_high": ends["high"],
    }


def epsilon_heuristic(
    inside: np.ndarray, outside: np.ndarray, delta: float, seed: int = 0, rate: float = 0.01
) -> float | None:
    """log((TPR - delta) / FPR) at 1 % false positives, TPR at the low end of its interval; None:
    too few.

    A heuristic and no lower bound of epsilon: members were not drawn by coin flips, and the texts
    of the two sides may differ.
    """
    found = tpr_interval(inside, outside, rate, np.random.default_rng(seed), LEVEL)
    if found is None:
        return None
    low = found[0] - delta
    return float(max(0.0, np.log(low / rate))) if low > 0 else 0.0


def lira(spec: LiraSpec, target: Target) -> dict[str, Any]:
    """Attack the candidates of the membership attack; metrics are None, with a reason, where a
    number would mean nothing.
    """
    if target.shadows is None:
        raise InputError("needs shadow models", key="attack", value="lira")
    models = shadows.read(target.shadows, spec)
    chosen = choose(
        list(first_occurrences(target.points, spec.label)),
        spec.limit,
        np.random.default_rng(spec.seed),
    )
    member = np.array([candidate.member for candidate in chosen], dtype=bool)
    view = tokens_of(chosen, target.tokenizer)
    count = np.add.reduceat(view.private.astype(np.int64), view.starts[:-1])
    shadows.check(
        models,
        member,
        shadows.first_lines(target.points, spec.label, chosen),
        count,
        target.shadows,
    )
    metrics: dict[str, Any] = {
        "label": spec.label,
        "members": int(member.sum()),
        "non_members": int((~member).sum()),
    }
    metrics |= {
        "group": spec.group,
        "groups": int(member.sum()) // spec.group,
        "shadow_models": len(models.seen),
    }
    total, _ = secret_log_probs(target.model, view)
    if not np.isfinite(total).all():
        return metrics | {
            "auc": None,
            "acc_balanced": None,
            "reason": "the model's probabilities are not finite",
        }
    like = MembershipSpec(
        kind="membership",
        **spec.model_dump(include={"label", "limit", "group", "bootstrap", "seed"}),
    )
    for prefix, own, theirs in (
        ("", total / count, models.total / count),
        ("total_", total, models.total),
    ):
        fitted = moments(theirs, models.seen)
        fair = calibrated(own, theirs)
        ratio = log_ratio(fair, fitted)
        offline = distance(fair, fitted)
        metrics |= report_on(like, ratio, member, prefix) | report_on(
            like, offline, member, f"{prefix}offline_"
        )
        if prefix:
            continue
        for name, scores in (("", ratio), ("offline_", offline), ("plain_", own)):
            inside = scores[member]
            outside = scores[~member]
            metrics |= at_few_false_positives(inside, outside, name, spec.seed) | {
                f"{name}roc": roc(inside, outside)
            }
        metrics["plain_auc"] = auc(own[member], own[~member])
        metrics["epsilon_heuristic"] = epsilon_heuristic(
            ratio[member], ratio[~member], spec.delta, spec.seed
        )
    metrics |= leave_one_out(models.total / count, models.seen) | {
        "shadow_loss": float(models.loss[-1].mean())
    }
    return metrics | {"reasons": _reasons(metrics)}


def _reasons(metrics: dict[str, Any]) -> dict[str, str]:
    """Why a metric is None."""
    none = [key for key, value in metrics.items() if value is None]
    found = {}
    for key in none:
        found[key] = (
            "fewer than 2 groups of each kind"
            if key.startswith("group_")
            else "too few secrets of each kind"
        )
        if key.startswith("shadow_") and metrics["shadow_models"] < FEWEST:
            found[key] = f"fewer than {FEWEST} shadow models"
    return found
