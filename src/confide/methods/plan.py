"""What a method may know before training: sizes of the pools (public) and what the recipe says."""

import math
from dataclasses import dataclass
from typing import Self, TypeVar

from confide.spec_base import Spec
from confide.types import PoolName, StateName, Step, TokensName, UnitName, ViewName


class Options(Spec):
    """Base of the options of one method. A recipe has those of all methods as its own fields."""

    @classmethod
    def of(cls, recipe: Spec) -> Self:
        """The recipe as what has these options; TypeError for one that lacks them."""
        if not isinstance(recipe, cls):
            raise TypeError(f"{type(recipe).__name__} has no options {cls.__name__}")
        return recipe


Own = TypeVar("Own", bound=Options)


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """Public numbers that a method makes its steps from, and helpers that make them."""

    epochs: int
    noisy_epochs: int  # passes over the private pool in all, in expectation
    batch_size: int
    noisy_batch_size: int
    sizes: dict[PoolName, int]  # points of each pool
    authors: dict[PoolName, int] | None = None  # of each pool; None: noise protects points
    recipe: Spec | None = None  # whose options the method takes; None: their defaults
    seed: int = 0  # of coins that are public

    @property
    def unit(self) -> UnitName:
        """Whom noisy steps protect."""
        return "point" if self.authors is None else "author"

    def options(self, kind: type[Own]) -> Own:
        """The method's own options."""
        return kind() if self.recipe is None else kind.of(self.recipe)

    def exact(
        self,
        view: ViewName,
        pool: PoolName,
        *,
        tokens: TokensName = "all",
        state: StateName = "reset",
    ) -> list[Step]:
        """One epoch of ordinary updates."""
        step = Step(view=view, pool=pool, noisy=False, tokens=tokens, state=state)
        return [step] * math.ceil(self.sizes[pool] / self.batch_size)

    def noisy(
        self,
        view: ViewName,
        pool: PoolName,
        *,
        part: int,
        parts: int,
        tokens: TokensName = "all",
        state: StateName = "reset",
    ) -> list[Step]:
        """Part number `part` of the noisy updates.

        All `parts` together make noisy_epochs passes over the pool's units, in expectation.
        """
        units = (self.authors or self.sizes)[pool]
        updates = max(1, round(self.noisy_epochs * units / self.noisy_batch_size))
        share = updates * (part + 1) // parts - updates * part // parts
        step = Step(view=view, pool=pool, noisy=True, tokens=tokens, state=state, unit=self.unit)
        return [step] * share
