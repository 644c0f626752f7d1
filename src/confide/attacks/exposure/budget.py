"""Ranks of secrets with as many model evaluations as there are: exact, or an estimate that says so.

Where the whole prefix tree is within the budget, it is searched as ever (ranking.py). Else half of
the budget goes into branch and bound from the likeliest secret down: a log-probability only falls
as tokens are added, so that all candidates that beat a secret lie below prefixes that are likelier
than it. Secrets that this reaches have exact ranks. The others are estimated from candidates that
are drawn uniformly, with replacement: how many of them beat a secret is binomial. The intervals
(Clopper and Pearson 1934, each at 5 % divided by the number of estimates) hold all together with at
least 95 %, whatever the model, and so do those of means and maxima that are made of their ends. The
rank itself is estimated by (k + 1) / (n + 1), as that of a Monte Carlo test: it is never better
than n draws can show.
"""

from collections import Counter
from collections.abc import Iterator
from typing import NamedTuple

import numpy as np
from tqdm import tqdm

from confide.attacks.exposure.candidates import Sentence, candidate_blocks
from confide.attacks.exposure.ranking import (
    MARGIN,
    Census,
    Sizes,
    log_probs_apart,
    ranks_among,
)
from confide.attacks.exposure.sequence_search import STEP
from confide.attacks.exposure.tree import Evaluations, Roots, Spent, Tree
from confide.attacks.statistics.metrics import TAILS
from confide.dp.accounting.bounds import clopper_pearson
from confide.errors import InputError
from confide.models import LanguageModel
from confide.text.tokenizer import Tokenizer

KEPT = 6  # digits of candidates whose trees are kept
DRAWS = 0x72616E6B  # a stream of its own, apart from the one that canaries were drawn from


class Ranking(NamedTuple):
    """Ranks of S secrets among all candidates, the likeliest 1.

    low and high are intervals of estimates, which hold together with 95 %, and equal what is exact.
    """

    rank: np.ndarray  # (S,) float64
    low: np.ndarray
    high: np.ndarray
    exact: np.ndarray  # (S,) bool

    @classmethod
    def of(cls, ranks: np.ndarray) -> "Ranking":
        """Of exact ranks."""
        return cls(ranks.copy(), ranks.copy(), ranks.copy(), np.ones(len(ranks), dtype=bool))

    def part(self, group: slice) -> "Ranking":
        """Of some of the secrets."""
        return Ranking(*(values[group] for values in self))


class Space:
    """All candidates of a sentence for one model, and what it has read of them so far."""

    def __init__(
        self,
        model: LanguageModel,
        tokenizer: Tokenizer,
        sentence: Sentence,
        *,
        chunk: int,
        most: float = np.inf,
    ):
        """chunk: states of one depth held at once; most: evaluations."""
        self.model = model
        self.tokenizer = tokenizer
        self.sentence = sentence
        self.chunk = chunk
        self.evaluations = Evaluations(most)
        self.roots: Roots = {}
        self.known: list[Tree] = []

    @property
    def size(self) -> int:
        return 10**self.sentence.digits

    def blocks(self) -> Iterator[Tree]:
        """Trees of all candidates; few are kept."""
        if self.known:
            yield from self.known
            return
        trees = candidate_blocks(self.tokenizer, self.sentence)
        if self.sentence.digits <= KEPT:
            self.known = list(trees)
            trees = iter(self.known)
        yield from trees

    def apart(self, values: np.ndarray) -> np.ndarray:
        """Log-probabilities (n,) of candidates (n,) alone."""
        return log_probs_apart(
            self.model,
            self.tokenizer,
            self.sentence,
            values,
            chunk=self.chunk,
            evaluations=self.evaluations,
            roots=self.roots,
        )

    def ranks(self, secrets: np.ndarray, apart: np.ndarray) -> tuple[np.ndarray | None, Sizes]:
        """Exact ranks (S,) of secrets (S,), and sizes of the search, as `ranks_among` has them."""
        with tqdm(
            total=self.size, desc="exposure", unit="candidate", unit_scale=True, disable=None
        ) as bar:
            return ranks_among(
                self.model,
                blocks=self.blocks(),
                secrets=secrets,
                apart=apart,
                chunk=self.chunk,
                bar=bar,
                evaluations=self.evaluations,
                roots=self.roots if self.evaluations.most < np.inf else None,
            )


