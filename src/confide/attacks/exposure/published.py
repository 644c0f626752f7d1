"""Exposure as Selective-DP published it (Shi et al. 2022, attacks/canary_insertion.py of their
code), beside the honest one.

Candidates are ranked by mean log-probability per token of the whole sentence, its first token not
counted (their models read no begin token, ours do), ties in numeric order. With a tokenizer that
merges digits, candidates differ in their number of tokens, and the mean favours those that are cut
into more pieces.
"""

import math
from typing import Any

import numpy as np
import torch
from torch import nn
from tqdm import tqdm

from confide.attacks.exposure.candidates import BATCH, distinct_tree, encode, texts
from confide.attacks.exposure.tree import PAD, read, sequence_log_probs
from confide.attacks.statistics.scoring import token_log_probs
from confide.attacks.target import Target
from confide.text.tokenizer import Tokenizer

MOST_DIGITS = 6  # nothing is pruned, and all scores are held at once
NOT_FINITE = "the model's probabilities are not finite"


def published_ranks(
    target: Target,
    template: dict[str, Any],
    values: np.ndarray,
    honest: np.ndarray | None,
    sizes: dict[str, float],
    chunk: int,
) -> tuple[np.ndarray | None, str]:
    """Published ranks (S,) of the values (S,), or None and why; `honest`: their ranks by total, and
    `sizes` of that search.

    Where all candidates have equally many tokens, which differ in digits alone and not in the first
    token, the order is that of the total, and its ranks are taken with their mid-ranks for ties.
    """
    prefix = template["prefix"]
    suffix = template["suffix"]
    digits = template["digits"]
    if honest is None:
        return None, NOT_FINITE
    first_is_common = len(target.tokenizer.encode(prefix + "0" * digits)) > sizes["tokens_max"]
    if sizes["tokens_min"] == sizes["tokens_max"] and not suffix and first_is_common:
        return honest, ""
    if digits > MOST_DIGITS:
        return None, f"more than {MOST_DIGITS} digits"
    scores = mean_log_probs(
        target.model,
        tokenizer=target.tokenizer,
        prefix=prefix,
        suffix=suffix,
        digits=digits,
        chunk=chunk,
    )
    return (ordinal_ranks(scores, values), "") if np.isfinite(scores).all() else (None, NOT_FINITE)


def published_summary(ranks: np.ndarray | None, reason: str, candidates: int) -> dict[str, Any]:
    """Exposures of ranks (S,), their mean and maximum; None where there are no ranks, or no
    secrets.
    """
    if ranks is None:
        return {
            "published_exposures": None,
            "published_mean": None,
            "published_max": None,
            "published_reason": reason,
        }
    found = math.log2(candidates) - np.log2(ranks)
    some = len(ranks) > 0
    return {
        "published_exposures": found.tolist(),
        "published_mean": float(found.mean()) if some else None,
        "published_max": float(found.max()) if some else None,
    }


def mean_log_probs(
    model: nn.Module, tokenizer: Tokenizer, prefix: str, suffix: str, digits: int, chunk: int
) -> np.ndarray:
    """Mean log-probability per token (10^digits,) float64 of each candidate's whole sentence, its
    first token not counted.
    """
    found = []
    first = first_log_probs(model)
    with tqdm(
        total=10**digits, desc="published exposure", unit="candidate", unit_scale=True, disable=None
    ) as bar:
        for start in range(0, 10**digits, BATCH):
            values = np.arange(start, min(start + BATCH, 10**digits))
            rows = encode(tokenizer, texts(prefix, suffix, digits, values), 0)
            total = sequence_log_probs(model, distinct_tree(tokenizer.bos_id, rows), chunk)
            found.append((total - first[rows[:, 0]]) / np.maximum((rows != PAD).sum(1) - 1, 1))
            bar.update(len(values))
    return np.concatenate(found)


@torch.inference_mode()
def first_log_probs(model: nn.Module) -> np.ndarray:
    """log p(token | begin token), (V,) float64, of all tokens."""
    hidden = read(model, (model.bos,), {}).hidden
    tokens = torch.arange(model.vocab_size, device=hidden.device)
    return token_log_probs(model, hidden, torch.zeros_like(tokens), tokens).cpu().numpy()


def ordinal_ranks(scores: np.ndarray, which: np.ndarray) -> np.ndarray:
    """Ranks (S,), from 1 for the highest score, of the candidates (S,) among scores (R,); ties in
    the candidates' order.
    """
    own = scores[which]
    likelier = len(scores) - np.searchsorted(np.sort(scores), own, side="right")
    tied = [(scores[:value] == score).sum() for value, score in zip(which, own, strict=True)]
    return 1.0 + likelier + np.array(tied, dtype=np.float64)
