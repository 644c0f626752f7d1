"""Where noise is correlated: into how many groups units are dealt, and how often each is drawn.

Each group's turn comes once in as many noised updates as there are groups, so that two updates of
one unit lie at least that far apart. No torch here.

Guarantees: both numbers follow from settings and the public number of units; who is in which group
is drawn once, before training, for each unit by itself, whatever it holds.
"""

import math

from confide.dp.accounting.banded import inverse_root
from confide.specs import RecipeSpec
from confide.types import Correlation


def groups_of(recipe: RecipeSpec, units: int) -> int:
    """Groups that units are dealt into; 1 where noise is not correlated.

    sampled: as many as the noise has bands. cyclic: as many as a pass has updates.
    """
    if recipe.noise is None:
        return 1
    if recipe.noise.order == "cyclic":
        return passes_updates(recipe, units)
    return recipe.noise.bands


def rate_of(recipe: RecipeSpec, units: int) -> float:
    """Probability of each unit to be in an update that is its group's turn."""
    if recipe.noise is not None and recipe.noise.order == "cyclic":
        return 1.0
    return min(1.0, recipe.noisy_batch_size * groups_of(recipe, units) / units)


def correlation_of(recipe: RecipeSpec, units: int, sequence: str) -> Correlation | None:
    """How a ledger says that noise hangs together; None where it does not."""
    if recipe.noise is None:
        return None
    return Correlation(
        coefficients=inverse_root(recipe.noise.bands),
        separation=groups_of(recipe, units),
        sequence=sequence,
    )


def passes_updates(recipe: RecipeSpec, units: int) -> int:
    """Updates that read every unit once: at most so many bands leave a unit's updates apart."""
    return math.ceil(units / recipe.noisy_batch_size)
