"""Likelihood-ratio membership attack on secrets (LiRA; Carlini et al. 2022).

It is their Algorithm 1 and its offline variant. A secret's score is the log-probability of its
tokens in their text, in all or per token; the paper's log p / (1 - p) is the same wherever a model
does not know a secret by heart. Shadow models say how the score of this very secret is distributed
where it was trained on (in) and where not (out), a Gaussian each; below 64 models with one variance
for all secrets, as in the paper.

The shadow models are smaller than the target and differ from it in what they find hard, so its
scores are first brought to their scale: what the shadow models' mean score of a secret explains of
the target's (by least squares, looking at no label) is replaced by that mean, and the rest
stretched to the deviation that it has in a shadow model. The offline score is the distance from the
models that did not see the secret; only its calibration uses the others.

Shapes: K shadow models, M secrets.
"""

from typing import Any, NamedTuple

import numpy as np

from confide.attacks.membership import shadows
from confide.attacks.membership.members import choose, first_occurrences, tokens_of
from confide.attacks.membership.membership import (
    at_few_false_positives,
    counts_of,
    members_of,
    nothing,
    report_on,
)
from confide.attacks.membership.scores import secret_log_probs
from confide.attacks.statistics.metrics import TAILS, auc, tpr_at_fpr, tpr_interval
from confide.attacks.statistics.scoring import NOT_FINITE
from confide.attacks.target import Target
from confide.errors import InputError
from confide.specs import LiraSpec

ENOUGH = 64  # shadow models for a variance per secret
FEWEST = 6  # shadow models for judging one by the others
POINTS = 200  # of a curve
RATE = 0.01  # of false positives, at which epsilon_heuristic is taken
TINY = np.finfo(np.float64).tiny


class Moments(NamedTuple):
    """Gaussians of each secret's score in shadow models that saw it and in those that did not."""

    mean_in: np.ndarray  # (M,)
    mean_out: np.ndarray  # (M,)
    var_in: np.ndarray  # (M,)
    var_out: np.ndarray  # (M,)


def moments(scores: np.ndarray, seen: np.ndarray) -> Moments:
    """Means and unbiased variances of scores (K, M) by seen (K, M).

    Variances are pooled over secrets where K is small.
    """
    means = []
    variances = []
    for chosen in (seen, ~seen):
        count = chosen.sum(0)
        mean = np.where(chosen, scores, 0).sum(0) / count
        squares = (np.where(chosen, scores - mean, 0) ** 2).sum(0)
        if len(scores) >= ENOUGH:
            variance = squares / (count - 1)
        else:
            variance = np.full(len(mean), squares.sum() / (count - 1).sum())
        means.append(mean)
        variances.append(np.maximum(variance, TINY))
    return Moments(*means, *variances)


def log_ratio(scores: np.ndarray, fitted: Moments) -> np.ndarray:
    """log N(score; in) - log N(score; out), (M,) for scores (M,)."""
    inside = (scores - fitted.mean_in) ** 2 / fitted.var_in + np.log(fitted.var_in)
    outside = (scores - fitted.mean_out) ** 2 / fitted.var_out + np.log(fitted.var_out)
    return (outside - inside) / 2


def distance(scores: np.ndarray, fitted: Moments) -> np.ndarray:
    """Standard deviations (M,) above the mean of models that did not see the secret.

    This is the statistic of the offline attack.
    """
    return (scores - fitted.mean_out) / np.sqrt(fitted.var_out)


def calibrated(scores: np.ndarray, reference: np.ndarray) -> np.ndarray:
    """Scores (M,) on the scale of the reference (K, M).

    That is its mean over models, plus the stretched rest that this leaves open.
    """
    usual = reference.mean(0)
    rest = unexplained(scores, usual)
    spread = np.mean([unexplained(of_model, usual).std() for of_model in reference])
    return usual + rest * (spread / rest.std() if rest.std() > 0 else 0.0)


def unexplained(scores: np.ndarray, usual: np.ndarray) -> np.ndarray:
    """What is left of scores (M,) after least squares on the usual ones (M,)."""
    regressor = usual - usual.mean()
    centred = scores - scores.mean()
    return centred - regressor * (regressor @ centred) / max(regressor @ regressor, TINY)


def leave_one_out(scores: np.ndarray, seen: np.ndarray) -> dict[str, float | None]:
    """The attack's success on each shadow model by the others, on average: its positive control.

    The model's complement is left out with it: otherwise what is in would be told by how many
    models remain. None below six models, where the rest has no variance.
    """
    models = range(len(scores) if len(scores) >= FEWEST else 0)
    success = [_on_one(scores, seen, model) for model in models]
    metrics: dict[str, float | None] = {}
    for name in ("shadow_auc", "shadow_offline_auc", f"shadow_tpr_at_fpr_{RATE}"):
        values = [of_model[name] for of_model in success]
        metrics[name] = float(np.mean(values)) if values and None not in values else None
    return metrics


