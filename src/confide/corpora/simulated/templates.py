"""Sentences with slots."""

import re
from functools import cache

Options = tuple[str, ...]  # of which one is drawn


@cache
def parts(template: str) -> tuple[str, ...]:
    """Text, slot, text, slot, ..., text."""
    return tuple(re.split(r"\{(\w+)\}", template))
