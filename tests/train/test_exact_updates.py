"""What exact updates do must not depend on a record that noised ones alone read: not on its text,
its length or its author, nor on the memory that it takes.
"""

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import pytest
import torch

from confide import models
from confide.dp.mechanism import update
from confide.specs import TrainSpec
from confide.train.job import Job
from confide.train.planning import enumerate_steps, updates_of_steps
from confide.train.sizes import sizes_of
from confide.types import Partition, View
from tests.stages.test_train import PRIVACY, spec

POINTS = 40
PRIVATE = 0  # the record that changes, first in its corpus
VOCABULARY = 60


def corpus(length: int, author: int) -> Partition:
    """Public points of two authors, and private ones, the first of so many tokens by anyone.

    Authors are numbered as they first appear, as partitions of files are.
    """
    source = np.random.default_rng(0)
    lengths = source.integers(2, 9, POINTS)
    ids = [source.integers(2, VOCABULARY, count).astype(np.int32) for count in lengths]
    ids[PRIVATE] = np.full(length, 7, np.int32)
    starts = np.cumsum([0, *map(len, ids)]).astype(np.int64)
    tokens = np.concatenate(ids)
    view = View(tokens, starts, np.zeros(len(tokens), bool))
    private = np.arange(POINTS) % 4 == PRIVATE
    authors = np.where(private, 3, np.arange(POINTS) % 2)
    authors[PRIVATE] = author
    none = np.full(POINTS, -1, np.int32)
    return Partition(
        view,
        view,
        view.private,
        private,
        np.zeros(POINTS, bool),
        np.zeros(POINTS, np.uint8),
        none,
        numbered(authors),
    )


def numbered(authors: Sequence[int] | np.ndarray) -> np.ndarray:
    numbers: dict[int, int] = {}
    return np.array([numbers.setdefault(int(who), len(numbers)) for who in authors], np.int32)


def after_exact(wanted: TrainSpec, data: Partition, *, noised_first: bool) -> torch.Tensor:
    """Weights that exact updates make of a fixed model, if noised ones have run before or not."""
    epochs = enumerate_steps(wanted, sizes_of(wanted, data))
    steps = [step for steps in epochs for step in steps]
    torch.manual_seed(0)
    model = models.build(wanted.model, VOCABULARY, 1).train()
    first = [weight.detach().clone() for weight in model.parameters()]
    job = Job(
        wanted,
        data,
        model,
        noise_multiplier=1.0,
        updates=updates_of_steps(steps),
        device="cpu",
    )
    if noised_first:
        for step in steps:
            if step.noisy:
                job.run(step)
        with torch.no_grad():
            for weight, value in zip(model.parameters(), first, strict=True):
                weight.copy_(value)
    torch.manual_seed(0)
    exact = [step for step in steps if not step.noisy]
    assert exact
    for step in exact:
        job.run(step)
    return torch.cat([weight.detach().flatten() for weight in model.parameters()])


def wanted(**recipe: object) -> TrainSpec:
    made = spec("crt", privacy=PRIVACY, noise_seed=3)
    given = {"optimizer": "sgd", "epochs": 1, "physical_batch_size": 16} | recipe
    return made.model_copy(update={"recipe": made.recipe.model_copy(update=given)})


@pytest.mark.parametrize("batching", ["uniform", "author"])
def test_nothing_of_a_private_record_reaches_exact_updates(batching: str) -> None:
    setting = wanted(batching=batching)
    before = after_exact(setting, corpus(length=3, author=1), noised_first=False)
    for length, author in ((3, 0), (3, 3), (9, 1), (30, 0)):
        other = corpus(length=length, author=author)
        assert torch.equal(after_exact(setting, other, noised_first=False), before)


def test_nor_does_the_memory_that_it_takes(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    honest = update.token_losses

    def scarce(model, batch, half):
        if batch.inputs.numel() > 100 and len(batch) > 1:
            raise torch.OutOfMemoryError("out of memory")
        return honest(model, batch, half)

    monkeypatch.setattr(update, "token_losses", scarce)
    setting = wanted(noisy_batch_size=10, epochs=2)
    made = [
        after_exact(setting, corpus(length=length, author=3), noised_first=True)
        for length in (3, 60)
    ]
    assert "physical batches of at most" in capsys.readouterr().err
    assert torch.equal(*made)


def test_authors_are_alike_whatever_their_numbers() -> None:
    data = corpus(length=3, author=0)
    renamed = replace(data, owner=10 - data.owner)
    setting = wanted(batching="author")
    first, second = (after_exact(setting, one, noised_first=False) for one in (data, renamed))
    assert torch.equal(first, second)
