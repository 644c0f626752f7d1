"""The test of docs/add_policy.md: luhn finds payment cards, and nothing like them.

test_worked_examples.py runs it where the example is applied.
"""

import pytest

from confide.policies import policy
from confide.specs.policies import LuhnPolicySpec
from confide.types import Span

FIND = policy(LuhnPolicySpec(kind="luhn"))


@pytest.mark.parametrize("number", ["4111111111111111", "5500-0000-0000-0004", "3400 000000 00009"])
def test_cards_are_found_whole(number: str) -> None:
    assert FIND(f"it is {number}.") == [Span(6, 6 + len(number), "card")]


@pytest.mark.parametrize(
    "number",
    ["4111111111111112", "411111111111", "1" + "4111111111111111" * 2, "4111 1111  1111 1111"],
)
def test_near_misses(number: str) -> None:
    assert FIND(number) == []
