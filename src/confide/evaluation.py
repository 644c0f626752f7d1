"""Perplexity and next-token accuracy: overall, on public and on private (gold secret) tokens; never one without the others.

Beside them what a model has to beat that reads no context: all tokens alike, or each as often as in the training text.
"""

import math
from collections.abc import Iterator

import numpy as np
import torch
from torch import nn

from confide.batches import by_length, losses_of, padded, token_masks
from confide.models.head import IGNORE
from confide.types import View

BATCH = 256


@torch.no_grad()
def _totals(model: nn.Module, view: View, mask: np.ndarray, points: np.ndarray, device: str) -> Iterator[np.ndarray]:
    """Per batch: (loss, hits, tokens) for public, then private targets, (2, 3) float64."""
    for piece in by_length(view, points, BATCH):
        batch = padded(view, piece, model.bos).to(torch.device(device))
        logits, targets = model(batch.inputs), batch.targets
        losses = losses_of(logits, targets)
        hits = (logits.argmax(-1) == targets).double()
        private = token_masks(view, mask, piece, tuple(targets.shape)).to(device)
        real = targets != IGNORE
        rows = []
        for chosen in (real & ~private, real & private):
            rows.append([(losses.double() * chosen).sum().item(), (hits * chosen).sum().item(), chosen.sum().item()])
        yield np.array(rows)


def evaluate_points(
    model: nn.Module, view: View, mask: np.ndarray, points: np.ndarray, device: str = "cpu"
) -> dict[str, float | None]:
    """Metrics over the given points; `mask` (T,) marks the private tokens. A share without tokens is None."""
    training = model.training
    model.eval()
    public, private = sum(_totals(model, view, mask, points, device), start=np.zeros((2, 3)))
    model.train(training)
    metrics: dict[str, float | None] = {"tokens": int(public[2] + private[2]), "tokens_private": int(private[2])}
    for suffix, (loss, hits, tokens) in (("", public + private), ("_public", public), ("_private", private)):
        metrics[f"ppl{suffix}"] = math.exp(min(loss / tokens, 700.0)) if tokens else None
        metrics[f"accuracy{suffix}"] = hits / tokens if tokens else None
    return metrics


def reference_points(
    view: View, mask: np.ndarray, train: np.ndarray, points: np.ndarray, vocab_size: int, end: int
) -> dict[str, float | None]:
    """Perplexity of the given points by a uniform guess, and by the frequency of tokens in the points `train` (each once more).

    Every point ends with the token `end`, which is never private, as in training.
    """
    counts = np.ones(vocab_size)
    for point in train:
        np.add.at(counts, view[point], 1)
    counts[end] += len(train)
    surprise = -np.log(counts / counts.sum())
    loss, tokens = np.zeros(2), np.zeros(2)  # public, private
    for point in points:
        ids, private = view[point], mask[view.starts[point] : view.starts[point + 1]]
        for side, chosen in enumerate((ids[~private], ids[private])):
            loss[side] += surprise[chosen].sum()
            tokens[side] += len(chosen)
    loss[0] += len(points) * surprise[end]
    tokens[0] += len(points)
    found: dict[str, float | None] = {"ppl_uniform": float(vocab_size)}
    for suffix, spent, count in (
        ("", loss.sum(), tokens.sum()),
        ("_public", loss[0], tokens[0]),
        ("_private", loss[1], tokens[1]),
    ):
        found[f"ppl_unigram{suffix}"] = math.exp(spent / count) if count else None
    return found


def backoff(masked: dict[str, float | None], tokens: int, vocab_size: int) -> float | None:
    """Perplexity of `tokens` marked tokens by a model of redacted text: it predicts the mask, what that is for is guessed.

    `masked`: metrics over the redacted view, whose private tokens are the masks. Every token behind a mask is one of the
    vocabulary, all alike, and their number is known; without this a model that never saw the text behind masks is tested on
    what it was trained never to predict (Selective-DP Figure 5).
    """
    if not tokens or masked["ppl_private"] is None:
        return None
    return math.exp(min(math.log(masked["ppl_private"]) * masked["tokens_private"] / tokens, 700.0)) * vocab_size


def share_of(view: View, points: np.ndarray) -> float | None:
    """Share of the tokens of some points that are marked; None where there are none."""
    lengths = np.diff(view.starts)[points]
    before = np.concatenate([[0], np.cumsum(view.private)])
    marked = (before[view.starts[1:]] - before[view.starts[:-1]])[points]
    return float(marked.sum() / lengths.sum()) if lengths.sum() else None
