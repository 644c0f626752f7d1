"""Exposure of canaries of words: log2 |R| - log2 rank.

This is section 3 of Privacy Regularization (Mireshghallah et al. 2021). R are all V^length
sequences of the vocabulary, ranked by total log-probability after the begin token; the end token is
not counted, as it is no part of the secret. Ranks are exact where the search reaches
(sequence_search.py), else estimated with a 95 % interval (sequence_samples.py). `fitted` is the
exposure as published there, after Carlini et al. 2019: a skew-normal distribution, fitted to the
scores of uniform samples and extrapolated. The null is that of exposure.py: about Exp(ln 2) bits.
All canaries are in one space, so that n of them cannot all be first: `mean_most` is their mean if
they were the n likeliest.
"""

from math import log2
from typing import Any, NamedTuple

import numpy as np

from confide.attacks.authorship.authors import read_samples
from confide.attacks.exposure.sequence_samples import Samples, draw, estimate
from confide.attacks.exposure.sequence_search import CELLS, search
from confide.attacks.exposure.summary import summary
from confide.attacks.exposure.words import Space, read_words
from confide.attacks.statistics.scoring import NOT_FINITE, row_log_probs
from confide.attacks.target import Target
from confide.models import LanguageModel
from confide.specs import SequenceExposureSpec

FITTED = "as published: extrapolated"


class Exposures(NamedTuple):
    """Of S sequences, in bits; low and high bound what was estimated and equal what is exact."""

    value: np.ndarray
    low: np.ndarray
    high: np.ndarray
    exact: np.ndarray  # (S,) bool
    # None: nothing was sampled, or samples that a distribution cannot be fitted to
    fitted: np.ndarray | None
    states: int  # prefixes read in the search
    samples: int


def exposures(
    spec: SequenceExposureSpec, model: LanguageModel, space: Space, places: np.ndarray
) -> Exposures | None:
    """Exposures of sequences given as places (S, length), S > 0.

    None where the model's probabilities are not finite.
    """
    targets = row_log_probs(model, space.tokens(places))
    if not np.isfinite(targets).all():
        return None
    budget = np.inf if space.size <= spec.enumerated else spec.states
    counts = search(model, space, targets, spec.chunk, budget)
    ranks = np.stack([counts.ranks] * 3)  # values, and the ends of their intervals
    exact = counts.settled
    fitted = None
    drawn = 0
    if not exact.all():
        chunk = max(1, min(spec.chunk, CELLS // len(space.first)))
        samples = draw(model, space, spec.samples, chunk, spec.seed)
        if not np.isfinite(samples.score).all():
            return None
        rest = estimate(samples, space, targets[~exact], places[~exact], counts.floor)
        ranks[:, ~exact] = 1 + counts.above + np.stack([rest.value, rest.high, rest.low])
        fitted = extrapolated(samples, targets)
        drawn = len(samples.score)
    value, low, high = np.clip(log2(space.size) - np.log2(ranks), 0, log2(space.size))
    return Exposures(
        value, low=low, high=high, exact=exact, fitted=fitted, states=counts.states, samples=drawn
    )


def extrapolated(samples: Samples, targets: np.ndarray) -> np.ndarray | None:
    """-log2 of the share of the fitted skew-normal distribution above each target (S,).

    It is finite, but bounded by nothing.
    """
    from scipy.stats import skewnorm

    scores = samples.score[samples.uniform]
    if np.ptp(scores) < 1e-6:
        return None
    # the log-perplexity is fitted, whose lower tail is that of the likely sequences
    shape, place, scale = skewnorm.fit(-scores)
    shares = [log_share_below(shape, (-target - place) / scale) for target in targets]
    return -np.array(shares) / np.log(2)


def log_share_below(shape: float, z: float) -> float:
    """Log of the standard skew-normal distribution function, without underflow.

    Its density falls off monotonically below z.
    """
    from scipy.integrate import quad
    from scipy.special import log_ndtr

    def log_density(x: float) -> float:
        return float(np.log(2 / np.pi) / 2 - x * x / 2 + log_ndtr(shape * x))

    top = log_density(z)
    if z > 0:  # the mass is not in the tail
        return float(np.log(quad(lambda x: np.exp(log_density(x)), -np.inf, z, limit=200)[0]))
    # near z the density is exponential with this rate; in its units the integral is one of order 1
    rate = max(1.0, (top - log_density(z - 1e-3)) / 1e-3)

    def density(t: float) -> float:
        return np.exp(log_density(z - t / rate) - top) / rate

    return top + float(np.log(quad(density, 0, np.inf, limit=200)[0]))


def sequence_exposure(spec: SequenceExposureSpec, target: Target) -> dict[str, Any]:
    """Exposure of every canary and control, by number; the words themselves are never written."""
    _, numbers = read_samples(target.points)
    planted = read_words(target.canaries, target.tokenizer, numbers, spec.kind)
    places = np.concatenate([planted.canaries, planted.controls])
    measured = exposures(spec, target.model, planted.space, places) if len(places) else None
    bits = log2(planted.space.size)
    metrics: dict[str, Any] = {
        "space_bits": bits,
        "words": len(planted.space.first),
        "length": planted.space.length,
        "fitted_note": FITTED,
    }
    if measured is not None:
        metrics |= {"states": measured.states, "samples": measured.samples}
    count = len(planted.canaries)
    metrics["canaries"] = judged(measured, slice(0, count), bits)
    metrics["canaries"] |= {"copies": planted.copies, "authors": planted.authors}
    metrics["controls"] = judged(measured, slice(count, len(places)), bits)
    return metrics


def judged(measured: Exposures | None, group: slice, most: float) -> dict[str, Any]:
    """Exposures of one group with their mean and maximum.

    They are None, with a reason, where there are none.
    """
    count = group.stop - group.start
    if not count:
        return {"count": 0, "exposures": [], "reason": "none in this corpus"}
    if measured is None:
        return {"count": count, "exposures": None, "reason": NOT_FINITE}
    bits = measured.value[group].tolist()
    return {
        "count": count,
        "exposures": bits,
        "low": measured.low[group].tolist(),
        "high": measured.high[group].tolist(),
        "exact": bool(measured.exact[group].all()),
        "exact_each": measured.exact[group].tolist(),
        "fitted": None if measured.fitted is None else measured.fitted[group].tolist(),
        "mean_most": most - float(np.log2(np.arange(1, count + 1)).mean()),
    } | summary(bits, ("mean", "max"), most)
