"""Whom the triplet regulariser compares: for every point of a batch one of the same author, or one
of another.

A coin decides which of the two (Mireshghallah et al. 2021, section 2.2; there, who meets in two
batches decides). The partner is one of the points nearest in length, so that the two take little
padding and differ in their author, not in their size. A point whose author has no second one is
always compared with another author's.
"""

from dataclasses import dataclass, field

import numpy as np
import torch

from confide.types import View

NEAR = 16  # so many points on either side, in order of length, may be the partner
TRIES = 8  # draws from there until it is another author


@dataclass
class AuthorPairs:
    """Draws partners among the points that have an author; everything random comes from
    `source`.
    """

    view: View  # only lengths are read
    authors: (
        np.ndarray
    )  # (N,) int64 class of each point's author, -1 for a point that takes no part
    same_author: float  # probability of a partner by the same author
    source: torch.Generator
    by_author: np.ndarray = field(
        init=False
    )  # the points that take part, author by author, in order of length
    by_length: np.ndarray = field(init=False)  # the same in order of length
    places: np.ndarray = field(init=False)  # (2, N) of each point in these two
    edges: np.ndarray = field(init=False)  # (M + 1,) where an author's points begin in by_author

    def __post_init__(self) -> None:
        lengths = np.diff(self.view.starts)
        owned = np.flatnonzero(self.authors >= 0)
        self.by_author = owned[np.lexsort((lengths[owned], self.authors[owned]))]
        self.by_length = owned[np.argsort(lengths[owned], kind="stable")]
        self.places = np.zeros((2, len(self.authors)), dtype=np.int64)
        for row, order in zip(self.places, (self.by_author, self.by_length), strict=True):
            row[order] = np.arange(len(order))
        self.edges = np.concatenate([[0], np.bincount(self.authors[owned]).cumsum()])

    def partners(self, points: np.ndarray) -> np.ndarray:
        """A partner (B,) for each of the points (B,); one without an author is its own, and not to
        be compared.
        """
        coins, far, *near = torch.rand(
            2 + TRIES, len(points), dtype=torch.float64, generator=self.source
        ).numpy()
        authors = self.authors[points]
        partner = points.copy()
        owned = authors >= 0
        first = self.edges[authors]
        end = self.edges[authors + 1]
        same = owned & (coins < self.same_author) & (end - first > 1)
        partner[same] = _nearby(
            self.by_author,
            places=self.places[0, points],
            first=first,
            end=end,
            draws=near[0],
            rows=same,
        )
        other = owned & ~same
        for draws in near:
            # as is the point itself, which is not drawn yet
            again = other & (self.authors[partner] == authors)
            partner[again] = _nearby(
                self.by_length,
                places=self.places[1, points],
                first=0,
                end=len(self.by_length),
                draws=draws,
                rows=again,
            )
        # hardly anyone else is near: anyone, then
        again = other & (self.authors[partner] == authors)
        place = (far * (len(self.by_author) - (end - first))).astype(np.int64)
        partner[again] = self.by_author[(place + np.where(place >= first, end - first, 0))[again]]
        return partner


def _nearby(
    order: np.ndarray,
    places: np.ndarray,
    first: np.ndarray | int,
    end: np.ndarray | int,
    draws: np.ndarray,
    rows: np.ndarray,
) -> np.ndarray:
    """For the chosen rows a point of order[first:end] at most NEAR away from the own place, which
    is not drawn.
    """
    low = np.maximum(first, places - NEAR)
    high = np.minimum(end, places + NEAR + 1)
    drawn = low + (draws * (high - low - 1)).astype(np.int64)
    return order[(drawn + (drawn >= places))[rows]]
