"""What one unit adds to a sum: never more than C as it is stored, in every precision, and whoever
shares its batch.
"""

import math
from dataclasses import replace

import numpy as np
import pytest
import torch
from torch import Tensor, nn

from confide.dp.mechanism.clipping import PerExampleClipper
from confide.dp.mechanism.gradients import Factored, Formed, Use, rounding, units_of
from confide.dp.mechanism.randomness import Stream
from confide.dp.mechanism.sequential import released
from confide.dp.mechanism.update import clipped, noisy_gradient, per_example
from confide.models import build
from confide.models.batches import Batch, padded, selected
from confide.runtime.memory import Budget
from confide.specs import GPT2Spec, LSTMSpec
from confide.types import View
from tests.nightly import nightly
from tests.processors import needs_bfloat16

VOCAB = 50
BOS = 1
POSITIONS = 40
SPECS = {
    "lstm": LSTMSpec(kind="lstm", embedding=12, hidden=10),
    "lstm two layers": LSTMSpec(kind="lstm", embedding=7, hidden=24, layers=2),
    "gpt2": GPT2Spec(kind="gpt2", layers=2, width=16, heads=2, positions=POSITIONS),
    "lora": GPT2Spec(kind="gpt2", layers=1, width=16, heads=2, positions=POSITIONS, lora_rank=2),
}
HALF = {"float32": False, "bfloat16": True}


def model_of(name: str, seed: int = 0, spread: float = 0.0) -> nn.Module:
    """A model in float32, its weights moved at random; matrices of adapters are not zero."""
    if name == "lora":
        pytest.importorskip("peft")
    torch.manual_seed(seed)
    model = build(SPECS[name], VOCAB, BOS).train()
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.add_((spread + 0.1 * (name == "lora")) * torch.randn_like(parameter))
    return model


def view_of(lengths: list[int], seed: int) -> View:
    source = np.random.default_rng(seed)
    ids = source.integers(2, VOCAB, sum(lengths)).astype(np.int32)
    return View(
        ids,
        np.concatenate([[0], np.cumsum(lengths)]).astype(np.int64),
        source.random(len(ids)) < 0.4,
    )


def batch_of(count: int, seed: int, longest: int = 20) -> Batch:
    """Texts of random lengths, the first of them the longest."""
    lengths = [longest, *np.random.default_rng(seed).integers(1, longest - 6, count - 1).tolist()]
    return padded(view_of(lengths, seed), np.arange(count), BOS)


def alone(clipper: PerExampleClipper, batch: Batch, row: int, half: bool = False) -> Tensor:
    """What one example adds, float64; its padding is that of the batch."""
    clipper.reset()
    clipper.add(lambda: per_example(clipper.model, batch[row : row + 1], half))
    return clipper.flat.clone()


@pytest.mark.parametrize("half", HALF)
@pytest.mark.parametrize(
    "name", [name if name in ("lstm", "gpt2") else nightly(name) for name in SPECS]
)
def test_no_stored_contribution_is_above_the_bound(name: str, half: str) -> None:
    """With zero tolerance, for bounds of which a rounded scale or norm would miss many: 2,000
    gradients in all.
    """
    for seed in range(25):
        model = model_of(name, seed, spread=0.05 * (seed % 5))
        batch = batch_of(10, seed)
        probe = PerExampleClipper(model, 1.0)
        typical = float(probe.add(lambda model=model, batch=batch: per_example(model, batch)).min())
        for module in model.modules():
            module._forward_hooks.clear()
        bound = typical * np.random.default_rng(seed).uniform(0.05, 0.95)
        clipper = PerExampleClipper(model, bound)
        norms = [float(alone(clipper, batch, row, HALF[half]).norm()) for row in range(len(batch))]
        assert max(norms) <= bound
        assert min(norms) > 0.99 * bound, "clipped far below the bound"
        assert clipper.nonfinite == 0


