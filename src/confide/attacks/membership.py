"""Membership inference on secrets: does the model find secrets of its training text likelier than others of their kind?

Members occur in train only, non-members in valid or test only, so both come from the same source (random strings as
non-members would be told apart by their form alone). The candidates depend on corpus and seed, not on the model. The score
is the mean log-probability of the secret's tokens in their text, minus log perplexity; a group's score is the sum over it.
"""

from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import torch
from torch import nn
from tqdm import tqdm

from confide.attacks.blind import BASELINES
from confide.attacks.metrics import accuracy_null, auc, auc_null, balanced_accuracy, bootstrap, tpr_at_fpr
from confide.attacks.scoring import token_log_probs
from confide.attacks.target import Target
from confide.batches import by_length, padded, token_masks
from confide.data import read_rows
from confide.specs import MembershipSpec
from confide.tokenizer import Tokenizer
from confide.types import View

FEWEST = 10  # of each class; below, no number means anything
BATCH = 64  # texts in one forward pass
RATES = (0.01, 0.001)


class Candidate(NamedTuple):
    """A secret in the text where it first occurs."""

    secret: str
    text: str
    start: int
    end: int
    member: bool


def first_occurrences(points: Path, label: str) -> Iterator[Candidate]:
    """Each distinct secret of a label once, at its first place, if it stands in train only or outside train only.

    The first place of a secret is never a later copy, so deduplication takes no candidate away.
    """
    first: dict[str, Candidate] = {}
    sides: dict[str, set[bool]] = {}
    for text, split, gold in read_rows(points, "text", "split", "gold"):
        for start, end, kind, *_ in gold:
            secret = text[start:end]
            if kind == label and secret.strip():
                sides.setdefault(secret, set()).add(split == "train")
                first.setdefault(secret, Candidate(secret, text, start, end, split == "train"))
    return (candidate for secret, candidate in first.items() if len(sides[secret]) == 1)


def choose(candidates: list[Candidate], limit: int, rng: np.random.Generator) -> list[Candidate]:
    """As many non-members as members, at most `limit` each, drawn without replacement: members first."""
    sides = [[c for c in candidates if c.member], [c for c in candidates if not c.member]]
    size = min(limit, *(len(side) for side in sides))
    picks = [np.sort(rng.choice(len(side), size, replace=False)) for side in sides]
    return [side[i] for side, pick in zip(sides, picks, strict=True) for i in pick]


def tokens_of(candidates: list[Candidate], tokenizer: Tokenizer) -> View:
    """Texts of the candidates as token ids; `private` marks the tokens that overlap the secret."""
    encoded = tokenizer.encode_batch([candidate.text for candidate in candidates])
    marks = [
        [start < candidate.end and end > candidate.start for start, end in offsets]
        for candidate, (_, offsets) in zip(candidates, encoded, strict=True)
    ]
    starts = np.cumsum([0] + [len(ids) for ids, _ in encoded])
    ids = np.concatenate([np.asarray(ids, dtype=np.int32) for ids, _ in encoded])
    return View(ids, starts, np.concatenate([np.asarray(mark, dtype=bool) for mark in marks]))


@torch.inference_mode()
def secret_log_probs(model: nn.Module, view: View) -> tuple[np.ndarray, np.ndarray]:
    """Total log-probability in nats (N,) float64 and number (N,) of the private tokens of each text."""
    device = next(model.parameters()).device
    total, count = np.zeros(len(view)), np.zeros(len(view), dtype=np.int64)
    with tqdm(total=len(view), desc="membership", unit="text", disable=None) as bar:
        for piece in by_length(view, np.arange(len(view)), BATCH):
            batch = padded(view, piece, model.bos)
            marks = token_masks(view, view.private, piece, tuple(batch.targets.shape))
            row = marks.nonzero()[:, 0].numpy()
            hidden = model.hidden(batch.inputs.to(device))[marks.to(device)]
            logs = token_log_probs(model, hidden, torch.arange(len(row), device=device), batch.targets[marks].to(device))
            np.add.at(total, piece[row], logs.cpu().numpy())
            np.add.at(count, piece[row], 1)
            bar.update(len(piece))
    return total, count


