"""Perplexity and next-token accuracy: overall, on public and on private (gold secret) tokens; never
one without the others.

One pass over the points scores every token; shares of the tokens, domains and authors are sums over
parts of it. Beside them what a model has to beat that reads no context: all tokens alike, or each
as often as in the training text. Authors are those of Privacy Regularization (section 3): whose
text a model serves, and how much of theirs it was trained on.
"""

import math
from functools import partial
from typing import Any, NamedTuple

import numpy as np
import torch
from torch import Tensor

from confide.models.batches import Batch, by_length, losses_of, padded
from confide.models.head import IGNORE
from confide.models.language_model import LanguageModel
from confide.types import View

BATCH = 256
LOGITS = 1 << 28  # of one pass, as many numbers
LOGITS_OF_CPU = 1 << 23  # fewer, for they are looked at twice and should still be in its cache


class Scores(NamedTuple):
    """Every target of some points, S in all; the last of a point is its end.

    Where a view says what is learned, those are left out that are not.
    """

    point: np.ndarray  # (S,) int64
    place: (
        np.ndarray
    )  # (S,) int64: of the token in the view's ids; -1: the end, which no mask marks
    loss: np.ndarray  # (S,) float64, nats
    hit: np.ndarray  # (S,) bool: the most likely token is the right one

    def marked(self, mask: np.ndarray) -> np.ndarray:
        """(S,) bool: targets that a mask (T,) of the view's tokens marks."""
        return (
            (self.place >= 0) & mask[self.place] if len(mask) else np.zeros(len(self.place), bool)
        )

    def of(self, chosen: np.ndarray) -> "Scores":
        """The targets chosen by (S,) bool."""
        return Scores(*(part[chosen] for part in self))