@pytest.mark.parametrize("half", ["float32", pytest.param("bfloat16", marks=needs_bfloat16)])
def test_no_stored_contribution_of_an_author_is_above_the_bound(half: str) -> None:
    """Authors of several points, in one pass and in passes of their own."""
    found = []
    for seed in range(20):
        model = model_of("lstm", seed, spread=0.1)
        batch = batch_of(6, seed)
        clipper = PerExampleClipper(model, 0.05 + 0.01 * seed)
        for units, size in (
            (torch.tensor([0, 0, 0, 1, 1, 1]), 6),
            (torch.zeros(6, dtype=torch.int64), 2),
        ):
            for number in range(int(units[-1]) + 1):
                members = units == number
                whole = Batch(batch.inputs[members], batch.targets[members])
                # together with an author without text, so that the pass is that of several authors
                if size == 6:
                    silent = torch.full_like(whole.targets, -100)
                    both = Batch(
                        torch.cat([whole.inputs, whole.inputs]), torch.cat([whole.targets, silent])
                    )
                    given = replace(both, units=torch.arange(2).repeat_interleave(len(whole)))
                else:
                    given = replace(whole, units=torch.zeros(len(whole), dtype=torch.int64))
                clipper.reset()
                clipped(clipper, given, size, HALF[half])
                found.append(float(clipper.flat.norm()) / clipper.max_grad_norm)
    assert max(found) <= 1.0 and len(found) == 60
    assert np.mean(np.array(found) > 0.99) > 0.5, "few are clipped"


def factors(source: np.random.Generator, cancel: float) -> tuple[Tensor, Tensor]:
    """Sides (B, L, size) whose products nearly cancel: the sum over positions is `cancel` times
    smaller than its terms.
    """
    rows, columns, length = source.integers(2, 700, 3) // [1, 1, 12] + 2
    left = source.normal(size=(3, length, rows))
    right = source.normal(size=(3, length, columns))
    left -= left.mean(1, keepdims=True)
    right = right / cancel + source.normal(size=(3, 1, columns))
    return tuple(
        torch.from_numpy(side * 10.0 ** source.uniform(-3, 3)).float() for side in (left, right)
    )


@pytest.mark.parametrize("cancel", [1.0, 1e2, 1e4, 1e6])
def test_bounds_hold_where_the_positions_of_a_gradient_cancel(cancel: float) -> None:
    """A norm made of inner products in float32 is then mostly rounding; what is added is still
    below its bound.
    """
    source = np.random.default_rng(int(cancel))
    computed = []
    for _ in range(40):
        left, right = factors(source, cancel)
        ids = torch.from_numpy(source.integers(0, left.shape[2], left.shape[:2]))
        grouped = units_of(torch.tensor([0, 0, 1]))
        for uses in (
            [Use(left, right)],
            [Use(ids, right)],
            [Use(left, right), Use(ids, right / 3)],
        ):
            for units in (None, grouped):
                squares = Factored(uses).squares(units)
                for unit in range(len(squares.most)):
                    weights = torch.zeros(3)
                    weights[unit if units is None else grouped.number == unit] = 1.0
                    total = torch.zeros(left.shape[2], right.shape[2])
                    Factored(uses).add_weighted(total, weights, clean=False)
                    stored = float(total.double().norm())
                    assert stored <= math.sqrt(squares.most[unit])
                    computed.append(float(squares.norms[unit].sqrt()) / stored)
    if cancel == 1e6:
        assert min(computed) < 0.9, "the norms alone would not have been enough"


def test_bounds_of_formed_gradients_hold() -> None:
    source = torch.Generator().manual_seed(0)
    for size in (1, 1000, 1025, 30_000):
        grads = torch.randn(4, size, generator=source) * 10 ** torch.empty(4, 1).uniform_(
            -20, 10, generator=source
        )
        for units in (None, units_of(torch.tensor([0, 1, 1, 1]))):
            most = Formed(grads).squares(units).most.sqrt()
            for unit, bound in enumerate(most.tolist()):
                weights = torch.zeros(4)
                weights[unit if units is None else units.number == unit] = 1.0
                total = torch.zeros(size)
                Formed(grads).add_weighted(total, weights, clean=True)
                assert total.double().norm() <= bound <= 1.001 * total.double().norm() + 1e-15


def test_the_price_of_rounding_is_small() -> None:
    """Beside the noise: below 0.1 % of a gradient's length."""
    for name in SPECS:
        model = model_of(name)
        batch = batch_of(8, 3)
        clipper = PerExampleClipper(model, 0.01)
        norms = [float(alone(clipper, batch, row).norm()) for row in range(8)]
        assert min(norms) > 0.999 * 0.01
    assert rounding(256, torch.float32) < 2e-5


