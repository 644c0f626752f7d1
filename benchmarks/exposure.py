"""Exact exposure: seconds of the prefix tree over all six-digit candidates, beside brute force timed on a sample.

    python benchmarks/exposure.py --output exposure.json [--repeats 5] [--threads 1 2] [--sample 2000]

Models have random weights (time does not depend on them). Brute force is one batched forward pass over whole candidates,
the usual way; its seconds for all candidates are extrapolated from the sample and say so by their name.
"""

import argparse
import statistics
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import torch
from machine import machine
from torch import nn

from confide.attacks.candidates import candidate_tree, texts
from confide.attacks.tree import Tree, sequence_log_probs
from confide.io import write_json
from confide.models import build
from confide.specs import GPT2Spec, LSTMSpec, ModelSpec
from confide.tokenizer import Tokenizer, train_bpe

PREFIX, DIGITS = "My ID is: ", 6
LSTM = LSTMSpec(kind="lstm")  # 200 x 200, the laptop study's
MODELS: dict[str, tuple[ModelSpec, int]] = {
    "lstm-200-v1024": (LSTM, 1024),
    "lstm-200-v2048": (LSTM, 2048),
    "gpt2-2x128-v1024": (GPT2Spec(kind="gpt2", layers=2, width=128, heads=4, positions=256), 1024),
}


def random_model(tokenizer: Tokenizer, spec: ModelSpec, size: int) -> nn.Module:
    """A model of the wanted vocabulary size: the candidates use only the tokenizer's, the softmax covers all."""
    torch.manual_seed(0)
    return build(spec, size, tokenizer.bos_id).eval()


@torch.inference_mode()
def brute_force(model: nn.Module, tokenizer: Tokenizer, values: np.ndarray, scored: int, batch: int = 256) -> np.ndarray:
    """log p of the last `scored` tokens of each candidate, by whole forward passes."""
    ids = [[tokenizer.bos_id, *tokenizer.encode(text)] for text in texts(PREFIX, "", DIGITS, values)]
    found = []
    for start in range(0, len(ids), batch):
        tokens = torch.tensor(ids[start : start + batch])
        logs = model(tokens[:, :-1])[:, -scored:].log_softmax(-1)
        found.append(logs.gather(2, tokens[:, -scored:, None]).double().sum((1, 2)))
    return torch.cat(found).numpy()


def seconds(function: Callable[[], object]) -> float:
    begun = time.perf_counter()
    function()
    return time.perf_counter() - begun


def measure(model: nn.Module, tokenizer: Tokenizer, repeats: int, sample: int) -> dict[str, Any]:
    """Median seconds of building and walking the tree, of brute force on a sample, and their largest difference."""
    tree: Tree = candidate_tree(tokenizer, PREFIX, "", DIGITS)
    values = np.random.default_rng(0).choice(tree.count, sample, replace=False)
    fast = sequence_log_probs(model, tree, 20_000)
    slow = brute_force(model, tokenizer, values, DIGITS)
    building, walking, forcing = [], [], []
    for _ in range(repeats):  # interleaved, so that other load meets all alike
        building.append(seconds(lambda: candidate_tree(tokenizer, PREFIX, "", DIGITS)))
        walking.append(seconds(lambda: sequence_log_probs(model, tree, 20_000)))
        forcing.append(seconds(lambda: brute_force(model, tokenizer, values, DIGITS)))
    return {
        "candidates": tree.count,
        "states": tree.states,
        "build_seconds": statistics.median(building),
        "walk_seconds": statistics.median(walking),
        "walk_seconds_all": walking,
        "brute_sample": sample,
        "brute_sample_seconds": statistics.median(forcing),
        "brute_seconds_extrapolated": statistics.median(forcing) * tree.count / sample,
        "max_abs_difference": float(np.abs(fast[values] - slow).max()),
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--output", type=Path, default=Path(__file__).with_suffix(".json"))
    parser.add_argument("--repeats", type=int, default=5)
    parser.add_argument("--threads", type=int, nargs="+", default=[1, 2])
    parser.add_argument("--sample", type=int, default=2000)
    options = parser.parse_args()
    tokenizer = train_bpe([PREFIX], 300)
    results = {}
    for threads in options.threads:
        torch.set_num_threads(threads)
        for name, (spec, size) in MODELS.items():
            model = random_model(tokenizer, spec, size)
            results[f"{name}-threads{threads}"] = found = measure(model, tokenizer, options.repeats, options.sample)
            walk, brute = found["walk_seconds"], found["brute_seconds_extrapolated"]
            print(f"{name}, {threads} threads: {walk:.2f} s, brute force {brute:.0f} s")
    hardware = machine("torch", "tokenizers", "numpy")
    write_json(options.output, {"hardware": hardware, "results": results})


if __name__ == "__main__":
    main()
