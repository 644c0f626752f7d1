"""How many sequences of a space are likelier than some given ones: exact, by branch and bound.

That is as far as a budget reaches. The log-probability of a prefix only falls as words are added,
so what lies below a prefix under a floor is left out. At most e^-floor prefixes of each length are
above a floor, whatever the space: secrets that a model knows by heart are ranked exactly among
400^5 sequences. The floor is lowered step by step, until all is known or the budget of model
evaluations is spent. Scores within TIE of one another count as tied: that is the rounding of
float32.
"""

from dataclasses import dataclass, field
from typing import Any

import numpy as np
import torch
from torch import Tensor

from confide.attacks.exposure.tree import STATE_BYTES, read
from confide.attacks.exposure.words import Space
from confide.attacks.statistics.scoring import word_log_probs
from confide.models import LanguageModel

TIE = 1e-4  # nats
STEP = float(np.log(4))  # nats that the floor is lowered by: about four times the work
CELLS = 1 << 21  # scores of children held at once


@dataclass(slots=True)
class Counts:
    """What a search says of S targets, of which those above the floor are settled."""

    targets: np.ndarray  # (S,) log-probabilities
    floor: float = np.inf  # every sequence that is at least as likely was counted
    above: int = 0  # sequences that are
    better: np.ndarray = field(init=False)  # (S,) int64: likelier than the target
    tied: np.ndarray = field(init=False)  # (S,) int64: equally likely, with itself
    states: int = 0  # prefixes that the model read

    def __post_init__(self) -> None:
        self.better = np.zeros(len(self.targets), dtype=np.int64)
        self.tied = np.zeros(len(self.targets), dtype=np.int64)

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


class _Spent(Exception):
    """The budget does not reach to this floor."""


@dataclass(frozen=True, slots=True)
class _Walk:
    """What does not change during one walk."""

    model: LanguageModel
    words: list[Tensor]  # of each depth, (V,) tokens on the model's device
    counts: Counts
    chunk: int
    budget: float


def _visit(walk: _Walk, depth: int, hidden: Tensor, state: Any, score: Tensor) -> None:
    """Count what lies below prefixes (k,) of `depth` words."""
    child = score[:, None] + word_log_probs(walk.model, hidden, walk.words[depth])
    kept = child >= walk.counts.floor
    if depth == len(walk.words) - 1:
        walk.counts.add(child[kept].cpu().numpy())
        return
    rows, words = kept.nonzero(as_tuple=True)
    child = child[rows, words]
    for start in range(0, len(rows), walk.chunk):
        piece = slice(start, start + walk.chunk)
        if walk.counts.states + len(rows[piece]) > walk.budget:
            raise _Spent
        walk.counts.states += len(rows[piece])
        above = walk.model.take(state, rows[piece])
        hidden, below = walk.model.advance(above, walk.words[depth][words[piece]])
        _visit(walk, depth + 1, hidden, below, child[piece])


@torch.inference_mode()
def count_above(
    model: LanguageModel, space: Space, targets: np.ndarray, floor: float, chunk: int, budget: float
) -> tuple[Counts, bool]:
    """All sequences at least as likely as `floor` (nats), counted.

    False beside the counts: that took more than `budget` states.
    """
    root = read(model, (model.bos,), {})
    counts = Counts(targets, floor)
    first = torch.from_numpy(space.first).to(root.hidden.device)
    after = torch.from_numpy(space.after).to(root.hidden.device)
    chunk = max(1, min(chunk, CELLS // len(first), STATE_BYTES // root.size))
    walk = _Walk(model, [first, *[after] * (space.length - 1)], counts, chunk, budget)
    try:
        _visit(walk, 0, root.hidden, root.state, root.score)
    except _Spent:
        return counts, False
    return counts, True


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