def _on_one(scores: np.ndarray, seen: np.ndarray, model: int) -> dict[str, Any]:
    """The attack's success on one shadow model by the others, without its complement."""
    rest = np.arange(len(scores)) // 2 != model // 2
    ratio, offline = _statistics(scores[model], scores[rest], seen[rest])
    member = seen[model]
    return {
        "shadow_auc": auc(ratio[member], ratio[~member]),
        "shadow_offline_auc": auc(offline[member], offline[~member]),
        f"shadow_tpr_at_fpr_{RATE}": tpr_at_fpr(ratio[member], ratio[~member], RATE),
    }


def roc(inside: np.ndarray, outside: np.ndarray) -> dict[str, list[float]]:
    """Corners of the curve at up to 200 false positive rates, and the band of knowing nothing.

    The numbers of false positives are even on a log axis. tpr: the largest with at most so many.
    Null: with j of n false positives, the hits among m members are beta-binomial (m, j + 1, n - j).
    """
    from scipy.stats import betabinom

    m = len(inside)
    n = len(outside)
    false = np.unique(np.concatenate([[0], np.geomspace(1, n, POINTS - 1).round().astype(int)]))
    bars = np.append(np.sort(outside)[::-1], -np.inf)[false]
    hits = m - np.searchsorted(np.sort(inside), bars, side="right")
    low, high = (
        np.asarray(betabinom.ppf(tail, m, false[:-1] + 1, n - false[:-1])) / m for tail in TAILS
    )
    return {
        "fpr": (false / n).tolist(),
        "tpr": (hits / m).tolist(),
        "null_low": [*low.tolist(), 1.0],
        "null_high": [*high.tolist(), 1.0],
    }


def epsilon_heuristic(
    inside: np.ndarray, outside: np.ndarray, delta: float, seed: int = 0
) -> float | None:
    """log((TPR - delta) / FPR) at 1 % false positives, TPR at the low end of its interval.

    A heuristic and no lower bound of epsilon: members were not drawn by coin flips, and the texts
    of the two sides may differ. None where there are too few.
    """
    interval = tpr_interval(inside, outside, RATE, np.random.default_rng(seed))
    if interval is None:
        return None
    low = interval[0] - delta
    return float(max(0.0, np.log(low / RATE))) if low > 0 else 0.0


def lira(spec: LiraSpec, target: Target) -> dict[str, Any]:
    """Attack the candidates of the membership attack.

    Metrics are None, with a reason, where a number would mean nothing.
    """
    if target.shadows is None:
        raise InputError("needs shadow models", key="attack", value="lira")
    models = shadows.read(target.shadows, spec)
    chosen = choose(
        first_occurrences(target.points, [spec.label]), spec.limit, np.random.default_rng(spec.seed)
    )
    member = members_of(chosen)
    view = tokens_of(chosen, target.tokenizer)
    count = np.add.reduceat(view.private.astype(np.int64), view.starts[:-1])
    lines = shadows.first_lines(target.points, spec.label, chosen)
    shadows.check(models, member, lines, count, target.shadows)
    metrics = counts_of(spec, member) | {"shadow_models": len(models.seen)}
    total, _ = secret_log_probs(target.model, view)
    if not np.isfinite(total).all():
        return metrics | nothing(NOT_FINITE)
    metrics |= _per_token(spec, total / count, models.total / count, models.seen, member)
    ratio, offline = _statistics(total, models.total, models.seen)
    metrics |= report_on(spec, ratio, member, "total_")
    metrics |= report_on(spec, offline, member, "total_offline_")
    metrics |= leave_one_out(models.total / count, models.seen)
    metrics |= {"shadow_loss": float(models.loss[-1].mean())}
    return metrics | {"reasons": _reasons(metrics)}


def _statistics(
    scores: np.ndarray, reference: np.ndarray, seen: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """The attack's statistics (M,) of scores (M,) by shadow models' (K, M): online and offline."""
    fitted = moments(reference, seen)
    fair = calibrated(scores, reference)
    return log_ratio(fair, fitted), distance(fair, fitted)


def _per_token(
    spec: LiraSpec,
    scores: np.ndarray,
    reference: np.ndarray,
    seen: np.ndarray,
    member: np.ndarray,
) -> dict[str, Any]:
    """All numbers of log-probabilities per token, the plain ones of the target beside them."""
    ratio, offline = _statistics(scores, reference, seen)
    metrics = report_on(spec, ratio, member, "") | report_on(spec, offline, member, "offline_")
    for name, statistic in (("", ratio), ("offline_", offline), ("plain_", scores)):
        inside = statistic[member]
        outside = statistic[~member]
        metrics |= at_few_false_positives(inside, outside, name, spec.seed)
        metrics[f"{name}roc"] = roc(inside, outside)
    metrics["plain_auc"] = auc(scores[member], scores[~member])
    metrics["epsilon_heuristic"] = epsilon_heuristic(
        ratio[member], ratio[~member], spec.delta, spec.seed
    )
    return metrics


def _reasons(metrics: dict[str, Any]) -> dict[str, str]:
    """Why a metric is None."""
    reasons = {}
    for key in (key for key, value in metrics.items() if value is None):
        if key.startswith("shadow_") and metrics["shadow_models"] < FEWEST:
            reasons[key] = f"fewer than {FEWEST} shadow models"
        elif key.startswith("group_"):
            reasons[key] = "fewer than 2 groups of each kind"
        else:
            reasons[key] = "too few secrets of each kind"
    return reasons