def at_once(model: LanguageModel, length: int) -> int:
    """How many points of so many tokens are scored in one pass."""
    logits = LOGITS_OF_CPU if model.device.type == "cpu" else LOGITS
    return max(1, min(BATCH, logits // (length * model.vocab_size)))


@torch.no_grad()
def read(model: LanguageModel, batch: Batch) -> tuple[Tensor, Tensor]:
    """Losses (B, L) in nats of a batch's targets, and whether the most likely token is right."""
    logits = model(batch.inputs)
    return losses_of(logits, batch.targets), logits.argmax(-1) == batch.targets


@torch.no_grad()
def score(model: LanguageModel, view: View, points: np.ndarray, device: str = "cpu") -> Scores:
    """Score the tokens of the given points, without dropout, in one pass."""
    training = model.training
    parts = [Scores(*(np.zeros(0, kind) for kind in (np.int64, np.int64, np.float64, bool)))]
    model.eval()
    for piece in by_length(view, points, partial(at_once, model)):
        batch = padded(view, piece, model.bos).to(torch.device(device))
        real = batch.targets != IGNORE
        of_all = read(model, batch)
        losses = of_all[0][real].double().cpu().numpy()
        hits = of_all[1][real].cpu().numpy()
        counts = view.starts[piece + 1] - view.starts[piece] + 1  # a row's tokens, then its end
        ends = counts.cumsum()
        places = np.arange(ends[-1]) + np.repeat(view.starts[piece] - ends + counts, counts)
        places[ends - 1] = -1
        scores = Scores(np.repeat(piece, counts), places, losses, hits)
        if view.learned is not None:
            scores = scores.of(np.concatenate([view.scored(point) for point in piece]))
        parts.append(scores)
    model.train(training)
    return Scores(*map(np.concatenate, zip(*parts, strict=True)))


def summary(scores: Scores, private: np.ndarray) -> dict[str, float | None]:
    """Metrics of all targets, of the public and of the private ones (S,). A share without tokens is
    None.
    """
    metrics: dict[str, float | None] = {
        "tokens": len(scores.loss),
        "tokens_private": int(private.sum()),
    }
    for suffix, chosen in (
        ("", np.ones_like(private)),
        ("_public", ~private),
        ("_private", private),
    ):
        metrics[f"ppl{suffix}"] = perplexity(scores.loss[chosen])
        metrics[f"accuracy{suffix}"] = float(scores.hit[chosen].mean()) if chosen.any() else None
    return metrics


def perplexity(losses: np.ndarray) -> float | None:
    """Exponential of the mean of losses in nats; None of none."""
    return math.exp(min(losses.mean(), 700.0)) if len(losses) else None


def bits_per_character(scores: Scores, characters: int) -> float | None:
    """What a character of the scored points costs, their ends included; None of no character.

    Perplexity is per token, and models with other tokens cannot be compared by it.
    """
    return float(scores.loss.sum() / math.log(2) / characters) if characters else None


def some_of(points: np.ndarray, limit: int, rng: np.random.Generator) -> np.ndarray:
    """At most so many of the points, in their order."""
    if len(points) <= limit:
        return points
    return np.sort(rng.choice(points, limit, replace=False))


def evaluate_points(
    model: LanguageModel, view: View, mask: np.ndarray, points: np.ndarray, device: str = "cpu"
) -> dict[str, float | None]:
    """Metrics over the given points; `mask` (T,) marks the private tokens. A share without tokens
    is None.
    """
    scores = score(model, view, points, device)
    return summary(scores, scores.marked(mask))


def by_author(scores: Scores, owner: np.ndarray, train: np.ndarray) -> list[dict[str, Any]]:
    """Of each author with text in the points `train` and in what is scored: how much of both, and
    the perplexity.

    `owner` (N,) numbers the authors of all points, -1 none. Authors are in the order of their
    numbers.
    """
    if not len(owner):
        return []
    # the first is nobody
    whose = owner[scores.point] + 1
    size = int(owner.max()) + 2
    losses = np.bincount(whose, scores.loss, size)
    tokens = np.bincount(whose, minlength=size)
    points, trained = (
        np.bincount(owner[some] + 1, minlength=size) for some in (np.unique(scores.point), train)
    )
    trained[0], rows = 0, []
    for author in np.flatnonzero((tokens > 0) & (trained > 0)).tolist():
        row = {
            "author": author - 1,
            "train_points": int(trained[author]),
            "points": int(points[author]),
        }
        rows.append(
            row
            | {
                "tokens": int(tokens[author]),
                "ppl": math.exp(min(losses[author] / tokens[author], 700.0)),
            }
        )
    return rows


def reference_points(
    view: View,
    mask: np.ndarray,
    train: np.ndarray,
    points: np.ndarray,
    vocab_size: int,
    end: int,
    *,
    counted: View | None = None,
) -> dict[str, float | None]:
    """Perplexity of the given points by a uniform guess, and by the frequency of tokens in the
    points `train` (each once more). Both look at what is learned alone, where a view says so.

    Every point ends with the token `end`, which is never private, as in training. `counted`: the
    view whose tokens are counted, if it is another one. What the redacted view gives for public
    tokens a model must beat to be of any use: anybody may have that, for it is made of what
    redaction leaves, and a private model is kept from learning the rest.
    """
    source = view if counted is None else counted
    counts = np.ones(vocab_size)
    for point in train:
        scored = source.scored(point)
        np.add.at(counts, source[point][scored[:-1]], 1)
        counts[end] += scored[-1]
    surprise = -np.log(counts / counts.sum())
    # public, private
    loss = np.zeros(2)
    tokens = np.zeros(2)
    ends = 0
    for point in points:
        scored = view.scored(point)
        ids = view[point][scored[:-1]]
        private = mask[view.starts[point] : view.starts[point + 1]][scored[:-1]]
        ends += int(scored[-1])
        for side, chosen in enumerate((ids[~private], ids[private])):
            loss[side] += surprise[chosen].sum()
            tokens[side] += len(chosen)
    loss[0] += ends * surprise[end]
    tokens[0] += ends
    perplexities: dict[str, float | None] = {"ppl_uniform": float(vocab_size)}
    for suffix, spent, count in (
        ("", loss.sum(), tokens.sum()),
        ("_public", loss[0], tokens[0]),
        ("_private", loss[1], tokens[1]),
    ):
        perplexities[f"ppl_unigram{suffix}"] = math.exp(spent / count) if count else None
    return perplexities


def backoff(masked: dict[str, float | None], tokens: int, vocab_size: int) -> float | None:
    """Perplexity of `tokens` marked tokens by a model of redacted text: it predicts the mask, what
    that is for is guessed.

    `masked`: metrics over the redacted view, whose private tokens are the masks. Every token behind
    a mask is one of the vocabulary, all alike, and their number is known; without this a model that
    never saw the text behind masks is tested on what it was trained never to predict (Selective-DP
    Figure 5).
    """
    ppl = masked["ppl_private"]
    if not tokens or ppl is None:
        return None
    masks = masked["tokens_private"] or 0
    of_masks = math.exp(min(math.log(ppl) * masks / tokens, 700.0))
    return of_masks * vocab_size
