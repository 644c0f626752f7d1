"""Tiny models, corpora and training jobs, and gradients by other means than the project's own
engine.
"""

from itertools import pairwise
from typing import Any

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor, nn

from confide.models import build
from confide.models.batches import Batch
from confide.models.head import IGNORE
from confide.specs import GPT2Spec, LSTMSpec, PrivacySpec, RecipeSpec, TrainSpec
from confide.train.job import Job
from confide.types import Partition, Step, View

TERMS = {
    "dataset": "toy",
    "corpus": "c" * 64,
    "cut": "b" * 64,
    "policies": "d" * 64,
    "dedup": False,
}  # on which the made-up runs are trained
TEXT = {key: TERMS[key] for key in ("dataset", "corpus", "cut")}
VOCAB, BOS = 40, 1
# Clipping bound, noise multiplier and learning rate of a toy job: so little noise that a wrong sum
# shows through it.
BOUND, SIGMA, RATE = 0.3, 0.05, 0.5
NOISY = Step(view="redacted", pool="private", noisy=True)
AUTHORS = Step(view="redacted", pool="private", noisy=True, unit="author")
LSTM = LSTMSpec(kind="lstm", embedding=8, hidden=8)
GPT2 = GPT2Spec(kind="gpt2", layers=1, width=8, heads=2, positions=64)


def model_of(spec: LSTMSpec | GPT2Spec, vocab: int = VOCAB) -> nn.Module:
    """Weights of a fixed seed, large enough that gradients differ between examples, in float64."""
    torch.manual_seed(0)
    model = build(spec, vocab, BOS).double().train()
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.add_(0.3 * torch.randn_like(parameter))
    return model


def view_of(texts: list[list[int]], private: list[bool] | None = None) -> View:
    """Token ids as a view; private marks all tokens of a text."""
    lengths = np.array([len(text) for text in texts])
    ids, starts = (
        np.concatenate(texts).astype(np.int32),
        np.concatenate([[0], lengths.cumsum()]).astype(np.int64),
    )
    return View(ids, starts, np.repeat(private or [False] * len(texts), lengths))


def texts_of(count: int, vocab: int = VOCAB, seed: int = 0) -> list[list[int]]:
    """Texts of 2 to 9 tokens, each with one of them twice."""
    source = np.random.default_rng(seed)
    found = [source.integers(3, vocab, source.integers(1, 9)).tolist() for _ in range(count)]
    return [[text[-1], *text] for text in found]


def partition_of(private: int, public: int = 8, seed: int = 0, vocab: int = VOCAB) -> Partition:
    """Training points, the private ones last; what they say in the original view they do not say in
    the redacted one.
    """
    marks = [False] * public + [True] * private
    shown, secret = (
        texts_of(public + private, vocab, seed),
        texts_of(public + private, vocab, seed + 1000),
    )
    original = view_of(
        [other if mark else text for text, other, mark in zip(shown, secret, marks, strict=True)],
        marks,
    )
    none, count = np.full(len(marks), -1, np.int32), len(marks)
    flags = {
        "private": np.array(marks),
        "copy": np.zeros(count, bool),
        "split": np.zeros(count, np.uint8),
    }
    return Partition(
        original, view_of(shown, marks), original.private, **flags, domain=none, owner=none
    )


def job_of(
    data: Partition, batch: int, vocab: int = VOCAB, updates: int = 50, **changes: Any
) -> Job:
    """A job of CRT by plain SGD with a constant rate, so that every update shows what was
    released.
    """
    torch.manual_seed(0)
    recipe = RecipeSpec(
        optimizer="sgd",
        lr=RATE,
        schedule="constant",
        batch_size=4,
        noisy_batch_size=batch,
        physical_batch_size=2,
    )
    privacy = PrivacySpec(noise_multiplier=SIGMA, max_grad_norm=BOUND)
    settings = {
        "run": "zoo/g0-s0",
        "method": "crt",
        "data": TERMS,
        "model": LSTM,
        "recipe": recipe,
        "privacy": privacy,
    }
    spec = TrainSpec(**{"device": "cpu"} | settings | changes)
    model = build(spec.model, vocab, BOS).train()
    return Job(
        spec,
        data,
        model,
        noise_multiplier=spec.privacy.noise_multiplier,
        updates={True: updates, False: updates},
        device="cpu",
    )


def flat(tensors: Any) -> Tensor:
    """All of them as one vector."""
    return torch.cat([tensor.detach().flatten() for tensor in tensors])


def loss_of(model: nn.Module, text: list[int]) -> Tensor:
    """Mean loss of a text on its own, unpadded, by F.cross_entropy of the logits."""
    inputs, targets = torch.tensor([[BOS, *text]]), torch.tensor([*text, BOS])
    return F.cross_entropy(
        F.linear(model.hidden(inputs), model.head.weight, model.head.bias)[0], targets
    )


def loss_of_row(model: nn.Module, batch: Batch, row: int) -> Tensor:
    """The same of a row of a batch in which only some positions are scored and states are reset."""
    ids, real = batch.inputs[row], batch.targets[row] != IGNORE
    keep = torch.ones_like(ids) if batch.keep is None else batch.keep[row]
    starts = [0, *(place for place in range(1, len(ids)) if not keep[place]), len(ids)]
    hidden = torch.cat([model.hidden(ids[None, a:b])[0] for a, b in pairwise(starts)])[
        batch.places[row][real]
    ]
    return F.cross_entropy(
        F.linear(hidden, model.head.weight, model.head.bias), batch.targets[row][real]
    )


def gradient(model: nn.Module, loss: Tensor) -> Tensor:
    """Of all parameters, as one vector."""
    return flat(
        torch.autograd.grad(
            loss, list(model.parameters()), allow_unused=True, materialize_grads=True
        )
    )


def clipped_sum(gradients: list[Tensor], bound: float, size: int) -> Tensor:
    """Sum of the gradients, each scaled to norm `bound` where it is longer; zeros (size,) of
    none.
    """
    return sum(
        (one * min(1.0, bound / float(one.norm())) for one in gradients),
        torch.zeros(size, dtype=torch.float64),
    )
