"""Membership inference on secrets: are those of the training text likelier than others like them?

The score is the mean log-probability of the secret's tokens in their text, minus log perplexity
(and their total, `total_`); a group's score is the sum over it (CRT, A.5). Further scores are
those of Shi et al. 2022 and Min-K%++ (`scores.py`), and `members.py` says who is asked about. The
metrics name the setting, and what blind baselines make of it.
"""

from functools import partial
from typing import Any

import numpy as np

from confide.attacks.membership.members import Candidate, candidates_of, tokens_of
from confide.attacks.membership.scores import SCORES, ScoreInputs, secret_log_probs
from confide.attacks.statistics.blind import BASELINES
from confide.attacks.statistics.metrics import (
    accuracy_null,
    auc,
    auc_interval,
    auc_null,
    balanced_accuracy,
    bootstrap,
    calibrated_accuracy,
    ends,
    hull,
    share_interval,
    tpr_at_fpr,
    tpr_interval,
)
from confide.attacks.statistics.scoring import NOT_FINITE
from confide.attacks.target import Target
from confide.specs import LiraSpec, MembershipSpec

FEWEST = 10  # of each class; below, no number means anything
RATES = (0.01, 0.001)
Asking = MembershipSpec | LiraSpec


def judged(
    scores: np.ndarray, member: np.ndarray, repeats: int, seed: int, prefix: str
) -> dict[str, Any]:
    """AUC and balanced accuracy of scores (M,), each with its interval and null band.

    The interval is that of the bootstrap, but never narrower than what so few scores can tell:
    where all members lie above all others, every resample says the same.

    Beside them stands the accuracy with a threshold that was chosen on other candidates: the
    papers' knows how many are members.
    """
    inside = scores[member]
    outside = scores[~member]
    m = len(inside)
    n = len(outside)
    area = auc(inside, outside)
    accuracy = balanced_accuracy(inside, outside)
    metrics: dict[str, Any] = {"auc": area, "acc_balanced": accuracy}
    for name, metric, known in (
        ("auc", auc, auc_interval(area, m, n)),
        ("acc_balanced", balanced_accuracy, share_interval(accuracy, min(m, n))),
    ):
        drawn = bootstrap(metric, inside, outside, repeats, np.random.default_rng(seed))
        metrics |= ends(name, hull(drawn, known))
    metrics |= ends("auc_null", auc_null(m, n)) | ends("acc_balanced_null", accuracy_null(m, n))
    metrics["acc_calibrated"] = calibrated_accuracy(inside, outside, np.random.default_rng(seed))
    return {f"{prefix}{key}": value for key, value in metrics.items()}


def at_few_false_positives(
    inside: np.ndarray, outside: np.ndarray, prefix: str, seed: int
) -> dict[str, float | None]:
    """True positive rates at the usual false positive rates, each with its interval."""
    metrics: dict[str, float | None] = {}
    for rate in RATES:
        name = f"{prefix}tpr_at_fpr_{rate}"
        interval = tpr_interval(inside, outside, rate, np.random.default_rng(seed))
        metrics[name] = tpr_at_fpr(inside, outside, rate)
        metrics |= ends(name, interval or (None, None))
    return metrics


