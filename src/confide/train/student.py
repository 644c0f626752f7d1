"""What a small model learns of a text: how well it then tells words of real text.

Each text has the same budget of updates, the same model from the same first weights, and the same
order of draws, so that what is left between two of them is the text. The classifier of domains is a
logistic regression on how often each token stands in a text.
"""

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor

from confide import models
from confide.models.batches import answers_only, padded, token_losses
from confide.models.head import IGNORE
from confide.models.language_model import LanguageModel
from confide.specs import LSTMSpec, WorthSpec
from confide.train.evaluation import Scores
from confide.types import View

WIDTH = 4096  # tokens that the classifier tells apart; further ones share a place
STEPS = 150  # of the classifier, each on all texts
RATE = 0.05
DECAY = 1e-3


def view_of(texts: list[list[int]]) -> View:
    """Texts of token ids one after the other; nothing of them is marked."""
    starts = np.concatenate([[0], np.cumsum([len(text) for text in texts], dtype=np.int64)])
    ids = np.array([token for text in texts for token in text], np.int32)
    return View(ids, starts.astype(np.int64), np.zeros(len(ids), bool))


def taught(
    spec: WorthSpec, view: View, points: np.ndarray, *, vocab_size: int, bos: int, device: str
) -> LanguageModel:
    """A small LSTM after `spec.updates` updates on these points of a view."""
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(spec.seed)
        shape = LSTMSpec(kind="lstm", embedding=spec.embedding, hidden=spec.hidden)
        model = models.build(shape, vocab_size, bos).to(device).train()
    optimizer = torch.optim.Adam(model.parameters(), lr=spec.lr)
    rng = np.random.default_rng(spec.seed)
    waiting = np.zeros(0, np.int64)
    for _ in range(spec.updates):
        while len(waiting) < spec.batch_size:
            waiting = np.concatenate([waiting, rng.permutation(points)])
        chosen = waiting[: spec.batch_size]
        waiting = waiting[spec.batch_size :]
        batch = answers_only(view, chosen, padded(view, chosen, bos)).to(torch.device(device))
        scored = int((batch.targets != IGNORE).sum())
        loss = token_losses(model, batch).sum() / max(1, scored)
        optimizer.zero_grad()
        loss.backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
    return model.eval()


def next_word(scores: Scores, view: View, begins: np.ndarray) -> float | None:
    """Share of the words whose every token is the likeliest one after what stands before it.

    begins (V,) bool: tokens that begin a word. None where there is no word.
    """
    inside = scores.place >= 0
    places = scores.place[inside]
    order = np.argsort(places, kind="stable")
    places = places[order]
    hits = scores.hit[inside][order]
    if not len(places):
        return None
    new = begins[view.ids[places]] | np.isin(places, view.starts)
    new[0] = True
    return float(np.logical_and.reduceat(hits, np.flatnonzero(new)).mean())


def bags(texts: list[list[int]]) -> Tensor:
    """Shares (N, WIDTH) of the tokens of each text, by root, so that rare ones count."""
    counts = torch.zeros(len(texts), WIDTH)
    for row, text in enumerate(texts):
        places = torch.tensor(text, dtype=torch.int64) % WIDTH
        counts[row] = torch.bincount(places, minlength=WIDTH)
    return F.normalize(counts.sqrt(), dim=1)


def classified(
    texts: list[list[int]], labels: np.ndarray, tested: list[list[int]], classes: int
) -> np.ndarray:
    """The class (M,) of texts to test, by a logistic regression on others with labels (N,)."""
    weight = torch.zeros(classes, WIDTH, requires_grad=True)
    bias = torch.zeros(classes, requires_grad=True)
    optimizer = torch.optim.Adam([weight, bias], lr=RATE, weight_decay=DECAY)
    inputs = bags(texts)
    targets = torch.from_numpy(labels.astype(np.int64))
    for _ in range(STEPS):
        optimizer.zero_grad()
        F.cross_entropy(inputs @ weight.T + bias, targets).backward()
        optimizer.step()
    with torch.no_grad():
        return (bags(tested) @ weight.T + bias).argmax(1).numpy()
