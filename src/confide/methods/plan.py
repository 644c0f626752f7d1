"""What a method may know before training: sizes of the pools (public) and the recipe's batch sizes
and epochs.
"""

import math
from dataclasses import dataclass

from confide.types import PoolName, StateName, Step, TokensName, UnitName, ViewName


@dataclass(frozen=True, slots=True)
class Plan:
    epochs: int
    noisy_epochs: int  # passes over the private pool in all, in expectation
    batch_size: int
    noisy_batch_size: int
    sizes: dict[PoolName, int]
    private_state: StateName = "reset"  # of a method that tells tokens apart
    redaction_schedule: str = "exp_concave"  # of a method that mixes views, with its temperature
    eta: float = 15.0
    seed: int = 0  # of coins that are public
    authors: dict[PoolName, int] | None = (
        None  # how many each pool has, where noise protects authors instead of points
    )

    @property
    def unit(self) -> UnitName:
        """Whom noisy steps protect."""
        return "point" if self.authors is None else "author"

    def exact(
        self, view: ViewName, pool: PoolName, tokens: TokensName = "all", state: StateName = "reset"
    ) -> list[Step]:
        """One epoch of ordinary updates."""
        return [Step(view=view, pool=pool, noisy=False, tokens=tokens, state=state)] * math.ceil(
            self.sizes[pool] / self.batch_size
        )

    def noisy(
        self,
        view: ViewName,
        pool: PoolName,
        part: int,
        parts: int,
        tokens: TokensName = "all",
        state: StateName = "reset",
    ) -> list[Step]:
        """Part number `part` of the noisy updates: all `parts` together make noisy_epochs passes in
        expectation.
        """
        units = (self.authors or self.sizes)[pool]
        updates = max(1, round(self.noisy_epochs * units / self.noisy_batch_size))
        share = updates * (part + 1) // parts - updates * part // parts
        return [
            Step(view=view, pool=pool, noisy=True, tokens=tokens, state=state, unit=self.unit)
        ] * share
