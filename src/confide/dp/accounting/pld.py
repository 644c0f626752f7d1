"""Privacy loss distributions on a uniform grid, composed by FFT.

delta as a function of epsilon is never below the truth. Connect-the-dots (Doroshenko et al. 2022):
outcomes with losses between two grid points are spread over these two so that both P and Q keep
their masses; that dominates the pair, and nothing on this grid is tighter. Composition is a power
of the transform (Koskela et al. 2020) on a window beyond which Chernoff's bound leaves at most
TAIL. Floats: thresholds and masses are off by less than ROUND, which moves mass to larger losses;
transforms, powers and what is cut off, by less than SLACK + count * SLACK_EACH, which callers add
to delta.
"""

import math
from collections.abc import Sequence
from functools import lru_cache
from typing import NamedTuple

import numpy as np

from confide.dp.accounting.pairs import LARGE, Pair, loss, masses, outcomes, threshold

ROUND = 1e-15  # error of a cell's mass, and of exp(loss) times it
TAIL = 1e-13  # probability of a total loss above the window, and below it
SLACK = 1e-12  # five times both TAILs
SLACK_EACH = 2e-15  # of an update: 1.2e-15 beyond pairs.REACH and 3e-17 of the transforms
SUMMING = 1 + 1e-9  # relative error of a sum of a million positive numbers, ten times over
BLOCK = 500.0  # losses over which exp(-loss) stays far from underflow


class Losses(NamedTuple):
    """Probabilities of the losses (start + i) * interval."""

    start: int
    masses: np.ndarray  # (n,)


class Profile(NamedTuple):
    """delta at the epsilons (start + i) * interval >= 0.

    In between and below, it is linear in exp(epsilon).
    """

    start: int
    interval: float
    deltas: np.ndarray  # (n,), non-increasing, the last is 0


@lru_cache(maxsize=16)
def one_update(pair: Pair, interval: float) -> tuple[Losses, ...]:
    """Losses of P against Q and of Q against P; only once where these are the same (`replace`)."""
    low, high = loss(pair, np.array(outcomes(pair))) / interval
    start = math.floor(low)
    stop = max(math.floor(low) + 1, math.ceil(high))
    losses = np.arange(start, stop + 1) * interval
    # beyond `outcomes` are 1e-15 of the masses, which may as well be on the outermost points: delta
    # falls by no more
    edges = np.concatenate([[-math.inf], threshold(pair, losses[1:-1]), [math.inf]])
    upper, lower = masses(pair, edges)
    forward = Losses(start, spread(upper, lower, losses))
    if pair.replace:
        return (forward,)
    return forward, Losses(-stop, spread(lower[::-1], upper[::-1], -losses[::-1]))


def spread(upper: np.ndarray, lower: np.ndarray, losses: np.ndarray) -> np.ndarray:
    """Masses (n + 1,) at the losses, from those of P and Q in the n cells between.

    They solve one linear equation each for P and Q.
    """
    low = losses[:-1]
    interval = losses[1] - losses[0]
    excess = upper - np.exp(np.minimum(low, LARGE)) * lower + ROUND * (1 + np.abs(low))
    moved = np.where(low > LARGE, upper, np.clip(excess / -np.expm1(-interval), 0, upper))
    return np.append(upper - moved, 0.0) + np.append(0.0, moved)


@lru_cache(maxsize=16)
def both_ways(updates: tuple[tuple[Pair, int], ...], interval: float) -> tuple[Profile, ...]:
    """delta of all updates together, of P against Q and of Q against P.

    Only once where these are the same. A certificate asks for the same ones several times.
    """
    counts = [count for _, count in updates]
    losses = zip(*(one_update(pair, interval) for pair, _ in updates), strict=True)
    return tuple(compose(list(zip(each, counts, strict=True)), interval) for each in losses)


