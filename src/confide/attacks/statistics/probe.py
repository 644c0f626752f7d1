"""Multinomial logistic regression: the classifier that an attack trains on what it can see.

The loss is the mean cross-entropy plus penalty / 2N times the squared weights (not the biases); it
is convex, so L-BFGS from zero finds the same classifier every time. Penalties are tried from the
strongest on, each from the last one's weights.
Shapes: N points, d features, M classes.
"""

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

Features = Any  # (N, d): a dense array or a scipy sparse matrix of float64


class Probe(NamedTuple):
    """A linear classifier."""

    weights: np.ndarray  # (d, M)
    biases: np.ndarray  # (M,)
    penalty: float

    def logits(self, features: Features) -> np.ndarray:
        return features @ self.weights + self.biases


def fit(
    features: Features,
    labels: np.ndarray,
    classes: int,
    penalty: float,
    iterations: int,
    start: Probe | None,
) -> Probe:
    """The classifier after at most so many iterations on features (N, d) and labels (N,)."""
    from scipy.optimize import minimize

    count, width = features.shape
    rows = np.arange(count)

    def loss(flat: np.ndarray) -> tuple[float, np.ndarray]:
        weights = flat[:-classes].reshape(width, classes)
        biases = flat[-classes:]
        logits = features @ weights + biases
        logits -= logits.max(1, keepdims=True)
        wanted = logits[rows, labels]
        share = np.exp(logits, out=logits)
        total = share.sum(1)
        share /= total[:, None]
        share[rows, labels] -= 1
        gradient = features.T @ share + penalty * weights
        value = (np.log(total) - wanted).sum() + penalty / 2 * (weights**2).sum()
        return value / count, np.concatenate([gradient.ravel(), share.sum(0)]) / count

    if start is None:
        origin = np.zeros((width + 1) * classes)
    else:
        origin = np.concatenate([start.weights.ravel(), start.biases])
    best = minimize(loss, origin, jac=True, method="L-BFGS-B", options={"maxiter": iterations}).x
    return Probe(best[:-classes].reshape(width, classes), best[-classes:], penalty)


def choose(
    train: tuple[Features, np.ndarray],
    valid: tuple[Features, np.ndarray],
    classes: int,
    penalties: Sequence[float],
    iterations: int,
) -> Probe:
    """The classifier whose penalty is best on validation points, the strongest of equals.

    Without validation points it is the one of the middle penalty.
    """
    tried: list[Probe] = []
    for penalty in sorted(set(penalties), reverse=True):
        tried.append(fit(*train, classes, penalty, iterations, tried[-1] if tried else None))
    features, labels = valid
    if not len(labels):
        return tried[len(tried) // 2]
    # of equals `max` takes the first, which has the strongest penalty
    return max(tried, key=lambda probe: hits(probe.logits(features), labels).mean())


def hits(logits: np.ndarray, labels: np.ndarray, among: int = 1) -> np.ndarray:
    """Whether each label (N,) is among so many classes with the highest logits (N, M), (N,) bool.

    Ties are in the order of the classes.
    """
    wanted = logits[np.arange(len(labels)), labels][:, None]
    before = (logits == wanted) & (np.arange(logits.shape[1]) < labels[:, None])
    return ((logits > wanted) | before).sum(1) < among
