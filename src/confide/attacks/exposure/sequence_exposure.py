"""Exposure of canaries of words (Privacy Regularization, Mireshghallah et al. 2021, section 3):
log2 |R| - log2 rank.

R are all V^length sequences of the vocabulary, ranked by total log-probability after the begin
token; the end token is not counted, as it is no part of the secret. Ranks are exact where the
search reaches (sequence_search.py), else estimated with a 95 % interval (sequence_samples.py).
`fitted` is the exposure as published there, after Carlini et al. 2019: a skew-normal distribution,
fitted to the scores of uniform samples and extrapolated. The null is that of exposure.py: about
Exp(ln 2) bits. All canaries are in one space, so that n of them cannot all be first: `mean_most` is
their mean if they were the n likeliest.
"""

from dataclasses import dataclass
from math import log2
from typing import Any

import numpy as np
from torch import nn

from confide.attacks.authorship.authors import read_samples
from confide.attacks.exposure.exposure import mean_interval
from confide.attacks.exposure.null import null_band, null_tail
from confide.attacks.exposure.sequence_samples import Samples, draw, estimate
from confide.attacks.exposure.sequence_search import CELLS, search
from confide.attacks.exposure.words import GROUPS, Space, read_words
from confide.attacks.statistics.scoring import row_log_probs
from confide.attacks.target import Target
from confide.specs import SequenceExposureSpec

NOT_FINITE = "the model's probabilities are not finite"
FITTED = "as published: extrapolated"


@dataclass(frozen=True, slots=True)
class Exposures:
    """Of S sequences, in bits; low and high bound what was estimated and equal what is exact."""

    value: np.ndarray
    low: np.ndarray
    high: np.ndarray
    exact: np.ndarray  # (S,) bool
    fitted: (
        np.ndarray | None
    )  # None: nothing was sampled, or samples that a distribution cannot be fitted to
    states: int  # prefixes read in the search
    samples: int


def exposures(
    spec: SequenceExposureSpec, model: nn.Module, space: Space, places: np.ndarray
) -> Exposures | None:
    """Exposures of sequences given as places (S, length), S > 0; None where the model's
    probabilities are not finite.
    """
    targets = row_log_probs(model, space.tokens(places))
    if not np.isfinite(targets).all():
        return None
    found = search(
        model, space, targets, spec.chunk, np.inf if space.size <= spec.enumerated else spec.states
    )
    ranks = np.stack([found.ranks] * 3)
    exact = found.settled
    fitted = None
    drawn = 0
    if not exact.all():
        chunk = max(1, min(spec.chunk, CELLS // len(space.first)))
        samples = draw(model, space, spec.samples, chunk, spec.seed)
        if not np.isfinite(samples.score).all():
            return None
        rest = estimate(samples, space, targets[~exact], places[~exact], found.floor)
        ranks[:, ~exact] = 1 + found.above + np.stack([rest.value, rest.high, rest.low])
        fitted = extrapolated(samples, targets)
        drawn = len(samples.score)
    bits = np.clip(log2(space.size) - np.log2(ranks), 0, log2(space.size))
    return Exposures(*bits, exact, fitted, found.states, drawn)


def extrapolated(samples: Samples, targets: np.ndarray) -> np.ndarray | None:
    """-log2 of the share of the fitted skew-normal distribution above each target (S,): finite, but
    bounded by nothing.
    """
    from scipy.stats import skewnorm

    scores = samples.score[samples.uniform]
    if np.ptp(scores) < 1e-6:
        return None
    # the log-perplexity is fitted, whose lower tail is that of the likely sequences
    shape, place, scale = skewnorm.fit(-scores)
    return np.array(
        [-log_share_below(shape, (-target - place) / scale) for target in targets]
    ) / np.log(2)


def log_share_below(shape: float, z: float) -> float:
    """Log of the standard skew-normal distribution function, without underflow: its density falls
    off monotonically below z.
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
    return top + float(
        np.log(
            quad(lambda t: np.exp(log_density(z - t / rate) - top) / rate, 0, np.inf, limit=200)[0]
        )
    )


def sequence_exposure(spec: SequenceExposureSpec, target: Target) -> dict[str, Any]:
    """Exposure of every canary and control, by number; the words themselves are never written."""
    _, numbers = read_samples(target.points)
    planted = read_words(target.canaries, target.tokenizer, numbers, spec.kind)
    places = np.concatenate([planted.canaries, planted.controls])
    found = exposures(spec, target.model, planted.space, places) if len(places) else None
    metrics: dict[str, Any] = {
        "space_bits": log2(planted.space.size),
        "words": len(planted.space.first),
    }
    metrics |= {"length": planted.space.length, "fitted_note": FITTED}
    if found is not None:
        metrics |= {"states": found.states, "samples": found.samples}
    start = 0
    for name in GROUPS:
        own = slice(start, start := start + len(planted.group(name)))
        of = {"copies": planted.copies, "authors": planted.authors} if name == "canaries" else {}
        metrics[name] = (
            {"count": len(planted.group(name))} | of | judged(found, own, log2(planted.space.size))
        )
    return metrics


def judged(found: Exposures | None, own: slice, most: float) -> dict[str, Any]:
    """Exposures of one group with their mean and maximum; None, with a reason, where there are
    none.
    """
    count = own.stop - own.start
    if not count or found is None:
        return {
            "exposures": None if count else [],
            "reason": NOT_FINITE if count else "none in this corpus",
        }
    metrics: dict[str, Any] = {
        name: getattr(found, field)[own].tolist()
        for name, field in (("exposures", "value"), ("low", "low"), ("high", "high"))
    }
    metrics |= {"exact": bool(found.exact[own].all()), "exact_each": found.exact[own].tolist()}
    metrics["fitted"] = None if found.fitted is None else found.fitted[own].tolist()
    metrics["mean_most"] = most - float(np.log2(np.arange(1, count + 1)).mean())
    metrics |= dict(
        zip(("mean_low", "mean_high"), mean_interval(metrics["exposures"]), strict=True)
    )
    for name, function in (("mean", np.mean), ("max", np.max)):
        value = float(function(metrics["exposures"]))
        mean, low, high = null_band(name, count, most=most)
        metrics |= {
            name: value,
            f"null_{name}": mean,
            f"null_{name}_low": low,
            f"null_{name}_high": high,
        }
        metrics[f"p_{name}"] = null_tail(name, count, value)
    return metrics
