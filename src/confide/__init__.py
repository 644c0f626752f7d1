"""Language models that keep confidences: train them, attack them, and know what to claim of them.

The functions of `confide.api` are called by this name, too: `confide.load`. They are imported when
they are first asked for, so that no stage depends on them.
"""

import importlib
from typing import Any

FUNCTIONS = ("generate", "load", "load_results", "price", "verify")


def __getattr__(name: str) -> Any:
    if name in FUNCTIONS:
        return getattr(importlib.import_module("confide.api"), name)
    raise AttributeError(f"module 'confide' has no attribute {name!r}")


def __dir__() -> list[str]:
    return [*globals(), *FUNCTIONS]
