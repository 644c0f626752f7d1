"""Training that ends in the middle, as where somebody stops it."""

from collections.abc import Callable

from confide.train.job import Job
from confide.types import Step


def killed(at: int, action: Callable[[], object]) -> None:
    """Do something whose every process ends before update number `at`."""
    step = Job.run

    def fragile(self: Job, one: Step) -> None:
        if self.done == at:
            raise KeyboardInterrupt
        step(self, one)

    Job.run = fragile
    try:
        action()
    except KeyboardInterrupt:
        return
    finally:
        Job.run = step
    raise AssertionError("was not killed")
