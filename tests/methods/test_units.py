"""Methods and the unit that noise protects: a method that forgets it would train with noise for
points, whatever was asked.
"""

from dataclasses import replace

import pytest

from confide.methods import METHODS
from confide.methods.plan import Plan

SIZES = {"all": 100, "public": 60, "private": 40, "marked": 30}
AUTHORS = {"all": 30, "public": 25, "private": 12, "marked": 6}
PLAN = Plan(epochs=4, noisy_epochs=3, batch_size=10, noisy_batch_size=2, sizes=SIZES)


@pytest.mark.parametrize("name", sorted(METHODS.keys() - {"untouched"}))
def test_noisy_steps_have_the_unit_of_the_plan_and_exact_ones_read_points(name: str) -> None:
    points, authors = (
        [step for steps in METHODS[name](plan) for step in steps] for plan in (PLAN, written())
    )
    assert {step.unit for step in points} == {"point"}
    assert {step.unit for step in authors if step.noisy} <= {"author"}
    assert {step.unit for step in authors if not step.noisy} <= {"point"}


@pytest.mark.parametrize("name", ["dpsgd", "crt", "jft"])
def test_passes_are_over_authors(name: str) -> None:
    noisy = [step for steps in METHODS[name](written()) for step in steps if step.noisy]
    assert len(noisy) == PLAN.noisy_epochs * AUTHORS[noisy[0].pool] / PLAN.noisy_batch_size


def written() -> Plan:
    """The plan where noise protects authors."""
    return replace(PLAN, authors=AUTHORS)
