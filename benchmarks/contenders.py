"""Who is timed: one optimizer step of a model on a fixed batch, by this engine, by ordinary
training, by Opacus, by a loop.

Every builder takes a Case and returns a step without arguments. A spawned process can import and
call it by name.
"""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor, nn

from confide.dp.mechanism.clipping import PerExampleClipper
from confide.dp.mechanism.randomness import Stream, noise_of
from confide.dp.mechanism.update import (
    discrete_gradient,
    exact_gradient,
    noisy_gradient,
    per_example,
)
from confide.models import build
from confide.models.batches import Batch
from confide.models.recurrence import LSTMLayer
from confide.runtime.memory import Budget, keep_pages
from confide.specs import GPT2Spec, LSTMSpec, ModelSpec
from confide.types import Partition, View

BOUND = 1.0
SIGMA = 1.0


@dataclass(frozen=True)
class Case:
    spec: ModelSpec
    vocab: int
    batch: int
    length: int
    device: str = "cpu"
    half: bool = False


CASES = {
    "gpt2": Case(GPT2Spec(kind="gpt2", layers=4, width=256, heads=4, positions=256), 4096, 32, 128),
    "lstm": Case(LSTMSpec(kind="lstm"), 8000, 32, 64),
    "wide": Case(LSTMSpec(kind="lstm"), 50_257, 64, 64),
    "gpt2-small": Case(
        GPT2Spec(kind="gpt2", layers=12, width=768, heads=12, positions=512),
        50_257,
        64,
        512,
        "cuda",
        True,
    ),
}


def batch_of(case: Case) -> Batch:
    ids = torch.randint(
        2, case.vocab, (case.batch, case.length), generator=torch.Generator().manual_seed(0)
    )
    return Batch(ids, ids.roll(-1, 1))


def texts_of(points: int, vocab: int, owner: np.ndarray) -> Partition:
    """Training points of 20 to 60 random tokens, none of them private; owner (points,)."""
    rng = np.random.default_rng(0)
    lengths = rng.integers(20, 61, points)
    starts = np.concatenate([[0], lengths.cumsum()])
    view = View(
        rng.integers(2, vocab, starts[-1]).astype(np.int32), starts, np.zeros(starts[-1], bool)
    )
    none = np.full(points, -1, np.int32)
    no = np.zeros(points, bool)
    return Partition(view, view, view.private, no, no, no.astype(np.uint8), none, owner)


def adam(model: nn.Module) -> torch.optim.Optimizer:
    return torch.optim.AdamW(model.parameters(), lr=1e-3, fused=True)


def model_of(case: Case) -> nn.Module:
    keep_pages()  # a setting of the process: in one process it holds for every contender
    torch.manual_seed(0)
    return build(case.spec, case.vocab, 1).to(case.device).train()


def plain(case: Case, opened: bool = False) -> Callable[[], object]:
    """Ordinary training as this project does it: fused loss head, the fastest LSTM kernel."""
    model = model_of(case)
    batch = batch_of(case)
    budget = Budget(case.batch)
    optimizer = adam(model)
    for module in model.modules():
        if isinstance(module, LSTMLayer):
            module.open = opened

    def step() -> None:
        exact_gradient(model, [batch], None, budget, case.half)
        optimizer.step()

    return step


def plain_open(case: Case) -> Callable[[], object]:
    """The same on the open recurrence that clipping needs."""
    return plain(case, opened=True)


def noisy(case: Case, noise: bool = True) -> Callable[[], object]:
    """This engine: per-example clipping and noise."""
    model = model_of(case)
    batch = batch_of(case)
    budget = Budget(case.batch)
    optimizer = adam(model)
    source = noise_of(0, "noise", case.device)
    clipper = PerExampleClipper(model, BOUND)

    def step() -> None:
        noisy_gradient(
            clipper, [batch], SIGMA if noise else 0.0, case.batch, source, budget, case.half
        )
        optimizer.step()

    return step


def clipped(case: Case) -> Callable[[], object]:
    """This engine without noise."""
    return noisy(case, noise=False)


def discrete(case: Case) -> Callable[[], object]:
    """This engine with discrete noise: each example alone, integers from there on."""
    model, batch, source = model_of(case), batch_of(case), Stream(0, "noise")
    optimizer, clipper = adam(model), PerExampleClipper(model, BOUND)

    def step() -> None:
        discrete_gradient(clipper, batch.split(1), SIGMA, case.batch, source, case.half)
        optimizer.step()

    return step