def compose(parts: Sequence[tuple[Losses, int]], interval: float) -> Profile:
    """delta of all updates together, each kind as often as it says."""
    low, high = window(parts)
    size = 2 ** math.ceil(
        math.log2(max(high - low + 1, *(len(losses.masses) for losses, _ in parts)))
    )
    transform = np.ones(size // 2 + 1, complex)
    for losses, count in parts:
        transform *= power(np.fft.rfft(losses.masses, size), count)
    # loss of index 0, but for multiples of `size`
    first = sum(count * losses.start for losses, count in parts)
    total = np.roll(np.fft.irfft(transform, size), (first - low) % size)[: high - low + 1]
    start = max(0, low)
    total = np.maximum(total[start - low :], 0)  # only losses above epsilon >= 0 count
    # delta's, from one epsilon to the next
    steps = -math.expm1(-interval) * discounted(total, interval)[1:]
    return Profile(start, interval, np.append(np.cumsum(steps[::-1])[::-1], 0.0) * SUMMING)


def power(values: np.ndarray, count: int) -> np.ndarray:
    """values ** count by squaring.

    For complex numbers this is many times faster than numpy's own, and as exact.
    """
    result = np.ones_like(values)
    while count:
        if count & 1:
            result *= values
        values = values * values
        count = count >> 1
    return result


def window(parts: Sequence[tuple[Losses, int]]) -> tuple[int, int]:
    """Indices of the total loss beyond which there is at most TAIL of it, by Chernoff's bound."""
    counts = [count for _, count in parts]
    means = [float(losses.masses @ np.arange(len(losses.masses))) for losses, _ in parts]
    places = [
        np.arange(len(losses.masses)) - mean for (losses, _), mean in zip(parts, means, strict=True)
    ]
    variance = sum(
        count * (losses.masses @ place**2)
        for (losses, count), place in zip(parts, places, strict=True)
    )
    with np.errstate(divide="ignore"):
        logs = [np.log(losses.masses) for losses, _ in parts]

    def bound(order: float) -> float:
        """Distance from the mean, upwards for order > 0, else downwards."""
        tilted = [log + order * place for log, place in zip(logs, places, strict=True)]
        moments = [top + math.log(np.exp(row - top).sum()) for row in tilted for top in [row.max()]]
        return (float(np.dot(counts, moments)) - math.log(TAIL)) / abs(order)

    def reach(sign: int) -> float:
        # about the best for a Gaussian; elsewhere on one side of it
        order = sign * 8 / math.sqrt(max(1e-4, variance))
        least = bound(order)
        for factor in (0.6, 1.6):
            while (other := bound(order * factor)) < least and abs(order) < 1e3:
                order = order * factor
                least = other
        return least

    least = sum(count * losses.start for losses, count in parts)
    most = least + sum(count * (len(losses.masses) - 1) for losses, count in parts)
    middle = least + np.dot(counts, means)
    return max(least, math.floor(middle - reach(-1))), min(most, math.ceil(middle + reach(1)))


def discounted(values: np.ndarray, interval: float) -> np.ndarray:
    """Sums over j >= i of values[j] exp(-(j - i) interval), (n,)."""
    sums = np.empty_like(values)
    block = max(1, int(BLOCK / interval))
    carry = 0.0
    for stop in range(len(values), 0, -block):
        part = slice(max(0, stop - block), stop)
        factor = np.exp(-interval * np.arange(stop - part.start + 1))
        within = np.cumsum((values[part] * factor[:-1])[::-1])[::-1] / factor[:-1]
        sums[part] = within + carry * factor[:0:-1]
        carry = sums[part.start]
    return sums


def delta_at(profile: Profile, epsilon: float) -> float:
    """delta of an epsilon >= 0."""
    start, interval, deltas = profile
    place = math.floor(epsilon / interval) - start
    if place < 0:
        return 1 - (1 - float(deltas[0])) * math.exp(epsilon - start * interval)
    if place >= len(deltas) - 1:
        return 0.0
    share = math.expm1(epsilon - (start + place) * interval) / math.expm1(interval)
    return float(deltas[place] + (deltas[place + 1] - deltas[place]) * min(1.0, max(0.0, share)))


def epsilon_at(profile: Profile, delta: float) -> float:
    """Smallest epsilon >= 0 of a delta in (0, 1)."""
    start, interval, deltas = profile
    # the first that is small enough: there is one, since the last is 0
    place = int(np.searchsorted(-deltas, -delta))
    if place == 0:
        return max(0.0, start * interval + math.log((1 - delta) / (1 - float(deltas[0]))))
    above = float(deltas[place - 1])
    below = float(deltas[place])
    return (start + place - 1) * interval + math.log1p(
        (above - delta) / (above - below) * math.expm1(interval)
    )
