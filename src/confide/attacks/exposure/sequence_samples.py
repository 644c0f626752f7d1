"""How many sequences of a space are likelier than some given ones: an estimate from samples, with
its interval.

Sequences are drawn word by word from the model restricted to the vocabulary, at several
temperatures; infinity is the uniform distribution. A sample's weight is one over the number of
samples expected at its place from all of them together (the balance heuristic of Veach and Guibas
1995), so that the weights of those that are likelier than a target add up to their number, and no
weight is large: p^(1/T) / Z >= p^(1/T) V^(1/T - 1) for each word. Such a sum is like one of
weighted Poisson counts, and its interval that of Fay and Feuer 1997, which holds at least 95 % for
any weights below a known one.
"""

from dataclasses import dataclass
from math import log

import numpy as np
import torch
from torch import Tensor, nn

from confide.attacks.exposure.sequence_search import TIE
from confide.attacks.exposure.words import Space
from confide.attacks.statistics.scoring import word_log_probs

TEMPERATURES = (1.0, 1.5, 2.0, 4.0, torch.inf)


@dataclass(frozen=True, slots=True)
class Samples:
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
def draw(model: nn.Module, space: Space, count: int, chunk: int, seed: int) -> Samples:
    """About `count` sequences; the numbers that decide them are the same on every device."""
    device = next(model.parameters()).device
    each = max(1, count // len(TEMPERATURES))
    source = torch.Generator().manual_seed(seed % 2**63)
    numbers = torch.rand(
        each * len(TEMPERATURES), space.length, dtype=torch.float64, generator=source
    )
    which = torch.arange(len(TEMPERATURES)).repeat_interleave(each)
    first, after = (torch.from_numpy(tokens).to(device) for tokens in (space.first, space.after))
    parts = [
        _continued(model, first, after, own.to(device), kind.to(device))
        for own, kind in zip(numbers.split(chunk), which.split(chunk), strict=True)
    ]
    places, score, density = (torch.cat(part).cpu().numpy() for part in zip(*parts, strict=True))
    weight = np.exp(-np.logaddexp.reduce(density, axis=1)) / each
    return Samples(places, score, weight, (which == len(TEMPERATURES) - 1).numpy(), each)


def _continued(
    model: nn.Module, first: Tensor, after: Tensor, numbers: Tensor, which: Tensor
) -> tuple[Tensor, Tensor, Tensor]:
    """Places (n, length), log-probabilities (n,) and log-densities (n, temperatures) for numbers
    (n, length).
    """
    n, length = numbers.shape
    hidden, state = model.advance(
        model.start(n), torch.full((n,), model.bos, device=numbers.device)
    )
    score = numbers.new_zeros(n)
    density = numbers.new_zeros(n, len(TEMPERATURES))
    places = []
    for step in range(length):
        words = after if step else first
        logs = word_log_probs(model, hidden, words)
        tempered = torch.stack(
            [(logs / heat).log_softmax(1) for heat in TEMPERATURES], 1
        )  # (n, temperatures, V)
        place = _drawn(tempered[torch.arange(n, device=which.device), which], numbers[:, step])
        score = score + logs.gather(1, place[:, None])[:, 0]
        density = (
            density
            + tempered.gather(2, place[:, None, None].expand(-1, len(TEMPERATURES), 1))[:, :, 0]
        )
        places.append(place)
        if step + 1 < length:
            hidden, state = model.advance(state, words[place])
    return torch.stack(places, 1), score, density


@dataclass(frozen=True, slots=True)
class Estimate:
    """Number of sequences that are likelier than each of S targets, ties half, and its two-sided 95
    % interval.
    """

    value: np.ndarray
    low: np.ndarray
    high: np.ndarray


def estimate(
    samples: Samples, space: Space, targets: np.ndarray, own: np.ndarray, ceiling: float = np.inf
) -> Estimate:
    """Of targets (S,) and their places (S, length), without themselves and without what is at least
    as likely as `ceiling`.
    """
    below = samples.score < ceiling
    found = np.zeros((3, len(targets)))
    for number, (target, place) in enumerate(zip(targets, own, strict=True)):
        tied = np.abs(samples.score - target) <= TIE
        tied[tied] = (samples.places[tied] != place).any(1)
        weight = (
            samples.weight
            * (below & ((samples.score > target + TIE) | tied))
            * np.where(tied, 0.5, 1.0)
        )
        total = weight.sum()
        square = (weight**2).sum()
        found[:, number] = total, *fay_feuer(total, square, heaviest(samples.each, space, target))
    return Estimate(*found)


def heaviest(each: int, space: Space, score: float) -> float:
    """No sequence with at least this log-probability can have a larger weight, with `each` samples
    of each temperature.
    """
    logs = [score / heat - (1 - 1 / heat) * log(space.size) for heat in TEMPERATURES]
    return float(np.exp(-np.logaddexp.reduce(logs)) / each)


def fay_feuer(
    total: float, square: float, heaviest: float, level: float = 0.95
) -> tuple[float, float]:
    """Interval of an expected sum of Poisson many weights of at most `heaviest`, from their sum and
    sum of squares.
    """
    from scipy.special import chdtri

    tail = (1 - level) / 2
    low = square / (2 * total) * chdtri(2 * total**2 / square, 1 - tail) if total > 0 else 0.0
    total = total + heaviest
    square = square + heaviest**2
    return float(low), float(square / (2 * total) * chdtri(2 * total**2 / square, tail))
