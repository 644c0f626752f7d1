"""Ranks of secrets among all candidates, which pass by in blocks: counted, not stored.

The secrets are scored first, apart from the rest. Candidates that are likelier than a secret by
more than a margin are counted, and those that began less likely than all secrets by more than it
are not read to their end. The margin is far above float noise; within it, candidates are kept and
compared with the value that the secret itself gets among them.
"""

from collections import Counter
from collections.abc import Collection, Iterable
from itertools import takewhile
from typing import Any

import numpy as np
from tqdm import tqdm

from confide.attacks.exposure.candidates import Sentence, distinct_tree, encoded
from confide.attacks.exposure.tree import Evaluations, Roots, Tree, sequence_log_probs
from confide.models import LanguageModel
from confide.text.tokenizer import Tokenizer

# nats; a float32 log-probability changes by about 1e-5 with the batch that it is computed in
MARGIN = 1e-3
Sizes = dict[str, Any]  # of a search: numbers of candidates, of tokens and of states


class Ranks:
    """Counts, while candidates pass by in numeric order, those likelier than each of S secrets."""

    def __init__(self, secrets: np.ndarray, apart: np.ndarray, start: int = 0):
        """Numeric values (S,) of the secrets and their log-probabilities (S,) when scored apart.

        start: the first candidate that passes.
        """
        self.secrets = secrets
        self.apart = apart
        self.passed = start
        self.swept = np.full(len(secrets), np.nan)
        self.likelier = np.zeros(len(secrets), dtype=np.int64)
        # of each secret, block by block: distinct values close to its own, and how many they are
        self.near: list[list[tuple[np.ndarray, np.ndarray]]] = [[] for _ in secrets]

    def add(self, scores: np.ndarray) -> None:
        """Count the next candidates by their log-probabilities (n,).

        For one that need not be known, anything below all secrets will do.
        """
        inside = (self.secrets >= self.passed) & (self.secrets < self.passed + len(scores))
        self.swept[inside] = scores[self.secrets[inside] - self.passed]
        self.passed += len(scores)
        scores = np.sort(scores[scores >= self.apart.min() - MARGIN])
        low = np.searchsorted(scores, self.apart - MARGIN)
        high = np.searchsorted(scores, self.apart + MARGIN, side="right")
        self.likelier += len(scores) - high
        for near, start, end in zip(self.near, low, high, strict=True):
            if start < end:
                near.append(np.unique(scores[start:end], return_counts=True))

    def result(self) -> np.ndarray:
        """1 + the likelier + half the ties, (S,) float64, once all candidates have passed."""
        assert (np.abs(self.swept - self.apart) < MARGIN).all(), (
            "scores depend on the batch more than the margin allows"
        )
        ranks = 1.0 + self.likelier
        for i, near in enumerate(self.near):
            values, counts = (np.concatenate(parts) for parts in zip(*near, strict=True))
            ties = counts[values == self.swept[i]].sum() - 1
            ranks[i] += counts[values > self.swept[i]].sum() + ties / 2
        return ranks


