"""Updates whose noise goes by what a detector found in the text: ATDP and SA-ADP.

Their papers (arXiv 2509.23246 and 2512.01748) count them as DP-SGD of their noise multiplier.

Guarantees: none. Gradients of tokens that nobody found have less noise, or none, and they read what
stands before them; and how much noise there is, the text decides.
"""

from collections.abc import Iterable

import torch
from torch import Tensor

from confide.dp.mechanism.clipping import PerExampleClipper
from confide.dp.mechanism.randomness import Noise
from confide.dp.mechanism.update import sum_clipped
from confide.models.batches import Batch
from confide.runtime.memory import Budget
from confide.runtime.parallel import ALONE, Group


def by_tokens(
    clipper: PerExampleClipper,
    *,
    private: Iterable[Batch],
    other: Iterable[Batch],
    weight: float,
    noise_multiplier: float,
    expected_batch_size: float,
    noise: Noise,
    budget: Budget,
    half: bool = False,
    group: Group = ALONE,
) -> None:
    """Leave (weight (P + N) + (1 - weight) O) / expected_batch_size in .grad.

    P and O are sums of clipped gradients of points, of the losses of their private tokens and of
    all others; N is N(0, (noise_multiplier C)^2). private, other: this process's part of the same
    points.
    """
    sum_clipped(clipper, other, budget, half, group)
    clear = clipper.flat.clone()
    sum_clipped(clipper, private, budget, half, group)
    clipper.flat.mul_(weight).add_(clear, alpha=1 - weight)
    clipper.finish(weight * noise_multiplier, expected_batch_size, noise)


def by_scores(
    clipper: PerExampleClipper,
    batches: Iterable[Batch],
    *,
    scores: Tensor,
    noise_multiplier: float,
    expected_batch_size: float,
    noise: Noise,
    budget: Budget,
    half: bool = False,
    group: Group = ALONE,
) -> None:
    """Leave (sum of g_i + s_i N_i) / expected_batch_size in .grad.

    g_i is the clipped gradient of a point, s_i its score, and N_i is N(0, (noise_multiplier C)^2):
    one draw of N(0, sum of s_i^2) times that. It is made for a batch without scores, too, and then
    counts nothing, so that the stream moves on. scores (n,): of the whole batch; batches: this
    process's part of it.
    """
    sum_clipped(clipper, batches, budget, half, group)
    drawn = noise.add(torch.zeros_like(clipper.flat), 1.0)
    deviation = noise_multiplier * clipper.max_grad_norm * float(scores.double().norm())
    clipper.flat.add_(drawn, alpha=deviation)
    clipper.finish(0.0, expected_batch_size, noise)
