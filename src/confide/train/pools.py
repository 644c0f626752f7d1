"""The pools that steps draw from: how large they are, which is public by assumption, and which are
too small.
"""

from collections.abc import Callable

import numpy as np

from confide.errors import InputError
from confide.types import POOLS, Partition, PoolName, Step, View


def check_pools(steps: set[Step], units_of: Callable[[Step], int], noisy_batch_size: int) -> None:
    """InputError for a pool that a step reads and that is empty, or has fewer units, points or
    authors, than the expected Poisson batch.
    """
    for step in sorted(steps, key=str):
        units = units_of(step)
        if units == 0:
            raise InputError(
                f"no training point is in the pool {step.pool!r}", key="pool", value=step.pool
            )
        if step.noisy and noisy_batch_size > units:
            raise InputError(
                f"exceeds the {units} {step.unit}s of the pool {step.pool!r}",
                key="recipe.noisy_batch_size",
                value=noisy_batch_size,
            )


def pool_sizes(partition: Partition) -> dict[PoolName, int]:
    """Sizes of the pools, public numbers by assumption (they do not differ between neighbours)."""
    return {name: int(np.size(partition.pool(name))) for name in POOLS}


def share_of(view: View, points: np.ndarray) -> float | None:
    """Share of the tokens of some points that are marked; None where there are none."""
    lengths = np.diff(view.starts)[points]
    before = np.concatenate([[0], np.cumsum(view.private)])
    marked = (before[view.starts[1:]] - before[view.starts[:-1]])[points]
    return float(marked.sum() / lengths.sum()) if lengths.sum() else None
