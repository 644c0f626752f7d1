"""Total log-probability of many token sequences that share prefixes.

It takes one model evaluation per distinct proper prefix. A tree has one node per distinct prefix.
It is walked depth first in pieces of bounded size, so memory does not grow with the number of
sequences; the last token of a sequence is scored from its parent and never read by the model. The
log-probability of a prefix only falls as tokens are added, so what lies below a prefix under a
floor is left out.
"""

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import torch
from torch import Tensor

from confide.attacks.statistics.scoring import token_log_probs
from confide.models import LanguageModel

STATE_BYTES = 1 << 28  # states of one piece: a key-value cache is far larger than an LSTM state
PAD = -1


class Spent(Exception):
    """A budget of model evaluations does not reach further."""


class Evaluations:
    """Counts what a model reads: an evaluation is one token more in one context."""

    def __init__(self, most: float = math.inf):
        """No more than `most` are made."""
        self.most = most
        self.count = 0

    @property
    def left(self) -> float:
        """How many more there may be."""
        return self.most - self.count

    def spend(self, count: int) -> None:
        """To be called before so many evaluations; Spent where they would be too many."""
        if count > self.left:
            raise Spent
        self.count += count


class Level(NamedTuple):
    """Nodes at one depth, ordered by parent: n nodes below the p nodes of the level above."""

    token: np.ndarray  # (n,) int64
    # (p + 1,) int64: the children of node j above are first[j] to first[j + 1]; a leaf has none
    first: np.ndarray
    leaf: np.ndarray  # (n,) int64: the sequence that ends here, or -1 for an inner node


@dataclass(frozen=True, slots=True)
class Tree:
    """`count` sequences below a common context."""

    context: tuple[int, ...]  # the begin token and what all sequences share
    levels: tuple[Level, ...]
    count: int

    @property
    def endings(self) -> tuple[int, ...]:
        """Number of sequences that end at each depth below the context, from 1 on."""
        return tuple(int((level.leaf >= 0).sum()) for level in self.levels)

    @property
    def states(self) -> int:
        """Model evaluations below the context: the root and every inner node."""
        return 1 + sum(len(level.leaf) for level in self.levels) - self.count


class Root(NamedTuple):
    """A context that was read: what the model says of it."""

    hidden: Tensor  # (1, d): of its last token
    state: Any
    score: Tensor  # (1,) float64: log p of all tokens after the first
    size: int  # bytes that the last token added


Roots = dict[tuple[int, ...], Root]


def regular_tree(tokens: np.ndarray, depth: int) -> Tree:
    """All sequences of `depth` tokens out of `tokens`, numbered like digits, without a context.

    The first token is the most significant.
    """
    base = len(tokens)
    levels = []
    for level in range(depth):
        first = np.arange(0, base ** (level + 1) + 1, base)
        leaf = np.arange(first[-1]) if level == depth - 1 else np.full(first[-1], -1)
        levels.append(Level(np.tile(np.asarray(tokens, dtype=np.int64), base**level), first, leaf))
    return Tree((), tuple(levels), base**depth)


