"""Adversarial regulariser (Mireshghallah et al. 2021, section 2.1): a discriminator of authors
shall be left with guessing.

Discriminator (loss -log Pr(y | h)) and language model (token loss + lambda * L_P) take turns, one
step each on every batch. L_P = -1/M sum_c log Pr(c | h) (Eq. 1 and 2) is log M where the
discriminator's answer is uniform over the M authors, and more elsewhere. The discriminator is never
released.
"""

from collections.abc import Iterable
from itertools import pairwise
from typing import Any

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor, nn

from confide.models.batches import padded
from confide.runtime.parallel import ALONE, Group
from confide.train.checkpoint import load_optimizer, optimizer_tensors
from confide.train.regularisers.update import Rows, Training, mean, read, regularised_gradient
from confide.types import View


class Adversarial:
    """A discriminator of two layers, and how it and the language model take turns, one step each on
    every batch.

    It is no part of the model and is never released. `source`: a generator of its own, for its
    first weights.
    """

    def __init__(
        self,
        authors: np.ndarray,
        width: int,
        hidden: int,
        lr: float,
        source: torch.Generator,
        device: str,
    ):
        self.authors = authors
        self.classes = int(authors.max()) + 1
        sizes = (width, hidden, self.classes)
        layers = [nn.utils.skip_init(nn.Linear, a, b) for a, b in pairwise(sizes)]
        for layer in layers:  # torch's usual start, which would draw from the global generator
            for parameter in layer.parameters():
                nn.init.uniform_(
                    parameter, -(layer.in_features**-0.5), layer.in_features**-0.5, generator=source
                )
        self.discriminator = nn.Sequential(layers[0], nn.ReLU(), layers[1]).to(device)
        self.optimizer = torch.optim.Adam(self.discriminator.parameters(), lr=lr, fused=True)
        self.seen: list[
            Tensor
        ] = []  # of the epoch: (3,) mean privacy loss of a batch, texts recognised, texts

    def rows(self, view: View, points: np.ndarray, bos: int) -> Rows:
        """What an update reads of some points."""
        return Rows(padded(view, points, bos), torch.from_numpy(self.authors[points]))

    def gradient(self, training: Training, pieces: Iterable[Rows]) -> Tensor:
        """A step of the discriminator, then the language model's gradient through it into .grad;
        returns the mean token loss.

        The states of one pass serve both. A batch of several pieces, or several processes', is read
        twice, with the same dropout, since the first piece needs a discriminator that has seen the
        last.
        """
        pieces = list(pieces)
        learned = []
        group = training.group
        if (
            len(pieces) > 1
            or group.size > 1
            or any(len(rows) > training.budget.examples(rows.length) for rows in pieces)
        ):
            parts = training.local(pieces)
            authors = [pieces[0].authors[:0], *(rows.authors for rows in parts)]
            states = self._states(training, parts)
            learned.append(self.learn(states, torch.cat(authors).to(states.device), group))

        def privacy_loss(states: Tensor, rows: Rows) -> Tensor:
            if not learned:
                learned.append(self.learn(states.detach(), rows.authors))
            return (self.uniformity(states) * (rows.authors >= 0)).sum()

        loss, value = regularised_gradient(training, pieces, privacy_loss)
        self.seen.append(torch.stack([value, *learned[0]]))
        return loss

    def learn(self, states: Tensor, authors: Tensor, group: Group = ALONE) -> tuple[Tensor, Tensor]:
        """One step on -log Pr(y | h); returns how many texts it had recognised before, and how many
        have an author, ().
        """
        scores = self.discriminator(states)
        texts = (authors >= 0).sum()
        hits = (scores.argmax(1) == authors).sum()
        group.sum([hits, texts])
        self.optimizer.zero_grad(set_to_none=True)
        (
            F.cross_entropy(scores, authors, ignore_index=-1, reduction="sum") / texts.clamp(min=1)
        ).backward()
        weights = self.discriminator.parameters()
        group.sum([weight.grad for weight in weights if weight.grad is not None])
        self.optimizer.step()
        return hits, texts

    def uniformity(self, states: Tensor) -> Tensor:
        """-1/M sum_c log Pr(c | h) (n,) of states (n, d): cross-entropy to uniform, at least
        log M.
        """
        return -self.discriminator(states).log_softmax(1).mean(1)

    def _states(self, training: Training, pieces: list[Rows]) -> Tensor:
        """Last states (B, d) of some pieces, by a pass that leaves the random state of dropout as
        it was.
        """
        device = next(training.model.parameters()).device
        devices = [device] if device.type == "cuda" else []
        with torch.random.fork_rng(devices), torch.no_grad():
            states_by_piece = [
                training.budget.run(
                    lambda rows: read(training.model, rows.to(device), training.half)[1], rows
                )
                for rows in pieces
            ]
        weights = training.model.head.weight
        return torch.cat(
            [
                weights.new_zeros(0, weights.shape[1]),
                *(states for piece in states_by_piece for states in piece),
            ]
        )

    def metrics(self) -> dict[str, float | None]:
        """Means of the epoch, which are then forgotten: privacy loss of batches, accuracy of the
        discriminator on new ones.
        """
        values, hits, texts = self._seen().unbind()
        self.seen = []
        accuracy = float(hits.sum() / texts.sum()) if texts.sum() else None
        return {"regulariser": mean(values), "discriminator_accuracy": accuracy}

    def state(self) -> dict[str, Any]:
        """State for a checkpoint."""
        tensors = {
            f"weights.{name}": value for name, value in self.discriminator.state_dict().items()
        }
        return tensors | optimizer_tensors(self.optimizer, "optimizer") | {"seen": self._seen()}

    def restore(self, state: dict[str, Any]) -> None:
        """Continue from a checkpoint's state."""
        for name, value in self.discriminator.state_dict().items():
            value.copy_(state[f"weights.{name}"])
        load_optimizer(self.optimizer, "optimizer", state)
        self.seen = list(state["seen"].unbind(1))

    def _seen(self) -> Tensor:
        """(3, batches)"""
        return (
            torch.stack([value.cpu() for value in self.seen], 1) if self.seen else torch.zeros(3, 0)
        )
