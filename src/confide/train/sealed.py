"""Tensors on disk that a killed job goes on from: a changed byte is seen when they are read.

Safetensors has no checksum, and a flipped bit of a weight is a weight as good as any: the job would
end with another model, and nobody would know.
"""

import hashlib
from pathlib import Path

import torch
from safetensors import SafetensorError, safe_open
from safetensors.torch import save_file
from torch import Tensor

from confide.files.io import atomic

VALUES = "values"
DIGEST = "sha256"
# What reading raises where a file is cut short, or is no file of this kind.
DAMAGED = (SafetensorError, OSError, KeyError, TypeError, ValueError, RecursionError)


def write(path: Path, tensors: dict[str, Tensor], values: str = "") -> None:
    """Write tensors and a text, whole or not at all."""
    metadata = {VALUES: values, DIGEST: digest(tensors, values)}
    with atomic(path) as temporary:
        save_file(tensors, temporary, metadata=metadata)


def read(path: Path) -> tuple[dict[str, Tensor], str]:
    """Tensors and text as they were written; one of DAMAGED if they are not."""
    with safe_open(path, "pt") as file:
        metadata = file.metadata()
        tensors = {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118
    values = metadata[VALUES]
    if digest(tensors, values) != metadata[DIGEST]:
        raise ValueError("is not what was written")
    return tensors, values


def digest(tensors: dict[str, Tensor], values: str) -> str:
    """Hex SHA-256 of a text and of tensors: their names, kinds, shapes and bytes."""
    total = hashlib.sha256(values.encode())
    for name, tensor in sorted(tensors.items()):
        total.update(f"\n{name} {tensor.dtype} {list(tensor.shape)}\n".encode())
        total.update(tensor.reshape(-1).view(torch.uint8).numpy().data)
    return total.hexdigest()
