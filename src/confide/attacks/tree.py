"""Total log-probability of many token sequences that share prefixes: one model evaluation per distinct proper prefix.

A tree has one node per distinct prefix. It is walked depth first in pieces of bounded size, so memory does not grow with
the number of sequences; the last token of a sequence is scored from its parent and never read by the model.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from confide.attacks.scoring import token_log_probs

STATE_BYTES = 1 << 28  # states of one piece: a key-value cache is far larger than an LSTM state
PAD = -1


@dataclass(frozen=True, slots=True)
class Level:
    """Nodes at one depth, ordered by parent: n nodes below p inner nodes of the level above."""

    token: np.ndarray  # (n,) int64
    parent: np.ndarray  # (n,) int64, ascending: index among the inner nodes of the level above
    leaf: np.ndarray  # (n,) int64: the sequence that ends here, or -1 for an inner node


@dataclass(frozen=True, slots=True)
class Tree:
    """`count` sequences below a common context; sequence r is scored from its first token on."""

    context: tuple[int, ...]  # read before the root
    levels: tuple[Level, ...]
    count: int

    @property
    def states(self) -> int:
        """Model evaluations below the context: the root and every inner node."""
        return 1 + sum(int((level.leaf < 0).sum()) for level in self.levels)

    @property
    def lengths(self) -> np.ndarray:
        """Tokens of each sequence, (count,) int64."""
        lengths = np.zeros(self.count, dtype=np.int64)
        for depth, level in enumerate(self.levels, 1):
            lengths[level.leaf[level.leaf >= 0]] = depth
        return lengths


def regular_tree(context: tuple[int, ...], tokens: np.ndarray, depth: int) -> Tree:
    """All sequences of `depth` tokens out of `tokens`, numbered like digits: the first token is the most significant."""
    base, levels = len(tokens), []
    for level in range(depth):
        parent = np.repeat(np.arange(base**level), base)
        leaf = np.arange(len(parent)) if level == depth - 1 else np.full(len(parent), -1)
        levels.append(Level(np.tile(np.asarray(tokens, dtype=np.int64), base**level), parent, leaf))
    return Tree(context, tuple(levels), base**depth)


def tree_of(context: tuple[int, ...], sequences: np.ndarray) -> Tree:
    """Tree of distinct sequences (R, L), padded with -1 on the right; none may be a proper prefix of another."""
    alive, parent, levels = np.arange(len(sequences)), np.zeros(len(sequences), dtype=np.int64), []
    base = int(sequences.max()) + 1
    for depth in range(sequences.shape[1]):
        key = parent * base + sequences[alive, depth]
        nodes, place = np.unique(key, return_inverse=True)
        longer = sequences[alive, depth + 1] != PAD if depth + 1 < sequences.shape[1] else np.zeros(len(alive), bool)
        leaf = np.full(len(nodes), -1)
        leaf[place[~longer]] = alive[~longer]
        inner = np.cumsum(leaf < 0) - 1
        levels.append(Level(nodes % base, nodes // base, leaf))
        assert (leaf[place[longer]] < 0).all() and (leaf >= 0).sum() == (~longer).sum(), "sequences are not prefix-free"
        alive, parent = alive[longer], inner[place[longer]]
        if not len(alive):
            break
    return Tree(context, tuple(levels), len(sequences))


def _state_bytes(state: Any) -> int:
    """Memory of the tensors in a nested state."""
    return state.nbytes if isinstance(state, Tensor) else sum(_state_bytes(part) for part in state)


@dataclass(frozen=True, slots=True)
class _Walk:
    """What does not change during one walk: indices of each level on the model's device."""

    model: nn.Module
    token: list[Tensor]
    parent: list[Tensor]
    leaf: list[Tensor]
    inner: list[Tensor]  # positions of inner nodes
    first: list[np.ndarray]  # (p + 1,): children of inner node j above are first[j] to first[j + 1]
    before: list[np.ndarray]  # (n + 1,): how many inner nodes stand before a position
    out: Tensor  # (R,) float64
    chunk: int
    report: Callable[[int], object]


def _prepare(model: nn.Module, tree: Tree, chunk: int, device: torch.device, report: Callable[[int], object]) -> _Walk:
    above, first, before, inner = 1, [], [], []
    for level in tree.levels:
        first.append(np.searchsorted(level.parent, np.arange(above + 1)))
        before.append(np.concatenate([[0], np.cumsum(level.leaf < 0)]))
        inner.append(np.flatnonzero(level.leaf < 0))
        above = len(inner[-1])
    token, parent, leaf, inside = (
        [torch.from_numpy(array).to(device) for array in arrays]
        for arrays in (
            [level.token for level in tree.levels],
            [level.parent for level in tree.levels],
            [level.leaf for level in tree.levels],
            inner,
        )
    )
    out = torch.full((tree.count,), torch.nan, dtype=torch.float64, device=device)
    return _Walk(model, token, parent, leaf, inside, first, before, out, chunk, report)


def _visit(walk: _Walk, depth: int, low: int, high: int, hidden: Tensor, state: Any, score: Tensor) -> None:
    """Score all that lies below the inner nodes low to high of the level above, whose states are given."""
    start, stop = int(walk.first[depth][low]), int(walk.first[depth][high])
    parent = walk.parent[depth][start:stop] - low
    child = score[parent] + token_log_probs(walk.model, hidden, parent, walk.token[depth][start:stop])
    leaf = walk.leaf[depth][start:stop]
    ends = leaf >= 0
    walk.out[leaf[ends]] = child[ends]
    walk.report(high - low)
    del hidden
    last = int(walk.before[depth][stop])
    for piece in range(int(walk.before[depth][start]), last, walk.chunk):
        until = min(piece + walk.chunk, last)
        nodes = walk.inner[depth][piece:until] - start
        below = walk.model.take(state, parent[nodes])
        read, below = walk.model.advance(below, walk.token[depth][nodes + start])
        _visit(walk, depth + 1, piece, until, read, below, child[nodes])


@torch.inference_mode()
def sequence_log_probs(
    model: nn.Module, tree: Tree, chunk: int, report: Callable[[int], object] = lambda done: None
) -> np.ndarray:
    """log p(sequence | context) in nats, (R,) float64, at most `chunk` states per level held; `report` gets states done."""
    device = next(model.parameters()).device
    state = model.start(1)
    for token in tree.context:
        hidden, state = model.advance(state, torch.tensor([token], device=device))
    chunk = max(1, min(chunk, STATE_BYTES // max(1, _state_bytes(state))))
    walk = _prepare(model, tree, chunk, device, report)
    _visit(walk, 0, 0, 1, hidden, state, torch.zeros(1, dtype=torch.float64, device=device))
    return walk.out.cpu().numpy()
