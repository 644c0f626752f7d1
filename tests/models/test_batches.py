"""Which positions Selective-DPSGD scores, and that public losses cannot see a private token."""

from dataclasses import replace
from itertools import pairwise

import numpy as np
import pytest
import torch
from torch import Tensor

from confide.dp.mechanism.authors import packed
from confide.dp.mechanism.update import exact_gradient
from confide.models import build
from confide.models.batches import (
    Batch,
    by_length,
    padded,
    private_positions,
    public_counts,
    selected,
    token_losses,
    unmasked,
)
from confide.models.head import IGNORE
from confide.runtime.memory import Budget
from confide.specs import LSTMSpec
from confide.types import View

BOS = 1
MARKS = np.array([0, 0, 1, 1, 0, 0, 0, 1, 0, 0, 0, 0, 1], dtype=bool)
LEARNED = np.array([0, 1, 1, 0, 1, 0, 0, 0, 1, 1, 1, 0, 1], dtype=bool)
STARTS = np.array([0, 8, 10, 13])


def view(private_shift: int = 0) -> View:
    ids = np.arange(10, 23)
    return View(np.where(MARKS, ids + private_shift, ids).astype(np.int32), STARTS, MARKS)


def predicted(batch: Batch) -> list[list[int]]:
    return [targets[targets != IGNORE].tolist() for targets in batch.targets]


def scored(batch: Batch) -> list[list[int]]:
    return [
        places[targets != IGNORE].tolist()
        for places, targets in zip(batch.places, batch.targets, strict=True)
    ]


def test_positions_are_private_if_they_read_or_predict_a_private_token() -> None:
    points = np.arange(3)
    public = selected(view(), points, BOS, "public")
    private = selected(view(), points, BOS, "private")
    # point 0: bos t0 t1 [t2 t3] t4 t5 t6 [t7]; position p reads token p - 1 and predicts token p
    carried = selected(view(), points, BOS, "public", "carry")
    whole = padded(view(), points, BOS)
    assert scored(carried) == [[0, 1, 5, 6], [0, 1, 2], [0, 1]]
    assert scored(private) == [[2, 3, 4, 7, 8], [], [2, 3]]
    assert sum(map(len, scored(carried) + scored(private))) == int((whole.targets != IGNORE).sum())
    for batch in (carried, private):
        for row, places in enumerate(scored(batch)):
            assert (
                batch.targets[row][batch.targets[row] != IGNORE].tolist()
                == whole.targets[row, places].tolist()
            )
    assert predicted(public) == predicted(carried)
    assert (
        public.inputs[0].tolist() == whole.inputs[0, [0, 1, 5, 6]].tolist()
    )  # what is not scored is not read
    assert (~public.keep[:2]).nonzero().tolist() == [
        [0, 2]
    ]  # public text after private text begins anew
    assert carried.keep is None and public_counts(view()).tolist() == [4, 3, 2]


def test_masks_are_read_but_never_predicted() -> None:
    points = np.arange(3)
    batch = unmasked(view(), np.arange(3), BOS)
    whole = padded(view(), points, BOS)
    assert torch.equal(batch.inputs, whole.inputs)
    ids = view().ids
    expected = [
        [*(int(i) for i, m in zip(ids[a:b], MARKS[a:b], strict=True) if not m), BOS]
        for a, b in pairwise(STARTS)
    ]
    assert predicted(batch) == expected and predicted(whole) != expected


def test_public_loss_gradients_are_the_same_bits_whatever_the_private_tokens() -> None:
    def gradients(shift: int, tokens: str, learned: np.ndarray | None = None) -> Tensor:
        torch.manual_seed(0)
        model = build(LSTMSpec(kind="lstm", embedding=8, hidden=8, layers=2), 60, BOS)
        read = replace(view(shift), learned=learned)
        exact_gradient(model, [selected(read, np.arange(3), BOS, tokens)], None, Budget(9))
        return torch.cat([parameter.grad.flatten() for parameter in model.parameters()])

    assert torch.equal(gradients(0, "public"), gradients(30, "public"))
    assert torch.equal(gradients(0, "public", LEARNED), gradients(30, "public", LEARNED))
    assert not torch.equal(gradients(0, "private"), gradients(30, "private"))


def test_what_is_not_learned_is_read_and_not_scored() -> None:
    points = np.arange(3)
    whole = view()
    some = replace(whole, learned=LEARNED)
    expected = {"public": [[11], [18, 19, BOS], [20]], "private": [[12, 14], [], [22]]}
    for tokens, targets in expected.items():
        for state in ("reset", "carry"):
            batch = selected(some, points, BOS, tokens, state)
            assert predicted(batch) == targets
    public = selected(some, points, BOS, "public")
    assert torch.equal(public.inputs, selected(whole, points, BOS, "public").inputs)
    assert torch.equal(public.keep, selected(whole, points, BOS, "public").keep)


