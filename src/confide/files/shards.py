"""Scatter and gather: a function over shards of a file of lines, results in order.

Shards are of fixed size, so that neither results nor the memory of a process depend on how many
processes there are. Results come back through pipes, so nothing of them is left on a disk.
Processes are forked: what the function holds, a key say, is inherited in memory and never written.
Where there is one process, it is this one.
"""

import ctypes
import gc
import os
import re
import signal
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future, ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from contextlib import contextmanager
from functools import cache
from multiprocessing import get_context
from pathlib import Path
from typing import Any, TypeVar

from confide.errors import InputError
from confide.files.io import Range, line_from, readable

# Bytes of a shard. Some policies see the texts of one in batches: it is the same everywhere.
SIZE = 4 << 20
# In each process of a pool.
ONE_THREAD = {"OMP_NUM_THREADS": "1", "TOKENIZERS_PARALLELISM": "false"}
PR_SET_PDEATHSIG = 1  # prctl.h
SHARE = re.compile(r"([1-9]\d{0,8})-of-([1-9]\d{0,8})")  # as Snakemake numbers them

Item = TypeVar("Item")
Result = TypeVar("Result")
# in a process of a pool: what it runs, made on first use
worker: Callable[[], Callable[[Any], Any]]


def shards(path: Path, parts: int = 1) -> list[Range]:
    """The file in ranges of SIZE bytes, each on to the end of its last line; at least one.

    parts: of what SIZE is, where less memory serves better

    InputError if it cannot be read.
    """
    length = max(1, SIZE // parts)
    with readable(path), open(path, "rb") as file:
        size = os.fstat(file.fileno()).st_size
        edges = [0]
        while edges[-1] + length < size:
            edges.append(line_from(file, edges[-1] + length))
    return [Range(path, *edge) for edge in zip(edges, [*edges[1:], None], strict=True)]


def of_share(ranges: list[Range], share: str | None) -> list[Range]:
    """The ranges that fall to one of several jobs, which may run on several machines.

    `share`: "2-of-8" is the second of eight, None all of them. Shares follow one another as their
    numbers do; one that no range falls to is an empty range. InputError for other words.
    """
    places = places_of_share(len(ranges), share)
    if not places:
        beginning = ranges[places.start]
        return [Range(beginning.path, beginning.start, beginning.start)]
    return ranges[places.start : places.stop]


def places_of_share(count: int, share: str | None) -> range:
    """The places, of so many, that fall to a share, as `of_share` has it: perhaps none."""
    if share is None:
        return range(count)
    number, shares = numbers_of_share(share)
    return range((number - 1) * count // shares, number * count // shares)


def numbers_of_share(share: str) -> tuple[int, int]:
    """Which share it is, from 1 on, and how many there are; InputError for other words."""
    numbers = SHARE.fullmatch(share)
    if numbers is None or int(numbers[1]) > int(numbers[2]):
        raise InputError("expected a share such as 2-of-8", key="share", value=share)
    return int(numbers[1]), int(numbers[2])


def names_of_shares(count: int) -> list[str]:
    """All shares of so many, in their order: 1-of-2, 2-of-2."""
    return [f"{number}-of-{count}" for number in range(1, count + 1)]


def scatter(
    make: Callable[[], Callable[[Item], Result]], items: Iterable[Item], threads: int
) -> Iterator[Result]:
    """Results of the function that `make` returns, in the order of the items.

    `make` runs once in each of `threads` processes.

    At most 2 * threads results wait, so the memory does not grow with the items.
    Errors: what the function raises is raised here; InputError where a process was killed.
    """
    if threads < 1:
        raise InputError("expected at least 1", key="threads", value=threads)
    if threads == 1:
        yield from map(make(), items)
        return
    waiting: deque[Future[Result]] = deque()
    with ProcessPoolExecutor(threads, get_context("fork"), _begin, (make,)) as pool:
        try:
            for item in items:
                waiting.append(pool.submit(_next, item))
                if len(waiting) == 2 * threads:
                    yield waiting.popleft().result()
            while waiting:
                yield waiting.popleft().result()
        except BrokenProcessPool:
            message = "a process was killed, perhaps for want of memory: fewer need less"
            raise InputError(message, key="threads", value=threads) from None
        finally:
            pool.shutdown(cancel_futures=True)


@contextmanager
def no_collection() -> Iterator[None]:
    """Meanwhile nothing searches for cycles, which would take a fifth of the time.

    The many small objects of a shard are in none.
    """
    collects = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if collects:
            gc.enable()


def _begin(make: Callable[[], Callable[[Any], Any]]) -> None:
    """Nothing is made before the first item: an error of `make` has to reach the one who asked."""
    global worker
    libc = ctypes.CDLL(None)
    if hasattr(libc, "prctl"):
        # Linux: a process does not outlive the one that started it, however that ends
        libc.prctl(PR_SET_PDEATHSIG, signal.SIGKILL)
    os.environ.update(ONE_THREAD)
    worker = cache(make)


def _next(item: Any) -> Any:
    return worker()(item)
