"""Gradients that are scaled before they are clipped, against a loop over examples in float64."""

from collections.abc import Callable
from functools import partial

import pytest
import torch
from torch import Tensor, nn

from confide.dp.mechanism.clipping import PerExampleClipper
from confide.dp.mechanism.gradients import Scale
from confide.dp.mechanism.update import in_passes, per_example
from confide.models import build
from confide.models.batches import Batch
from confide.models.recompute import recompute
from confide.specs import GPT2Spec, LSTMSpec, ModelSpec

VOCAB = 20
MODELS: dict[str, ModelSpec] = {
    "lstm": LSTMSpec(kind="lstm", embedding=8, hidden=8),
    "gpt2, tied": GPT2Spec(kind="gpt2", layers=2, width=8, heads=2, positions=8),
    "gpt2, adapters": GPT2Spec(kind="gpt2", layers=2, width=8, heads=2, positions=8, lora_rank=2),
}


def batch() -> Batch:
    ids = torch.randint(0, VOCAB, (6, 7), generator=torch.Generator().manual_seed(3))
    return Batch(ids, ids.roll(-1, 1))


def scaled(model: nn.Module) -> dict[nn.Parameter, Scale]:
    """Random factors for every third trained weight."""
    source = torch.Generator().manual_seed(1)

    def factors(size: int) -> Tensor:
        return torch.rand(size, generator=source, dtype=torch.float64) * 3 + 0.1

    weights = [weight for weight in model.parameters() if weight.requires_grad]
    return {
        weight: Scale(factors(len(weight)), factors(weight[0].numel())) for weight in weights[::3]
    }


def naive(model: nn.Module, scales: dict[nn.Parameter, Scale], rows: Batch) -> Tensor:
    """Each example's scaled gradient (B, d)."""
    weights = [weight for weight in model.parameters() if weight.requires_grad]
    vectors = []
    for number in range(len(rows)):
        one = Batch(rows.inputs[number : number + 1], rows.targets[number : number + 1])
        grads = torch.autograd.grad(per_example(model, one).sum(), weights)
        parts = []
        for weight, grad in zip(weights, grads, strict=True):
            if weight in scales:
                factor = scales[weight].rows.view(-1, *[1] * (grad.dim() - 1))
                grad = grad * factor * scales[weight].columns.view(1, -1)[0, : grad[0].numel()]
            parts.append(grad.flatten())
        vectors.append(torch.cat(parts))
    return torch.stack(vectors)


@pytest.fixture(params=MODELS)
def model(request: pytest.FixtureRequest) -> nn.Module:
    torch.manual_seed(0)
    return build(MODELS[request.param], VOCAB, bos=1).double().eval()


def clipped(vectors: Tensor, bound: float) -> Tensor:
    return (vectors * (bound / vectors.norm(dim=1, keepdim=True)).clamp(max=1)).sum(0)


def summed(mean: Callable[[], Tensor], count: int) -> Tensor:
    return mean() * count


@pytest.mark.parametrize("again", [False, True], ids=["kept", "recomputed"])
def test_sums_and_norms_are_those_of_scaled_gradients(model: nn.Module, again: bool) -> None:
    if again:
        if model.spec.kind == "lstm":
            pytest.skip("has no blocks")
        recompute(model.train())
    clipper = PerExampleClipper(model, 0.05)
    clipper.scales = scaled(model)
    wanted = naive(model, clipper.scales, batch())
    norms = clipper.add(lambda: per_example(model, batch()))
    torch.testing.assert_close(norms, wanted.norm(dim=1), rtol=1e-10, atol=0)
    torch.testing.assert_close(clipper.flat, clipped(wanted, 0.05), rtol=1e-10, atol=1e-14)
    assert (wanted.norm(dim=1) - naive(model, {}, batch()).norm(dim=1)).abs().min() > 1e-3


def test_units_in_one_pass_or_several(model: nn.Module) -> None:
    whole = batch()
    clipper = PerExampleClipper(model, 0.05)
    clipper.scales = scaled(model)
    units = torch.tensor([0, 0, 1, 1, 1, 2])
    vectors = naive(model, clipper.scales, whole)
    wanted = torch.zeros(3, vectors.shape[1], dtype=torch.float64).index_add_(0, units, vectors)
    norms = clipper.add(lambda: per_example(model, whole), units)
    torch.testing.assert_close(norms, wanted.norm(dim=1), rtol=1e-10, atol=0)
    together = clipper.flat.clone()
    clipper.reset()
    for unit in range(3):
        members = units == unit
        one = Batch(whole.inputs[members], whole.targets[members], units=units[members] * 0)
        passes = in_passes(model, one, 2, False)  # of a mean
        clipper.add_unit([partial(summed, piece, len(one)) for piece in passes])
    torch.testing.assert_close(clipper.flat, together, rtol=1e-10, atol=1e-14)
    torch.testing.assert_close(together, clipped(wanted, 0.05), rtol=1e-10, atol=1e-14)
