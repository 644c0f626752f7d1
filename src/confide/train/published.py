"""Selective-DPSGD exactly as published (Shi et al. 2022, Algorithm 1): method `selective` with
`private_state: published`.

Public and private runs of one batch make updates in turn, each by its own kind of gradient. Exact
and noisy updates share the batch, so that sampling hides nothing and nothing is claimed; the rate
that the ledger has is the one that the paper accounts for. Each process of a group computes all.
"""

from collections.abc import Iterator
from dataclasses import replace

from torch import Tensor

from confide.dp.mechanism import sequential
from confide.dp.mechanism.clipping import PerExampleClipper
from confide.dp.mechanism.randomness import Noise
from confide.models.language_model import LanguageModel
from confide.train.batches import Batches
from confide.train.handed_on import HandedOn
from confide.types import Step


def updates_of_batch(
    step: Step,
    *,
    model: LanguageModel,
    batches: Batches,
    clipper: PerExampleClipper,
    noise: Noise,
    states: HandedOn,
) -> Iterator[tuple[Step, Tensor | None]]:
    """Leave one gradient after the other in .grad; yields what it is of, and its loss if exact."""
    recipe = batches.spec.recipe
    chosen = batches.points(step, batches.next_of_pass(step, recipe.noisy_batch_size))
    runs = sequential.runs_of(batches.view(step), chosen, batches.bos)
    updates = sequential.published_updates(
        model,
        clipper,
        runs,
        size=len(chosen),
        max_norm=recipe.exact_clip,
        noise_multiplier=states.noise_multiplier,
        noise=noise,
        hand_on=states.passed,
    )
    public = replace(step, noisy=False, tokens="public")
    for noisy, loss in updates:
        yield (step if noisy else public), loss
