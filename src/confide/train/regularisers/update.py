"""One exact update with a privacy regulariser: mean token loss + lambda * mean privacy loss of the
texts that have an author.

h, the state that a privacy loss is a function of, is the encoder's output at a text's last position
(Mireshghallah et al. 2021, Figure 1). One pass gives both losses; partners, of whom only h is
wanted, are read along without the output layer.
"""

from collections.abc import Callable
from dataclasses import dataclass

import torch
import torch.nn.functional as F
from torch import Tensor

from confide.dp.mechanism.update import accumulate, no_gradient
from confide.models import trainable
from confide.models.batches import Batch
from confide.models.head import IGNORE
from confide.models.language_model import LanguageModel
from confide.runtime.memory import Budget
from confide.runtime.parallel import ALONE, Group


@dataclass(frozen=True, slots=True)
class Rows:
    """Points of a batch with their authors, and, for pairs, those that they are compared with."""

    batch: Batch
    authors: Tensor  # (B,) int64 class of the author, -1 for a point that takes no part
    partners: Batch | None = None  # only their last states count
    others: Tensor | None = None  # (B,) int64 authors of the partners

    def __len__(self) -> int:
        return len(self.batch)

    @property
    def length(self) -> int:
        """Tokens of a point, or of a partner, padding included."""
        partners = 0 if self.partners is None else self.partners.length
        return max(self.batch.length, partners)

    def __getitem__(self, part: slice) -> "Rows":
        if self.partners is None or self.others is None:
            return Rows(self.batch[part], self.authors[part])
        return Rows(self.batch[part], self.authors[part], self.partners[part], self.others[part])

    def split(self, size: int) -> "list[Rows]":
        """Pieces that read at most `size` points in one pass (or one pair, if that is more)."""
        size = size if self.partners is None else max(1, size // 2)
        return [self[start : start + size] for start in range(0, len(self), size)]

    def to(self, device: torch.device) -> "Rows":
        """These rows on a device."""
        batch = self.batch.to(device)
        authors = self.authors.to(device)
        if self.partners is None or self.others is None:
            return Rows(batch, authors)
        return Rows(batch, authors, self.partners.to(device), self.others.to(device))


@dataclass(frozen=True, slots=True)
class Training:
    """What both regularisers need of the job."""

    model: LanguageModel
    weight: float  # lambda
    max_norm: float | None  # of the gradient
    budget: Budget
    half: bool
    group: Group = ALONE

    def local(self, pieces: list[Rows]) -> list[Rows]:
        """Of each piece this process's part, where there is one."""
        return [part for rows in pieces if len(part := rows[self.group.part])]


def tokens_of(batch: Batch) -> Tensor:
    """(B,) how many positions of each point are real."""
    return (batch.targets != IGNORE).sum(1)


def read(model: LanguageModel, rows: Rows, half: bool) -> tuple[Tensor, Tensor]:
    """One pass: hidden states (B, L, d) of the batch, and last states of its points, then of their
    partners (B or 2B, d).
    """
    batch = rows.batch
    inputs = batch.inputs
    ends = tokens_of(batch) - 1
    if rows.partners is not None:
        long = max(inputs.shape[1], rows.partners.inputs.shape[1])
        both = (batch.inputs, rows.partners.inputs)
        inputs = torch.cat([F.pad(ids, (0, long - ids.shape[1]), value=model.bos) for ids in both])
        ends = torch.cat([ends, tokens_of(rows.partners) - 1])
    with torch.autocast(inputs.device.type, dtype=torch.bfloat16, enabled=half):
        hidden = model.hidden(inputs)
    states = hidden[torch.arange(len(hidden), device=hidden.device), ends]
    states = states.to(torch.promote_types(states.dtype, torch.float32))
    return hidden[: len(batch), : batch.targets.shape[1]], states


def regularised_gradient(
    training: Training, pieces: list[Rows], privacy_loss: Callable[[Tensor, Rows], Tensor]
) -> tuple[Tensor, Tensor]:
    """Leave the gradient of mean token loss + lambda * mean privacy loss in .grad; returns both
    means (), on the device.

    pieces: of the whole batch, of which a process computes its part. privacy_loss: sum () over the
    texts that have an author, from last states and rows. The second mean is NaN without any.
    """
    model = training.model
    budget = training.budget
    parameters = trainable(model)
    device = parameters[0].device
    tokens = sum(int(tokens_of(rows.batch).sum()) for rows in pieces)
    owned = sum(int((rows.authors >= 0).sum()) for rows in pieces)
    scale = (
        training.weight * tokens / max(1, owned)
    )  # the gradient is divided by the tokens at the end
    model.zero_grad(set_to_none=True)
    values = []

    def summed(rows: Rows) -> tuple[Tensor, Tensor]:
        hidden, states = read(model, rows := rows.to(device), training.half)
        with torch.autocast(device.type, dtype=torch.bfloat16, enabled=training.half):
            loss = model.head(hidden, rows.batch.targets).sum()
        extra = privacy_loss(states, rows)
        accumulate(loss + scale * extra, parameters)
        return loss.detach(), extra.detach()

    for rows in training.local(pieces):
        values += budget.run(summed, rows)
    if not values:
        values = [(parameters[0].new_zeros(()), parameters[0].new_zeros(()))]
        no_gradient(parameters)
    loss, extra = (torch.stack(parts).sum() for parts in zip(*values, strict=True))
    gradients = [parameter.grad for parameter in parameters if parameter.grad is not None]
    training.group.sum([*gradients, loss, extra])
    torch._foreach_div_(gradients, tokens)
    if training.max_norm is not None:
        torch.nn.utils.clip_grad_norm_(parameters, training.max_norm)
    return loss / tokens, extra / owned if owned else extra * float("nan")


def mean(values: Tensor) -> float | None:
    """Of the batches that had one: a batch without an author has NaN."""
    present = values[~values.isnan()]
    return float(present.double().mean()) if len(present) else None
