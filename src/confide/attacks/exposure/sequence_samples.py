"""How many sequences of a space are likelier than some given ones: an estimate, with its interval.

Sequences are drawn word by word from the model restricted to the vocabulary, at several
temperatures; infinity is the uniform distribution. A sample's weight is one over the number of
samples expected at its place from all of them together (the balance heuristic of Veach and Guibas
1995), so that the weights of those that are likelier than a target add up to their number, and no
weight is large: p^(1/T) / Z >= p^(1/T) V^(1/T - 1) for each word. Such a sum is like one of
weighted Poisson counts, and its interval that of Fay and Feuer 1997, which holds at least 95 % for
any weights below a known one.
"""

from math import log
from typing import NamedTuple

import numpy as np
import torch
from torch import Tensor

from confide.attacks.exposure.sequence_search import TIE
from confide.attacks.exposure.tree import STATE_BYTES
from confide.attacks.exposure.words import Space
from confide.attacks.statistics.metrics import TAILS
from confide.attacks.statistics.scoring import word_log_probs
from confide.models import LanguageModel

TEMPERATURES = (1.0, 1.5, 2.0, 4.0, torch.inf)


class Samples(NamedTuple):
    """n sequences, an equal number from each temperature."""

    places: np.ndarray  # (n, length) int64 in the vocabulary
    score: np.ndarray  # (n,) log-probability
    weight: np.ndarray  # (n,): sequences that this one stands for
    uniform: np.ndarray  # (n,) bool: drawn uniformly
    each: int  # from each temperature


def _drawn(logs: Tensor, numbers: Tensor) -> Tensor:
    """A place (n,) per row of log-probabilities (n, V) at uniform numbers (n,)."""
    total = logs.exp().cumsum(1)
    place = torch.searchsorted(total, numbers[:, None] * total[:, -1:], right=True)
    return place.clamp(max=logs.shape[1] - 1)[:, 0]


@torch.inference_mode()
def draw(model: LanguageModel, space: Space, count: int, chunk: int, seed: int) -> Samples:
    """About `count` sequences; the numbers that decide them are the same on every device."""
    device = model.device
    if model.cache_bytes:
        chunk = max(1, min(chunk, STATE_BYTES // (model.cache_bytes * (space.length + 1))))
    each = max(1, count // len(TEMPERATURES))
    source = torch.Generator().manual_seed(seed)
    numbers = torch.rand(
        each * len(TEMPERATURES), space.length, dtype=torch.float64, generator=source
    )
    which = torch.arange(len(TEMPERATURES)).repeat_interleave(each)
    vocabularies = space.vocabularies(device)
    parts = [
        _continued(model, vocabularies, deciding.to(device), kind.to(device))
        for deciding, kind in zip(numbers.split(chunk), which.split(chunk), strict=True)
    ]
    places, score, density = (torch.cat(part).cpu().numpy() for part in zip(*parts, strict=True))
    weight = np.exp(-np.logaddexp.reduce(density, axis=1)) / each
    return Samples(places, score, weight, (which == len(TEMPERATURES) - 1).numpy(), each)


def _continued(
    model: LanguageModel, vocabularies: list[Tensor], numbers: Tensor, which: Tensor
) -> tuple[Tensor, Tensor, Tensor]:
    """Places (n, length) that numbers (n, length) decide, their log-probabilities and densities.

    These are log-probabilities (n,) and log-densities (n, temperatures).
    """
    n, length = numbers.shape
    begin = torch.full((n,), model.bos, device=numbers.device)
    hidden, state = model.advance(model.start(n), begin)
    score = numbers.new_zeros(n)
    density = numbers.new_zeros(n, len(TEMPERATURES))
    places = []
    for step, tokens in enumerate(vocabularies):
        logs = word_log_probs(model, hidden, tokens)
        # (n, temperatures, V)
        tempered = torch.stack([(logs / heat).log_softmax(1) for heat in TEMPERATURES], 1)
        place = _drawn(tempered[torch.arange(n, device=which.device), which], numbers[:, step])
        score = score + logs.gather(1, place[:, None])[:, 0]
        drawn = place[:, None, None].expand(-1, len(TEMPERATURES), 1)
        density = density + tempered.gather(2, drawn)[:, :, 0]
        places.append(place)
        if step + 1 < length:
            hidden, state = model.advance(state, tokens[place])
    return torch.stack(places, 1), score, density


class Estimate(NamedTuple):
    """How many sequences are likelier than each of S targets, ties half, with its interval.

    That is two-sided, of 95 %.
    """

    value: np.ndarray
    low: np.ndarray
    high: np.ndarray


def estimate(
    samples: Samples, space: Space, targets: np.ndarray, places: np.ndarray, ceiling: float = np.inf
) -> Estimate:
    """How many are likelier than targets (S,) at places (S, length), the targets left out.

    What is at least as likely as `ceiling` is left out, too.
    """
    below = samples.score < ceiling
    rows = np.zeros((3, len(targets)))
    for number, (target, place) in enumerate(zip(targets, places, strict=True)):
        tied = np.abs(samples.score - target) <= TIE
        tied[tied] = (samples.places[tied] != place).any(1)
        counted = below & ((samples.score > target + TIE) | tied)
        weight = samples.weight * counted * np.where(tied, 0.5, 1.0)
        total = weight.sum()
        square = (weight**2).sum()
        rows[:, number] = total, *fay_feuer(total, square, heaviest(samples.each, space, target))
    return Estimate(*rows)


def heaviest(each: int, space: Space, score: float) -> float:
    """No sequence with at least this log-probability can have a larger weight.

    `each`: how many samples there are of each temperature.
    """
    logs = [score / heat - (1 - 1 / heat) * log(space.size) for heat in TEMPERATURES]
    return float(np.exp(-np.logaddexp.reduce(logs)) / each)


def fay_feuer(total: float, square: float, heaviest: float) -> tuple[float, float]:
    """Interval of 95 % of an expected sum of Poisson many weights of at most `heaviest`.

    It is made from their sum and their sum of squares.
    """
    from scipy.special import chdtri

    tail = TAILS[0]
    low = square / (2 * total) * chdtri(2 * total**2 / square, 1 - tail) if total > 0 else 0.0
    total = total + heaviest
    square = square + heaviest**2
    return float(low), float(square / (2 * total) * chdtri(2 * total**2 / square, tail))
