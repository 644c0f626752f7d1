"""The test of docs/add_method.md: late_noise runs the updates of CRT, and the noised ones late.

test_worked_examples.py runs it where the example is applied.
"""

from collections import Counter
from itertools import chain

from confide.methods import METHODS
from confide.methods.plan import Plan

SIZES = {"all": 100, "public": 60, "private": 40}
PLAN = Plan(epochs=4, noisy_epochs=4, batch_size=10, noisy_batch_size=20, sizes=SIZES)


def test_the_updates_of_crt_run_and_the_noised_ones_come_late() -> None:
    crt, late = (list(METHODS[name](PLAN)) for name in ("crt", "late_noise"))
    assert Counter(chain(*late)) == Counter(chain(*crt))
    assert [sum(step.noisy for step in steps) for steps in late] == [0, 0, 4, 4]