def tree_of(context: tuple[int, ...], sequences: np.ndarray) -> Tree:
    """Tree of distinct sequences (R, L), padded with -1 on the right.

    None may be a proper prefix of another.
    """
    alive = np.arange(len(sequences))
    parent = np.zeros(len(sequences), dtype=np.int64)
    above = 1
    levels = []
    base = int(sequences.max()) + 1
    for depth in range(sequences.shape[1]):
        nodes, place = np.unique(parent * base + sequences[alive, depth], return_inverse=True)
        if depth + 1 < sequences.shape[1]:
            longer = sequences[alive, depth + 1] != PAD
        else:
            longer = np.zeros(len(alive), bool)
        leaf = np.full(len(nodes), -1)
        leaf[place[~longer]] = alive[~longer]
        first = np.searchsorted(nodes // base, np.arange(above + 1))
        levels.append(Level(nodes % base, first, leaf))
        assert (leaf[place[longer]] < 0).all() and (leaf >= 0).sum() == (~longer).sum(), (
            "sequences are not prefix-free"
        )
        alive = alive[longer]
        parent = place[longer]
        above = len(nodes)
        if not len(alive):
            break
    return Tree(context, tuple(levels), len(sequences))


def _tensors(state: Any) -> Iterator[Tensor]:
    """All tensors in a nested state."""
    if isinstance(state, Tensor):
        yield state
    else:
        for part in state:
            yield from _tensors(part)


def _after(model: LanguageModel, above: Root | None, token: Tensor) -> Root:
    """What the model says after one more token (1,)."""
    if above is None:
        state = model.start(1)
        score = token.new_zeros(1, dtype=torch.float64)
    else:
        state = above.state
        score = above.score + token_log_probs(model, above.hidden, torch.zeros_like(token), token)
    hidden, after = model.advance(state, token)
    known = {id(tensor) for tensor in _tensors(state)}
    added = [tensor.nbytes for tensor in _tensors(after) if id(tensor) not in known]
    return Root(hidden, after, score, sum(added))


@torch.inference_mode()
def read(
    model: LanguageModel,
    context: tuple[int, ...],
    roots: Roots,
    evaluations: Evaluations | None = None,
) -> Root:
    """What the model says after a context, which begins with the begin token.

    It is read from the longest prefix that was read before; `roots` keeps every prefix. Spent where
    the evaluations do not reach.
    """
    device = model.device
    counted = Evaluations() if evaluations is None else evaluations
    root = None
    for end in range(1, len(context) + 1):
        path = context[:end]
        if path not in roots:
            counted.spend(1)
            roots[path] = _after(model, root, torch.tensor(path[-1:], device=device))
        root = roots[path]
    return roots[context]


def _below(first: Tensor, nodes: Tensor) -> tuple[Tensor, Tensor]:
    """Children (m,) of some nodes (k,), in order, and whose they are, (m,) from 0 to k - 1."""
    counts = first[nodes + 1] - first[nodes]
    owner = torch.repeat_interleave(counts)
    offset = first[nodes] - counts.cumsum(0) + counts
    return offset[owner] + torch.arange(len(owner), device=nodes.device), owner


@torch.inference_mode()
def sequence_log_probs(
    model: LanguageModel,
    tree: Tree,
    chunk: int,
    floor: float = -torch.inf,
    report: Callable[[int], object] = lambda done: None,
    roots: Roots | None = None,
    evaluations: Evaluations | None = None,
) -> np.ndarray:
    """log p(context and sequence | begin token) in nats, (R,) float64.

    At most `chunk` states per level are held. Sequences below a prefix under the floor get the
    floor, which bounds them from above. `report` gets numbers of states evaluated below the root;
    `roots` holds what was read before. Spent where the evaluations do not reach.
    """
    counted = Evaluations() if evaluations is None else evaluations
    root = read(model, tree.context, {} if roots is None else roots, counted)
    device = root.hidden.device
    out = torch.full((tree.count,), floor, dtype=torch.float64, device=device)
    if root.score < floor:
        return out.cpu().numpy()
    chunk = max(1, min(chunk, STATE_BYTES // root.size))
    levels = [[torch.from_numpy(part).to(device) for part in level] for level in tree.levels]

    def visit(depth: int, nodes: Tensor, hidden: Tensor, state: Any, score: Tensor) -> None:
        """Score what lies below nodes (k,) of the level above, whose states are given."""
        token, first, leaf = levels[depth]
        children, owner = _below(first, nodes)
        child = score[owner] + token_log_probs(model, hidden, owner, token[children])
        sequence = leaf[children]
        ends = sequence >= 0
        out[sequence[ends]] = child[ends]
        above_floor = (child >= floor) | ~child.isfinite()  # what is not finite must come out
        entered = (~ends & above_floor).nonzero()[:, 0]
        for start in range(0, len(entered), chunk):
            piece = entered[start : start + chunk]
            counted.spend(len(piece))
            below = model.take(state, owner[piece])
            hidden, below = model.advance(below, token[children[piece]])
            report(len(piece))
            visit(depth + 1, children[piece], hidden, below, child[piece])

    top = torch.zeros(1, dtype=torch.int64, device=device)
    visit(0, top, root.hidden, root.state, root.score)
    return out.cpu().numpy()
