"""Triplet regulariser (Mireshghallah et al. 2021, section 2.2): the distance of two texts shall not
tell their authors apart.

Texts of different authors are pulled together, those of one author pushed apart: plus the squared
distance of their last states for different authors, minus it for the same one. That is Eq. 3 and
the paper's text; its Eq. 4 has both signs turned round by mistake. Distances are means over hidden
units, not sums, so that lambda does not depend on the width.
"""

from collections.abc import Iterable
from typing import Any

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor

from confide.models.batches import padded
from confide.train.regularisers.pairs import AuthorPairs
from confide.train.regularisers.update import Rows, Training, mean, regularised_gradient
from confide.types import View


class Triplet:
    """Texts of different authors pulled together, those of one author pushed apart.

    Minus a squared distance has a lower bound only where states have a bound. An LSTM's lie in (-1,
    1), or under dropout in 1 / (1 - p) of that; those of other encoders (`bounded` False) are
    divided by their root mean square first, so that the mean squared difference is at most 4 for
    both.
    """

    def __init__(self, pairs: AuthorPairs, weight: float, bounded: bool):
        self.pairs = pairs
        self.weight = weight
        self.bounded = bounded
        self.seen: list[Tensor] = []  # of the epoch: mean privacy loss () of each batch

    def rows(self, view: View, points: np.ndarray, bos: int) -> Rows:
        """What an update reads of some points; with lambda = 0 nobody is compared, which is
        ordinary training.
        """
        batch = padded(view, points, bos)
        authors = torch.from_numpy(self.pairs.authors[points])
        if self.weight == 0:
            return Rows(batch, authors)
        partners = self.pairs.partners(points)
        return Rows(
            batch,
            authors,
            padded(view, partners, bos),
            torch.from_numpy(self.pairs.authors[partners]),
        )

    def gradient(self, training: Training, pieces: Iterable[Rows]) -> Tensor:
        """The language model's gradient into .grad; returns the mean token loss."""
        loss, value = regularised_gradient(training, list(pieces), self.distance)
        if self.weight > 0:
            self.seen.append(value)
        return loss

    def distance(self, states: Tensor, rows: Rows) -> Tensor:
        """Sum () over pairs of +- mean (h_x - h_a)^2, + for different authors: states (2B, d),
        partners last.
        """
        if rows.others is None:
            return states.new_zeros(())
        if not self.bounded:
            states = F.rms_norm(states, states.shape[-1:])
        signs = torch.where(rows.authors == rows.others, -1.0, 1.0) * (rows.authors >= 0)
        first, second = states.chunk(2)
        return ((first - second).square().mean(1) * signs).sum()

    def metrics(self) -> dict[str, float | None]:
        """Mean privacy loss of the epoch's batches, which are then forgotten."""
        values = torch.stack(self.seen) if self.seen else torch.zeros(0)
        self.seen = []
        return {"regulariser": mean(values)}

    def state(self) -> dict[str, Any]:
        """State for a checkpoint."""
        values = torch.stack(self.seen) if self.seen else torch.zeros(0)
        return {"pairs": self.pairs.source.get_state(), "seen": values}

    def restore(self, state: dict[str, Any]) -> None:
        """Continue from a checkpoint's state."""
        self.pairs.source.set_state(state["pairs"])
        self.seen = list(state["seen"].unbind())
