"""Padded batches of points, and the losses of their tokens.

The input of a point is [bos, t1..tn], its target [t1..tn, bos].
Shapes: B points, L = longest of them + 1, P scored positions.
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, fields, replace
from itertools import pairwise
from typing import Literal

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor

from confide.models.head import IGNORE
from confide.models.language_model import Encoder
from confide.types import StateName, View


@dataclass(frozen=True, slots=True)
class Batch:
    """Some points as a model reads them.

    `places` and `keep` are there where private and public tokens are told apart.
    """

    inputs: Tensor  # (B, L) int64
    targets: Tensor  # (B, P) int64, IGNORE where nothing is scored
    # (B, P) int64: the position of each target; None: P = L, in order
    places: Tensor | None = None
    # (B, L) bool: False where the recurrent state is set to zero before the position is read
    keep: Tensor | None = None
    # (B,) int64: privacy unit of each point, 0, 0, 1, ...; None: each point is its own
    units: Tensor | None = None

    def __len__(self) -> int:
        return len(self.inputs)

    @property
    def length(self) -> int:
        """L: tokens of an example, padding included."""
        return self.inputs.shape[1]

    def __getitem__(self, part: slice) -> "Batch":
        return self._each(lambda tensor: tensor[part])

    def to(self, device: torch.device) -> "Batch":
        """This batch on a device; to a GPU without waiting."""
        if device.type == "cpu":
            return self
        return self._each(lambda part: part.pin_memory().to(device, non_blocking=True))

    def split(self, size: int, whole: bool = True) -> "list[Batch]":
        """Pieces of at most `size` points.

        If `whole`, no unit is divided, so that a larger one is a piece of its own.
        """
        edges = list(range(0, len(self), size))
        if self.units is not None and whole:
            edges = [0]
            ends = self.units.bincount().cumsum(0).tolist()
            for start, end in pairwise([0, *ends]):
                if end - edges[-1] > size and start > edges[-1]:
                    edges.append(start)
        return [self[a:b]._renumbered() for a, b in pairwise([*edges, len(self)])]

    def _each(self, change: Callable[[Tensor], Tensor]) -> "Batch":
        parts = {field.name: getattr(self, field.name) for field in fields(self)}
        return replace(
            self, **{name: change(part) for name, part in parts.items() if part is not None}
        )

    def _renumbered(self) -> "Batch":
        return self if self.units is None else replace(self, units=self.units - self.units[0])


def repeated(row: Tensor, ends: Tensor) -> Tensor:
    """Rows (B, L) whose entries behind position ends (B,) repeat the one there.

    Nothing behind the end of an example is scored, and nothing before it looks at it. Yet 0 times a
    number that is not finite is not 0: if padding reads a weight that is not finite, the example's
    gradient is lost, because of its company. So it reads what the example reads anyway.
    """
    places = torch.arange(row.shape[1], device=row.device)
    return row.gather(1, torch.minimum(places, ends.unsqueeze(1)))


def padded(view: View, points: np.ndarray, bos: int) -> Batch:
    """The given points whole; padding reads bos and has target IGNORE."""
    lengths = view.starts[points + 1] - view.starts[points]
    inputs = np.full((len(points), int(lengths.max()) + 1), bos, dtype=np.int64)
    targets = np.full_like(inputs, IGNORE)
    for row, (point, length) in enumerate(zip(points, lengths, strict=True)):
        inputs[row, 1 : length + 1] = targets[row, :length] = view[point]
        targets[row, length] = bos
    return Batch(torch.from_numpy(inputs), torch.from_numpy(targets))


def nothing(bos: int) -> Batch:
    """A piece of which nothing is scored: its gradient is zero."""
    return Batch(torch.full((1, 1), bos), torch.full((1, 1), IGNORE))


def answers_only(view: View, points: np.ndarray, batch: Batch) -> Batch:
    """A padded batch of these points that scores what their view says is learned, if it says so.

    Guarantees: which targets of a point count is a function of that point alone.
    """
    if view.learned is None:
        return batch
    scored = np.zeros(batch.targets.shape, dtype=bool)
    for row, point in enumerate(points):
        learned = view.scored(point)
        scored[row, : len(learned)] = learned
    return replace(batch, targets=batch.targets.masked_fill(~torch.from_numpy(scored), IGNORE))


def token_masks(view: View, mask: np.ndarray, points: np.ndarray, shape: Sequence[int]) -> Tensor:
    """Which targets (B, L) of a padded batch are marked in a token mask (T,) of the view.

    The end token never is.
    """
    marks = np.zeros(shape, dtype=bool)
    for row, point in enumerate(points):
        start = view.starts[point]
        end = view.starts[point + 1]
        marks[row, : end - start] = mask[start:end]
    return torch.from_numpy(marks)


def unmasked(view: View, points: np.ndarray, bos: int) -> Batch:
    """The given points of the redacted view, whose masks are read but never predicted.

    This is the first stage of JFT.
    """
    batch = padded(view, points, bos)
    masks = token_masks(view, view.private, points, batch.targets.shape)
    return replace(batch, targets=batch.targets.masked_fill(masks, IGNORE))


def predicting(view: View, points: np.ndarray, bos: int) -> Batch:
    """The given points, read whole, scored where they predict a private token."""
    batch = padded(view, points, bos)
    private = token_masks(view, view.private, points, batch.targets.shape)
    return replace(batch, targets=batch.targets.masked_fill(~private, IGNORE))


def private_positions(view: View, points: np.ndarray, shape: Sequence[int]) -> Tensor:
    """Which positions (B, L) of a padded batch read or predict a private token."""
    predicts = token_masks(view, view.private, points, shape)
    return predicts | F.pad(predicts[:, :-1], (1, 0))


def public_counts(view: View) -> np.ndarray:
    """How many positions of each point are public, (N,) int64.

    A run of private tokens makes one more position private than it has tokens.
    """
    first = np.zeros(len(view.ids) + 1, dtype=bool)
    first[view.starts[:-1]] = True
    begins = view.private & (first[:-1] | ~np.concatenate([[False], view.private[:-1]]))
    before = np.concatenate([[0], np.cumsum(view.private.astype(np.int64) + begins)])
    return np.diff(view.starts) + 1 - np.diff(before[view.starts])


def selected(
    view: View,
    points: np.ndarray,
    bos: int,
    tokens: Literal["public", "private"],
    state: StateName = "reset",
) -> Batch:
    """The given points, scored on their public or on their private positions alone: of these on
    what their view says is learned, if it says so.

    This is Selective-DPSGD. With the state "reset" the recurrent state is zero again where public
    text follows private text; any other state is carried on.
    Guarantees: with "public" and "reset" the batch is a function of the public positions, and of
    which of them are learned, alone; not even how many private ones there are is in it.
    """
    batch = padded(view, points, bos)
    private = private_positions(view, points, batch.targets.shape)
    keep = private | ~F.pad(private[:, :-1], (1, 0))
    chosen = (private == (tokens == "private")) & (batch.targets != IGNORE)
    most = max(1, int(chosen.sum(1).max()))
    places = chosen.int().argsort(dim=1, descending=True, stable=True)[:, :most]
    learned = answers_only(view, points, batch).targets
    targets = torch.where(chosen, learned, IGNORE).gather(1, places)
    # What a state that is reset has read is not read at all.
    if tokens == "public" and state == "reset":
        read = chosen.gather(1, places)
        inputs = torch.where(read, batch.inputs.gather(1, places), bos)
        return Batch(inputs, targets, keep=keep.gather(1, places) | ~read)
    # Nothing behind the last target is read for its loss.
    scored = targets != IGNORE
    end = int(places[scored].max()) + 1 if scored.any() else 1
    keep_read = keep[:, :end] if state == "reset" else None
    return Batch(batch.inputs[:, :end], targets, places.clamp(max=end - 1), keep_read)


def by_length(
    view: View,
    points: np.ndarray,
    size: int | Callable[[int], int],
    counts: np.ndarray | None = None,
    part: slice = slice(None),
) -> Iterator[np.ndarray]:
    """The points in pieces of at most `size`, of which each has points of similar length.

    So little is padding. size: a number of points, or what makes one of their tokens, padding and
    begin token included. counts (N,): what to go by instead of the lengths. part: which of the
    points, in order of length.
    """
    lengths = view.starts[points + 1] - view.starts[points] if counts is None else counts[points]
    order = np.argsort(lengths, kind="stable")[part]
    fits = size if callable(size) else lambda _: size
    for start, end in edges((lengths[order] + 1).tolist(), fits):
        yield points[order[start:end]]


def edges(lengths: Iterable[int], fits: Callable[[int], int]) -> Iterator[tuple[int, int]]:
    """Where pieces of a row start and end, of which each holds as many as fit of its longest.

    `lengths` ascend.
    """
    start = end = 0
    for place, length in enumerate(lengths):
        if place > start and place - start >= fits(length):
            yield start, place
            start = place
        end = place + 1
    if end:
        yield start, end


def ends_of(batch: Batch) -> Tensor:
    """The last position (B,) int64 of each example whose loss counts, 0 where none does."""
    places = batch.places
    if places is None:
        places = torch.arange(batch.targets.shape[1], device=batch.targets.device)
    return torch.where(batch.targets != IGNORE, places, 0).amax(1)


def token_losses(model: Encoder, batch: Batch, half: bool = False) -> Tensor:
    """Negative log-likelihood (B, P) in nats, 0 where the target is IGNORE.

    half: matrix products in bfloat16.
    """
    with torch.autocast(batch.inputs.device.type, dtype=torch.bfloat16, enabled=half):
        hidden = model.hidden(batch.inputs, keep=batch.keep, ends=ends_of(batch))
        if batch.places is not None:
            hidden = hidden.gather(1, batch.places.unsqueeze(-1).expand(-1, -1, hidden.shape[-1]))
        return model.head(hidden, batch.targets)


def losses_of(logits: Tensor, targets: Tensor) -> Tensor:
    """Losses (B, L) in nats of targets (B, L) from logits (B, L, V), 0 where one is IGNORE."""
    flat = F.cross_entropy(
        logits.flatten(0, 1), targets.flatten(), ignore_index=IGNORE, reduction="none"
    )
    return flat.view_as(targets)
