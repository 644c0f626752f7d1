"""Results without a record of how they were made: the workflow could not see that they are out of date, and must refuse them.

Snakemake finds changed parameters and code through its records alone; a copy of the results that came without them would
count as up to date whatever params.yaml says.
"""

import os
from base64 import urlsafe_b64encode
from collections.abc import Iterator
from pathlib import Path

from confide.errors import InputError

BUILT = ("data/work", "data/tokenizers", "models", "results/runs", "results/studies")
REPAIR = (
    "has no record of how it was made: `dvc pull` brings the records; deleting the file makes it anew; if nothing has changed "
    "since it was made, `snakemake --touch --forceall` records that"
)


def record(folder: Path, output: str) -> Path:
    """Where Snakemake keeps what it knows of an output: the name in base64, long ones cut into folders."""
    length = os.pathconf(folder, "PC_NAME_MAX") - 1
    name = urlsafe_b64encode(output.encode()).decode()
    pieces = [name[start : start + length] for start in range(0, len(name), length)]
    return folder.joinpath(*(f"@{piece}" for piece in pieces[:-1]), pieces[-1])


def unrecorded(folder: Path) -> Iterator[str]:
    """Built files that neither have a record nor belong to an interrupted job (which is run again anyway)."""
    state = [path for name in ("metadata", "incomplete") if (path := folder / ".snakemake" / name).is_dir()]
    for place in BUILT:
        for path in sorted((folder / place).rglob("[!.]*")):
            output = str(path.relative_to(folder))
            if path.is_file() and not any(record(known, output).exists() for known in state):
                yield output


def check_records(folder: Path) -> None:
    """InputError names the first built file that has no record."""
    first = next(unrecorded(folder), None)
    if first is not None:
        raise InputError(REPAIR, file=first)