class Census:
    """What the trees of all blocks consist of, and how much of it the model evaluated."""

    def __init__(self, roots: Roots | None = None) -> None:
        """`roots` holds what was read before."""
        self.contexts: set[tuple[int, ...]] = set()
        self.lengths: Counter[int] = Counter()  # of candidates with their context
        # states below the roots of the blocks, by how many tokens they have read
        self.inner: Counter[int] = Counter()
        self.visited = 0
        self.roots: Roots = {} if roots is None else roots

    def add(self, tree: Tree) -> None:
        self.contexts.add(tree.context)
        endings = tree.endings
        first = len(tree.context) + 1
        self.lengths.update(dict(enumerate(endings, first)))
        for length, (level, ending) in enumerate(zip(tree.levels, endings, strict=True), first):
            self.inner[length] += len(level.leaf) - ending

    def above(self) -> set[tuple[int, ...]]:
        """The roots of the blocks and what is above them, down from where candidates differ."""
        common = self.common()
        return {
            context[:end] for context in self.contexts for end in range(common, len(context) + 1)
        }

    def common(self) -> int:
        """How many tokens all candidates begin with."""
        pairs = zip(min(self.contexts), max(self.contexts), strict=False)
        return sum(1 for _ in takewhile(lambda pair: pair[0] == pair[1], pairs))

    def widths(self) -> Counter[int]:
        """How many different prefixes are read at most, by their number of tokens."""
        return self.inner + Counter(map(len, self.above()))

    def sizes(self, begun: Collection[tuple[int, ...]] | None = None) -> Sizes:
        """Tokens from the first in which candidates differ, and states.

        A prefix in several blocks may count in each. begun: what was read of contexts, where that
        is not known of the roots.
        """
        read = self.roots if begun is None else begun
        common = self.common()
        count = self.lengths.total()
        used = +self.lengths  # without lengths that no candidate has
        tokens = sum(length * ending for length, ending in self.lengths.items())
        return {
            "candidates": count,
            "states": self.widths().total(),
            "states_visited": sum(len(path) >= common for path in read) + self.visited,
            "tokens_min": min(used) - common,
            "tokens_mean": tokens / count - common,
            "tokens_max": max(used) - common,
        }


def log_probs_apart(
    model: LanguageModel,
    tokenizer: Tokenizer,
    sentence: Sentence,
    secrets: np.ndarray,
    *,
    chunk: int,
    evaluations: Evaluations | None = None,
    roots: Roots | None = None,
) -> np.ndarray:
    """Log-probabilities in nats (S,) float64 of secrets (S,), from a tree of nothing else."""
    if not len(secrets):
        return np.zeros(0)
    distinct, place = np.unique(secrets, return_inverse=True)
    tree = distinct_tree(tokenizer.bos_id, encoded(tokenizer, sentence, distinct))
    scores = sequence_log_probs(model, tree, chunk, roots=roots, evaluations=evaluations)
    return scores[place]


def ranks_among(
    model: LanguageModel,
    blocks: Iterable[Tree],
    secrets: np.ndarray,
    apart: np.ndarray,
    chunk: int,
    bar: tqdm,
    prune: bool = True,
    evaluations: Evaluations | None = None,
    roots: Roots | None = None,
) -> tuple[np.ndarray | None, Sizes]:
    """Ranks (S,) of secrets (S,) among all candidates, and sizes of the search.

    There are no ranks where probabilities are not finite. `apart`: the secrets' log-probabilities
    (S,) alone; `prune` leaves out what cannot be likelier than the least likely one. Spent where
    the evaluations do not reach.
    """
    census = Census(roots)
    ranks = Ranks(secrets, apart)
    finite = count(model, blocks, ranks, census, chunk, bar, prune, evaluations)
    return ranks.result() if finite else None, census.sizes()


def count(
    model: LanguageModel,
    blocks: Iterable[Tree],
    ranks: Ranks,
    census: Census,
    chunk: int,
    bar: tqdm,
    prune: bool = True,
    evaluations: Evaluations | None = None,
) -> bool:
    """Let the candidates of blocks pass by: whether their probabilities are all finite."""
    floor = ranks.apart.min(initial=np.inf) - 2 * MARGIN if prune else -np.inf
    finite = bool(np.isfinite(ranks.apart).all())
    for tree in blocks:
        census.add(tree)

        def report(states: int, share: float = tree.count / tree.states) -> None:
            census.visited += states
            bar.update(states * share)

        if finite and len(ranks.secrets):
            scores = sequence_log_probs(
                model,
                tree=tree,
                chunk=chunk,
                floor=floor,
                report=report,
                roots=census.roots,
                evaluations=evaluations,
            )
            finite = bool(np.isfinite(scores).all())
            ranks.add(scores)
        bar.update(census.lengths.total() - bar.n)
    return finite
