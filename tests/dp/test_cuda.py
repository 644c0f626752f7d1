"""The engine on a GPU: the CPU's numbers, bfloat16 with norms in float32, and no wait for the
device within a step.
"""

import pytest
import torch
from torch import nn

from confide.dp.mechanism.clipping import PerExampleClipper
from confide.dp.mechanism.randomness import Stream, noise_of
from confide.dp.mechanism.update import exact_gradient, noisy_gradient
from confide.models import build
from confide.models.batches import Batch
from confide.runtime.memory import Budget
from confide.specs import GPT2Spec, LSTMSpec

SPECS = {
    "lstm": LSTMSpec(kind="lstm", embedding=32, hidden=32),
    "gpt2": GPT2Spec(kind="gpt2", layers=2, width=32, heads=2, positions=64),
}
pytestmark = [
    pytest.mark.gpu,
    pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a CUDA device"),
]


def model_of(name: str) -> nn.Module:
    torch.manual_seed(0)
    return build(SPECS[name], 100, 1).train()


def batch() -> Batch:
    ids = torch.randint(2, 100, (8, 24), generator=torch.Generator().manual_seed(1))
    return Batch(ids, ids.roll(-1, 1))


def clipped(model: nn.Module, half: bool = False) -> torch.Tensor:
    clipper = PerExampleClipper(model, 0.1)
    device = str(clipper.flat.device.type)
    noisy_gradient(clipper, [batch()], 0.0, 8.0, noise_of(0, "noise", device), Budget(8), half)
    return clipper.flat.cpu()


@pytest.mark.parametrize("name", SPECS)
def test_clipped_sums_are_those_of_the_cpu(name: str) -> None:
    here = clipped(model_of(name))
    torch.testing.assert_close(clipped(model_of(name).cuda()), here, rtol=1e-3, atol=1e-6)
    half = clipped(model_of(name).cuda(), half=True)
    assert (half - here).norm() < 0.05 * here.norm()


def test_noise_is_normal() -> None:
    zeros = torch.zeros(1_000_000, dtype=torch.float64, device="cuda")
    values = noise_of(0, "noise", "cuda").add(zeros, 1.0)
    assert abs(values.mean()) < 5e-3 and abs(values.std() - 1) < 5e-3
    assert isinstance(noise_of(0, "noise", "cpu"), Stream)


@pytest.mark.parametrize("name", SPECS)
def test_no_step_waits_for_the_device(name: str) -> None:
    model = model_of(name).cuda()
    optimizer = torch.optim.AdamW(model.parameters(), fused=True)
    clipper = PerExampleClipper(model, 0.1)
    noise = noise_of(0, "noise", "cuda")
    budget = Budget(8)
    exact_gradient(model, [batch()], 1.0, budget)
    optimizer.step()
    torch.cuda.set_sync_debug_mode("error")
    try:
        exact_gradient(model, [batch()], 1.0, budget)
        optimizer.step()
        noisy_gradient(clipper, [batch()], 1.0, 8.0, noise, budget)
        optimizer.step()
    finally:
        torch.cuda.set_sync_debug_mode("default")
