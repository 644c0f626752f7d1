"""Updates against their definitions: the plain gradient, the noise's law, the public normaliser,
odd and oversized batches.
"""

import math

import pytest
import torch
from scipy import stats
from torch import Tensor, nn

from confide.dp.mechanism import update
from confide.dp.mechanism.clipping import PerExampleClipper
from confide.dp.mechanism.randomness import Stream
from confide.dp.mechanism.update import exact_gradient, noisy_gradient, per_example
from confide.errors import NO_MEMORY, InputError
from confide.models import build
from confide.models.batches import Batch
from confide.models.head import IGNORE
from confide.runtime.memory import Budget, taken
from confide.specs import LSTMSpec
from tests.processors import needs_bfloat16


@pytest.fixture
def model() -> nn.Module:
    torch.manual_seed(0)
    return build(LSTMSpec(kind="lstm", embedding=8, hidden=8), 20, bos=1)


def batch(examples: int = 6) -> Batch:
    ids = torch.randint(0, 20, (examples, 7), generator=torch.Generator().manual_seed(3))
    targets = ids.roll(-1, 1)
    targets[0, 3:] = IGNORE
    return Batch(ids, targets)


def rows(whole: Batch, start: int, end: int) -> Batch:
    return Batch(whole.inputs[start:end], whole.targets[start:end])


def gradients(model: nn.Module) -> Tensor:
    return torch.cat([parameter.grad.flatten() for parameter in model.parameters()])


def noisy(
    clipper: PerExampleClipper, pieces: list[Batch], multiplier: float, expected: float, seed: int
) -> Tensor:
    """One noisy step's gradient."""
    noisy_gradient(clipper, pieces, multiplier, expected, Stream(seed, "noise"), Budget(100))
    return gradients(clipper.model).clone()


@pytest.mark.parametrize("bound", [1e6, math.inf])
def test_no_noise_and_no_clipping_is_the_plain_mean(model: nn.Module, bound: float) -> None:
    found = noisy(PerExampleClipper(model, bound), [batch()], 0.0, 4.0, 0)
    model.zero_grad()
    (per_example(model, batch()).sum() / 4.0).backward()
    torch.testing.assert_close(found, gradients(model), rtol=1e-4, atol=1e-6)


