"""Clipping against a naive per-example loop in float64, and against Opacus."""

import pytest
import torch
import torch.nn.functional as F
from torch import Tensor, nn

from confide.dp.clipping import PerExampleClipper
from confide.models import build
from confide.specs import GPT2Spec, LSTMSpec

VOCAB = 40
MODELS = {
    "lstm": LSTMSpec(kind="lstm", embedding=9, hidden=11),
    "lstm two layers": LSTMSpec(kind="lstm", embedding=9, hidden=7, layers=2),
    "gpt2 tied": GPT2Spec(kind="gpt2", layers=2, width=12, heads=3, positions=48),
}


def model_of(name: str) -> nn.Module:
    torch.manual_seed(0)
    return build(MODELS[name], VOCAB, bos=1).double().train()


def batch(examples: int = 5, length: int = 13) -> tuple[Tensor, Tensor]:
    """Ids with repeated tokens, and targets with padding of different lengths."""
    source = torch.Generator().manual_seed(1)
    ids = torch.randint(2, VOCAB, (examples, length), generator=source)
    ids[:, ::3] = ids[:, :1]
    targets = torch.randint(2, VOCAB, (examples, length), generator=source)
    for row in range(examples):
        targets[row, length - row :] = -100
    return ids, targets


def losses(model: nn.Module, ids: Tensor, targets: Tensor) -> Tensor:
    return F.cross_entropy(model(ids).transpose(1, 2), targets, ignore_index=-100, reduction="none").sum(1)


def naive(model: nn.Module, ids: Tensor, targets: Tensor, bound: float) -> tuple[Tensor, list[Tensor]]:
    """One backward pass per example."""
    parameters = list(model.parameters())
    norms, total = [], [torch.zeros_like(parameter) for parameter in parameters]
    for row in range(len(ids)):
        grads = torch.autograd.grad(losses(model, ids[row : row + 1], targets[row : row + 1])[0], parameters)
        norm = torch.sqrt(sum(grad.square().sum() for grad in grads))
        norms.append(norm)
        for value, grad in zip(total, grads, strict=True):
            value += grad * min(1.0, bound / max(norm.item(), 1e-12))
    return torch.stack(norms), total


@pytest.mark.parametrize("name", MODELS)
@pytest.mark.parametrize("length", [3, 13, 40])  # short: Gram norms; long: direct norms
def test_equals_a_loop_over_examples(name: str, length: int) -> None:
    model = model_of(name)
    ids, targets = batch(length=length)
    expected_norms, expected = naive(model, ids, targets, bound=1.2)
    assert (expected_norms > 1.2).any() and len(set(expected_norms.tolist())) > 1
    clipper = PerExampleClipper(model, max_grad_norm=1.2)
    norms = clipper.add(lambda: losses(model, ids, targets))
    torch.testing.assert_close(norms, expected_norms, rtol=1e-9, atol=1e-9)
    for value, other in zip(clipper.total, expected, strict=True):
        torch.testing.assert_close(value, other, rtol=1e-8, atol=1e-10)


@pytest.mark.parametrize("name", MODELS)
def test_physical_batches_add_up(name: str) -> None:
    model = model_of(name)
    ids, targets = batch()
    whole, parts = PerExampleClipper(model, 1.0), PerExampleClipper(model, 1.0)
    whole.add(lambda: losses(model, ids, targets))
    for rows in (slice(0, 2), slice(2, 5)):
        parts.add(lambda rows=rows: losses(model, ids[rows], targets[rows]))
    for one, other in zip(whole.total, parts.total, strict=True):
        torch.testing.assert_close(one, other)
    parts.reset()
    assert all(not value.any() for value in parts.total)


@pytest.mark.parametrize("name", MODELS)
def test_no_clipping_is_the_plain_gradient(name: str) -> None:
    model = model_of(name)
    ids, targets = batch()
    clipper = PerExampleClipper(model, max_grad_norm=1e9)
    clipper.add(lambda: losses(model, ids, targets))
    losses(model, ids, targets).sum().backward()
    for parameter, value in zip(clipper.parameters, clipper.total, strict=True):
        torch.testing.assert_close(parameter.grad, value)


def test_nonfinite_example_counts_and_contributes_nothing() -> None:
    model = model_of("lstm")
    ids, targets = batch()
    clean, dirty = PerExampleClipper(model, 1.0), PerExampleClipper(model, 1.0)
    clean.add(lambda: losses(model, ids[1:], targets[1:]))

    def poisoned() -> Tensor:
        factor = torch.ones(len(ids), dtype=torch.float64)
        factor[0] = torch.inf
        return losses(model, ids, targets) * factor

    dirty.add(poisoned)
    assert dirty.nonfinite == 1
    for one, other in zip(clean.total, dirty.total, strict=True):
        torch.testing.assert_close(one, other)


def test_unsupported_layer_is_refused_by_name() -> None:
    model = nn.Sequential(nn.Linear(3, 3), nn.Conv1d(3, 3, 1))
    with pytest.raises(TypeError, match=r"layer 1 of type Conv1d"):
        PerExampleClipper(model, 1.0)


def test_norms_agree_with_opacus() -> None:
    from opacus import GradSampleModule

    torch.manual_seed(0)
    plain = nn.Sequential(nn.Embedding(VOCAB, 6), nn.Linear(6, 8), nn.LayerNorm(8), nn.Linear(8, VOCAB))
    ids, targets = batch()
    ours = PerExampleClipper(plain, 1.0).add(lambda: losses(plain, ids, targets))
    for module in plain.modules():
        module._forward_hooks.clear()
    wrapped = GradSampleModule(plain, loss_reduction="sum")
    losses(wrapped, ids, targets).sum().backward()
    squared = sum(parameter.grad_sample.flatten(1).square().sum(1) for parameter in wrapped.parameters())
    torch.testing.assert_close(ours, squared.sqrt(), rtol=1e-5, atol=1e-6)
