"""Training state on disk: one safetensors file, written whole or not at all, read back only by the
job that wrote it.

Holds weights, both optimizers, every random generator, the sampler's order, the ledger and the
metrics so far, so that a killed job continues to the same weights, bit for bit, and to the same
ledger.
"""

import fcntl
import json
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import torch
from safetensors import SafetensorError, safe_open
from safetensors.torch import save_file
from torch import Tensor

from confide.errors import InputError
from confide.files.io import atomic
from confide.output.escaping import warn

NAME = "state.safetensors"


@contextmanager
def exclusive(folder: Path) -> Iterator[None]:
    """Hold the job's folder: a second job on it (an orphan of a killed workflow, say) waits for the
    first.
    """
    try:
        folder.mkdir(parents=True, exist_ok=True)
        lock = open(folder / "lock", "w")  # noqa: SIM115 (closed below)
    except OSError as error:
        raise InputError(f"cannot be written: {error.strerror}", file=folder / "lock") from error
    with lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            warn(f"{folder}: another job is at work here; waiting for its end")
            fcntl.flock(lock, fcntl.LOCK_EX)
        yield


def write(folder: Path, tensors: dict[str, Tensor], values: dict[str, Any]) -> None:
    """Replace the checkpoint."""
    with atomic(folder / NAME) as temporary:
        stored = {name: value.detach().cpu().contiguous() for name, value in tensors.items()}
        save_file(stored, temporary, metadata={"values": json.dumps(values)})


def read(folder: Path, fingerprint: str) -> tuple[dict[str, Tensor], dict[str, Any]] | None:
    """Tensors and values of the checkpoint, or None where there is none or it belongs to another
    configuration.
    """
    path = folder / NAME
    if not path.exists():
        return None
    try:
        with safe_open(path, "pt") as file:
            values = json.loads(file.metadata()["values"])
            if values["fingerprint"] != fingerprint:
                return None
            return {name: file.get_tensor(name) for name in file.keys()}, values  # noqa: SIM118 (not a mapping)
    except (SafetensorError, OSError, KeyError, TypeError, ValueError, RecursionError) as error:
        raise InputError(
            f"damaged checkpoint ({type(error).__name__}); delete it to start over", file=path
        ) from None


def clear(folder: Path) -> None:
    """Remove the checkpoint of a finished job (the lock file stays)."""
    (folder / NAME).unlink(missing_ok=True)


def under(tensors: dict[str, Tensor], prefix: str) -> dict[str, Tensor]:
    """Those whose names begin with "prefix.", without it."""
    return {
        name.removeprefix(f"{prefix}."): value
        for name, value in tensors.items()
        if name.startswith(f"{prefix}.")
    }


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
