"""Exact exposure: seconds of ranking ten canaries among all six-digit numbers, with and without
pruning, and by brute force.

    python benchmarks/exposure.py --output exposure.json [--rounds 3] [--threads 2] [--sample 1000]

Each model is first trained on nothing but its ten canaries, until it knows them by heart. Brute
force is a batched forward pass over whole candidates; its seconds for all of them are extrapolated
from a sample. Larger spaces run in processes of their own; peak memory is that of the search, on
top of what the process held before.
"""

import math
import statistics
import time
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context
from typing import Any

import numpy as np
import torch
from machine import machine
from runner import arguments_of, interleaved, resident
from torch import Tensor, nn
from tqdm import tqdm

from confide.attacks.exposure.candidates import Sentence, candidate_blocks
from confide.attacks.exposure.ranking import log_probs_apart, ranks_among
from confide.attacks.exposure.tree import sequence_log_probs
from confide.attacks.statistics.scoring import token_log_probs
from confide.files.io import write_json
from confide.models import build
from confide.specs import GPT2Spec, LSTMSpec, ModelSpec
from confide.text.tokenizer import Tokenizer, train_bpe

PREFIX = "My ID is: "
DIGITS = 6
CANARIES = 10
CHUNK = 4096
LSTM = LSTMSpec(kind="lstm")  # 200 x 200, the laptop study's
MODELS: dict[str, tuple[ModelSpec, int]] = {
    "lstm-200-v1024": (LSTM, 1024),
    "lstm-200-v2048": (LSTM, 2048),
    "lstm-200-v50257": (LSTM, 50_257),
    "gpt2-4x256-v4096": (GPT2Spec(kind="gpt2", layers=4, width=256, heads=4, positions=256), 4096),
}
STREAMS = {
    "1e6": (6, False),
    "1e7": (7, False),
    "1e8": (8, False),
    "1e8-pruned": (8, True),
}  # of the first model


def memorised(
    tokenizer: Tokenizer, spec: ModelSpec, size: int, digits: int
) -> tuple[nn.Module, np.ndarray]:
    """A model of the wanted vocabulary that knows its canaries but for the log 10 nats of choosing
    one, and the canaries.
    """
    torch.manual_seed(0)
    model = build(spec, size, tokenizer.bos_id)
    secrets = np.random.default_rng(0).choice(10**digits, CANARIES, replace=False)
    ids = torch.tensor(
        [
            [tokenizer.bos_id, *tokenizer.encode(text)]
            for text in Sentence(PREFIX, "", digits).texts(secrets)
        ]
    )
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-3 if spec.kind == "gpt2" else 1e-2)
    loss = math.inf
    while loss > math.log(CANARIES) + 0.01:
        optimizer.zero_grad()
        losses = model.head(model.hidden(ids[:, :-1]), ids[:, 1:]).sum(1).mean()
        losses.backward()
        optimizer.step()
        loss = losses.item()
    return model.eval(), secrets


def search(
    model: nn.Module, tokenizer: Tokenizer, secrets: np.ndarray, digits: int, prune: bool
) -> tuple[np.ndarray, dict[str, float]]:
    """All of an attack but its summary: trees, scores and ranks."""
    sentence = Sentence(PREFIX, "", digits)
    apart = log_probs_apart(model, tokenizer, sentence, secrets, CHUNK)
    with tqdm(total=10**digits, disable=True) as bar:
        return ranks_among(
            model,
            candidate_blocks(tokenizer, sentence),
            secrets,
            apart,
            CHUNK,
            bar,
            prune,
        )


@torch.inference_mode()
def brute_force(
    model: nn.Module, tokenizer: Tokenizer, values: np.ndarray, batch: int = 256
) -> np.ndarray:
    """log p of all tokens of each candidate, by whole forward passes."""
    ids = [
        [tokenizer.bos_id, *tokenizer.encode(text)]
        for text in Sentence(PREFIX, "", DIGITS).texts(values)
    ]
    found = []
    for start in range(0, len(ids), batch):
        tokens = torch.tensor(ids[start : start + batch])
        logs = model(tokens[:, :-1]).log_softmax(-1)
        found.append(logs.gather(2, tokens[:, 1:, None]).double().sum((1, 2)))
    return torch.cat(found).numpy()


