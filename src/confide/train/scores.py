"""How sensitive the private tokens of a point are said to be (SA-ADP, arXiv 2512.01748).

The paper's agent reports kinds of personal data, and three numbers in [0, 1] for each: how rare it
is, 1 - f / N, where f of all N reported ones are of its kind; whether it can be linked with others;
and one more. A policy reports tokens and no more than that: here a kind is a token, and the other
two numbers are 1. The score of a kind is the mean of the three, that of a point the mean of its
private tokens.
"""

import numpy as np

from confide.types import View


def scores(view: View, points: np.ndarray) -> np.ndarray:
    """(N,) float64, in [0, 1]: of each point of the view, 0 for one without a private token.

    points: those that are trained on, of which the frequencies are.
    """
    trained = np.zeros(len(view.starts) - 1, dtype=bool)
    trained[points] = True
    lengths = np.diff(view.starts)
    owner = np.repeat(np.arange(len(lengths)), lengths)
    found = np.flatnonzero(view.private & trained[owner])
    _, kind, counts = np.unique(view.ids[found], return_inverse=True, return_counts=True)
    rarity = 1 - counts[kind] / max(1, len(found))
    sums = np.bincount(owner[found], weights=(rarity + 2) / 3, minlength=len(lengths))
    return sums / np.bincount(owner[found], minlength=len(lengths)).clip(min=1)
