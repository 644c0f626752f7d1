"""How many sequences of a space are likelier than some given ones: exact, by branch and bound.

That is as far as a budget reaches. The log-probability of a prefix only falls as words are added,
so what lies below a prefix under a floor is left out. At most e^-floor prefixes of each length are
above a floor, whatever the space: secrets that a model knows by heart are ranked exactly among
400^5 sequences. The floor is lowered step by step, until all is known or the budget of model
evaluations is spent. Scores within TIE of one another count as tied: that is the rounding of
float32.
"""

from typing import Any

import numpy as np
import torch
from torch import Tensor

from confide.attacks.exposure.tree import STATE_BYTES, Evaluations, Roots, Spent, read
from confide.attacks.exposure.words import Space
from confide.attacks.statistics.scoring import word_log_probs
from confide.models import LanguageModel

TIE = 1e-4  # nats
STEP = float(np.log(4))  # nats that the floor is lowered by: about four times the work
CELLS = 1 << 21  # scores of children held at once


class Counts:
    """What a search says of S targets, of which those above the floor are settled."""

    def __init__(self, targets: np.ndarray, floor: float = np.inf):
        """Log-probabilities (S,); every sequence at least as likely as the floor is counted."""
        self.targets = targets
        self.floor = floor
        self.above = 0  # sequences above the floor
        self.better = np.zeros(len(targets), dtype=np.int64)  # (S,): likelier than the target
        self.tied = np.zeros_like(self.better)  # (S,): equally likely, with itself
        self.states = 0  # prefixes that the model read

    @property
    def settled(self) -> np.ndarray:
        """(S,) bool: whose rank is known."""
        return self.targets - TIE >= self.floor

    @property
    def ranks(self) -> np.ndarray:
        """1 + the likelier + half of the other ties, (S,) float64; no ranks where not settled."""
        return 1.0 + self.better + (np.maximum(self.tied, 1) - 1) / 2

    def add(self, scores: np.ndarray) -> None:
        """Log-probabilities (n,) of sequences that are above the floor."""
        scores = np.sort(scores)
        low = np.searchsorted(scores, self.targets - TIE)
        high = np.searchsorted(scores, self.targets + TIE, side="right")
        self.better += len(scores) - high
        self.tied += high - low
        self.above += len(scores)


@torch.inference_mode()
def count_above(
    model: LanguageModel, space: Space, targets: np.ndarray, floor: float, chunk: int, budget: float
) -> tuple[Counts, bool]:
    """All sequences at least as likely as `floor` (nats), counted.

    False beside the counts: that took more than `budget` states.
    """
    roots: Roots = {}
    root = read(model, (model.bos,), roots)
    path = space.tokens(np.zeros((1, space.length), dtype=np.int64))[0, :-1]
    deepest = read(model, (model.bos, *path.tolist()), roots)
    counts = Counts(targets, floor)
    evaluations = Evaluations(budget)
    vocabularies = space.vocabularies(root.hidden.device)
    chunk = max(1, min(chunk, CELLS // len(space.first), STATE_BYTES // deepest.size))

    def visit(depth: int, hidden: Tensor, state: Any, score: Tensor) -> None:
        """Count what lies below prefixes (k,) of `depth` words."""
        child = score[:, None] + word_log_probs(model, hidden, vocabularies[depth])
        above_floor = child >= floor
        if depth == space.length - 1:
            counts.add(child[above_floor].cpu().numpy())
            return
        rows, places = above_floor.nonzero(as_tuple=True)
        child = child[rows, places]
        for start in range(0, len(rows), chunk):
            piece = slice(start, start + chunk)
            evaluations.spend(len(rows[piece]))
            above = model.take(state, rows[piece])
            hidden, below = model.advance(above, vocabularies[depth][places[piece]])
            visit(depth + 1, hidden, below, child[piece])

    done = True
    try:
        visit(0, root.hidden, root.state, root.score)
    except Spent:
        done = False
    counts.states = evaluations.count
    return counts, done


def search(
    model: LanguageModel, space: Space, targets: np.ndarray, chunk: int, budget: float
) -> Counts:
    """The likeliest sequences, down to the least likely target (S,) or to the end of the budget.

    The budget is in states, of all steps together.
    """
    best = Counts(targets)
    spent = 0
    least = float(targets.min()) - 2 * TIE
    floor = least if budget == np.inf else float(targets.max()) - 2 * TIE
    while True:
        counts, done = count_above(
            model, space=space, targets=targets, floor=floor, chunk=chunk, budget=budget - spent
        )
        spent += counts.states
        if done:
            best = counts
        if not done or floor <= least:
            best.states = spent
            return best
        floor = max(floor - STEP, least)
