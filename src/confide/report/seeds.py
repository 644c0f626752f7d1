"""Numbers of several seeds: their interval, whether they lie below a level, and many such tests.

Seeds are few (three to five), which decides what is used. A bootstrap of three numbers covers their
mean far too seldom, and an exact sign or permutation test of five cannot fall below p = 1/32, of
three not below 1/8; so intervals and tests are Student's t, which are exact where what
seeds do to a number (to the logarithm of a perplexity) is about normal. Seeds differ in batches and
noise, and in first weights where a model starts from nothing. Split, canaries and coins belong to
the dataset, so that a seed of one method is a pair with the same seed of another, and an interval
tells nothing of other canaries or another corpus.
"""

import math
from collections.abc import Sequence
from statistics import stdev
from typing import NamedTuple

from scipy.optimize import brentq
from scipy.special import nctdtr, stdtr, stdtrit

CONFIDENCE = 0.95
LEVEL = 0.05  # of all tests of a page together
POWER = 0.8


class Estimate(NamedTuple):
    """A number with an interval; `each`: the seeds' own numbers where it is a mean over seeds."""

    value: float
    low: float
    high: float
    each: tuple[float, ...] = ()

    @property
    def ends(self) -> tuple[float, float]:
        return self.low, self.high

    @property
    def numbers(self) -> tuple[float, float, float]:
        """Value and ends."""
        return self.value, self.low, self.high


def mean_of(values: Sequence[float]) -> float:
    """Arithmetic mean of at least one number; infinite where one of them is."""
    return sum(values) / len(values)


def says_anything(values: Sequence[float]) -> bool:
    """Whether seeds tell how much they vary: there are several, and none is infinite."""
    return len(values) > 1 and all(map(math.isfinite, values))


def half_width(values: Sequence[float]) -> float:
    """Half of the 95 % interval of the mean (Student's t).

    It is 0 for one number, of which nothing can be told, and where a number is infinite.
    """
    if not says_anything(values):
        return 0.0
    quantile = float(stdtrit(len(values) - 1, (1 + CONFIDENCE) / 2))
    return quantile * stdev(values) / math.sqrt(len(values))


def over_seeds(values: Sequence[float]) -> Estimate:
    """Mean of at least one number with its 95 % interval, which one number does not have."""
    numbers = tuple(map(float, values))
    mean = mean_of(numbers)
    half = half_width(numbers)
    return Estimate(mean, low=mean - half, high=mean + half, each=numbers)


class Tested(NamedTuple):
    """Whether numbers lie below 0 in the mean, and the two-sided p-value that they lie at it."""

    below: bool
    p: float


def against_zero(values: Sequence[float]) -> Tested:
    """Student's t of at least two finite numbers.

    Equal ones do not tell how much they vary: two of them, as rates of few cases can coincide, show
    nothing; more, as where all cases differ in every seed, are certain, unless they are 0.
    """
    mean = mean_of(values)
    spread = stdev(values)
    if spread == 0.0:
        return Tested(below=mean < 0, p=float(mean == 0 or len(values) == 2))
    statistic = mean / (spread / math.sqrt(len(values)))
    return Tested(below=mean < 0, p=2 * float(stdtr(len(values) - 1, -abs(statistic))))


def all_below(samples: Sequence[Sequence[float]]) -> Tested:
    """Whether every sample lies below 0, as a claim of several parts says.

    All must be shown to (intersection-union test: the largest p). Where the mean of one lies above,
    one is enough against the claim (Bonferroni over the parts).
    """
    tests = [against_zero(sample) for sample in samples]
    above = [test.p for test in tests if not test.below]
    if above:
        return Tested(below=False, p=min(1.0, len(tests) * min(above)))
    return Tested(below=True, p=max(test.p for test in tests))


def holm(p_values: Sequence[float]) -> list[float]:
    """P-values corrected for their number (Holm 1979), in the same order."""
    corrected = [1.0] * len(p_values)
    largest = 0.0
    order = sorted(range(len(p_values)), key=lambda place: p_values[place])
    for rank, place in enumerate(order):
        largest = max(largest, min(1.0, (len(p_values) - rank) * p_values[place]))
        corrected[place] = largest
    return corrected


def power(seeds: int, effect: float, level: float = LEVEL) -> float:
    """Probability that a two-sided t-test shows a mean of so many standard deviations.

    Only on the side where the mean is; `level`: of the test.
    """
    freedom = seeds - 1
    quantile = float(stdtrit(freedom, 1 - level / 2))
    return 1.0 - float(nctdtr(freedom, effect * math.sqrt(seeds), quantile))


def detectable(seeds: int, level: float) -> float:
    """The mean, in standard deviations over seeds, that a test shows with a power of 80 %."""
    most = 1.0
    while power(seeds, most, level) < POWER:
        most *= 2
    return float(brentq(lambda effect: power(seeds, effect, level) - POWER, 0.0, most))
