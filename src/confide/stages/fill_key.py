"""Make the key by which values are drawn in place of masks."""

import secrets
from pathlib import Path

from confide.data.partitioning import KEY_BYTES
from confide.files.io import write_text


def fill_key(*, output: Path) -> None:
    """Write a fresh random key.

    Guarantees: nothing that is handed out is made of the key but the values themselves.
    """
    write_text(output, f"{secrets.token_hex(KEY_BYTES)}\n")
