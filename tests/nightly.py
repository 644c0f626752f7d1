"""Cases of a test that `make test-all` alone runs."""

from typing import Any

import pytest


def nightly(case: Any) -> Any:
    """A case of `pytest.mark.parametrize`, marked nightly."""
    return pytest.param(case, marks=pytest.mark.nightly)