def ranking(space: Space, secrets: np.ndarray, seed: int) -> tuple[Ranking | None, Sizes]:
    """Ranks of secrets (S,), and sizes of the search; there are no ranks where probabilities are
    not finite.

    InputError where the evaluations do not even score the secrets.
    """
    most = space.evaluations.most
    try:
        apart = space.apart(secrets)
    except Spent:
        message = "does not reach to score the canaries themselves"
        raise InputError(message, key="evaluations", value=int(most)) from None
    if most == np.inf:
        ranks, sizes = space.ranks(secrets, apart)
        return None if ranks is None else Ranking.of(ranks), sizes
    census = Census()
    for tree in space.blocks():
        census.add(tree)
    needed = census.sizes()["states"] + census.common()
    if needed <= space.evaluations.left or not len(secrets) or not np.isfinite(apart).all():
        ranks, sizes = space.ranks(secrets, apart)
        return None if ranks is None else Ranking.of(ranks), sizes
    secret_ranks = within(space, census, secrets, apart, seed)
    return secret_ranks, census.sizes() | {"states_visited": space.evaluations.count}


def within(
    space: Space, census: Census, secrets: np.ndarray, apart: np.ndarray, seed: int
) -> Ranking | None:
    """Ranks of secrets (S,) with what is left of the evaluations; None where probabilities are not
    finite.
    """
    evaluations = space.evaluations
    total = evaluations.most
    evaluations.most = evaluations.count + evaluations.left // 2
    ranks = settled(space, secrets, apart)
    evaluations.most = total
    if ranks is None:
        return None
    secret_ranks = Ranking.of(ranks)
    exact = np.isfinite(ranks)
    if exact.all():
        return secret_ranks
    count = affordable(census, evaluations.left)
    source = np.random.default_rng([seed, DRAWS])
    drawn = source.integers(space.size, size=count)
    scores = space.apart(drawn)
    if not np.isfinite(scores).all():
        return None
    guess = estimated(scores, drawn, secrets[~exact], apart[~exact], space.size)
    # none of these can rank before a secret that is likelier
    likelier = apart[None, exact] > apart[~exact, None] + MARGIN
    ahead = np.where(likelier, ranks[exact], 1.0).max(1, initial=1.0)
    for values, estimates in zip(secret_ranks[:3], guess[:3], strict=True):
        values[~exact] = np.maximum(estimates, ahead)
    return secret_ranks._replace(exact=exact)


def settled(space: Space, secrets: np.ndarray, apart: np.ndarray) -> np.ndarray | None:
    """Exact ranks (S,) of the likeliest secrets as far as evaluations reach, NaN of the others.

    None where probabilities are not finite.
    """
    ranks = np.full(len(secrets), np.nan)
    order = np.argsort(-apart, kind="stable")
    falling = -apart[order]
    done = 0
    while done < len(order):
        # the likeliest alone, then steps of about four times the work
        step = STEP if done else MARGIN
        done = int(np.searchsorted(falling, falling[done] + step, side="right"))
        chosen = order[:done]
        try:
            exact_ranks, _ = space.ranks(secrets[chosen], apart[chosen])
        except Spent:
            break
        if exact_ranks is None:
            return None
        ranks[chosen] = exact_ranks
    return ranks


def affordable(census: Census, left: float) -> int:
    """How many candidates can be scored, whichever are drawn, with so many evaluations."""
    widths = census.widths()
    left -= census.common()
    few = 0
    many = int(max(left, 0))
    while few < many:
        count = (few + many + 1) // 2
        if cost(widths, count) <= left:
            few = count
        else:
            many = count - 1
    return few


def cost(widths: Counter[int], count: int) -> int:
    """Prefixes that `count` candidates have at most, where there are `widths` of each length."""
    return sum(min(count, width) for width in widths.values())


def estimated(
    scores: np.ndarray, drawn: np.ndarray, secrets: np.ndarray, apart: np.ndarray, size: int
) -> Ranking:
    """Ranks of secrets (S,) with log-probabilities `apart` (S,) among `size` candidates.

    scores (n,) are those of candidates drawn (n,), uniformly with replacement. A candidate within
    MARGIN of a secret may be on either side of it: the interval allows for both.
    """
    tail = TAILS[0] / max(1, len(secrets))
    ordered = np.sort(scores)
    repeats = (drawn[:, None] == secrets).sum(0)
    above = len(scores) - np.searchsorted(ordered, apart + MARGIN, side="right")
    not_below = len(scores) - np.searchsorted(ordered, apart - MARGIN) - repeats
    middle = (above + not_below) / 2
    count = len(scores)
    low = 1 + size * np.array([1 - clopper_pearson(count - k, count, 1 - tail) for k in above])
    high = 1 + size * np.array([clopper_pearson(k, count, 1 - tail) for k in not_below])
    rank = (middle + 1) / (len(scores) + 1) * size
    return Ranking(
        np.clip(rank, low, np.minimum(high, size)),
        np.minimum(low, size),
        np.minimum(high, size),
        np.zeros(len(secrets), dtype=bool),
    )
