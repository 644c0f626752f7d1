"""Output layer: its products are written into lines of the cache, with the numbers of F.linear."""

import pytest
import torch
import torch.nn.functional as F

from confide.dp.mechanism.clipping import row_by_row
from confide.models.head import IGNORE, LINE, Head, linear


def layer(size: int, *, bias: bool = True) -> tuple[torch.Tensor, torch.Tensor | None]:
    """Weight (size, 8) and bias (size,) or None."""
    source = torch.Generator().manual_seed(size)
    weight = torch.randn(size, 8, generator=source)
    return weight, torch.randn(size, generator=source) if bias else None


@pytest.mark.parametrize("bias", [True, False])
@pytest.mark.parametrize("size", [1, 15, 16, 17, 257])
def test_rows_begin_at_lines_and_hold_the_same_numbers(size: int, bias: bool):
    weight, of_bias = layer(size, bias=bias)
    hidden = torch.randn(4, 3, 8).transpose(0, 1)  # not contiguous, as a recurrence leaves it
    with torch.no_grad():
        logits = linear(hidden, weight, of_bias)
    torch.testing.assert_close(logits, F.linear(hidden, weight, of_bias))
    assert logits.stride(-1) == 1
    assert logits.stride(1) % LINE == 0
    assert logits.stride(0) == 4 * logits.stride(1)


def test_autograd_goes_through():
    weight, bias = layer(17)
    hidden = torch.randn(2, 3, 8, requires_grad=True)
    linear(hidden, weight, bias).sum().backward()
    assert torch.allclose(hidden.grad, weight.sum(0).expand(2, 3, 8))


def test_autocast_decides_about_the_type():
    weight, bias = layer(17)
    with torch.no_grad(), torch.autocast("cpu", torch.bfloat16):
        assert linear(torch.randn(2, 3, 8), weight, bias).dtype == torch.bfloat16


def test_losses_and_gradients_are_those_of_torch():
    weight, bias = (torch.nn.Parameter(part) for part in layer(257))
    hidden = torch.randn(2, 5, 8, requires_grad=True)
    targets = torch.randint(257, (2, 5))
    targets[0, 3:] = IGNORE
    losses = Head(weight, bias)(hidden, targets)
    expected = F.cross_entropy(
        F.linear(hidden, weight, bias).flatten(0, 1),
        targets.flatten(),
        ignore_index=IGNORE,
        reduction="none",
    )
    assert torch.allclose(losses.flatten(), expected, atol=1e-6)
    parts = (hidden, weight, bias)
    ours = torch.autograd.grad(losses.sum(), parts)
    theirs = torch.autograd.grad(expected.sum(), parts)
    for mine, other in zip(ours, theirs, strict=True):
        assert torch.allclose(mine, other, atol=1e-5)


def test_clipping_copies_logits_no_more():
    logits = torch.randn(6, 2 * LINE)[:, :17].unflatten(0, (2, 3))
    assert row_by_row(logits).data_ptr() == logits.data_ptr()
    time_first = torch.randn(3, 2, 17).transpose(0, 1)
    assert row_by_row(time_first).is_contiguous()
    assert torch.equal(row_by_row(time_first), time_first)
