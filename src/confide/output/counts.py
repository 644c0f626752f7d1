"""Counts that nobody takes for a secret.

A planted secret is a number of digits, and a count may be the same by chance: `confide scan` would
then find it. So counts of many digits are written with a decimal point, which no secret has.
"""

from typing import Any

import numpy as np

LONG = 100_000  # unless a scan is told to, it looks for no number of fewer digits


def pointed(value: Any) -> Any:
    """A value of JSON whose long counts, however deep, are written with a decimal point."""
    if isinstance(value, dict):
        return {key: pointed(inner) for key, inner in value.items()}
    if isinstance(value, list):
        return [pointed(inner) for inner in value]
    is_long = isinstance(value, int | np.integer) and abs(int(value)) >= LONG
    return float(value) if is_long else value