def test_learned_positions_have_the_losses_that_they_have_among_others() -> None:
    model = build(LSTMSpec(kind="lstm", embedding=8, hidden=8), 60, BOS).double()
    some = replace(view(), learned=LEARNED)
    for tokens in ("public", "private"):
        part = selected(some, np.arange(3), BOS, tokens)
        whole = selected(view(), np.arange(3), BOS, tokens)
        losses = token_losses(model, part)
        marked = part.targets != IGNORE
        size = part.targets.shape[1]
        torch.testing.assert_close(losses[marked], token_losses(model, whole)[:, :size][marked])


def test_scored_positions_have_the_losses_of_the_whole_where_nothing_is_reset() -> None:
    model = build(LSTMSpec(kind="lstm", embedding=8, hidden=8), 60, BOS).double()
    whole = padded(view(), np.arange(3), BOS)
    part = selected(view(), np.arange(3), BOS, "public")
    losses = token_losses(model, part)
    expected = token_losses(model, whole)
    for row, end in enumerate([2, 3, 2]):  # before the first reset
        torch.testing.assert_close(losses[row, :end], expected[row, :end])


def test_public_batches_do_not_know_how_long_private_text_is() -> None:
    ids = np.array([5, 6, 30, 31, 32, 7, 8, 9], np.int32)
    starts = np.array([0, 8])
    long = View(ids, starts, np.array([0, 0, 1, 1, 1, 0, 0, 0], bool))
    short = View(
        np.array([5, 6, 33, 7, 8, 9], np.int32),
        np.array([0, 6]),
        np.array([0, 0, 1, 0, 0, 0], bool),
    )
    one, other = (selected(each, np.array([0]), BOS, "public") for each in (long, short))
    assert all(
        torch.equal(getattr(one, name), getattr(other, name))
        for name in ("inputs", "targets", "keep")
    )
    assert public_counts(long).tolist() == public_counts(short).tolist() == [5]


def test_public_counts_and_marked_points_are_those_of_a_loop() -> None:
    source = np.random.default_rng(0)
    for _ in range(20):
        lengths = source.integers(0, 9, 7) + np.arange(7) % 2
        starts = np.concatenate([[0], lengths.cumsum()])
        some = View(
            source.integers(3, 40, starts[-1]).astype(np.int32),
            starts,
            source.random(starts[-1]) < 0.4,
        )
        whole = padded(some, np.arange(7), BOS)
        private = private_positions(some, np.arange(7), tuple(whole.targets.shape))
        assert (
            public_counts(some).tolist() == (~private & (whole.targets != IGNORE)).sum(1).tolist()
        )
        assert some.marked().tolist() == [
            bool(some.private[a:b].any()) for a, b in pairwise(starts)
        ]


@pytest.mark.parametrize("most", [1, 9, 14, 40, 1000])
def test_pieces_hold_so_many_tokens_after_padding(most: int) -> None:
    source = np.random.default_rng(1)
    lengths = source.integers(0, 12, 50)
    starts = np.concatenate([[0], lengths.cumsum()]).astype(np.int64)
    text = View(np.full(starts[-1], 4, np.int32), starts, np.zeros(starts[-1], bool))
    points = source.permutation(50)[:40]
    budget = Budget(7, tokens=most)
    pieces = list(by_length(text, points, budget.examples))
    assert sorted(np.concatenate(pieces).tolist()) == sorted(points.tolist())
    shapes = [padded(text, piece, BOS).inputs.shape for piece in pieces]
    assert all(count * length <= most or count == 1 for count, length in shapes)
    for (count, _), (_, length) in pairwise(shapes):  # the next one would not have fitted
        assert (count + 1) * length > most


def test_pieces_of_tokens_keep_authors_whole() -> None:
    source = np.random.default_rng(0)
    authors = np.split(source.permutation(40), [3, 4, 10, 12, 24, 25, 26])
    lengths = source.integers(1, 9, 40)
    budget = Budget(7, tokens=30)
    found = []
    for points, units in packed(authors, lengths, budget.examples):
        longest = int(lengths[points].max()) + 1
        assert len(points) * longest <= 30 or int(units.max()) == 0
        found += [
            tuple(points[units.numpy() == unit].tolist()) for unit in sorted(set(units.tolist()))
        ]
    assert sorted(found) == sorted(tuple(points.tolist()) for points in authors)


def test_points_without_a_chosen_position_are_scored_nowhere() -> None:
    batch = selected(view(), np.array([1]), BOS, "private")
    assert (batch.targets == IGNORE).all() and batch.inputs.shape == (1, 1)


def test_units_are_not_divided() -> None:
    whole = Batch(
        torch.arange(7)[:, None],
        torch.arange(7)[:, None],
        units=torch.tensor([0, 0, 0, 1, 2, 2, 3]),
    )
    pieces = whole.split(2)
    assert [piece.inputs.flatten().tolist() for piece in pieces] == [[0, 1, 2], [3], [4, 5], [6]]
    assert [piece.units.tolist() for piece in pieces] == [[0, 0, 0], [0], [0, 0], [0]]
    assert [piece.units.tolist() for piece in whole.split(4)] == [[0, 0, 0, 1], [0, 0, 1]]