@pytest.mark.parametrize("half", HALF)
@pytest.mark.parametrize("name", SPECS)
@pytest.mark.parametrize("seed", range(3))
def test_a_batch_adds_what_its_examples_add_alone(name: str, half: str, seed: int) -> None:
    """Also where weights that only the longest example reaches are not finite: it is silenced, and
    nobody else.
    """
    model = model_of(name, seed)
    batch = batch_of(7, seed)
    lengths = (batch.targets != -100).sum(1)
    if name.startswith("lstm"):  # a token that only the longest says
        batch.inputs[0, 5], batch.inputs[1:][batch.inputs[1:] == 9] = 9, 8
        model.embedding.weight.data[9] = math.nan
    else:
        model.network.transformer.wpe.weight.data[int(lengths[1:].max()) :] = math.nan
    clipper = PerExampleClipper(model, 0.05)
    norms = clipper.add(lambda: per_example(model, batch, HALF[half]))
    together = clipper.flat.clone()
    silenced = int(clipper.nonfinite)
    assert silenced == 1 and norms[1:].isfinite().all() and not norms[0].isfinite()
    apart = [alone(clipper, cut(batch, row), 0, HALF[half]) for row in range(len(batch))]
    assert not apart[0].any() and all(one.any() for one in apart[1:])
    close = {"rtol": 0.05, "atol": 2e-3} if HALF[half] else {"rtol": 1e-3, "atol": 1e-6}
    torch.testing.assert_close(together, sum(apart), **close)


def cut(batch: Batch, row: int) -> Batch:
    """One example without padding."""
    length = int((batch.targets[row] != -100).sum())
    return Batch(batch.inputs[row : row + 1, :length], batch.targets[row : row + 1, :length])


def test_selected_tokens_are_read_only_as_far_as_an_example_needs_them() -> None:
    """A text's public tokens behind its last private one are not read because a companion's private
    text is longer.
    """
    model = model_of("lstm")
    view = view_of([6, 6], seed=0)
    view.private[:] = [0, 1, 0, 0, 0, 0, 0, 0, 0, 0, 1, 1]
    view.ids[[5, 8]] = 9, 8
    view.ids[[4, 10]] = 7
    model.embedding.weight.data[9] = math.nan
    clipper = PerExampleClipper(model, 0.05)
    assert 9 in selected(view, np.arange(2), BOS, "private").inputs[0]
    clipper.add(lambda: per_example(model, selected(view, np.arange(2), BOS, "private")))
    assert clipper.nonfinite == 0
    found = clipper.flat.clone()
    apart = [alone(clipper, selected(view, np.array([row]), BOS, "private"), 0) for row in range(2)]
    torch.testing.assert_close(found, sum(apart), rtol=1e-4, atol=1e-7)


@pytest.mark.parametrize("bad", [math.nan, math.inf])
def test_states_that_are_handed_on_are_bounded_and_finite(bad: float) -> None:
    source = torch.Generator().manual_seed(0)
    hidden = torch.randn(500, 24, generator=source)
    cell = 100 * torch.randn(500, 24, generator=source)
    cell[3, 5] = bad
    for part in released([(hidden.double(), cell.double())], 0.7, 0.0, Stream(0, "states"))[0]:
        assert part.isfinite().all() and part.norm(dim=1).max() <= 0.7
    ((_, noised),) = released([(hidden, cell)], 0.7, 2.0, Stream(0, "states"))
    assert noised.dtype == torch.float32 and noised[3].any() and noised.isfinite().all()


def test_physical_batches_add_up_in_float64() -> None:
    """One small contribution among many large ones is in the sum to the last digits of float32,
    whatever came before.
    """
    model = model_of("lstm")
    batch = batch_of(2, 1)
    clipper = PerExampleClipper(model, 1e-4)
    own = alone(clipper, batch, 1)
    clipper.flat.fill_(1000.0)  # as after many physical batches
    clipper.add(lambda: per_example(model, batch[1:2]))
    torch.testing.assert_close(clipper.flat - 1000.0, own, rtol=1e-6, atol=1e-12)
    noisy_gradient(clipper, [batch], 0.0, 3.0, Stream(0, "noise"), Budget(1))
    assert next(model.parameters()).grad.dtype == torch.float32
