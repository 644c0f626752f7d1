"""Stacked models against as many ordinary ones, trained one by one on what each may see."""

import numpy as np
import pytest
import torch

from confide.models.batches import padded, token_losses
from confide.models.head import IGNORE
from confide.models.lstm import LSTMModel
from confide.models.stacked import StackedLSTM, batches, own_batches, stacked_batch, train
from confide.specs import LSTMSpec
from confide.types import View

SPEC = LSTMSpec(kind="lstm", embedding=5, hidden=7)
VOCABULARY = 11
BOS = 0


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


def test_losses_and_weights_are_those_of_separate_models():
    models = ordinary(3)
    view = texts(30)
    source = np.random.default_rng(1)
    stack = StackedLSTM.of(models)
    start = [weights(model) for model in models]
    together = torch.optim.AdamW(stack.parameters(), lr=0.02, weight_decay=0.0, fused=True)
    apart = [torch.optim.AdamW(model.parameters(), lr=0.02, weight_decay=0.0) for model in models]
    for step in range(5):
        plan = source.permuted(np.tile(np.arange(30), (3, 1)), axis=1)[:, :6]
        plan[source.random((3, 6)) < 0.3] = -1
        if step > 2:
            plan[step % 3] = -1  # a model may learn nothing at all from a batch
        losses = stack.gradient(*stacked_batch(view, plan, BOS))
        together.step()
        for model, optimizer, points, loss in zip(models, apart, plan, losses, strict=True):
            optimizer.zero_grad(set_to_none=False)
            if (points >= 0).any():
                batch = padded(view, points[points >= 0], BOS)
                own = token_losses(model, batch).sum() / (batch.targets != IGNORE).sum()
                own.backward()
            assert loss.item() == pytest.approx(own.item() if (points >= 0).any() else 0, abs=1e-10)
            optimizer.step()
    fresh = ordinary(1, seed=9)[0]
    for k, (model, before) in enumerate(zip(models, start, strict=True)):
        torch.testing.assert_close(
            weights(stack.model(k, fresh)), weights(model), rtol=0, atol=1e-10
        )
        assert (weights(model) - before).abs().max() > 0.01  # they did move


def test_a_stack_gives_back_what_it_took():
    models = ordinary(2)
    fresh = ordinary(1, seed=9)[0]
    stack = StackedLSTM.of(models)
    for k, model in enumerate(models):
        assert torch.equal(weights(stack.model(k, fresh)), weights(model))


def test_a_model_depends_on_its_own_points_alone():
    models = ordinary(2)
    view = texts(8)
    found = []
    for others in ([-1] * 4, [4, 5, 6, 7]):
        stack = StackedLSTM.of(models)
        stack.gradient(*stacked_batch(view, np.array([[0, 1, 2, 3], others]), BOS))
        found.append([parameter.grad for parameter in stack.parameters()])
    for first, second in zip(*found, strict=True):
        torch.testing.assert_close(first[0], second[0], rtol=0, atol=1e-12)
        assert not first[1].any() and second[1].any()


def test_batches_are_those_of_each_model_by_itself():
    view = texts(12)
    points = np.array([[3, 7, -1], [-1, 11, 0]])
    inputs, targets = stacked_batch(view, points, BOS)
    for k, own in enumerate(points):
        for b, point in enumerate(own):
            alone = padded(view, np.array([max(point, 0)]), BOS)
            length = 0 if point < 0 else alone.inputs.shape[1]
            assert (
                torch.equal(inputs[:length, k, b], alone.inputs[0, :length])
                and (inputs[length:, k, b] == BOS).all()
            )
            assert (
                torch.equal(targets[:length, k, b], alone.targets[0, :length])
                and (targets[length:, k, b] == IGNORE).all()
            )
    assert len(inputs) == max(len(view[point]) for point in (3, 7, 11, 0)) + 1


def test_every_model_reads_its_own_points_once_per_epoch_beside_such_of_their_length():
    source = torch.Generator().manual_seed(0)
    lengths = np.random.default_rng(1).integers(1, 60, 400)
    learns = np.random.default_rng(2).random((5, 400)) < np.array(
        [[0.2], [0.5], [0.5], [0.9], [0.0]]
    )
    plan, again = (own_batches(lengths, learns, 8, source) for _ in range(2))
    assert plan.shape == (-(-learns[3].sum() // 8), 5, 8)
    for k, mask in enumerate(learns):
        assert np.array_equal(np.sort(plan[:, k][plan[:, k] >= 0]), np.flatnonzero(mask))
        sizes = (plan[:, k] >= 0).sum(1)
        assert sizes.max() - sizes.min() <= 1
    longest = np.where(plan < 0, 0, lengths[plan]).max((1, 2))
    assert (
        longest.mean() < lengths.mean() + 4
    )  # at random the longest of so many would be nearly 59
    assert not np.array_equal(
        np.sort(plan[:, 1], axis=1), np.sort(again[:, 1], axis=1)
    )  # others meet in the next epoch
    assert (
        abs(np.corrcoef(longest, np.arange(len(plan)))[0, 1]) < 0.3
    )  # and short ones do not come first


def test_all_models_learn_and_each_epoch_has_batches_of_its_own():
    view = texts(40)
    learns = np.random.default_rng(0).random((18, 40)) < 0.5
    source = torch.Generator().manual_seed(0)
    plan = batches(np.diff(view.starts), learns, epochs=3, batch_size=8, source=source)
    assert plan.shape[0] == 3 and not np.array_equal(plan[0], plan[1])
    stack = StackedLSTM.of([model.float() for model in ordinary(18)])
    losses = train(stack, view, plan, lr=0.02, bos=BOS)
    assert losses.shape == (3, 18) and (losses[-1] < losses[0]).all()


def test_losses_are_means_of_each_epoch_and_the_rate_falls_to_nothing():
    """Two epochs of two steps on the same batch, against the usual loop."""
    (model,), view, points = ordinary(1), texts(6), np.arange(6)
    stack = StackedLSTM.of([model])
    batch = padded(view, points, BOS)
    optimizer = torch.optim.AdamW(model.parameters(), lr=0.02, weight_decay=0.0)
    expected = []
    for step in range(4):
        optimizer.param_groups[0]["lr"] = 0.02 * (1 - step / 4)
        optimizer.zero_grad()
        loss = token_losses(model, batch).sum() / (batch.targets != IGNORE).sum()
        loss.backward()
        optimizer.step()
        expected.append(loss.item())
    losses = train(stack, view, np.tile(points, (2, 2, 1, 1)), lr=0.02, bos=BOS)
    assert losses[:, 0] == pytest.approx(np.reshape(expected, (2, 2)).mean(1), abs=1e-10)


@pytest.mark.parametrize("changed", [{"layers": 2}, {"dropout": 0.1}])
def test_other_shapes_are_refused(changed):
    model = LSTMModel(SPEC.model_copy(update=changed), VOCABULARY, BOS)
    with pytest.raises(AssertionError):
        StackedLSTM.of([model])
