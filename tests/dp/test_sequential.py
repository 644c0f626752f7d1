"""Selective-DPSGD run by run: against one dense pass, loops over points, and what a noised state
must be.
"""

import numpy as np
import torch
from torch import Tensor

from confide.dp.mechanism.clipping import PerExampleClipper
from confide.dp.mechanism.randomness import Stream
from confide.dp.mechanism.sequential import (
    most_handed_on,
    noised_gradient,
    published_updates,
    released,
    runs_of,
)
from confide.dp.mechanism.update import exact_gradient
from confide.models import build
from confide.models.batches import padded, selected
from confide.models.lstm import LSTMModel
from confide.runtime.memory import Budget
from confide.specs import LSTMSpec
from confide.types import View

BOS = 1
MARKS = np.array([0, 0, 1, 1, 0, 0, 0, 1, 0, 0, 0, 0, 1, 1, 0], dtype=bool)
STARTS = np.array([0, 8, 10, 13, 15])
POINTS = np.arange(4)


def view(marks: np.ndarray = MARKS) -> View:
    return View(np.arange(10, 25).astype(np.int32), STARTS, marks)


def model_of() -> LSTMModel:
    torch.manual_seed(0)
    return build(LSTMSpec(kind="lstm", embedding=6, hidden=5, layers=2), 60, BOS).double()


def gradient(model: LSTMModel) -> Tensor:
    return torch.cat([parameter.grad.flatten() for parameter in model.parameters()])


def test_runs_alternate_and_cover_every_position_once() -> None:
    runs = runs_of(view(), POINTS, BOS)
    # point 0: bos t0 | t1 t2 t3 | t4 t5 | t6 t7 end; point 2: bos t10 | t11 t12; point 3: (empty) |
    # bos t13 | t14
    assert [run.private for run in runs] == [False, True, False, True]
    assert [run.rows.tolist() for run in runs] == [[0, 1, 2], [0, 2, 3], [0, 3], [0]]
    assert [[len(ids) for ids in run.inputs] for run in runs] == [[2, 3, 2], [3, 2, 2], [2, 1], [2]]
    whole = padded(view(), POINTS, BOS)
    for row in POINTS:
        read = [
            ids
            for run in runs
            for place, ids in zip(run.rows, run.inputs, strict=True)
            if place == row
        ]
        assert (
            torch.cat(read).tolist()
            == whole.inputs[row, : STARTS[row + 1] - STARTS[row] + 1].tolist()
        )
    assert (
        most_handed_on(view(), POINTS) == 1
    )  # after a point's last private run nothing is handed on
    assert most_handed_on(view(), np.array([1, 2])) == 0


def test_states_that_are_handed_on_as_they_are_give_the_losses_of_one_pass() -> None:
    model = model_of()
    loss = noised_gradient(model, [runs_of(view(), POINTS, BOS)], [4], None, lambda state: state)
    expected = exact_gradient(
        model, [selected(view(), POINTS, BOS, "public", "carry")], None, Budget(9)
    )
    torch.testing.assert_close(loss.double(), expected)


def test_without_private_tokens_it_is_an_ordinary_update() -> None:
    model = model_of()
    bare = view(np.zeros(15, bool))
    pieces = [POINTS[:3], POINTS[3:]]
    noised_gradient(
        model, [runs_of(bare, piece, BOS) for piece in pieces], [3, 1], 0.5, lambda state: state
    )
    found = gradient(model)
    exact_gradient(model, [padded(bare, POINTS, BOS)], 0.5, Budget(9))
    torch.testing.assert_close(found, gradient(model))


def test_zeroed_states_are_those_of_the_reset() -> None:
    model = model_of()
    zero = lambda state: [(torch.zeros_like(h), torch.zeros_like(c)) for h, c in state]  # noqa: E731
    noised_gradient(model, [runs_of(view(), POINTS, BOS)], [4], None, zero)
    found = gradient(model)
    exact_gradient(model, [selected(view(), POINTS, BOS, "public")], None, Budget(9))
    torch.testing.assert_close(found, gradient(model))


def test_released_states_are_clipped_row_by_row_and_noised() -> None:
    torch.manual_seed(0)
    state = [(3 * torch.randn(40, 50), 0.001 * torch.randn(40, 50)) for _ in range(2)]
    for (long, short), (one, other) in zip(
        state, released(state, 0.5, 0.0, Stream(0, "states")), strict=True
    ):
        torch.testing.assert_close(one, 0.5 * long / long.norm(dim=1, keepdim=True))
        assert torch.equal(other, short)
    quiet, noisy = (released(state, 0.5, sigma, Stream(0, "states")) for sigma in (0.0, 2.0))
    noise = torch.cat(
        [
            (b - a).flatten()
            for old, new in zip(quiet, noisy, strict=True)
            for a, b in zip(old, new, strict=True)
        ]
    )
    assert (
        abs(float(noise.std()) - 1.0) < 0.03 and abs(float(noise.mean())) < 0.05
    )  # 8,000 draws of N(0, (2 * 0.5)^2)


def test_published_updates_clip_each_present_point_and_divide_by_how_many_there_are() -> None:
    model = model_of()
    bound = 0.01
    clipper = PerExampleClipper(model, bound)
    runs = runs_of(view(), POINTS, BOS)
    zero = lambda state: [(torch.zeros_like(h), torch.zeros_like(c)) for h, c in state]  # noqa: E731
    kinds = []
    for noisy, loss in published_updates(
        model, clipper, runs, 4, None, 0.0, Stream(0, "noise"), zero
    ):
        kinds.append(noisy)
        assert (loss is None) == noisy
        if len(kinds) == 2:  # the first private run: the state is that after the first public one
            found = gradient(model)
    assert kinds == [run.private for run in runs]
    whole = padded(view(), POINTS, BOS)
    expected = torch.zeros_like(found)
    for row, (first, last) in {0: (2, 5), 2: (2, 4), 3: (0, 2)}.items():
        state = model.start(1)
        if first:
            _, state = model.resume(
                whole.inputs[row : row + 1, :first], torch.tensor([first]), state
            )
        state = [(hidden.detach(), cell.detach()) for hidden, cell in state]
        hidden, _ = model.resume(
            whole.inputs[row : row + 1, first:last], torch.tensor([last - first]), state
        )
        loss = model.head(hidden, whole.targets[row : row + 1, first:last]).mean()
        one = torch.cat(
            [grad.flatten() for grad in torch.autograd.grad(loss, list(model.parameters()))]
        )
        expected += one * min(1.0, bound / float(one.norm())) / 3
    torch.testing.assert_close(found, expected)


def test_reading_on_from_a_state_is_reading_at_once() -> None:
    model = model_of()
    batch = padded(view(), POINTS, BOS)
    whole = model.hidden(batch.inputs)
    lengths = torch.tensor([3, 1, 2, 3])
    first, state = model.resume(batch.inputs[:, :3], lengths, model.start(4))
    rest = torch.stack([row[n : n + 3] for row, n in zip(batch.inputs, lengths, strict=True)])
    second, _ = model.resume(rest, lengths, state)
    for row, n in enumerate(lengths):
        torch.testing.assert_close(first[row, :n], whole[row, :n])
        torch.testing.assert_close(second[row, :n], whole[row, n : 2 * n])
