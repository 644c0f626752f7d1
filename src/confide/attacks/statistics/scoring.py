"""Log-probabilities of chosen next tokens: their logits, minus the log-sum-exp of all, tile by tile
of contexts and vocabulary.

A tile of logits stays in the cache and is overwritten by its exponentials; the full log-softmax is
never written.
Shapes: n contexts of width d, m scored tokens, V vocabulary.
"""

from functools import reduce

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor, nn

# contexts and tokens of a tile: 8 MiB of float32
ROWS = 512
COLUMNS = 4096
TOKENS = 4096  # of the texts in one forward pass


def token_log_probs(model: nn.Module, hidden: Tensor, rows: Tensor, tokens: Tensor) -> Tensor:
    """log p(tokens[j] | hidden[rows[j]]) in nats, (m,) float64, for hidden (n, d), rows (m,) and
    tokens (m,).
    """
    weight = model.head.weight
    bias = model.head.bias
    distinct, place = tokens.unique(return_inverse=True)
    wanted = F.linear(hidden, weight[distinct], None if bias is None else bias[distinct])
    return wanted[rows, place].double() - log_sum_exp(hidden, weight, bias)[rows]


@torch.inference_mode()
def row_log_probs(model: nn.Module, tokens: np.ndarray) -> np.ndarray:
    """log p (n,) float64 in nats of rows of tokens (n, L) after the begin token; an end token is
    not scored.
    """
    device = next(model.parameters()).device
    found = []
    for rows in torch.from_numpy(tokens.astype(np.int64)).split(max(1, TOKENS // tokens.shape[1])):
        rows = rows.to(device)
        inputs = torch.cat([torch.full_like(rows[:, :1], model.bos), rows[:, :-1]], 1)
        hidden = model.hidden(inputs).flatten(0, 1)
        logs = token_log_probs(
            model, hidden, torch.arange(len(hidden), device=device), rows.flatten()
        )
        found.append(logs.view(rows.shape).sum(1))
    return torch.cat(found).cpu().numpy()


def word_log_probs(model: nn.Module, hidden: Tensor, tokens: Tensor) -> Tensor:
    """log p(tokens[v] | hidden[j]) in nats, (n, v) float64, for hidden (n, d) and tokens (v,): each
    after each.
    """
    weight = model.head.weight
    bias = model.head.bias
    wanted = F.linear(hidden, weight[tokens], None if bias is None else bias[tokens])
    return wanted.double() - log_sum_exp(hidden, weight, bias)[:, None]


def log_sum_exp(hidden: Tensor, weight: Tensor, bias: Tensor | None) -> Tensor:
    """log of the sum over the vocabulary of exp(logit), (n,) float64, for hidden (n, d), weight (V,
    d) and bias (V,).
    """
    tiles = [slice(start, start + COLUMNS) for start in range(0, len(weight), COLUMNS)]
    found = []
    for block in hidden.split(ROWS):
        parts = (
            _tile(F.linear(block, weight[tile], None if bias is None else bias[tile]))
            for tile in tiles
        )
        found.append(reduce(torch.logaddexp, parts))
    return torch.cat(found)


def _tile(logits: Tensor) -> Tensor:
    """Log-sum-exp (n,) float64 of logits (n, v), which are overwritten."""
    logits = logits.to(torch.promote_types(logits.dtype, torch.float32))
    largest = logits.amax(1, keepdim=True)
    return logits.sub_(largest).exp_().sum(1).double().log_() + largest[:, 0]
