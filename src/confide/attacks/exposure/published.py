"""Exposure as Selective-DP published it, beside the honest one.

That is attacks/canary_insertion.py of their code (Shi et al. 2022). Candidates are ranked by mean
log-probability per token of the whole sentence, its first token not counted (their models read no
begin token, ours do), ties in numeric order. With a tokenizer that merges digits, candidates differ
in their number of tokens, and the mean favours those that are cut into more pieces.
"""

import math
from typing import Any

import numpy as np
import torch
from tqdm import tqdm

from confide.attacks.exposure.candidates import BATCH, Sentence, distinct_tree, encode
from confide.attacks.exposure.ranking import Sizes
from confide.attacks.exposure.tree import PAD, read, sequence_log_probs
from confide.attacks.statistics.scoring import NOT_FINITE, token_log_probs
from confide.attacks.target import Target
from confide.models import LanguageModel
from confide.text.tokenizer import Tokenizer

MOST_DIGITS = 6  # nothing is pruned, and all scores are held at once


def published_ranks(
    target: Target,
    sentence: Sentence,
    values: np.ndarray,
    honest: np.ndarray | None,
    sizes: Sizes,
    chunk: int,
) -> tuple[np.ndarray | None, str]:
    """Published ranks (S,) of the values (S,), or None and why.

    `honest`: their ranks by total, and `sizes` those of that search. Where all candidates have
    equally many tokens, which differ in digits alone and not in the first token, the order is that
    of the total, and its ranks are taken with their mid-ranks for ties.
    """
    prefix, suffix, digits = sentence
    if honest is None:
        return None, NOT_FINITE
    first_is_common = len(target.tokenizer.encode(prefix + "0" * digits)) > sizes["tokens_max"]
    if sizes["tokens_min"] == sizes["tokens_max"] and not suffix and first_is_common:
        return honest, ""
    if digits > MOST_DIGITS:
        return None, f"more than {MOST_DIGITS} digits"
    scores = mean_log_probs(target.model, target.tokenizer, sentence, chunk)
    if not np.isfinite(scores).all():
        return None, NOT_FINITE
    return ordinal_ranks(scores, values), ""


def published_summary(ranks: np.ndarray | None, reason: str, candidates: int) -> dict[str, Any]:
    """Exposures of ranks (S,), their mean and maximum; None without ranks, or without secrets."""
    if ranks is None:
        none = dict.fromkeys(("published_exposures", "published_mean", "published_max"))
        return none | {"published_reason": reason}
    bits = math.log2(candidates) - np.log2(ranks)
    return {
        "published_exposures": bits.tolist(),
        "published_mean": float(bits.mean()) if len(bits) else None,
        "published_max": float(bits.max()) if len(bits) else None,
    }


def mean_log_probs(
    model: LanguageModel, tokenizer: Tokenizer, sentence: Sentence, chunk: int
) -> np.ndarray:
    """Mean log-probability per token (10^digits,) float64 of each candidate's whole sentence.

    Its first token is not counted.
    """
    means = []
    first = first_log_probs(model)
    count = 10**sentence.digits
    with tqdm(
        total=count, desc="published exposure", unit="candidate", unit_scale=True, disable=None
    ) as bar:
        for start in range(0, count, BATCH):
            values = np.arange(start, min(start + BATCH, count))
            rows = encode(tokenizer, sentence.texts(values), 0)
            total = sequence_log_probs(model, distinct_tree(tokenizer.bos_id, rows), chunk)
            counted = np.maximum((rows != PAD).sum(1) - 1, 1)
            means.append((total - first[rows[:, 0]]) / counted)
            bar.update(len(values))
    return np.concatenate(means)


@torch.inference_mode()
def first_log_probs(model: LanguageModel) -> np.ndarray:
    """log p(token | begin token), (V,) float64, of all tokens."""
    hidden = read(model, (model.bos,), {}).hidden
    tokens = torch.arange(model.vocab_size, device=hidden.device)
    return token_log_probs(model, hidden, torch.zeros_like(tokens), tokens).cpu().numpy()


def ordinal_ranks(scores: np.ndarray, which: np.ndarray) -> np.ndarray:
    """Ranks (S,), from 1 for the highest score, of the candidates (S,) among scores (R,).

    Ties are in the candidates' order.
    """
    from scipy.stats import rankdata  # which takes more than a second to load

    return rankdata(-scores, "ordinal")[which].astype(float)
