"""Attack a model as it was after each epoch (Selective-DP Figures 3, 4, 6 and 8).

They show what it remembers while it learns.
"""

from dataclasses import replace
from pathlib import Path

from confide.attacks.registry import ATTACKS
from confide.attacks.target import opened
from confide.files.io import sha256, write_json
from confide.runtime.devices import device_of
from confide.runtime.memory import keep_pages
from confide.specs import TrajectorySpec
from confide.train import snapshots


def trajectory(
    spec: TrajectorySpec,
    *,
    epochs: Path,
    model: Path,
    tokenizer: Path,
    points: Path,
    output: Path,
    canaries: Path | None = None,
    reference: Path | None = None,
) -> None:
    """Write the metrics of every attack after every epoch, and the SHA-256 of the weights.

    `model` gives the shape, `epochs` the weights.

    Guarantees: holds no secret and no text, only numbers; planted canaries are known by their
    index.
    """
    keep_pages()
    target = opened(
        model,
        tokenizer=tokenizer,
        device=device_of(spec.device),
        points=points,
        canaries=canaries,
        reference=reference,
        as_trained=True,
    )
    rows = []
    for epoch, used in snapshots.each(epochs, target.model):
        after = replace(target, model=used)
        by_attack = {
            name: {"attack": attack_spec.kind} | ATTACKS[attack_spec.kind](attack_spec, after)
            for name, attack_spec in spec.attacks.items()
        }
        rows.append({"epoch": epoch} | by_attack)
    write_json(output, {"run": spec.run, "weights": sha256(epochs), "epochs": rows})
