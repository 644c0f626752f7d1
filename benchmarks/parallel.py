"""Updates of one model by two processes, beside one process with one thread and one with two.

    python benchmarks/parallel.py [--rounds 5] [--cases 8k 50k] [--batch 256]

LSTM with embedding and hidden size 200, random texts of 20 to 60 tokens; exact and noised updates
as a training job makes them. `parts` are what every process does in full: the noise of all weights,
the optimizer's step, and the sum over two processes.
"""

import os
import socket
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import torch
from contenders import texts_of
from machine import machine
from runner import Apart, arguments_of, compared, interleaved, shown

from confide.files.io import write_json
from confide.models import build
from confide.runtime.launch import LAUNCHED
from confide.runtime.memory import keep_pages
from confide.runtime.parallel import joined
from confide.specs import LSTMSpec, PrivacySpec, RecipeSpec, TrainSpec
from confide.train.job import Job
from confide.types import Step

CASES = {"8k": 8_000, "50k": 50_257}  # words
MODEL = LSTMSpec(kind="lstm")
POINTS = 4000


def work(
    vocab: int, batch: int, what: str, threads: int, rank: int = 0, size: int = 1, port: int = 0
) -> Callable[[], object]:
    """One update, or a part of one, of a job of process number `rank` of `size`."""
    keep_pages()
    torch.set_num_threads(threads)
    if size > 1:
        os.environ |= {
            LAUNCHED: "benchmark",
            "WORLD_SIZE": str(size),
            "RANK": str(rank),
            "LOCAL_RANK": str(rank),
        }
        os.environ |= {
            "LOCAL_WORLD_SIZE": str(size),
            "MASTER_ADDR": "127.0.0.1",
            "MASTER_PORT": str(port),
        }
    group = joined("cpu").__enter__()  # it is left when the process ends
    recipe = RecipeSpec(batch_size=batch, noisy_batch_size=batch, physical_batch_size=64)
    privacy = PrivacySpec(noise_multiplier=1.0)
    data = {"dataset": "synthetic", "corpus": "", "cut": "", "policies": ""}
    spec = TrainSpec(
        run="parallel",
        method="dpsgd",
        data=data,
        model=MODEL,
        recipe=recipe,
        privacy=privacy,
        device="cpu",
    )
    torch.manual_seed(0)
    model = build(MODEL, vocab, 1).train()
    job = Job(
        spec,
        texts_of(POINTS, vocab, owner=np.full(POINTS, -1, np.int32)),
        model,
        noise_multiplier=1.0,
        updates=dict.fromkeys((False, True), 1_000_000),
        device="cpu",
        group=group,
    )
    if what in ("exact", "noised"):
        return lambda: job.run(Step(view="original", pool="all", noisy=what == "noised"))
    job.run(Step(view="original", pool="all", noisy=True))
    total = job.gradients.clipper.flat
    parts = {
        "noise": lambda: job.gradients.noise.add(total, 1.0),
        "optimizer": job.optimizers.each[True].step,
    }
    return parts.get(what, lambda: group.sum([total]))


class Together:
    """The same step of two processes at once."""

    def __init__(self, *arguments: object):
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            port = free.getsockname()[1]
        self.threads = ThreadPoolExecutor(2)
        self.steps = list(
            self.threads.map(lambda rank: Apart(work, *arguments, 1, rank, 2, port), range(2))
        )

    def __call__(self) -> None:
        list(self.threads.map(lambda step: step(), self.steps))


def measured(
    steps: dict[str, Apart | Together], rounds: int, base: str
) -> dict[str, dict[str, float]]:
    """Their times; then their processes end, which hold much memory."""
    found = compared(interleaved(steps, rounds), base)
    for step in steps.values():
        for one in step.steps if isinstance(step, Together) else [step]:
            one.pool.terminate()
    return found


def main() -> None:
    parser = arguments_of(__file__, __doc__, 5)
    parser.add_argument("--cases", nargs="+", choices=CASES, default=list(CASES))
    parser.add_argument("--batch", type=int, default=256)
    arguments = parser.parse_args()
    found = {}
    for name in arguments.cases:
        given = (CASES[name], arguments.batch)
        for what in ("exact", "noised"):
            steps = {
                "1 process": Apart(work, *given, what, 1),
                "1 process, 2 threads": Apart(work, *given, what, 2),
                "2 processes": Together(*given, what),
            }
            found[f"{name}, {what}"] = measured(steps, arguments.rounds, "1 process")
        parts = {what: Apart(work, *given, what, 1) for what in ("noise", "optimizer")} | {
            "sum": Together(*given, "sum")
        }
        found[f"{name}, parts"] = measured(parts, arguments.rounds, "noise")
    for name, rows in found.items():
        for contender, row in rows.items():
            shown(f"{name}: {contender}", row)
    write_json(
        arguments.output, {"hardware": machine("torch"), "batch": arguments.batch, "cases": found}
    )


if __name__ == "__main__":
    main()
