"""Scores of membership: what a model thinks of a secret, itself and beside what is likely anyhow.

Carlini et al. 2021 (section 5.1) divide the perplexity by that of the lower-cased text or of a
reference model, and its logarithm by the number of zlib bytes; here the first two are logarithms of
those ratios, with the sign turned, so that higher means member everywhere. Min-K%++ (Zhang et al.
2024): each token's log-probability in standard deviations from its mean under the model's own
distribution, averaged over the k % of tokens where that is lowest.
"""

import zlib
from collections.abc import Callable, Iterator
from typing import NamedTuple

import numpy as np
import torch
from torch import Tensor
from tqdm import tqdm

from confide.attacks.membership.members import Candidate, tokens_of
from confide.attacks.statistics.scoring import token_log_probs
from confide.attacks.target import Target
from confide.errors import InputError
from confide.models import LanguageModel
from confide.models.batches import by_length, padded, token_masks
from confide.specs import MembershipSpec
from confide.types import View

BATCH = 64  # texts in one forward pass
ROWS = 64  # distributions over the vocabulary held at once
# nats: a distribution with a smaller deviation is uniform or certain, and the deviation rounding
FLAT = 1e-4


def secret_tokens(model: LanguageModel, view: View) -> Iterator[tuple[np.ndarray, Tensor, Tensor]]:
    """All private tokens, batch by batch.

    For each there is its text (m,), the hidden state (m, d) before it, and its id (m,).
    """
    device = model.device
    with tqdm(total=len(view), desc="membership", unit="text", disable=None) as bar:
        for piece in by_length(view, np.arange(len(view)), BATCH):
            batch = padded(view, piece, model.bos)
            rows, width = batch.targets.shape
            marks = token_masks(view, view.private, piece, (rows, width))
            hidden = model.hidden(batch.inputs.to(device))[marks.to(device)]
            yield piece[marks.nonzero()[:, 0].numpy()], hidden, batch.targets[marks].to(device)
            bar.update(len(piece))


@torch.inference_mode()
def secret_log_probs(model: LanguageModel, view: View) -> tuple[np.ndarray, np.ndarray]:
    """Total log-probability in nats (N,) float64 and number (N,) of each text's private tokens."""
    total = np.zeros(len(view))
    count = np.zeros(len(view), dtype=np.int64)
    for texts, hidden, tokens in secret_tokens(model, view):
        each = torch.arange(len(texts), device=hidden.device)
        np.add.at(total, texts, token_log_probs(model, hidden, each, tokens).cpu().numpy())
        np.add.at(count, texts, 1)
    return total, count


@torch.inference_mode()
def standardised(model: LanguageModel, view: View) -> list[np.ndarray]:
    """Of each of N texts, its private tokens' standardised log-probabilities.

    Those are (log p - mean) / deviation of log p under the model's own distribution.
    """
    values: list[list[float]] = [[] for _ in range(len(view))]
    for texts, hidden, tokens in secret_tokens(model, view):
        parts = [
            _standardised(model.head(states).double(), wanted)
            for states, wanted in zip(hidden.split(ROWS), tokens.split(ROWS), strict=True)
        ]
        for text, value in zip(texts, torch.cat(parts).tolist(), strict=True):
            values[text].append(value)
    return [np.array(of_text) for of_text in values]


def _standardised(logits: Tensor, tokens: Tensor) -> Tensor:
    """Standardised log-probabilities (m,) of tokens (m,) from logits (m, V).

    0 where all tokens are equally likely.
    """
    logs = logits.log_softmax(-1)
    share = logs.exp()
    away = logs - (share * logs).sum(-1, keepdim=True)
    deviation = (share * away.square()).sum(-1).sqrt()
    return away.gather(-1, tokens[:, None])[:, 0] / deviation.clamp(min=FLAT)


class ScoreInputs(NamedTuple):
    """What the scores are made of."""

    spec: MembershipSpec
    target: Target
    candidates: list[Candidate]
    view: View  # their texts
    per_token: np.ndarray  # (M,): mean log-probability of the secret's tokens, minus log-perplexity


def lowercase(inputs: ScoreInputs) -> np.ndarray:
    """Mean log-probability less that of the secret in lower case, in the same text.

    It is exactly 0 for a secret that has no capitals, which is not scored again: so it has no float
    noise that a sort could read.
    """
    lowered = {
        place: candidate.with_secret(candidate.secret.lower())
        for place, candidate in enumerate(inputs.candidates)
        if candidate.secret != candidate.secret.lower()
    }
    scores = np.zeros(len(inputs.candidates))
    if lowered:
        view = tokens_of(list(lowered.values()), inputs.target.tokenizer)
        total, count = secret_log_probs(inputs.target.model, view)
        cased = list(lowered)
        scores[cased] = inputs.per_token[cased] - total / count
    return scores


def zlib_score(inputs: ScoreInputs) -> np.ndarray:
    """Minus log-perplexity over the bytes that zlib makes of the secret."""
    sizes = [len(zlib.compress(candidate.secret.encode())) for candidate in inputs.candidates]
    return inputs.per_token / sizes


def min_k(inputs: ScoreInputs) -> np.ndarray:
    """Min-K%++: mean of the lowest k % of the secret's standardised log-probabilities.

    It is taken over one token at least.
    """

    def lowest(values: np.ndarray) -> np.ndarray:
        return np.sort(values)[: max(1, int(len(values) * inputs.spec.min_k / 100))]

    return np.array(
        [lowest(values).mean() for values in standardised(inputs.target.model, inputs.view)]
    )


def reference(inputs: ScoreInputs) -> np.ndarray:
    """Mean log-probability less that under the reference model."""
    if inputs.target.reference is None:
        raise InputError("needs the reference model", key="reference", value=inputs.spec.reference)
    total, count = secret_log_probs(inputs.target.reference, inputs.view)
    return inputs.per_token - total / count


SCORES: dict[str, Callable[[ScoreInputs], np.ndarray]] = {
    "lowercase": lowercase,
    "zlib": zlib_score,
    "min_k": min_k,
    "reference": reference,
}
