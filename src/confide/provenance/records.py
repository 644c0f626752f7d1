"""Results that have no record of how they were made, or are no more what was made.

The workflow must refuse them.

Snakemake finds changed parameters and code through its records alone; a copy of the results that
came without them would count as up to date whatever params.yaml says. A file that was cut short
since a job read it would count as a new input.
"""

import functools
import os
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from confide.errors import InputError
from confide.files.io import read_object, sha256
from confide.provenance.snakemake_internals import FIELDS, record, recorded, states

BUILT = (
    "data/work",
    "data/synthetic",
    "data/tokenizers",
    "models",
    "results/runs",
    "results/studies",
    "results/summary",
)
REPAIR = (
    "has no record of how it was made: `dvc pull` brings the records; deleting the file makes it "
    "anew; if nothing has changed since it was made, `snakemake --touch --forceall` records that"
)
DAMAGED = "has a damaged record of how it was made; delete the file, and it is made anew"
TEMPLATE = (
    "is not as this workflow writes it, and Snakemake's report would run what it holds; "
    "delete it, and it is made anew"
)
REMAKE = "is not what jobs have read that came after it; delete it, and it is made anew"


def unrecorded(folder: Path) -> Iterator[str]:
    """Built files that have no record and belong to no interrupted job.

    Such a job is run again anyway.
    """
    state = [path for path in states(folder) if path.is_dir()]
    for place in BUILT:
        for path in sorted((folder / place).rglob("*")):
            output = str(path.relative_to(folder))
            hidden = "/." in output  # left by a killed job: a file, or in a folder
            known = any(record(records_of, output).exists() for records_of in state)
            if path.is_file() and not hidden and not known:
                yield output


def check_opening(page: Path) -> None:
    """InputError unless a page that opens Snakemake's report is raw HTML without braces.

    The report reads it as a template, which runs what stands in braces, then as reStructuredText,
    which may read other files.
    """
    try:
        first, second, *rest = page.read_text(encoding="utf-8").splitlines()
    except (OSError, ValueError):
        raise InputError(TEMPLATE, file=page) from None
    is_one_block = all(not line.strip() or line.startswith("   ") for line in rest)
    has_braces = any("{" in line or "}" in line for line in rest)
    if first != ".. raw:: html" or second or not is_one_block or has_braces:
        raise InputError(TEMPLATE, file=page)


def records(folder: Path) -> Iterator[tuple[str, dict[str, Any]]]:
    """Outputs of finished jobs that are there, with what Snakemake knows of them.

    InputError for a record that is damaged.

    Snakemake passes over such a record, and would see no change of parameters any more.
    """
    finished, begun = states(folder)
    for output, path in recorded(finished):
        interrupted = begun.is_dir() and record(begun, output).exists()
        if (folder / output).exists() and not interrupted:
            try:
                yield output, read_object(path, *FIELDS)
            except InputError:
                raise InputError(DAMAGED, file=output) from None


def altered(folder: Path) -> Iterator[str]:
    """Built files that are no more what was made.

    They have another date than then, and another content than when they were last read. A file that
    is gone, as while another Snakemake makes it anew, is what Snakemake itself looks for.
    """
    record_of = dict(records(folder))
    changed = {
        name
        for name in record_of
        if date_of(folder / name) not in (None, record_of[name]["endtime"])
    }

    @functools.cache
    def digest(name: str) -> str:
        """Of a file's content, as Snakemake notes it; worked out once, not for each reader."""
        return f"sha256:{sha256(folder / name)}"

    for reader in record_of.values():
        for name in changed & reader["input_checksums"].keys():
            read_this = (reader["starttime"] or 0) >= record_of[name]["endtime"]
            if read_this and reader["input_checksums"][name] != digest(name):
                yield name


def date_of(path: Path) -> float | None:
    """When a file was last written; None where it is gone."""
    try:
        return path.stat().st_mtime
    except FileNotFoundError:
        return None


def redate(folder: Path) -> None:
    """Give built files that are dated in the future the date of now.

    Else Snakemake refuses what is made from them.
    """
    now = time.time()
    for place in BUILT:
        for path in (folder / place).rglob("*"):
            if path.is_file() and path.stat().st_mtime > now:
                os.utime(path, (now, now))


def check_records(folder: Path) -> None:
    """InputError names the first built file that has no record, or is not what was made."""
    for suspects, message in ((unrecorded, REPAIR), (altered, REMAKE)):
        first = next(suspects(folder), None)
        if first is not None:
            raise InputError(message, file=first)
