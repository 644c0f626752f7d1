"""Attack one trained model, on candidates that corpus and seed alone determine."""

import time
from dataclasses import replace
from pathlib import Path

from confide.attacks.registry import ATTACKS
from confide.attacks.target import opened
from confide.files.io import write_json
from confide.output.counts import pointed
from confide.runtime.devices import device_of
from confide.runtime.memory import keep_pages
from confide.specs import AttackJobSpec


def attack(
    spec: AttackJobSpec,
    *,
    model: Path,
    tokenizer: Path,
    points: Path,
    output: Path,
    canaries: Path | None = None,
    shadows: Path | None = None,
    reference: Path | None = None,
    ledger: Path | None = None,
    marked: Path | None = None,
    counts: list[Path] | None = None,
) -> None:
    """Write the attack's metrics; all but "seconds" are the same in every run.

    `reference`: weights of the reference model. `marked`: what a person marked in a review, as
    points; examples show neither that nor gold secrets. `counts`: what `confide count_candidates`
    wrote of each share, in their order.

    "weights" is the SHA-256 of the model that was attacked.

    Guarantees: holds no secret; planted canaries are known by their index. Numbers only, but for
    examples where the specification asks for some: these are text that `attacks.examples.veil`
    masked.
    """
    keep_pages()
    target = opened(
        model,
        tokenizer=tokenizer,
        device=device_of(spec.device),
        points=points,
        canaries=canaries,
        shadows=shadows,
        reference=reference,
        ledger=ledger,
        marked=marked,
    )
    target = replace(target, counts=counts or ())
    begun = time.perf_counter()
    metrics = ATTACKS[spec.attack.kind](spec.attack, target)
    of = {"attack": spec.attack.kind, "run": spec.run, "weights": target.weights}
    write_json(output, pointed(of | metrics) | {"seconds": time.perf_counter() - begun})
