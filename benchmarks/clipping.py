"""Price of per-example clipping and noise: one DP-SGD step against one plain step of the same model, interleaved, one thread.

    python benchmarks/clipping.py

Prints medians in milliseconds and the median of the per-round ratios; Opacus (hooks) stands beside it where it takes the model.
"""

import os

os.environ |= {"OMP_NUM_THREADS": "1"}

import argparse
import statistics
import time
from collections.abc import Callable
from pathlib import Path

import torch
from machine import machine
from opacus import GradSampleModule
from torch import nn

from confide.batches import token_losses
from confide.dp.clipping import PerExampleClipper
from confide.dp.update import exact_gradient, noisy_gradient
from confide.io import write_json
from confide.models import build
from confide.specs import GPT2Spec, LSTMSpec

VOCAB = 1024
CASES = {
    "lstm 200, batch 64, length 24": (LSTMSpec(kind="lstm"), 64, 24),
    "lstm 200, batch 256, length 24": (LSTMSpec(kind="lstm"), 256, 24),
    "gpt2 2x128, batch 64, length 24": (GPT2Spec(kind="gpt2", layers=2, width=128, heads=4, positions=128), 64, 24),
    "gpt2 2x128, batch 64, length 96": (GPT2Spec(kind="gpt2", layers=2, width=128, heads=4, positions=128), 64, 96),
}


def opacus_step(model: nn.Module, ids: torch.Tensor, targets: torch.Tensor) -> Callable[[], None]:
    """Per-example gradients by Opacus' hooks, clipped and noised by hand."""
    wrapped = GradSampleModule(model, loss_reduction="sum")

    def step() -> None:
        wrapped.zero_grad(set_to_none=True)
        token_losses(wrapped, ids, targets).sum().backward()
        parameters = [p for p in wrapped.parameters() if p.requires_grad]
        norms = torch.stack([p.grad_sample.flatten(1).norm(dim=1) for p in parameters]).norm(dim=0)
        scale = (1.0 / norms).clamp(max=1.0)
        for p in parameters:
            p.grad = (torch.tensordot(scale, p.grad_sample, 1) + torch.randn_like(p)) / len(ids)
            p.grad_sample = None

    return step


def steps(case: tuple, rounds: int) -> dict[str, list[float]]:
    """Seconds of each contender in each round, one after the other."""
    spec, batch, length = case
    torch.manual_seed(0)
    model, other = build(spec, VOCAB, 1), build(spec, VOCAB, 1)
    ids = torch.randint(2, VOCAB, (batch, length))
    targets, noise = ids.roll(-1, 1), torch.Generator().manual_seed(0)
    clipper = PerExampleClipper(other, 1.0)
    contenders = {
        "plain": lambda: exact_gradient(model, [(ids, targets)], 1.0),
        "clipped and noised": lambda: noisy_gradient(clipper, [(ids, targets)], 1.0, batch, noise),
    }
    if spec.kind == "gpt2":  # Opacus knows no layer with a bare recurrent weight
        contenders["opacus hooks"] = opacus_step(build(spec, VOCAB, 1), ids, targets)
    seconds: dict[str, list[float]] = {name: [] for name in contenders}
    for number in range(rounds + 1):
        for name, step in contenders.items():
            begun = time.perf_counter()
            step()
            if number:  # the first round warms up
                seconds[name].append(time.perf_counter() - begun)
    return seconds


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=9)
    parser.add_argument("--output", type=Path, default=Path(__file__).with_suffix(".json"))
    arguments = parser.parse_args()
    torch.set_num_threads(1)
    found = {"hardware": machine("torch", "opacus"), "cases": {}}
    for name, case in CASES.items():
        seconds = steps(case, arguments.rounds)
        plain = seconds["plain"]
        found["cases"][name] = {
            contender: {
                "milliseconds": 1000 * statistics.median(values),
                "ratio": statistics.median(a / b for a, b in zip(values, plain, strict=True)),
            }
            for contender, values in seconds.items()
        }
        for contender, figures in found["cases"][name].items():
            print(f"{name:34s} {contender:20s} {figures['milliseconds']:8.1f} ms   x {figures['ratio']:.2f}", flush=True)
    write_json(arguments.output, found)


if __name__ == "__main__":
    main()
