"""Updates against their definitions: the plain gradient, the noise's size, the public normaliser, empty batches."""

import pytest
import torch
from torch import Tensor, nn

from confide.batches import IGNORE
from confide.dp.clipping import PerExampleClipper
from confide.dp.update import exact_gradient, noisy_gradient, per_example
from confide.models import build
from confide.specs import LSTMSpec


@pytest.fixture
def model() -> nn.Module:
    torch.manual_seed(0)
    return build(LSTMSpec(kind="lstm", embedding=8, hidden=8), 20, bos=1)


def batch(examples: int = 6) -> tuple[Tensor, Tensor]:
    ids = torch.randint(0, 20, (examples, 7), generator=torch.Generator().manual_seed(3))
    targets = ids.roll(-1, 1)
    targets[0, 3:] = IGNORE
    return ids, targets


def gradients(model: nn.Module) -> Tensor:
    return torch.cat([parameter.grad.flatten() for parameter in model.parameters()])


def noise_source(seed: int) -> torch.Generator:
    return torch.Generator().manual_seed(seed)


def test_no_noise_and_no_clipping_is_the_plain_mean(model: nn.Module) -> None:
    ids, targets = batch()
    noisy_gradient(PerExampleClipper(model, 1e6), [(ids, targets)], 0.0, 4.0, noise_source(0))
    noisy = gradients(model)
    model.zero_grad()
    (per_example(model, ids, targets).sum() / 4.0).backward()
    torch.testing.assert_close(noisy, gradients(model), rtol=1e-4, atol=1e-6)


def test_noise_has_the_stated_deviation_and_is_drawn_once_per_logical_step(model: nn.Module) -> None:
    ids, targets = batch()
    pieces = [(ids[i : i + 1], targets[i : i + 1]) for i in range(6)]
    clipper = PerExampleClipper(model, 0.5)
    noisy_gradient(clipper, pieces, 0.0, 8.0, noise_source(1))
    clean = gradients(model)
    noisy_gradient(clipper, pieces, 3.0, 8.0, noise_source(1))
    noise = gradients(model) - clean
    assert noise.std() == pytest.approx(3.0 * 0.5 / 8.0, rel=0.05)
    assert clean.norm() <= 6 * 0.5 / 8.0 + 1e-6


def test_empty_batch_still_adds_noise(model: nn.Module) -> None:
    noisy_gradient(PerExampleClipper(model, 1.0), [], 2.0, 10.0, noise_source(2))
    assert gradients(model).std() == pytest.approx(0.2, rel=0.05)


def test_one_example_moves_the_gradient_by_at_most_the_clip_over_the_public_batch(model: nn.Module) -> None:
    ids, targets = batch()
    clipper = PerExampleClipper(model, 0.1)
    noisy_gradient(clipper, [(ids, targets)], 1.0, 5.0, noise_source(3))
    with_it = gradients(model)
    noisy_gradient(clipper, [(ids[1:], targets[1:])], 1.0, 5.0, noise_source(3))
    assert (with_it - gradients(model)).norm() == pytest.approx(0.1 / 5.0, rel=1e-3)


def test_an_example_does_not_depend_on_its_companions(model: nn.Module) -> None:
    ids, targets = batch()
    alone = torch.cat([per_example(model, ids[i : i + 1], targets[i : i + 1]) for i in range(6)])
    torch.testing.assert_close(alone, per_example(model, ids, targets))


def test_exact_gradient_is_the_token_mean_over_physical_pieces(model: nn.Module) -> None:
    ids, targets = batch()
    loss = exact_gradient(model, [(ids[:2], targets[:2]), (ids[2:], targets[2:])], None)
    split = gradients(model)
    assert loss == pytest.approx(exact_gradient(model, [(ids, targets)], None))
    torch.testing.assert_close(split, gradients(model), rtol=1e-4, atol=1e-7)
    exact_gradient(model, [(ids, targets)], 1e-3)
    assert gradients(model).norm() == pytest.approx(1e-3, rel=1e-3)
