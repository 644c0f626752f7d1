"""Log-probabilities of chosen next tokens: their logits, minus the log-sum-exp of all.

That is made tile by tile of contexts and vocabulary: a tile of logits stays in the cache and is
overwritten by its exponentials; the full log-softmax is never written.
Shapes: n contexts of width d, m scored tokens, V vocabulary.
"""

from collections.abc import Iterable, Sequence
from functools import reduce

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor

from confide.models import LanguageModel
from confide.models.head import Head
from confide.types import View

# contexts and tokens of a tile: 8 MiB of float32
ROWS = 512
COLUMNS = 4096
TOKENS = 4096  # of the texts in one forward pass
NOT_FINITE = "the model's probabilities are not finite"


def view_of(texts: Sequence[Sequence[int]], marks: Iterable[np.ndarray] | None = None) -> View:
    """Texts as token ids, each with a mask of its private tokens; without masks none is private."""
    ids = np.concatenate([np.asarray(text, dtype=np.int32) for text in texts])
    if marks is None:
        private = np.zeros(len(ids), dtype=bool)
    else:
        private = np.concatenate([np.asarray(mask, dtype=bool) for mask in marks])
    return View(ids, np.cumsum([0, *map(len, texts)]), private)


def token_log_probs(model: LanguageModel, hidden: Tensor, rows: Tensor, tokens: Tensor) -> Tensor:
    """log p(tokens[j] | hidden[rows[j]]) in nats, (m,) float64.

    Shapes: hidden (n, d), rows (m,), tokens (m,).
    """
    distinct, place = tokens.unique(return_inverse=True)
    wanted = _logits(model.head, hidden, distinct)
    return wanted[rows, place].double() - log_sum_exp(model.head, hidden)[rows]


def word_log_probs(model: LanguageModel, hidden: Tensor, tokens: Tensor) -> Tensor:
    """log p(tokens[v] | hidden[j]) in nats, (n, v) float64, of each token after each context.

    Shapes: hidden (n, d), tokens (v,).
    """
    return _logits(model.head, hidden, tokens).double() - log_sum_exp(model.head, hidden)[:, None]


@torch.inference_mode()
def row_log_probs(model: LanguageModel, tokens: np.ndarray) -> np.ndarray:
    """log p (n,) float64 in nats of rows of tokens (n, L) after the begin token.

    An end token is not scored.
    """
    device = model.device
    parts = []
    for rows in torch.from_numpy(tokens.astype(np.int64)).split(max(1, TOKENS // tokens.shape[1])):
        rows = rows.to(device)
        inputs = torch.cat([torch.full_like(rows[:, :1], model.bos), rows[:, :-1]], 1)
        hidden = model.hidden(inputs).flatten(0, 1)
        each = torch.arange(len(hidden), device=device)
        logs = token_log_probs(model, hidden, each, rows.flatten())
        parts.append(logs.view(rows.shape).sum(1))
    return torch.cat(parts).cpu().numpy()


def log_sum_exp(head: Head, hidden: Tensor) -> Tensor:
    """log of the sum over the vocabulary of exp(logit), (n,) float64, for hidden (n, d)."""
    assert head.more is None, "adapters are to be merged before a model is attacked"
    tiles = [slice(start, start + COLUMNS) for start in range(0, len(head.weight), COLUMNS)]
    blocks = []
    for block in hidden.split(ROWS):
        parts = (_tile(_logits(head, block, tile)) for tile in tiles)
        blocks.append(reduce(torch.logaddexp, parts))
    return torch.cat(blocks)


def _logits(head: Head, hidden: Tensor, tokens: Tensor | slice) -> Tensor:
    """Logits (n, v) of some tokens."""
    bias = None if head.bias is None else head.bias[tokens]
    return F.linear(hidden, head.weight[tokens], bias)


def _tile(logits: Tensor) -> Tensor:
    """Log-sum-exp (n,) float64 of logits (n, v), which are overwritten."""
    logits = logits.to(torch.promote_types(logits.dtype, torch.float32))
    largest = logits.amax(1, keepdim=True)
    return logits.sub_(largest).exp_().sum(1).double().log_() + largest[:, 0]
