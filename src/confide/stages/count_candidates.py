"""Count one share of the candidates that canaries are ranked among, for the attack `exposure`."""

from pathlib import Path

from confide.attacks.exposure.exposure import share_of
from confide.attacks.target import opened
from confide.errors import InputError
from confide.files.io import write_json
from confide.output.counts import pointed
from confide.runtime.devices import device_of
from confide.runtime.memory import keep_pages
from confide.specs import AttackJobSpec, ExposureSpec


def count_candidates(
    spec: AttackJobSpec,
    *,
    model: Path,
    tokenizer: Path,
    points: Path,
    canaries: Path,
    share: str,
    output: Path,
) -> None:
    """Write how many candidates of a share are likelier than each canary.

    share: such as 2-of-8; `confide attack` reads all of them

    InputError where the attack is another one, or has a budget.
    """
    keep_pages()
    if not isinstance(spec.attack, ExposureSpec):
        message = "has no candidates to be counted in shares"
        raise InputError(message, key="attack", value=spec.attack.kind)
    target = opened(
        model,
        tokenizer=tokenizer,
        device=device_of(spec.device),
        points=points,
        canaries=canaries,
    )
    counts = share_of(spec.attack, target, share)
    write_json(output, pointed({"weights": target.weights, **counts}))
