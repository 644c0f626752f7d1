"""Exposure of secrets that a model only ever read: how likely do they make what stands behind them?

What is no target of training (`input_only` canaries, users' turns with `learn: assistant`) is in
the context of what is, and a model may keep it all the same (Szep et al. 2026). Whether it would
say the secret is for `exposure`. Here each secret is ranked, among values that it could have had,
by the probability of the rest of its sentence after it, which training did score.

Ranks are among `candidates` values drawn at random for each secret and the secret, so that the rank
of one that was never read is uniform, whatever the model, but for ties, which are at mid-rank:
exposure is log2(candidates + 1) - log2 rank, with the null of `exposure`.
"""

from typing import Any

import numpy as np
import torch

from confide.attacks.exposure.budget import Ranking
from confide.attacks.exposure.candidates import PAD, Sentence, encode
from confide.attacks.exposure.exposure import GROUPS, judged, read_canaries, sentence_of
from confide.attacks.statistics.scoring import TOKENS, token_log_probs
from confide.attacks.target import Target
from confide.errors import InputError
from confide.models import LanguageModel
from confide.specs import ContextExposureSpec
from confide.text.planted import behind_secret
from confide.text.tokenizer import Tokenizer


def context_exposure(spec: ContextExposureSpec, target: Target) -> dict[str, Any]:
    """Exposure of every canary and every control, by number; secrets themselves are never written.

    InputError where the corpus has no canaries, or nothing stands behind their secrets.
    """
    if target.canaries is None:
        raise InputError("needs a corpus with planted canaries", key="attack", value=spec.kind)
    planted = read_canaries(target.canaries)
    shared = sentence_of(planted)
    if planted.get("answers") is None and not shared.suffix.strip():
        message = "has nothing behind its secret, by which this attack goes"
        raise InputError(message, file=target.canaries, key="suffix")
    rng = np.random.default_rng([spec.seed, len(spec.kind)])
    most = min(spec.candidates, 10**shared.digits - 1)
    metrics: dict[str, Any] = {"candidates": most + 1, "copies": planted["copies"]}
    for prefix, key in GROUPS.items():
        ranks = np.empty(len(planted[key]))
        for number, secret in enumerate(planted[key]):
            sentence = shared._replace(suffix=behind_secret(planted, key, number))
            values = values_with(int(secret), most, sentence.digits, rng)
            ranks[number] = rank_of(target, sentence, values)
        known = Ranking.of(ranks) if np.isfinite(ranks).all() else None
        numbers = judged(known, len(planted[key]), most + 1)
        metrics |= {f"{prefix}{name}": value for name, value in numbers.items()}
    return metrics


def values_with(secret: int, count: int, digits: int, rng: np.random.Generator) -> np.ndarray:
    """A secret and `count` other values (count + 1,), drawn uniformly without replacement."""
    others = rng.choice(10**digits - 1, count, replace=False)
    return np.concatenate([[secret], others + (others >= secret)])


def rank_of(target: Target, sentence: Sentence, values: np.ndarray) -> float:
    """Rank of the first of some values (n,), the likeliest 1; NaN where scores are not finite."""
    scores = behind(target.model, target.tokenizer, sentence, values)
    if not np.isfinite(scores).all():
        return float("nan")
    above = int((scores > scores[0]).sum())
    ties = int((scores == scores[0]).sum())
    return above + (ties + 1) / 2


@torch.inference_mode()
def behind(
    model: LanguageModel, tokenizer: Tokenizer, sentence: Sentence, values: np.ndarray
) -> np.ndarray:
    """log p (n,) float64 in nats of what stands behind each value (n,), after the value."""
    texts = sentence.texts(values)
    ids = encode(tokenizer, texts, 0)
    before = encode(tokenizer, texts, len(sentence.suffix.encode()))
    scored = torch.from_numpy((ids != PAD) & (before == PAD))
    tokens = torch.from_numpy(np.where(ids == PAD, model.bos, ids).astype(np.int64))
    size = max(1, TOKENS // tokens.shape[1])
    parts = []
    for rows, marks in zip(tokens.split(size), scored.split(size), strict=True):
        rows = rows.to(model.device)
        marks = marks.to(model.device)
        inputs = torch.cat([torch.full_like(rows[:, :1], model.bos), rows[:, :-1]], 1)
        hidden = model.hidden(inputs).flatten(0, 1)
        places = marks.flatten().nonzero().flatten()
        logs = token_log_probs(model, hidden, places, rows.flatten()[places])
        sums = torch.zeros(len(rows), dtype=torch.float64, device=model.device)
        parts.append(sums.index_add_(0, places // rows.shape[1], logs))
    return torch.cat(parts).cpu().numpy()
