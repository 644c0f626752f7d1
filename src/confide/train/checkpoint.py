"""Training state on disk: one safetensors file, written whole or not at all, read back only by the
job that wrote it.

Every part of a job (`Part`) gives its state and takes it back: weights, both optimizers, every
random generator, the batches left of a pass, the ledger and the metrics so far. A killed job
continues to the same weights, bit for bit, and to the same ledger.
"""

import json
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Protocol

import torch
from torch import Tensor

from confide.errors import InputError
from confide.files.io import read_json, sha256, writable, write_json
from confide.files.locks import lock
from confide.train import sealed

NAME = "state.safetensors"
FINISHED = "finished.json"
State = dict[str, Any]  # of a part: tensors, and what JSON can say


class Part(Protocol):
    """What a checkpoint is made of."""

    def state(self) -> State:
        """All that changes while a model trains."""

    def restore(self, state: State) -> None:
        """Continue from it."""


@contextmanager
def exclusive(folder: Path) -> Iterator[bool]:
    """Hold the job's folder: a second job on it (an orphan of a killed workflow, say) waits for the
    first. Yields whether this one waited.
    """
    file = folder / "lock"
    with writable(file):
        folder.mkdir(parents=True, exist_ok=True)
        opened = file.open("w")
    with opened:
        yield lock(opened, shown=folder)


def write(folder: Path, fingerprint: str, states: dict[str, State]) -> None:
    """Replace the checkpoint by the states of some parts."""
    tensors = {}
    values: dict[str, State] = {}
    for part, state in states.items():
        values[part] = {}
        for name, value in state.items():
            if isinstance(value, Tensor):
                tensors[f"{part}.{name}"] = value.detach().cpu().contiguous()
            else:
                values[part][name] = value
    described = json.dumps({"fingerprint": fingerprint, "parts": values})
    sealed.write(folder / NAME, tensors, described)


def read(folder: Path, fingerprint: str) -> dict[str, State] | None:
    """States of the parts; None where there is no checkpoint, or that of another configuration."""
    path = folder / NAME
    if not path.exists():
        return None
    try:
        tensors, described = sealed.read(path)
        values = json.loads(described)
        if values["fingerprint"] != fingerprint:
            return None
        states: dict[str, State] = values["parts"]
        for key, tensor in tensors.items():
            part, _, name = key.partition(".")
            states[part][name] = tensor
        return states
    except sealed.DAMAGED as error:
        raise InputError(
            f"damaged checkpoint ({type(error).__name__}); delete it to start over", file=path
        ) from None


def clear(folder: Path) -> None:
    """Remove the checkpoint of a finished job (the lock file stays)."""
    (folder / NAME).unlink(missing_ok=True)


def begin(folder: Path) -> None:
    """Forget which job was the last one that finished."""
    (folder / FINISHED).unlink(missing_ok=True)


def finish(folder: Path, job: str, outputs: Iterable[Path]) -> None:
    """Note that a job has finished, and what it wrote."""
    write_json(folder / FINISHED, {"job": job, "outputs": sums_of(outputs)})


def is_finished(folder: Path, job: str, outputs: Iterable[Path]) -> bool:
    """Whether this very job has finished, and these outputs are what it wrote."""
    note = folder / FINISHED
    return note.exists() and read_json(note) == {"job": job, "outputs": sums_of(outputs)}


def sums_of(outputs: Iterable[Path]) -> list[str | None]:
    """SHA-256 of files; None for one that is not there."""
    return [sha256(output) if output.exists() else None for output in outputs]


def optimizer_tensors(optimizer: torch.optim.Optimizer, prefix: str) -> dict[str, Tensor]:
    """Flat tensors of an optimizer's state."""
    state = optimizer.state_dict()["state"]
    return {
        f"{prefix}.{index}.{key}": value
        for index, entry in state.items()
        for key, value in entry.items()
    }


def load_optimizer(
    optimizer: torch.optim.Optimizer, prefix: str, tensors: dict[str, Tensor]
) -> None:
    """Inverse of optimizer_tensors."""
    state: dict[int, dict[str, Tensor]] = {}
    for name, value in tensors.items():
        if name.startswith(f"{prefix}."):
            _, index, key = name.rsplit(".", 2)
            state.setdefault(int(index), {})[key] = value
    optimizer.load_state_dict(
        {"state": state, "param_groups": optimizer.state_dict()["param_groups"]}
    )
