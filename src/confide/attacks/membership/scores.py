"""Scores of membership: what a model thinks of a secret's tokens, itself and beside what makes a
string likely anyhow.

Carlini et al. 2021 (section 5.1) divide the perplexity by that of the lower-cased text or of a
reference model, and its logarithm by the number of zlib bytes; here the first two are logarithms of
those ratios, with the sign turned, so that higher means member everywhere. Min-K%++ (Zhang et al.
2024): each token's log-probability in standard deviations from its mean under the model's own
distribution, averaged over the k % of tokens where that is lowest.
"""

import zlib
from collections.abc import Callable, Iterator
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor, nn
from tqdm import tqdm

from confide.attacks.membership.members import Candidate, tokens_of
from confide.attacks.statistics.scoring import token_log_probs
from confide.attacks.target import Target
from confide.errors import InputError
from confide.models.batches import by_length, padded, token_masks
from confide.specs import MembershipSpec
from confide.types import View

BATCH = 64  # texts in one forward pass
ROWS = 64  # distributions over the vocabulary held at once
# nats: a distribution with a smaller deviation is uniform or certain, and the deviation rounding
FLAT = 1e-4


def secret_tokens(model: nn.Module, view: View) -> Iterator[tuple[np.ndarray, Tensor, Tensor]]:
    """Batch by batch, for each private token: its text (m,), the hidden state (m, d) before it, and
    its id (m,).
    """
    device = next(model.parameters()).device
    with tqdm(total=len(view), desc="membership", unit="text", disable=None) as bar:
        for piece in by_length(view, np.arange(len(view)), BATCH):
            batch = padded(view, piece, model.bos)
            marks = token_masks(view, view.private, piece, tuple(batch.targets.shape))
            hidden = model.hidden(batch.inputs.to(device))[marks.to(device)]
            yield piece[marks.nonzero()[:, 0].numpy()], hidden, batch.targets[marks].to(device)
            bar.update(len(piece))


@torch.inference_mode()
def secret_log_probs(model: nn.Module, view: View) -> tuple[np.ndarray, np.ndarray]:
    """Total log-probability in nats (N,) float64 and number (N,) of the private tokens of each
    text.
    """
    total = np.zeros(len(view))
    count = np.zeros(len(view), dtype=np.int64)
    for texts, hidden, tokens in secret_tokens(model, view):
        logs = token_log_probs(
            model, hidden, torch.arange(len(texts), device=hidden.device), tokens
        )
        np.add.at(total, texts, logs.cpu().numpy())
        np.add.at(count, texts, 1)
    return total, count


@torch.inference_mode()
def standardised(model: nn.Module, view: View) -> list[np.ndarray]:
    """Of each of N texts, its private tokens' (log p - mean) / deviation of log p under the model's
    own distribution.
    """
    found: list[list[float]] = [[] for _ in range(len(view))]
    for texts, hidden, tokens in secret_tokens(model, view):
        parts = zip(hidden.split(ROWS), tokens.split(ROWS), strict=True)
        values = torch.cat(
            [_standardised(model.head(states).double(), wanted) for states, wanted in parts]
        )
        for text, value in zip(texts, values.tolist(), strict=True):
            found[text].append(value)
    return [np.array(values) for values in found]


def _standardised(logits: Tensor, tokens: Tensor) -> Tensor:
    """The same (m,) from logits (m, V); 0 where all tokens are equally likely."""
    logs = logits.log_softmax(-1)
    share = logs.exp()
    away = logs - (share * logs).sum(-1, keepdim=True)
    deviation = (share * away.square()).sum(-1).sqrt()
    return away.gather(-1, tokens[:, None])[:, 0] / deviation.clamp(min=FLAT)


@dataclass(frozen=True, slots=True)
class Asked:
    """What the scores are made of."""

    spec: MembershipSpec
    target: Target
    candidates: list[Candidate]
    view: View  # their texts
    per_token: np.ndarray  # (M,): mean log-probability of the secret's tokens, minus log-perplexity


def lowercase(asked: Asked) -> np.ndarray:
    """Mean log-probability less that of the secret in lower case, in the same text; 0 for a secret
    that has no capitals.
    """
    cased = [
        i
        for i, candidate in enumerate(asked.candidates)
        if candidate.secret != candidate.secret.lower()
    ]
    found = np.zeros(
        len(asked.candidates)
    )  # exactly 0: what is not scored has no float noise that a sort could read
    if cased:
        view = tokens_of([lowered(asked.candidates[i]) for i in cased], asked.target.tokenizer)
        total, count = secret_log_probs(asked.target.model, view)
        found[cased] = asked.per_token[cased] - total / count
    return found


def lowered(candidate: Candidate) -> Candidate:
    """The same candidate with its secret in lower case."""
    secret, (before, after) = (
        candidate.secret.lower(),
        (candidate.text[: candidate.start], candidate.text[candidate.end :]),
    )
    return candidate._replace(
        secret=secret, text=before + secret + after, end=candidate.start + len(secret)
    )


def zlib_score(asked: Asked) -> np.ndarray:
    """Minus log-perplexity over the bytes that zlib makes of the secret."""
    return asked.per_token / [
        len(zlib.compress(candidate.secret.encode())) for candidate in asked.candidates
    ]


def min_k(asked: Asked) -> np.ndarray:
    """Min-K%++: mean of the lowest k % of the secret's standardised log-probabilities, at least of
    one.
    """
    tokens = standardised(asked.target.model, asked.view)
    return np.array(
        [np.sort(own)[: max(1, int(len(own) * asked.spec.min_k / 100))].mean() for own in tokens]
    )


def reference(asked: Asked) -> np.ndarray:
    """Mean log-probability less that under the reference model."""
    if asked.target.reference is None:
        raise InputError("needs the reference model", key="reference", value=asked.spec.reference)
    total, count = secret_log_probs(asked.target.reference, asked.view)
    return asked.per_token - total / count


SCORES: dict[str, Callable[[Asked], np.ndarray]] = {
    "lowercase": lowercase,
    "zlib": zlib_score,
    "min_k": min_k,
    "reference": reference,
}
