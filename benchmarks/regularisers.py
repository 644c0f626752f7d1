"""Updates with a privacy regulariser, and of DP-SGD, beside ordinary ones, each as a training job
makes them.

    python benchmarks/regularisers.py [--rounds 5] [--cases lstm gpt2 paper] [--device cpu]

Random text by 20 authors, 20 to 60 tokens a point. `paper`: two layers of 550, 40,000 words,
batches of 100, as in Mireshghallah et al. 2021 (there 1.06 and 1.80 times an ordinary epoch, and
16.44 for DP-SGD).
"""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import torch
from contenders import texts_of
from machine import machine
from runner import arguments_of, compared, interleaved, shown

from confide.files.io import write_json
from confide.models import build
from confide.runtime.memory import keep_pages
from confide.specs import GPT2Spec, LSTMSpec, ModelSpec, PrivacySpec, RecipeSpec, TrainSpec
from confide.train.job import Job
from confide.train.regularisers import regulariser_of
from confide.types import RegulariserName, Step

AUTHORS = 20
POINTS = 4000
METHODS: dict[str, RegulariserName] = {
    "nonprivate": "none",
    "adversarial": "adversarial",
    "triplet": "triplet",
    "dpsgd": "none",
}


@dataclass(frozen=True)
class Case:
    model: ModelSpec
    vocab: int
    batch: int
    updates: int  # in a round


CASES = {
    "lstm": Case(LSTMSpec(kind="lstm"), 8000, 32, 8),
    "gpt2": Case(GPT2Spec(kind="gpt2", layers=4, width=256, heads=4, positions=256), 4096, 32, 2),
    "paper": Case(LSTMSpec(kind="lstm", embedding=550, hidden=550, layers=2), 40_000, 100, 1),
}


def round_of(case: Case, method: str, device: str) -> Callable[[], None]:
    """A job of which every call makes some updates."""
    keep_pages()
    recipe = RecipeSpec(
        batch_size=case.batch,
        noisy_batch_size=case.batch,
        regulariser_weight=1.0,
        physical_batch_size=200,
    )
    privacy = PrivacySpec(noise_multiplier=1.0)
    data = {"dataset": "synthetic", "corpus": "", "cut": "", "policies": ""}
    spec = TrainSpec(
        run=method,
        data=data,
        method=method,
        model=case.model,
        recipe=recipe,
        privacy=privacy,
        device=device,
    )
    torch.manual_seed(0)
    model = build(case.model, case.vocab, 1)
    data = texts_of(POINTS, case.vocab, owner=np.arange(POINTS, dtype=np.int32) % AUTHORS)
    kind = METHODS[method]
    regulariser = regulariser_of({kind}, spec, data, model.head.weight.shape[1], device)
    noisy = method == "dpsgd"
    updates = {noisy: 1_000_000, not noisy: 0}
    job = Job(
        spec,
        data,
        model.to(device).train(),
        noise_multiplier=1.0,
        updates=updates,
        device=device,
        regulariser=regulariser,
    )

    def updates_of_a_round() -> None:
        for _ in range(case.updates):
            job.run(Step(view="original", pool="all", noisy=noisy, regulariser=kind))
        job.metrics.losses.clear()
        if regulariser is not None:
            regulariser.metrics()

    return updates_of_a_round


def main() -> None:
    parser = arguments_of(__file__, __doc__, 5)
    parser.add_argument("--cases", nargs="+", choices=CASES, default=list(CASES))
    parser.add_argument("--device", default="cpu")
    arguments = parser.parse_args()
    found = {}
    for name in arguments.cases:
        steps = {method: round_of(CASES[name], method, arguments.device) for method in METHODS}
        found[name] = compared(interleaved(steps, arguments.rounds), "nonprivate")
        for method, row in found[name].items():
            shown(f"{name}, {method}", row)
    write_json(
        arguments.output, {"hardware": machine("torch"), "device": arguments.device, "cases": found}
    )


if __name__ == "__main__":
    main()
