"""Adapters of one pretrained model, trained one after another on texts of their own.

They are shadow models: without noise, without clipping, and what they cost is no part of a claim.
The model is read once. Each adapter begins anew and depends on its own seed alone, so that it does
not matter which were trained before it in the same process.
"""

import numpy as np
import torch
from torch.optim import Adam
from tqdm import tqdm

from confide.models import trainable
from confide.models.batches import padded, token_losses
from confide.models.causal_lm import CausalLM
from confide.models.head import IGNORE
from confide.models.stacked import own_batches
from confide.types import View


def fit_adapter(
    model: CausalLM,
    view: View,
    learns: np.ndarray,
    *,
    epochs: int,
    lr: float,
    batch_size: int,
    seed: int,
    title: str,
) -> np.ndarray:
    """Train the model's adapter anew on the points that it learns (N,) bool of a view.

    Returns mean losses (epochs,) in nats. As for the small shadow models: Adam, whose rate falls
    linearly to 0; batches of similar lengths in random order.
    """
    source = torch.Generator().manual_seed(seed)
    torch.manual_seed(seed)  # of the adapters' first weights, and of dropout
    model.renew()
    model.train()
    lengths = np.diff(view.starts)
    plan = [own_batches(lengths, learns[None], batch_size, source)[:, 0] for _ in range(epochs)]
    steps = sum(map(len, plan))
    optimizer = Adam(trainable(model), lr=lr)
    done = 0
    losses = np.zeros(epochs)
    with tqdm(total=steps, desc=title, unit="step", disable=None) as bar:
        for epoch, batches in enumerate(plan):
            for points in batches:
                for group in optimizer.param_groups:
                    group["lr"] = lr * (1 - done / steps)
                losses[epoch] += _step(model, view, points[points >= 0], optimizer) / len(batches)
                done += 1
                bar.update()
    model.eval()
    return losses


def _step(model: CausalLM, view: View, points: np.ndarray, optimizer: Adam) -> float:
    """One update by the mean loss of the tokens of some points, which it returns."""
    batch = padded(view, points, model.bos).to(model.device)
    optimizer.zero_grad()
    scored = int((batch.targets != IGNORE).sum())
    loss = token_losses(model, batch).sum() / scored
    loss.backward()
    optimizer.step()
    return float(loss.detach())
