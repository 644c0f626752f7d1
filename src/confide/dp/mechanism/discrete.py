"""Exact samples of the discrete Gaussian, and how far it is from the Gaussian that is priced.

The discrete Gaussian of deviation s gives an integer n with a probability proportional to
exp(-n^2 / (2 s^2)) (Canonne, Kamath and Steinke 2020, "The Discrete Gaussian for Differential
Privacy"). It is drawn as in their Algorithms 1 to 3, with two rejections made one: v has a
probability proportional to exp(-v), u is uniform on 0, ..., s - 1, and m = s v + u is kept with
probability exp(-x), where x = ((m / s)^2 - 2 v + 1) / 2 is never negative. So m has a probability
proportional to exp(-v - x), a constant times exp(-m^2 / (2 s^2)). A sign follows; minus zero is
drawn again.

Whether a uniform number lies below exp(-x) is seen from its first 53 bits and a float, unless the
two are closer than MARGIN, thousands of times what a float's exponential is off. Then fractions
decide, with as many more bits as that takes. So the probabilities are exact: no float is rounded
into a sample.

**Distance.** Let f be the density of N(0, s^2), q(n) its integral from n - 1/2 to n + 1/2, and
p(n) = f(n) / Z, where Z is the sum of all f(n). Taylor's formula with the remainder as an integral
gives q(n) - f(n) as the integral of K(t) f''(n + t) over |t| <= 1/2, K(t) = (1/2 - |t|)^2 / 2,
which is at most 1/8. So the sum of |q(n) - f(n)| is at most an eighth of the integral of |f''|,
which is 4 exp(-1/2) / sqrt(2 pi) / s^2: less than 0.121 / s^2. By Poisson's summation formula
0 < Z - 1 < 2.1 exp(-2 pi^2 s^2), less than 0.001 / s^2 where s >= 1. The total variation of p and
q, half the sum of |p(n) - q(n)|, is at most half of both together: less than 1 / (16 s^2). And q is
what rounding an integer plus N(0, s^2) gives, around that integer: post-processing of the Gaussian.
"""

import math
from collections.abc import Callable
from fractions import Fraction

import numpy as np

BITS = 40  # of the deviation: 2^40 steps of the grid
DISTANCE = 1 / (16 * 4**BITS)  # total variation of one number, at most
MOST = 2.0**61  # steps that a sum of contributions may reach, so that with noise an int64 holds it
MARGIN = 2.0**-40  # a uniform number and a probability that are closer are compared exactly
BLOCK = 1 << 16  # proposals made at once

Words = Callable[[int], np.ndarray]  # the next so many uniform words (n,) uint64


def discrete_gaussian(count: int, bits: int, random_words: Words) -> np.ndarray:
    """Independent draws (count,) int64 of the discrete Gaussian of deviation 2^bits, at most 50."""
    draws = np.empty(count, dtype=np.int64)
    filled = 0
    while filled < count:
        wanted = int(2.2 * (count - filled)) + 16  # of proposals 48 % are kept
        accepted = proposals(min(BLOCK, wanted), bits, random_words)[: count - filled]
        draws[filled : filled + len(accepted)] = accepted
        filled += len(accepted)
    return draws


def proposals(count: int, bits: int, random_words: Words) -> np.ndarray:
    """Those (n,) int64 of `count` proposals that are kept."""
    whole = geometric(count, random_words)
    drawn = random_words(count)
    offset = (drawn & np.uint64((1 << bits) - 1)).view(np.int64)
    negative = drawn >> np.uint64(63) == 1
    part = offset * 2.0**-bits

    def exponent(place: int) -> Fraction:
        fraction = Fraction(int(offset[place]), 1 << bits)
        steps = int(whole[place])
        return ((steps + fraction) ** 2 - 2 * steps + 1) / 2

    accepted = bernoulli(
        ((whole - 1) ** 2 + part * (2 * whole + part)) / 2, count, exponent, random_words
    )
    size = (whole << bits) | offset
    accepted &= ~negative | (size != 0)
    return np.where(negative, -size, size)[accepted]


def geometric(count: int, random_words: Words) -> np.ndarray:
    """(count,) int64: how many events of probability exp(-1) happen in a row."""
    counts = np.zeros(count, dtype=np.int64)
    going = np.arange(count)
    while len(going):
        going = going[bernoulli(1.0, len(going), lambda _: Fraction(1), random_words)]
        counts[going] += 1
    return counts


def bernoulli(
    exponent: np.ndarray | float,
    count: int,
    exactly: Callable[[int], Fraction],
    random_words: Words,
) -> np.ndarray:
    """Independent events (count,) bool of probabilities exp(-x), x >= 0.

    exponent (count,) is close to x. exactly: x itself, by its place. A float's x and exponential
    are off by less than 2^-49, far less than MARGIN.
    """
    heads = (random_words(count) >> np.uint64(11)).view(np.int64)
    gap = heads * 2.0**-53 - np.exp(-exponent)
    events = gap < 0
    for place in np.flatnonzero(np.abs(gap) <= MARGIN):
        events[place] = below(int(heads[place]), exactly(int(place)), random_words)
    return events


def below(head: int, exponent: Fraction, random_words: Words) -> bool:
    """Whether a uniform number whose first 53 bits are `head` lies below exp(-exponent).

    More bits are drawn until that is sure.
    """
    bits = 53
    terms = 2 * math.ceil(exponent) + 20
    while True:
        least, most = bounds(exponent, terms)
        if Fraction(head + 1, 1 << bits) <= least:
            return True
        if Fraction(head, 1 << bits) >= most:
            return False
        head = head << 64 | int(random_words(1)[0])
        bits += 64
        terms *= 2


def bounds(exponent: Fraction, terms: int) -> tuple[Fraction, Fraction]:
    """Fractions around exp(-exponent), from so many terms, at least 2 exponent, of Taylor's series.

    From there on each term is at most half of the one before, so that all that are left out come to
    no more than the last.
    """
    total = term = Fraction(1)
    for number in range(1, terms + 1):
        term *= exponent / number
        total += term
    return 1 / (total + term), 1 / total
