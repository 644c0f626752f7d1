"""Attention of many contexts that grew out of each other.

What several of them have read is stored, and often used, once.
"""

from collections.abc import Sequence

import torch
from torch import Tensor

# Keys and values (m, d) of one position, and which of the m each context continues (n,).
Position = tuple[Tensor, Tensor, Tensor | slice]


def attend(query: Tensor, positions: Sequence[Position], heads: int) -> Tensor:
    """Attention (n, d) of one query (n, d) per context over the positions that it has read.

    A position with m = 1 is common to all contexts.
    """
    query = query.unflatten(1, (heads, -1)) * (query.shape[1] // heads) ** -0.5
    common = [(keys, values) for keys, values, _ in positions if len(keys) == 1]
    apart = [(keys, values, rows) for keys, values, rows in positions if len(keys) > 1]
    common_keys = _stacked([keys for keys, _ in common], query)
    common_values = _stacked([values for _, values in common], query)
    scores = [torch.einsum("nhe,the->nht", query, common_keys)]
    scores += [(query * keys[rows].view_as(query)).sum(2, keepdim=True) for keys, _, rows in apart]
    weights = torch.cat(scores, 2).softmax(2)
    attended = torch.einsum("nht,the->nhe", weights[:, :, : len(common)], common_values)
    for place, (_, values, rows) in enumerate(apart, len(common)):
        attended = attended.addcmul(values[rows].view_as(query), weights[:, :, place, None])
    return attended.flatten(1)


def _stacked(parts: list[Tensor], like: Tensor) -> Tensor:
    """Parts (1, d) below each other, (t, heads, d / heads); there may be none."""
    return torch.cat([like[:0].flatten(1), *parts]).unflatten(1, like.shape[1:])
