"""Log-probabilities of chosen next tokens, in blocks of contexts small enough to stay in the cache.

Shapes: n contexts of width d, m scored tokens.
"""

from itertools import pairwise

import torch
from torch import Tensor, nn

LOGITS = 1 << 19  # held at once: 2 MiB of float32


def token_log_probs(model: nn.Module, hidden: Tensor, rows: Tensor, tokens: Tensor) -> Tensor:
    """log p(tokens[j] | hidden[rows[j]]) in nats, (m,) float64, for hidden (n, d), rows (m,) ascending, tokens (m,)."""
    size = max(1, LOGITS // model.vocab_size)
    edges = torch.arange(0, len(hidden) + size, size, device=rows.device)
    cuts = torch.searchsorted(rows, edges).tolist()
    found = torch.empty(len(rows), dtype=torch.float64, device=hidden.device)
    for block, (low, high) in enumerate(pairwise(cuts)):
        start = block * size
        logits = model.logits(hidden[start : start + size])
        logs = logits.log_softmax(-1, dtype=torch.promote_types(logits.dtype, torch.float32))
        found[low:high] = logs[rows[low:high] - start, tokens[low:high]]
    return found
