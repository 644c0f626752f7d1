"""What each update reads: points drawn by chance for noisy steps, all in turn for exact ones.

The generators are part of the checkpoint, as are the batches that are left of a pass.
"""

from collections.abc import Iterator
from dataclasses import replace
from itertools import chain, repeat
from typing import Any

import numpy as np
import torch
from torch import Tensor

from confide.dp.mechanism.authors import authors_of, drawn, packed, protects_authors
from confide.dp.mechanism.randomness import Stream
from confide.dp.mechanism.sampling import by_author, dealt, generator, poisson, shuffled
from confide.models.batches import (
    Batch,
    answers_only,
    by_length,
    nothing,
    padded,
    predicting,
    public_counts,
    selected,
    unmasked,
)
from confide.runtime.memory import Budget
from confide.runtime.parallel import Group
from confide.specs import TrainSpec
from confide.train.dealing import groups_of, rate_of
from confide.train.planning import discrete
from confide.types import POOLS, Partition, PoolName, Step, View


class Batches:
    """The points of the pools, and how updates draw from them.

    All of it is the same in every process of the group; pieces of a batch are divided among them.
    """

    def __init__(
        self,
        spec: TrainSpec,
        partition: Partition,
        *,
        bos: int,
        noise_seed: int,
        halves: bool,
        group: Group,
    ) -> None:
        """halves: whether passes may become smaller where memory runs out."""
        self.spec = spec
        self.partition = partition
        self.bos = bos
        self.halves = halves
        self.group = group
        # whether all processes must read as many pieces: they put together what they read with
        self.in_step = spec.recipe.shard and group.size > 1
        self.pools: dict[PoolName, np.ndarray] = {name: partition.pool(name) for name in POOLS}
        self.authors = authors_of(partition) if protects_authors(spec) else {}
        self.shuffle = generator(spec.seed, "public batches")
        # the private stream decides what the accountant assumes secret, so it is as fresh as the
        # noise and as no other run's: two models with the same noise would give it away
        self.sampler = Stream(noise_seed, f"{spec.run}: private batches")
        # who is in which group is drawn once, from a stream that is never moved on
        self.deal = Stream(noise_seed, f"{spec.run}: groups")
        self.turns = 0  # noised updates so far
        self.left: list[Tensor] = []  # of a pass over a pool: positions in it, the next batch last
        self.tokens = 0  # of the points that were given out so far, an end token each
        self._lengths: dict[Step, np.ndarray] = {}
        self._budgets: dict[Step, Budget] = {}

    def view(self, step: Step) -> View:
        """What the step reads."""
        return self.partition.view(step.view if self.spec.redact else "original")

    def points(self, step: Step, chosen: Tensor) -> np.ndarray:
        """Points (n,) at some positions of the step's pool."""
        return self.pools[step.pool][chosen.numpy()]

    def budget(self, step: Step) -> Budget:
        """How much one pass of the step may hold.

        Each kind of step has its own: were it one, a long text that only noised updates read would
        decide, where memory runs out, how exact ones are cut, and with what dropout.
        """
        if step not in self._budgets:
            recipe = self.spec.recipe
            self._budgets[step] = Budget(
                recipe.physical_batch_size, recipe.physical_tokens, halves=self.halves
            )
        return self._budgets[step]

    def units(self, step: Step) -> int:
        """How many units, points or authors, a Poisson batch is drawn from."""
        return len((self.authors if step.unit == "author" else self.pools)[step.pool])

    def sample_rate(self, step: Step) -> float:
        """Probability of each unit to be in a Poisson batch (of its group)."""
        return rate_of(self.spec.recipe, self.units(step))

    def poisson(self, step: Step) -> Tensor:
        """Positions (n,) of the units of the next noisy step."""
        members = self.turn(step)
        self.turns += 1
        return members[poisson(len(members), self.sample_rate(step), self.sampler)]

    def turn(self, step: Step) -> Tensor:
        """Positions (n,) of the units whose turn it is: all, where there are no groups."""
        units = self.units(step)
        groups = groups_of(self.spec.recipe, units)
        if groups == 1:
            return torch.arange(units)
        return torch.nonzero(dealt(units, groups, self.deal) == self.turns % groups).flatten()

    def next_of_pass(self, step: Step, size: int) -> Tensor:
        """Positions (n,) of the next batch of a pass, `size` or fewer; where one ends, of a new."""
        if not self.left:
            self.left = self._pass(step, size)
        return self.left.pop()

    def pieces(self, step: Step, chosen: Tensor) -> Iterator[Batch]:
        """This process's part of a batch, in pieces that are read in one go."""
        view = self.view(step)
        alone = step.noisy and discrete(self.spec)
        size = 1 if alone else self.budget(step).examples
        counts = self._counts(step)
        part = self.group.part
        if step.unit == "author":
            most = self.spec.recipe.author_points
            points_of_each = drawn(self.authors[step.pool], chosen, most, self.sampler)
            whole = packed(points_of_each, counts, size, part)
            return (replace(self._batch(step, view, piece), units=units) for piece, units in whole)
        points = self.points(step, chosen)
        pieces = by_length(view, points, size, counts, part)
        batches = (self._batch(step, view, piece) for piece in pieces)
        if not self.in_step:
            return batches
        of_each = [
            len(list(by_length(view, points, size, counts, other_part)))
            for other_part in self.group.parts
        ]
        missing = max(of_each) - of_each[self.group.rank]
        return chain(batches, repeat(nothing(self.bos), missing))

    def by_tokens(self, step: Step, chosen: Tensor) -> tuple[list[Batch], list[Batch]]:
        """This process's part of a batch twice: scored on private tokens, and on all others."""
        view = self.view(step)
        points = self.points(step, chosen)
        size = self.budget(step).examples
        pieces = list(by_length(view, points, size, self._counts(step), self.group.part))
        self.tokens += sum(len(piece) + int(np.diff(view.starts)[piece].sum()) for piece in pieces)
        private = [predicting(view, piece, self.bos) for piece in pieces]
        return private, [unmasked(view, piece, self.bos) for piece in pieces]

    def state(self) -> dict[str, Any]:
        """State for a checkpoint."""
        return {
            "shuffle": self.shuffle.get_state(),
            "sampler": self.sampler.get_state(),
            "deal": self.deal.get_state(),
            "turns": self.turns,
            "left": torch.cat([*self.left, torch.zeros(0, dtype=torch.int64)]),
            "sizes": [len(batch) for batch in self.left],
        }

    def restore(self, state: dict[str, Any]) -> None:
        """Continue from a checkpoint's state."""
        self.shuffle.set_state(state["shuffle"])
        self.sampler.set_state(state["sampler"])
        self.deal.set_state(state["deal"])
        self.turns = state["turns"]
        self.left = list(state["left"].split(state["sizes"]))

    def _pass(self, step: Step, size: int) -> list[Tensor]:
        pool = self.pools[step.pool]
        lengths = torch.from_numpy(self._counts(step)[pool])
        if self.spec.recipe.batching == "uniform" or step.noisy:
            return shuffled(lengths, size, self.shuffle)
        owner = torch.from_numpy(self.partition.owner[pool])
        return by_author(lengths, owner, size, self.shuffle)

    def _batch(self, step: Step, view: View, points: np.ndarray) -> Batch:
        self.tokens += len(points) + int(np.diff(view.starts)[points].sum())
        if step.tokens == "all":
            return answers_only(view, points, padded(view, points, self.bos))
        if step.tokens == "unmasked":
            return answers_only(view, points, unmasked(view, points, self.bos))
        return selected(view, points, self.bos, step.tokens, step.state)

    def _counts(self, step: Step) -> np.ndarray:
        """(N,) what decides, beside chance, which points meet in a batch.

        Lengths; of a step on public tokens the positions that it scores, and nothing else.
        """
        if step not in self._lengths:
            view = self.view(step)
            public = step.tokens == "public"
            self._lengths[step] = public_counts(view) if public else np.diff(view.starts)
        return self._lengths[step]