def test_noise_is_normal_independent_and_drawn_once_per_logical_step() -> None:
    torch.manual_seed(0)
    model = build(LSTMSpec(kind="lstm", embedding=64, hidden=64), 3000, bos=1)
    clipper = PerExampleClipper(model, 0.5)
    pieces = [rows(batch(), i, i + 1) for i in range(6)]
    clean = noisy(clipper, pieces, 0.0, 8.0, 1)
    first, second = (noisy(clipper, pieces, 3.0, 8.0, seed) - clean for seed in (1, 2))
    standard = first.double() / (3.0 * 0.5 / 8.0)
    assert len(standard) > 400_000 and clean.norm() <= 6 * 0.5 / 8.0 + 1e-6
    assert stats.kstest(standard.numpy(), "norm").pvalue > 1e-3
    assert abs(standard.mean()) < 4 / math.sqrt(len(standard))
    assert float(standard.var()) == pytest.approx(1.0, abs=5 * math.sqrt(2 / len(standard)))
    for one, other in (
        (first[1:], first[:-1]),
        (first, second),
        (first[: len(first) // 2], first[-(len(first) // 2) :]),
    ):
        assert abs(torch.corrcoef(torch.stack([one, other]))[0, 1]) < 4.5 / math.sqrt(len(one))


def test_sum_and_noise_meet_in_float64_and_are_rounded_once(model: nn.Module) -> None:
    clipper = PerExampleClipper(model, 0.5)
    found = noisy(clipper, [rows(batch(), 0, 2), rows(batch(), 2, 6)], 3.0, 8.0, 1)
    clean = PerExampleClipper(model, 0.5)
    for piece in (rows(batch(), 0, 2), rows(batch(), 2, 6)):
        clean.add(lambda piece=piece: per_example(model, piece))
    drawn = Stream(1, "noise").add(torch.zeros(len(found), dtype=torch.float64), 1.0)
    assert clean.flat.dtype == torch.float64 and found.dtype == torch.float32
    assert torch.equal(found, (torch.add(clean.flat, drawn, alpha=3.0 * 0.5) / 8.0).float())


def test_empty_batch_still_adds_noise(model: nn.Module) -> None:
    assert noisy(PerExampleClipper(model, 1.0), [], 2.0, 10.0, 2).std() == pytest.approx(
        0.2, rel=0.05
    )


def test_one_example_moves_the_gradient_by_at_most_the_clip_over_the_public_batch(
    model: nn.Module,
) -> None:
    clipper = PerExampleClipper(model, 0.1)
    with_it = noisy(clipper, [batch()], 1.0, 5.0, 3)
    without = noisy(clipper, [rows(batch(), 1, 6)], 1.0, 5.0, 3)
    assert (with_it - without).norm() == pytest.approx(0.1 / 5.0, rel=1e-3)


def test_an_example_does_not_depend_on_its_companions(model: nn.Module) -> None:
    alone = torch.cat([per_example(model, rows(batch(), i, i + 1)) for i in range(6)])
    torch.testing.assert_close(alone, per_example(model, batch()))


def test_exact_gradient_is_the_token_mean_over_physical_pieces(model: nn.Module) -> None:
    whole = batch()
    pieces = [rows(batch(), 0, 2), rows(batch(), 2, 6)]
    loss = exact_gradient(model, pieces, None, Budget(100))
    split = gradients(model)
    torch.testing.assert_close(loss, exact_gradient(model, [whole], None, Budget(100)))
    torch.testing.assert_close(split, gradients(model), rtol=1e-4, atol=1e-7)
    exact_gradient(model, [whole], 1e-3, Budget(100))
    assert gradients(model).norm() == pytest.approx(1e-3, rel=1e-3)


def test_a_batch_in_many_pieces_holds_the_gradients_of_two(model: nn.Module) -> None:
    """Of the piece that is read, and the sum of those before."""
    size = sum(parameter.nbytes for parameter in model.parameters())

    def held(examples: int) -> int:
        model.zero_grad()
        whole = batch(examples)
        return taken(lambda: exact_gradient(model, [whole], None, Budget(1)), "cpu")

    assert held(30) <= held(1) + 1.5 * size  # and losses


def make_memory_scarce(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """Let no more than two examples fit; the list gets the sizes of all that are tried."""
    losses = update.token_losses
    seen: list[int] = []

    def scarce(model: nn.Module, batch: Batch, half: bool) -> Tensor:
        seen.append(len(batch))
        if len(batch) > 2:
            raise torch.OutOfMemoryError("CUDA out of memory")
        return losses(model, batch, half)

    monkeypatch.setattr(update, "token_losses", scarce)
    return seen


@pytest.mark.parametrize("update_kind", ["exact", "noisy"])
def test_a_batch_that_does_not_fit_is_halved_and_gives_the_same_gradient(
    model: nn.Module,
    update_kind: str,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    budget = Budget(6)

    def run() -> Tensor:
        if update_kind == "exact":
            exact_gradient(model, [batch()], None, budget)
        else:
            noisy_gradient(
                PerExampleClipper(model, 0.1), [batch()], 1.0, 6.0, Stream(0, "noise"), budget
            )
        return gradients(model).clone()

    expected = run()
    seen = make_memory_scarce(monkeypatch)
    torch.testing.assert_close(run(), expected, rtol=1e-4, atol=1e-6)
    assert seen == [6, 3, 2, 1, 2, 1] and budget.size == 2
    assert "at most 3 examples" in capsys.readouterr().err


def test_tokens_that_do_not_fit_are_halved(
    model: nn.Module, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    exact_gradient(model, [batch()], None, Budget(6))
    expected = gradients(model).clone()
    seen = make_memory_scarce(monkeypatch)
    budget = Budget(1, tokens=100)
    exact_gradient(model, [batch()], None, budget)
    torch.testing.assert_close(gradients(model), expected, rtol=1e-4, atol=1e-6)
    assert seen == [6, 3, 1, 1, 1, 1, 1, 1] and budget.tokens == 11
    assert "at most 21 tokens" in capsys.readouterr().err


def test_a_single_example_that_does_not_fit_is_one_clear_error(
    model: nn.Module, monkeypatch: pytest.MonkeyPatch
) -> None:
    def never(*_: object) -> Tensor:
        raise RuntimeError(
            "[enforce fail at alloc_cpu.cpp] DefaultCPUAllocator: can't allocate memory"
        )

    monkeypatch.setattr(update, "token_losses", never)
    with pytest.raises(
        InputError, match=r"recipe\.physical_batch_size: one example alone does not fit"
    ):
        exact_gradient(model, [batch()], None, Budget(6))


@pytest.mark.parametrize("phrase", NO_MEMORY)
def test_a_batch_is_halved_whatever_says_that_memory_lacks(
    model: nn.Module, monkeypatch: pytest.MonkeyPatch, phrase: str
) -> None:
    losses = update.token_losses

    def scarce(model: nn.Module, batch: Batch, half: bool) -> Tensor:
        if len(batch) > 3:
            raise RuntimeError(f"{phrase.capitalize()} (errno 12)")
        return losses(model, batch, half)

    monkeypatch.setattr(update, "token_losses", scarce)
    budget = Budget(6)
    exact_gradient(model, [batch()], None, budget)
    assert budget.size == 3


def test_other_errors_are_not_taken_for_a_lack_of_memory(
    model: nn.Module, monkeypatch: pytest.MonkeyPatch
) -> None:
    def broken(*_: object) -> Tensor:
        raise RuntimeError("shape mismatch")

    monkeypatch.setattr(update, "token_losses", broken)
    with pytest.raises(RuntimeError, match="shape mismatch"):
        exact_gradient(model, [batch()], None, Budget(6))


@pytest.mark.parametrize("size", [1, 2, 3, 6])
def test_units_are_clipped_whole_whatever_the_physical_size(model: nn.Module, size: int) -> None:
    whole = batch()
    units = torch.tensor([0, 0, 0, 1, 2, 2])
    expected = torch.zeros(sum(parameter.numel() for parameter in model.parameters()))
    for members in ([0, 1, 2], [3], [4, 5]):
        model.zero_grad()
        per_example(model, Batch(whole.inputs[members], whole.targets[members])).mean().backward()
        expected += gradients(model) * min(1.0, 0.3 / gradients(model).norm().item())
    clipper = PerExampleClipper(model, 0.3)
    pieces = [Batch(whole.inputs, whole.targets, units=units)]
    noisy_gradient(clipper, pieces, 0.0, 3.0, Stream(0, "noise"), Budget(size))
    torch.testing.assert_close(
        gradients(model), expected / 3.0, rtol=1e-3, atol=1e-5
    )  # clipped a little below C


@needs_bfloat16
def test_bfloat16_is_near_float32_and_norms_stay_bounded(model: nn.Module) -> None:
    expected = noisy(PerExampleClipper(model, 0.2), [batch()], 0.0, 6.0, 0)
    noisy_gradient(
        PerExampleClipper(model, 0.2), [batch()], 0.0, 6.0, Stream(0, "noise"), Budget(9), half=True
    )
    found = gradients(model)
    assert found.dtype == torch.float32 and 0 < (found - expected).norm() < 0.03 * expected.norm()
    assert found.double().norm() <= 0.2
    exact_gradient(model, [batch()], None, Budget(9), half=True)
    half = gradients(model).clone()
    exact_gradient(model, [batch()], None, Budget(9))
    assert (half - gradients(model)).norm() < 0.03 * gradients(model).norm()
