"""By what noised gradients are multiplied, against mean squares that are written out."""

import pytest
import torch
from torch import nn

from confide.models import build
from confide.specs import LSTMSpec
from confide.train.moments import DECAY, Moments


@pytest.fixture
def model() -> nn.Module:
    torch.manual_seed(0)
    return build(LSTMSpec(kind="lstm", embedding=8, hidden=8), 20, bos=1)


def test_there_are_no_scales_before_the_first_exact_gradient(model: nn.Module) -> None:
    moments = Moments(model, wanted=True)
    assert moments.scales() == {}
    unwanted = Moments(model, wanted=False)
    unwanted.add()
    assert unwanted.scales() == {} and unwanted.state() == {}


def test_scales_divide_by_root_mean_squares(model: nn.Module) -> None:
    """Of gradients that are a product of rows and columns the scaled ones are all of one size."""
    moments = Moments(model, wanted=True)
    source = torch.Generator().manual_seed(0)
    for weight in model.parameters():
        rows = torch.rand(len(weight), generator=source) + 0.5
        columns = torch.rand(weight[0].numel(), generator=source) + 0.5
        weight.grad = (rows[:, None] * columns).reshape(weight.shape)
    for _ in range(3):
        moments.add()
    scales = moments.scales()
    assert set(scales) == set(model.parameters())
    sizes = [scales[weight].of(weight.grad) for weight in model.parameters()]
    assert all(values.std() < 1e-5 for values in sizes if values.numel() > 1)
    first = sizes[0].flatten()[0]
    assert all(torch.allclose(values, first, rtol=1e-4) for values in sizes)


def test_rare_rows_are_scaled_up_ten_times_at_most(model: nn.Module) -> None:
    moments = Moments(model, wanted=True)
    for weight in model.parameters():
        weight.grad = torch.zeros_like(weight)
        weight.grad[0] = 1.0
    moments.add()
    for scale in moments.scales().values():
        assert scale.rows.isfinite().all() and scale.rows.max() <= 100 * scale.rows.min() * 10
        assert scale.columns.max() <= 10


def test_they_are_moving_averages_that_a_checkpoint_keeps(model: nn.Module) -> None:
    moments = Moments(model, wanted=True)
    wanted = [torch.zeros(len(weight), dtype=torch.float64) for weight in model.parameters()]
    for step in range(4):
        for place, weight in enumerate(model.parameters()):
            weight.grad = torch.full_like(weight, step + 1.0)
            wanted[place] = DECAY * wanted[place] + (1 - DECAY) * (step + 1.0) ** 2
        moments.add()
    for rows, expected in zip(moments.rows, wanted, strict=True):
        torch.testing.assert_close(rows, expected)
    other = Moments(model, wanted=True)
    other.restore(moments.state())
    for one, again in zip(moments.scales().values(), other.scales().values(), strict=True):
        assert torch.equal(one.rows, again.rows) and torch.equal(one.columns, again.columns)
