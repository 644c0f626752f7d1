"""Compares contenders fairly: one after the other in every round; medians, and medians of per-round
ratios.

Contenders share a process, but for those that need settings of a process which the others change.
Peak memory is that of a process of its own per contender, above what the same process held before
it built anything.
"""

import argparse
import gc
import resource
import statistics
import time
from collections.abc import Callable
from multiprocessing import get_context
from pathlib import Path
from typing import Any

Step = Callable[[], object]
_step: Step  # of a process that Apart started


def synchronised(step: Step) -> float:
    """Seconds of one call, until the accelerator, where there is one, has finished."""
    import torch

    begun = time.perf_counter()
    step()
    if torch.cuda.is_available():
        torch.cuda.synchronize()
    return time.perf_counter() - begun


class Apart:
    """A step that lives in a process of its own."""

    def __init__(self, build: Callable[..., Step], *arguments: Any):
        self.pool = get_context("spawn").Pool(1, _build, (build, arguments))

    def __call__(self) -> None:
        self.pool.apply(_call)


def _build(build: Callable[..., Step], arguments: tuple[Any, ...]) -> None:
    global _step
    _step = build(*arguments)


def _call() -> None:
    _step()


def interleaved(
    contenders: dict[str, Step], rounds: int, *, settles: bool = False
) -> dict[str, list[float]]:
    """Seconds of every contender in every round, after one round that warms up; the order turns
    round by round.

    settles: a call that is not timed goes before each, since it is its own kind that a step of
    training follows, and not one that leaves memory in another shape.
    """
    names = list(contenders)
    seconds = {name: [] for name in contenders}
    for number in range(rounds + 1):
        for name in names if number % 2 else reversed(names):
            if settles:
                synchronised(contenders[name])
            found = synchronised(contenders[name])
            if number:
                seconds[name].append(found)
    return seconds


def compared(seconds: dict[str, list[float]], base: str) -> dict[str, dict[str, float]]:
    """Median and least milliseconds, and the median of the ratios to `base` within a round."""
    return {
        name: {
            "milliseconds": 1000 * statistics.median(found),
            "least_milliseconds": 1000 * min(found),
            "ratio": statistics.median(
                one / other for one, other in zip(found, seconds[base], strict=True)
            ),
        }
        for name, found in seconds.items()
    }


def resident(reset: bool = False) -> float:
    """Peak resident memory of this process, MiB; getrusage would count what the parent held, too.
    reset: the peak is now.
    """
    if reset:
        Path("/proc/self/clear_refs").write_text("5")
    (line,) = [
        line
        for line in Path("/proc/self/status").read_text().splitlines()
        if line.startswith("VmHWM:")
    ]
    return int(line.split()[1]) / 1024


def _measure(build: Callable[..., Step], arguments: tuple[Any, ...], calls: int) -> float:
    import torch._dynamo  # the floor: what optimizers load  # noqa: F401

    import confide.dp.mechanism.update  # noqa: F401

    gc.collect()
    floor = resident(reset=True)
    step = build(*arguments)
    for _ in range(calls):
        step()
    return resident() - floor


def arguments_of(script: str, description: str | None, rounds: int) -> argparse.ArgumentParser:
    """What every benchmark takes: --rounds, and --output, which is its own name with .json."""
    parser = argparse.ArgumentParser(
        description=description, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--rounds", type=int, default=rounds)
    parser.add_argument("--output", type=Path, default=Path(script).with_suffix(".json"))
    return parser


def shown(name: str, row: dict[str, Any]) -> None:
    """Print one row of figures at once."""
    print(
        name,
        {key: round(value, 2) if isinstance(value, float) else value for key, value in row.items()},
        flush=True,
    )


def peak_memory(build: Callable[..., Step], *arguments: Any, calls: int = 3) -> float:
    """MiB that building and running a step takes at most, in a fresh process."""
    with get_context("spawn").Pool(1) as pool:
        return pool.apply(_measure, (build, arguments, calls))


def limited_memory(build: Callable[..., Step], *arguments: Any, gibibytes: int) -> float | None:
    """The same of one step, but None where it would need an address space larger than so many
    GiB.
    """
    with get_context("spawn").Pool(
        1, resource.setrlimit, (resource.RLIMIT_AS, (gibibytes << 30,) * 2)
    ) as pool:
        try:
            return pool.apply(_measure, (build, arguments, 1))
        except (RuntimeError, MemoryError) as error:
            if isinstance(error, MemoryError) or "allocate memory" in str(error):
                return None
            raise
