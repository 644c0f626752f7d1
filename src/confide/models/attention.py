"""Attention of many contexts that grew out of each other: what several of them have read is stored,
and often used, once.
"""

from collections.abc import Sequence

import torch
from torch import Tensor

Read = tuple[
    Tensor, Tensor, Tensor | slice
]  # keys and values (m, d), and which of the m each context continues (n,)


def attend(query: Tensor, read: Sequence[Read], heads: int) -> Tensor:
    """Attention (n, d) of one query (n, d) per context over the positions that it has read; m = 1
    is common to all.
    """
    query = query.unflatten(1, (heads, -1)) * (query.shape[1] // heads) ** -0.5
    common = [(keys, values) for keys, values, _ in read if len(keys) == 1]
    own = [(keys, values, rows) for keys, values, rows in read if len(keys) > 1]
    scores = [torch.einsum("nhe,the->nht", query, _stacked([keys for keys, _ in common], query))]
    scores += [(query * keys[rows].view_as(query)).sum(2, keepdim=True) for keys, _, rows in own]
    weights = torch.cat(scores, 2).softmax(2)
    found = torch.einsum(
        "nht,the->nhe",
        weights[:, :, : len(common)],
        _stacked([values for _, values in common], query),
    )
    for place, (_, values, rows) in enumerate(own, len(common)):
        found = found.addcmul(values[rows].view_as(query), weights[:, :, place, None])
    return found.flatten(1)


def _stacked(parts: list[Tensor], like: Tensor) -> Tensor:
    """Parts (1, d) below each other, (t, heads, d / heads); there may be none."""
    return torch.cat([like[:0].flatten(1), *parts]).unflatten(1, like.shape[1:])
