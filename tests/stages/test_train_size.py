"""Settings that decide how large a model fits, and nothing else."""

from typing import Any

import pytest
import torch
from torch import Tensor

from confide import models
from confide.models.recompute import recompute
from confide.runtime.parallel import ALONE
from confide.specs import GPT2Spec, LSTMSpec, RecipeSpec, TrainSpec, parse
from confide.train.job import Job
from confide.train.planning import enumerate_steps, updates_of_steps
from confide.train.sizes import sizes_of
from confide.types import Partition
from tests.stages import test_train, test_train_authors


def asked(name: str, **recipe: Any) -> tuple[TrainSpec, Partition]:
    """A job without dropout, which draws numbers piece by piece."""
    wanted = test_train_authors.asked(most=None) if name == "authors" else test_train.spec(name)
    data = test_train_authors.written() if name == "authors" else test_train.partition()
    model = LSTMSpec(kind="lstm", embedding=6, hidden=6)
    changed = wanted.recipe.model_copy(update=recipe)
    return wanted.model_copy(update={"model": model, "recipe": changed, "device": "cpu"}), data


def run(spec: TrainSpec, data: Partition) -> tuple[Job, list[Tensor]]:
    """A finished job in float64, and the gradients of its updates."""
    torch.manual_seed(0)
    model = models.build(spec.model, 270, 1).double().train()
    if spec.recipe.gradient_checkpointing:
        recompute(model)
    steps = [step for epoch in enumerate_steps(spec, sizes_of(spec, data)) for step in epoch]
    job = Job(
        spec,
        data,
        model,
        noise_multiplier=0.8,
        updates=updates_of_steps(steps),
        device="cpu",
        group=ALONE,
    )
    grads = []
    for step in steps:
        job.run(step)
        grads.append(torch.cat([weight.grad.flatten() for weight in model.parameters()]).clone())
    return job, grads


@pytest.mark.parametrize("name", ["crt", "nonprivate", "authors"])
@pytest.mark.parametrize("most", [1, 20])
def test_tokens_or_examples_give_the_same_updates_and_ledger(name: str, most: int) -> None:
    one, expected = run(*asked(name, physical_batch_size=6))
    two, found = run(*asked(name, physical_tokens=most))
    for ours, theirs in zip(found, expected, strict=True):
        torch.testing.assert_close(ours, theirs, rtol=1e-11, atol=1e-12)
    assert one.history.ledger.dump() == two.history.ledger.dump()


def test_recomputed_blocks_give_the_same_updates_and_ledger() -> None:
    model = GPT2Spec(kind="gpt2", layers=2, width=8, heads=2, positions=16, dropout=0.2)
    found = []
    for again in (False, True):
        spec, data = asked("crt", gradient_checkpointing=again, epochs=1)
        found.append(run(spec.model_copy(update={"model": model}), data))
    (one, expected), (two, grads) = found
    for ours, theirs in zip(grads, expected, strict=True):
        torch.testing.assert_close(ours, theirs, rtol=1e-9, atol=1e-11)
    assert one.history.ledger.dump() == two.history.ledger.dump()


def test_a_recipe_without_it_is_written_as_before() -> None:
    usual = RecipeSpec().model_dump()
    assert not {"physical_tokens", "gradient_checkpointing"} & set(usual)
    assert usual["physical_batch_size"] == 256
    tokens = RecipeSpec(physical_tokens=64)
    assert "physical_batch_size" not in tokens.model_dump()
    assert parse(RecipeSpec, tokens.model_dump()) == tokens
