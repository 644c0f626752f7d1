"""Sentences with slots, and the files beside the generators that hold them."""

import re
from functools import cache
from pathlib import Path
from typing import TypeVar

import msgspec

Words = TypeVar("Words")
Options = tuple[str, ...]  # of which one is drawn


def beside(module: str, kind: type[Words]) -> Words:
    """What the YAML file of a module's name holds."""
    return msgspec.yaml.decode(Path(module).with_suffix(".yaml").read_bytes(), type=kind)


@cache
def parts(template: str) -> tuple[str, ...]:
    """Text, slot, text, slot, ..., text."""
    return tuple(re.split(r"\{(\w+)\}", template))
