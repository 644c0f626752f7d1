"""What is left of noised gradients, against singular values and known signals."""

import math

import pytest
import torch
from torch import Tensor

from confide.models import build
from confide.specs import LSTMSpec, RecipeSpec
from confide.train.filters import Filters, gram, leading, project, shrink

SHAPES = [(60, 12), (12, 60), (20, 20)]


def noised(shape: tuple[int, int], deviation: float, seed: int = 0) -> tuple[Tensor, Tensor]:
    """A gradient of rank two, and the same with noise."""
    source = torch.Generator().manual_seed(seed)
    left = torch.randn(shape[0], 2, generator=source, dtype=torch.float64)
    right = torch.randn(2, shape[1], generator=source, dtype=torch.float64)
    clean = left @ right
    noise = torch.randn(shape, generator=source, dtype=torch.float64)
    return clean, clean + deviation * noise


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("deviation", [0.1, 1.0, 10.0])
def test_singular_values_shrink_as_the_formula_says(
    shape: tuple[int, int], deviation: float
) -> None:
    _, noisy = noised(shape, deviation)
    ratio = min(shape) / max(shape)
    left, values, right = torch.linalg.svd(noisy, full_matrices=False)
    unit = deviation * math.sqrt(max(shape))
    wanted = []
    for value in (values / unit).tolist():
        inner = (value**2 - ratio - 1) ** 2 - 4 * ratio
        wanted.append(math.sqrt(inner) / value if value > 1 + math.sqrt(ratio) else 0.0)
    expected = left * (unit * torch.tensor(wanted, dtype=torch.float64)) @ right
    shrink(noisy, deviation)
    torch.testing.assert_close(noisy, expected, rtol=1e-8, atol=1e-8)


@pytest.mark.parametrize("shape", SHAPES)
def test_a_gradient_is_nearer_after_shrinking_and_noise_alone_is_dropped(
    shape: tuple[int, int],
) -> None:
    clean, noisy = noised(shape, 1.0)
    filtered = noisy.clone()
    shrink(filtered, 1.0)
    assert (filtered - clean).norm() < 0.6 * (noisy - clean).norm()
    alone = noisy - clean
    before = alone.norm()
    shrink(alone, 1.0)
    assert alone.norm() < 0.35 * before
    without = clean.clone()
    shrink(without, 0.0)
    assert torch.equal(without, clean)


@pytest.mark.parametrize("shape", SHAPES)
def test_a_projection_keeps_what_lies_in_the_span(shape: tuple[int, int]) -> None:
    clean, noisy = noised(shape, 1.0)
    span = leading(gram(clean), rank=2)
    kept = clean.clone()
    project(kept, span)
    torch.testing.assert_close(kept, clean)
    filtered = noisy.clone()
    project(filtered, span)
    assert torch.linalg.matrix_rank(filtered) == 2
    assert (filtered - clean).norm() < (noisy - clean).norm()


def test_only_noised_gradients_of_matrices_change() -> None:
    model = build(LSTMSpec(kind="lstm", embedding=8, hidden=8), 20, bos=1)
    for kind in ("spectral", "subspace"):
        recipe = RecipeSpec(noisy_filter=kind, noisy_rank=2)
        filters = Filters(recipe, model, deviation=0.5)
        source = torch.Generator().manual_seed(0)
        for weight in model.parameters():
            weight.grad = torch.randn(weight.shape, generator=source)
        before = [weight.grad.clone() for weight in model.parameters()]
        filters.apply(noisy=False)
        after = [weight.grad for weight in model.parameters()]
        assert all(torch.equal(*pair) for pair in zip(before, after, strict=True))
        filters.apply(noisy=True)
        changed = [
            not torch.equal(one, weight.grad)
            for one, weight in zip(before, model.parameters(), strict=True)
        ]
        assert changed == [weight.dim() == 2 for weight in model.parameters()]


def test_without_an_exact_gradient_nothing_is_projected() -> None:
    model = build(LSTMSpec(kind="lstm", embedding=8, hidden=8), 20, bos=1)
    filters = Filters(RecipeSpec(noisy_filter="subspace"), model, deviation=0.5)
    for weight in model.parameters():
        weight.grad = torch.ones_like(weight)
    filters.apply(noisy=True)
    assert all(bool((weight.grad == 1).all()) for weight in model.parameters())


def test_the_span_follows_every_exact_gradient() -> None:
    model = build(LSTMSpec(kind="lstm", embedding=8, hidden=8), 20, bos=1)
    recipe = RecipeSpec(noisy_filter="subspace", noisy_rank=2)
    filters = Filters(recipe, model, deviation=0.5)
    source = torch.Generator().manual_seed(0)
    for _ in range(2):
        for weight in model.parameters():
            weight.grad = torch.randn(weight.shape, generator=source)
        filters.apply(noisy=False)
        for _ in range(2):
            noisy = [torch.randn(matrix.shape, generator=source) for matrix in filters.matrices]
            for matrix, values in zip(filters.matrices, noisy, strict=True):
                matrix.grad = values.clone()
            filters.apply(noisy=True)
            for matrix, span, values in zip(filters.matrices, filters.spans, noisy, strict=True):
                project(values, leading(span, rank=2))
                assert torch.equal(matrix.grad, values)
