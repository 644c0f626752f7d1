"""Stacked models against as many ordinary ones, trained one by one on what each may see."""

import numpy as np
import pytest
import torch

from confide.batches import Batch, padded, token_losses
from confide.models.head import IGNORE
from confide.models.lstm import LSTMModel
from confide.models.stacked import PART, StackedLSTM, fit
from confide.specs import LSTMSpec
from confide.types import View

SPEC = LSTMSpec(kind="lstm", embedding=5, hidden=7)
VOCABULARY, BOS = 11, 0


def texts(count: int, seed: int = 0, longest: int = 9) -> View:
    source = np.random.default_rng(seed)
    starts = np.cumsum([0, *source.integers(1, longest, count)])
    ids = source.integers(1, VOCABULARY, starts[-1]).astype(np.int32)
    return View(ids, starts, np.zeros(starts[-1], dtype=bool))


def ordinary(count: int, seed: int = 0) -> list[LSTMModel]:
    torch.manual_seed(seed)
    return [LSTMModel(SPEC, VOCABULARY, BOS).double() for _ in range(count)]


def weights(model: LSTMModel) -> torch.Tensor:
    return torch.cat([parameter.detach().flatten() for parameter in model.parameters()])


def by_itself(model: LSTMModel, batch: Batch, learns: torch.Tensor) -> torch.Tensor:
    """Mean token loss of the points that one model learns from, 0 where there is none."""
    targets = torch.where(learns.unsqueeze(1), batch.targets, IGNORE)
    return token_losses(model, Batch(batch.inputs, targets)).sum() / (targets != IGNORE).sum().clamp(min=1)


@pytest.mark.parametrize("tile", [128, 4])
def test_losses_and_weights_are_those_of_separate_models(monkeypatch, tile):
    monkeypatch.setattr("confide.models.stacked.TILE", tile)
    models, view, source = ordinary(3), texts(30), np.random.default_rng(1)
    stack = StackedLSTM.of(models)
    start = [weights(model) for model in models]
    together = torch.optim.AdamW(stack.parameters(), lr=0.02, weight_decay=0.0, fused=True)
    apart = [torch.optim.AdamW(model.parameters(), lr=0.02, weight_decay=0.0) for model in models]
    for step in range(5):
        batch = padded(view, source.choice(30, 6, replace=False), BOS)
        learns = torch.from_numpy(source.random((3, 6)) < 0.5)
        if step > 2:
            learns[step % 3] = False  # a model may learn nothing at all from a batch
        losses = stack.gradient(batch, learns)
        together.step()
        for model, optimizer, mask, loss in zip(models, apart, learns, losses, strict=True):
            optimizer.zero_grad(set_to_none=False)
            own = by_itself(model, batch, mask)
            own.backward()
            optimizer.step()
            assert loss.item() == pytest.approx(own.item(), abs=1e-10)
    fresh = ordinary(1, seed=9)[0]
    for k, (model, before) in enumerate(zip(models, start, strict=True)):
        torch.testing.assert_close(weights(stack.model(k, fresh)), weights(model), rtol=0, atol=1e-10)
        assert (weights(model) - before).abs().max() > 0.01  # they did move


def test_a_model_depends_on_its_own_points_alone():
    models, view = ordinary(2), texts(8)
    batch = padded(view, np.arange(8), BOS)
    one, other = (torch.zeros(2, 8, dtype=torch.bool) for _ in range(2))
    one[0, :4] = other[0, :4] = other[1, 4:] = True
    found = []
    for learns in (one, other):
        stack = StackedLSTM.of(models)
        stack.gradient(batch, learns)
        found.append([parameter.grad for parameter in stack.parameters()])
    for first, second in zip(*found, strict=True):
        assert torch.equal(first[0], second[0]) and not first[1].any() and second[1].any()


def test_fit_is_the_same_for_any_number_of_processes_and_learns():
    view, count = texts(40), PART + 2
    learns = np.random.default_rng(0).random((count, 40)) < 0.5
    recipe = {"epochs": 3, "lr": 0.02, "batch_size": 8, "bos": BOS}
    results = []
    for processes in (1, 2):
        stack = StackedLSTM.of([model.float() for model in ordinary(count)])
        losses = fit(stack, view, learns, **recipe, source=torch.Generator().manual_seed(0), processes=processes)
        results.append((losses, [parameter.clone() for parameter in stack.parameters()]))
    (first, weights_), (second, others) = results
    assert np.array_equal(first, second) and all(map(torch.equal, weights_, others))
    assert first.shape == (3, count) and (first[-1] < first[0]).all()


def test_a_stack_in_parts_shares_its_weights():
    stack = StackedLSTM.of(ordinary(5))
    parts = stack.split(2)
    assert [len(part) for part in parts] == [2, 2, 1]
    parts[2].head += 1
    assert torch.equal(stack.head[4], parts[2].head[0])


@pytest.mark.parametrize("changed", [{"layers": 2}, {"dropout": 0.1}])
def test_other_shapes_are_refused(changed):
    model = LSTMModel(SPEC.model_copy(update=changed), VOCABULARY, BOS)
    with pytest.raises(AssertionError):
        StackedLSTM.of([model])