def full_log_softmax(model: nn.Module, hidden: Tensor, rows: Tensor, tokens: Tensor) -> Tensor:
    """What token_log_probs replaces: all log-probabilities of all contexts, 2 MiB at once."""
    size = max(1, (1 << 19) // model.vocab_size)
    logs = [model.head(block).log_softmax(-1)[:, tokens[:10]] for block in hidden.split(size)]
    return torch.cat(logs).double().flatten()


@torch.inference_mode()
def scoring(model: nn.Module, rounds: int) -> dict[str, float]:
    """Milliseconds for the log-probabilities of ten digits after each of 4,096 contexts."""
    hidden = torch.randn(CHUNK, model.head.weight.shape[1])
    rows = torch.arange(CHUNK).repeat_interleave(10)
    tokens = torch.arange(10).repeat(CHUNK)
    steps = {"full": full_log_softmax, "needed": token_log_probs}
    calls = {
        name: lambda step=step: step(model, hidden, rows, tokens) for name, step in steps.items()
    }
    found = interleaved(calls, rounds)
    return {
        f"scoring_{name}_milliseconds": 1000 * statistics.median(values)
        for name, values in found.items()
    }


def measure(
    tokenizer: Tokenizer, spec: ModelSpec, size: int, rounds: int, sample: int
) -> dict[str, Any]:
    """All figures of one model."""
    model, secrets = memorised(tokenizer, spec, size, DIGITS)
    values = np.random.default_rng(1).choice(10**DIGITS, sample, replace=False)
    (tree,) = candidate_blocks(tokenizer, Sentence(PREFIX, "", DIGITS), block=DIGITS)
    difference = np.abs(
        sequence_log_probs(model, tree, CHUNK)[values] - brute_force(model, tokenizer, values)
    )
    found: dict[str, tuple[np.ndarray, dict[str, float]]] = {}
    steps: dict[str, Callable[[], object]] = {
        "unpruned": lambda: found.update(unpruned=search(model, tokenizer, secrets, DIGITS, False)),
        "pruned": lambda: found.update(pruned=search(model, tokenizer, secrets, DIGITS, True)),
        "brute": lambda: brute_force(model, tokenizer, values),
    }
    seconds = interleaved(steps, rounds)
    share = 10**DIGITS / sample
    ratios = {
        name: statistics.median(
            share * brute / own for own, brute in zip(seconds[name], seconds["brute"], strict=True)
        )
        for name in ("unpruned", "pruned")
    }
    (ranks, sizes), (pruned_ranks, pruned_sizes) = found["unpruned"], found["pruned"]
    return {
        "candidates": sizes["candidates"],
        "states": sizes["states"],
        "states_visited_pruned": pruned_sizes["states_visited"],
        "mean_exposure": float((math.log2(sizes["candidates"]) - np.log2(ranks)).mean()),
        "ranks_that_pruning_changed": int((ranks != pruned_ranks).sum()),
        "max_abs_difference": float(difference.max()),
        "unpruned_seconds": statistics.median(seconds["unpruned"]),
        "unpruned_least_seconds": min(seconds["unpruned"]),
        "pruned_seconds": statistics.median(seconds["pruned"]),
        "brute_sample": sample,
        "brute_seconds_extrapolated": share * statistics.median(seconds["brute"]),
        "brute_over_unpruned": ratios["unpruned"],
        "brute_over_pruned": ratios["pruned"],
    } | scoring(model, 3 * rounds)


def stream(digits: int, prune: bool, threads: int) -> dict[str, float]:
    """Seconds, states and peak memory of one search with the first model."""
    torch.set_num_threads(threads)
    tokenizer = train_bpe([PREFIX], 300)
    model, secrets = memorised(tokenizer, *MODELS["lstm-200-v1024"], digits)
    before = resident(reset=True)
    begun = time.perf_counter()
    ranks, sizes = search(model, tokenizer, secrets, digits, prune)
    seconds = time.perf_counter() - begun
    peak = resident() - before
    exposure = float((math.log2(sizes["candidates"]) - np.log2(ranks)).mean())
    return sizes | {"seconds": seconds, "peak_mebibytes": peak, "mean_exposure": exposure}


def main() -> None:
    parser = arguments_of(__file__, __doc__, 3)
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--sample", type=int, default=1000)
    parser.add_argument("--models", nargs="*", default=list(MODELS))
    parser.add_argument("--streams", nargs="*", default=list(STREAMS))
    options = parser.parse_args()
    torch.set_num_threads(options.threads)
    tokenizer = train_bpe([PREFIX], 300)
    results = {}
    for name in options.models:
        results[name] = found = measure(tokenizer, *MODELS[name], options.rounds, options.sample)
        print(
            (
                f"{name}: {found['unpruned_seconds']:.2f} s, brute force "
                f"{found['brute_over_unpruned']:.0f} times"
            ),
            flush=True,
        )
    for name in options.streams:
        with ProcessPoolExecutor(1, mp_context=get_context("spawn")) as pool:
            results[f"stream-{name}"] = found = pool.submit(
                stream, *STREAMS[name], options.threads
            ).result()
        print(f"{name}: {found['seconds']:.1f} s, {found['peak_mebibytes']:.0f} MiB", flush=True)
    hardware = machine("torch", "tokenizers", "numpy") | {"threads": options.threads}
    write_json(options.output, {"hardware": hardware, "results": results})


if __name__ == "__main__":
    main()
