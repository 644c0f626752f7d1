"""Tables and words that a module reads: a data file beside it, under its name."""

import csv
from pathlib import Path
from typing import TypeVar

import msgspec

Words = TypeVar("Words")


def table(module: str) -> list[dict[str, str]]:
    """The lines of the CSV file of a module."""
    with Path(module).with_suffix(".csv").open(newline="", encoding="utf-8") as lines:
        return list(csv.DictReader(lines))


def words(module: str, kind: type[Words]) -> Words:
    """What the YAML file of a module holds."""
    return msgspec.yaml.decode(Path(module).with_suffix(".yaml").read_bytes(), type=kind)
