"""Tests that not every processor can run."""

import pytest

from confide.runtime.devices import has_bfloat16

needs_bfloat16 = pytest.mark.skipif(
    not has_bfloat16("cpu"), reason="an LSTM in bfloat16 needs a processor with products of it"
)
