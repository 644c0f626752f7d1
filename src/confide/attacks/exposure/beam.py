"""What a model writes after one token when it is sure: greedily, or by beam search.

The search is over its whole vocabulary. Of each prompt, the `width` likeliest continuations found
so far are kept at every step; a width of 1 is greedy. All continuations have the same number of
tokens, and none has a token that cannot stand within a text (`banned`).
"""

import torch
from torch import Tensor

from confide.attacks.statistics.scoring import NOT_FINITE
from confide.models import LanguageModel

CELLS = 1 << 23  # log-probabilities held at once


@torch.inference_mode()
def continued(
    model: LanguageModel, first: Tensor, steps: int, width: int, banned: tuple[int, ...] = ()
) -> Tensor:
    """The likeliest continuations found, (n, steps), after the begin token and first tokens (n,).

    Both are on the CPU. FloatingPointError where the model's probabilities are not finite.
    """
    device = model.device
    size = max(1, CELLS // (width * model.vocab_size))
    return torch.cat(
        [_searched(model, part.to(device), steps, width, banned) for part in first.split(size)]
    ).cpu()


def _searched(
    model: LanguageModel, first: Tensor, steps: int, width: int, banned: tuple[int, ...]
) -> Tensor:
    """The continuations of one batch; k beams of each prompt stand next to each other."""
    n = len(first)
    blocked = torch.tensor(banned, dtype=torch.int64, device=first.device)
    _, state = model.advance(model.start(n), torch.full_like(first, model.bos))
    hidden, state = model.advance(state, first)
    score = hidden.new_zeros(n, 1, dtype=torch.float64)
    written = first.new_zeros(n, 1, 0)
    for step in range(steps):
        logs = model.head(hidden).double().log_softmax(1)
        if not logs.isfinite().all():
            raise FloatingPointError(NOT_FINITE)
        allowed = logs.view(n, -1, logs.shape[1]).index_fill(2, blocked, -torch.inf)
        child = score[:, :, None] + allowed
        beams = min(width, score.shape[1] * (logs.shape[1] - len(set(banned))))
        score, place = child.flatten(1).topk(beams)  # highest first
        beam = place // logs.shape[1]
        token = place % logs.shape[1]
        before = written.gather(1, beam[:, :, None].expand(-1, -1, step))
        written = torch.cat([before, token[:, :, None]], 2)
        if step + 1 < steps:
            rows = beam + torch.arange(n, device=first.device)[:, None] * child.shape[1]
            hidden, state = model.advance(model.take(state, rows.flatten()), token.flatten())
    return written[:, 0]