def brute(case: Case) -> Callable[[], object]:
    """A backward pass per example."""
    model = model_of(case)
    batch = batch_of(case)
    source = noise_of(0, "noise", case.device)
    optimizer = adam(model)
    parameters = list(model.parameters())

    def step() -> None:
        total = [torch.zeros_like(parameter) for parameter in parameters]
        for example in batch.split(1):
            grads = torch.autograd.grad(per_example(model, example, case.half).sum(), parameters)
            norm = torch.stack([grad.norm() for grad in grads]).norm()
            torch._foreach_add_(total, grads, alpha=min(1.0, BOUND / float(norm)))
        for parameter, value in zip(parameters, total, strict=True):
            exact = torch.zeros(value.numel(), dtype=torch.float64, device=value.device)
            noise = source.add(exact, SIGMA * BOUND).view_as(value).to(value.dtype)
            parameter.grad = (value + noise) / case.batch
        optimizer.step()

    return step


class Usual(nn.Module):
    """The same architecture from the usual parts, which gives logits (B, L, V)."""

    def __init__(self, case: Case, lstm: Callable[..., nn.Module] = nn.LSTM):
        super().__init__()
        torch.manual_seed(0)
        if case.spec.kind == "gpt2":
            self.network = build(case.spec, case.vocab, 1).network
        else:
            self.embedding = nn.Embedding(case.vocab, case.spec.embedding)
            self.lstm = lstm(case.spec.embedding, case.spec.hidden, batch_first=True)
            self.output = nn.Linear(case.spec.hidden, case.vocab)

    def forward(self, ids: Tensor) -> Tensor:
        if hasattr(self, "lstm"):
            return self.output(self.lstm(self.embedding(ids))[0])
        positions = torch.arange(ids.shape[1], device=ids.device).expand(ids.shape)
        return self.network(input_ids=ids, position_ids=positions, use_cache=False).logits


def mean_losses(model: nn.Module, batch: Batch, half: bool) -> Tensor:
    """(B,) by F.cross_entropy."""
    with torch.autocast(batch.inputs.device.type, dtype=torch.bfloat16, enabled=half):
        losses = F.cross_entropy(
            model(batch.inputs).flatten(0, 1), batch.targets.flatten(), reduction="none"
        )
    return losses.view_as(batch.targets).mean(1)


def usual(case: Case) -> Callable[[], object]:
    """torch's or transformers' own model and loss, not private."""
    keep_pages()
    return untuned(case)


def untuned(case: Case) -> Callable[[], object]:
    """The same in a process whose malloc is as it comes: wants a process of its own."""
    model = Usual(case).to(case.device).train()
    batch = batch_of(case).to(torch.device(case.device))
    optimizer = adam(model)

    def step() -> None:
        optimizer.zero_grad()
        mean_losses(model, batch, case.half).mean().backward()
        optimizer.step()

    return step


def opacus(case: Case, mode: str) -> Callable[[], object]:
    """Opacus in one of its modes; raises what Opacus raises where it does not take the model."""
    from opacus.grad_sample.utils import prepare_module
    from opacus.layers import DPLSTM
    from opacus.optimizers import DPOptimizer, DPOptimizerFastGradientClipping
    from opacus.utils.fast_gradient_clipping_utils import DPTensorFastGradientClipping

    keep_pages()
    ghost = mode == "ghost"
    batch = batch_of(case).to(torch.device(case.device))
    plain_model = Usual(case, DPLSTM).to(case.device).train()
    more = {"max_grad_norm": BOUND} if ghost else {}
    model = prepare_module(plain_model, mode, batch_first=True, loss_reduction="mean", **more)
    kind = DPOptimizerFastGradientClipping if ghost else DPOptimizer
    optimizer = kind(
        adam(plain_model),
        noise_multiplier=SIGMA,
        max_grad_norm=BOUND,
        expected_batch_size=case.batch,
        loss_reduction="mean",
    )

    def step() -> None:
        optimizer.zero_grad(set_to_none=True)
        losses = mean_losses(model, batch, case.half)
        if ghost:
            DPTensorFastGradientClipping(model, optimizer, losses, "mean").backward()
        else:
            losses.mean().backward()
        optimizer.step()

    return step


def opacus_hooks(case: Case) -> Callable[[], object]:
    """Opacus, per-example gradients by hooks."""
    return opacus(case, "hooks")


def opacus_ghost(case: Case) -> Callable[[], object]:
    """Opacus, ghost clipping: two backward passes."""
    return opacus(case, "ghost")


def opacus_functorch(case: Case) -> Callable[[], object]:
    """Opacus, per-example gradients by vmap."""
    return opacus(case, "functorch")


CONTENDERS: dict[str, Callable[[Case], Callable[[], object]]] = {
    "plain": plain,
    "plain, open recurrence": plain_open,
    "usual": usual,
    "usual, default malloc": untuned,
    "clipped": clipped,
    "clipped and noised": noisy,
    "discrete noise": discrete,
    "loop over examples": brute,
    "Opacus hooks": opacus_hooks,
    "Opacus ghost": opacus_ghost,
    "Opacus functorch": opacus_functorch,
}
