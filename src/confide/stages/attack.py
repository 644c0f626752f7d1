"""One attack on one trained model, on the candidates that corpus and seed determine: the same ones for every model."""

import time
from pathlib import Path

from confide import models
from confide.attacks import ATTACKS, Target
from confide.errors import InputError
from confide.io import write_json
from confide.memory import keep_pages
from confide.specs import AttackJobSpec
from confide.tokenizer import load as load_tokenizer
from confide.training import device_of


def attack(
    spec: AttackJobSpec,
    *,
    model: Path,
    tokenizer: Path,
    points: Path,
    output: Path,
    canaries: Path | None = None,
    shadows: Path | None = None,
) -> None:
    """Write the attack's metrics; all but "seconds" are the same in every run.

    Guarantees: holds no secret and no text, only numbers; planted canaries are known by their index.
    """
    keep_pages()
    network, words = models.load(model.parent).to(device_of(spec.device)), load_tokenizer(tokenizer)
    if network.vocab_size != words.vocab_size:
        raise InputError(f"has {words.vocab_size} tokens, the model {network.vocab_size}", file=tokenizer)
    target = Target(network, words, points, canaries, shadows)
    begun = time.perf_counter()
    metrics = ATTACKS[spec.attack.kind](spec.attack, target)
    write_json(output, {"attack": spec.attack.kind, "run": spec.run} | metrics | {"seconds": time.perf_counter() - begun})