def grouped(
    scores: np.ndarray, member: np.ndarray, size: int, rng: np.random.Generator
) -> tuple[np.ndarray, np.ndarray]:
    """Sums over disjoint random groups of `size` members or non-members each.

    What does not fill a group is left out. Beside the sums: which are of members.
    """
    sums = []
    kinds = []
    for kind in (True, False):
        order = rng.permutation(np.flatnonzero(member == kind))
        groups = order[: len(order) // size * size].reshape(-1, size)
        sums.append(scores[groups].sum(1))
        kinds.append(np.full(len(groups), kind))
    return np.concatenate(sums), np.concatenate(kinds)


def report_on(spec: Asking, scores: np.ndarray, member: np.ndarray, prefix: str) -> dict[str, Any]:
    """All numbers of one score, of single secrets and of groups.

    The groups are the same ones for every score.
    """
    metrics = judged(scores, member, spec.bootstrap, spec.seed, prefix)
    sums, kinds = grouped(scores, member, spec.group, np.random.default_rng(spec.seed))
    if kinds.sum() < 2:
        return metrics | {f"group_{prefix}auc": None, f"group_{prefix}acc_balanced": None}
    return metrics | judged(sums, kinds, spec.bootstrap, spec.seed, f"group_{prefix}")


def members_of(candidates: list[Candidate]) -> np.ndarray:
    """Which candidates are members, (M,) bool."""
    return np.array([candidate.member for candidate in candidates], dtype=bool)


def counts_of(spec: Asking, member: np.ndarray) -> dict[str, Any]:
    """How many are asked about."""
    return {
        "label": spec.label,
        "members": int(member.sum()),
        "non_members": int((~member).sum()),
        "group": spec.group,
        "groups": int(member.sum()) // spec.group,
    }


def nothing(reason: str) -> dict[str, Any]:
    """What stands in the place of the numbers of an attack that tells nothing."""
    return {"auc": None, "acc_balanced": None, "reason": reason}


def membership(spec: MembershipSpec, target: Target) -> dict[str, Any]:
    """Attack the secrets of the labels.

    Metrics are None, with a reason, where the corpus has too few of them.
    """
    chosen = candidates_of(spec, target.points)
    comparable = partial(within_kinds, np.array([candidate.label for candidate in chosen]))
    member = members_of(chosen)
    metrics = counts_of(spec, member)
    metrics |= {"non_members_from": spec.non_members, "context": spec.context}
    if member.sum() < FEWEST:
        return metrics | nothing(f"fewer than {FEWEST} members or non-members")
    view = tokens_of(chosen, target.tokenizer)
    total, count = secret_log_probs(target.model, view)
    if not np.isfinite(total).all():
        return metrics | nothing(NOT_FINITE)
    inputs = ScoreInputs(spec, target, chosen, view, total / count)
    per_token = comparable(inputs.per_token)
    metrics |= report_on(spec, per_token, member, "")
    metrics |= report_on(spec, comparable(total), member, "total_")
    metrics |= at_few_false_positives(per_token[member], per_token[~member], "", spec.seed)
    for name in [*spec.scores, *(["reference"] if spec.reference is not None else [])]:
        scores = SCORES[name](inputs)
        if np.isfinite(scores).all():
            metrics |= judged(comparable(scores), member, spec.bootstrap, spec.seed, f"{name}_")
        else:  # another model or another text may have such probabilities
            metrics |= {f"{name}_auc": None, f"{name}_acc_balanced": None}
    secrets = [candidate.secret for candidate in chosen]
    for name, baseline in BASELINES.items():
        scores = comparable(baseline(secrets, member, spec.seed))
        metrics |= report_on(spec, scores, member, f"blind_{name}_")
    return metrics | {"reasons": _reasons(metrics)}


def within_kinds(labels: np.ndarray, scores: np.ndarray) -> np.ndarray:
    """Scores (M,) that may be compared across kinds of secrets.

    Of several kinds each has its mean taken off, and is divided by its deviation: a name is
    likelier than a number, whoever was in the text. Which are members is not looked at.
    """
    kinds = np.unique(labels)
    if len(kinds) == 1:
        return scores
    levelled = np.empty(len(scores))
    for kind in kinds:
        of_kind = scores[labels == kind]
        deviation = of_kind.std()
        levelled[labels == kind] = (of_kind - of_kind.mean()) / (deviation or 1.0)
    return levelled


def _reasons(metrics: dict[str, Any]) -> dict[str, str]:
    """Why a metric is None."""
    reasons = {}
    for key in (key for key, value in metrics.items() if value is None):
        few = [rate for rate in RATES if key.startswith(f"tpr_at_fpr_{rate}")]
        if few:
            reasons[key] = f"fewer than {round(1 / few[-1])} non-members"
        elif key.startswith("group_"):
            reasons[key] = "fewer than 2 groups of each kind"
        else:
            reasons[key] = "the score is not finite"
    return reasons