def judged(scores: np.ndarray, member: np.ndarray, repeats: int, seed: int, prefix: str) -> dict[str, Any]:
    """AUC and balanced accuracy of scores (M,), each with its bootstrap interval and the null band at these sizes."""
    inside, outside = scores[member], scores[~member]
    metrics: dict[str, Any] = {}
    for name, metric, null in (("auc", auc, auc_null), ("acc_balanced", balanced_accuracy, accuracy_null)):
        low, high = bootstrap(metric, inside, outside, repeats, np.random.default_rng(seed))
        null_low, null_high = null(len(inside), len(outside))
        metrics |= {name: metric(inside, outside), f"{name}_low": low, f"{name}_high": high}
        metrics |= {f"{name}_null_low": null_low, f"{name}_null_high": null_high}
    return {f"{prefix}{key}": value for key, value in metrics.items()}


def grouped(scores: np.ndarray, member: np.ndarray, size: int, rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
    """Sums over disjoint random groups of `size` members or non-members each; what does not fill a group is left out."""
    sums, kinds = [], []
    for kind in (True, False):
        order = rng.permutation(np.flatnonzero(member == kind))
        groups = order[: len(order) // size * size].reshape(-1, size)
        sums.append(scores[groups].sum(1))
        kinds.append(np.full(len(groups), kind))
    return np.concatenate(sums), np.concatenate(kinds)


def report_on(spec: MembershipSpec, scores: np.ndarray, member: np.ndarray, prefix: str) -> dict[str, Any]:
    """All numbers of one score, single secrets and groups; the groups are the same ones for every score."""
    metrics = judged(scores, member, spec.bootstrap, spec.seed, prefix)
    sums, kinds = grouped(scores, member, spec.group, np.random.default_rng(spec.seed))
    if kinds.sum() < 2:
        return metrics | {f"group_{prefix}auc": None, f"group_{prefix}acc_balanced": None}
    return metrics | judged(sums, kinds, spec.bootstrap, spec.seed, f"group_{prefix}")


def membership(spec: MembershipSpec, target: Target) -> dict[str, Any]:
    """Attack the secrets of `spec.label`; metrics are None, with a reason, where the corpus has too few of them."""
    found = list(first_occurrences(target.points, spec.label))
    chosen = choose(found, spec.limit, np.random.default_rng(spec.seed))
    member = np.array([candidate.member for candidate in chosen], dtype=bool)
    metrics: dict[str, Any] = {"label": spec.label, "members": int(member.sum()), "non_members": int((~member).sum())}
    metrics |= {"group": spec.group, "groups": int(member.sum()) // spec.group}
    if member.sum() < FEWEST:
        return metrics | {"auc": None, "acc_balanced": None, "reason": f"fewer than {FEWEST} members or non-members"}
    total, count = secret_log_probs(target.model, tokens_of(chosen, target.tokenizer))
    if not np.isfinite(total).all():
        return metrics | {"auc": None, "acc_balanced": None, "reason": "the model's probabilities are not finite"}
    metrics |= report_on(spec, total / count, member, "") | report_on(spec, total, member, "total_")
    for rate in RATES:
        metrics[f"tpr_at_fpr_{rate}"] = tpr_at_fpr((total / count)[member], (total / count)[~member], rate)
    secrets = [candidate.secret for candidate in chosen]
    for name, baseline in BASELINES.items():
        metrics |= report_on(spec, baseline(secrets, member, spec.seed), member, f"blind_{name}_")
    return metrics | {"reasons": _reasons(metrics)}


def _reasons(metrics: dict[str, Any]) -> dict[str, str]:
    """Why a metric is None."""
    reasons = {f"tpr_at_fpr_{rate}": f"fewer than {round(1 / rate)} non-members" for rate in RATES}
    reasons |= {key: "fewer than 2 groups of each kind" for key in metrics if key.startswith("group_")}
    return {key: reasons[key] for key, value in metrics.items() if value is None and key in reasons}
