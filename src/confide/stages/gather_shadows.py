"""Put the shares of shadow models together, which several jobs trained.

What it writes is, byte for byte, what one job would have written of all models.
"""

from pathlib import Path

from confide.attacks.membership.shadows import joined, write
from confide.errors import InputError


def gather_shadows(*, shares: list[Path], output: Path) -> None:
    """Write the scores of all shadow models.

    shares: what `confide shadows` wrote of each share, in their order

    InputError if a file is corrupt, or if the files do not belong together.
    """
    if not shares:
        raise InputError("expected at least one file", key="shares")
    write(joined(shares), output)
