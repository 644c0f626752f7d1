"""How long a search may take with one text, and how much memory.

A pattern that tries every way to fail, such as `(a+)+$`, must stop no job. Python's `re` has no
time limit, but it answers signals while it matches. One timer ticks for the whole process, in
processor time: a text pays two assignments and no system call. Before Python 3.11.7 `re` answers
within one attempt only: a search that starts anew at each place ends by itself, and is then refused
for the time that it took. Memory that grows in the meantime, as for `((a?){1000}){1000}`, is
bounded by refusing such patterns.
"""

import atexit
import math
import re
import resource
import signal
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

TICK = 0.25  # seconds of processor time
TICKS = 40  # which a search may take
STATM = Path("/proc/self/statm")  # pages of the process, first those of its addresses
REPEATS = 1_000_000  # product of the counts of repeats within repeats
# What a pattern is made of, as far as its repeats go: a character after a backslash, a set, a
# comment, a count, anything else.
TOKEN = re.compile(
    r"\\."
    r"|\[\^?\]?(?:\\.|[^\]\\])*\]"
    r"|\(\?\#[^)]*\)"
    r"|\{(?:(?P<exactly>\d+)|(?P<least>\d*),(?P<most>\d*))\}"
    r"|.",
    re.DOTALL,
)
DIGITS = 12  # of a count; one of more is out of all bounds anyway
VERBOSE = re.compile(r"\(\?[aiLmsu]*x")


class _Clock:
    left: float | None = None  # ticks; None: nothing is searched
    # processor time of the last tick that Python heard: of several that it did not, it hears one
    ticked = 0.0


def limited(search: Callable[[Any], Any], ticks: int | None = None) -> Callable[[Any], Any]:
    """A function of one argument that raises TimeoutError where it takes more than `ticks`.

    By default these are TICKS. It is for the main thread.
    """
    signal.signal(signal.SIGVTALRM, _tick)
    signal.setitimer(signal.ITIMER_VIRTUAL, TICK, TICK)
    _Clock.ticked = time.process_time()
    atexit.register(
        signal.setitimer, signal.ITIMER_VIRTUAL, 0
    )  # a tick after Python's last handler would end the process
    most = TICKS if ticks is None else ticks

    def within(argument: Any) -> Any:
        _Clock.left = most
        try:
            result = search(argument)
            _listen()
            return result
        finally:
            _Clock.left = None

    return within


def _listen() -> None:
    """Where a function begins, Python hears the signals that it has not heard yet."""


def _tick(*_: object) -> None:
    now = time.process_time()
    passed = max(1.0, (now - _Clock.ticked) / TICK)
    _Clock.ticked = now
    if _Clock.left is None:
        return
    _Clock.left -= passed
    if _Clock.left < 0:
        raise TimeoutError("a search takes too long")


def little_memory(run: Callable[[Any], Any], most: int) -> Callable[[Any], Any]:
    """A function of one argument that raises MemoryError where it takes more than `most` bytes.

    They are of addresses, and of the whole process: it is for a process of one thread. On Linux
    alone is a limit known; elsewhere the function is as it was.
    """
    if not STATM.exists():
        return run

    def within(argument: Any) -> Any:
        soft, hard = resource.getrlimit(resource.RLIMIT_AS)
        pages = int(STATM.read_text().split()[0])
        limit = pages * resource.getpagesize() + most
        if soft != resource.RLIM_INFINITY:
            limit = min(limit, soft)
        resource.setrlimit(resource.RLIMIT_AS, (limit, hard))
        try:
            return run(argument)
        finally:
            resource.setrlimit(resource.RLIMIT_AS, (soft, hard))

    return within


def repeats(pattern: str) -> int:
    """Largest product of the counts of repeats that stand within one another.

    An unbounded one counts as its least. `pattern` is one that `re` compiles. Where it is of the
    verbose kind, in which comments may hold brackets, all counts are multiplied, which is never too
    little.
    """
    if VERBOSE.search(pattern):
        return math.prod(map(_count, TOKEN.finditer(pattern)))
    groups = [1]  # of each group that is open, the largest product so far
    item = 1  # the same of what a repeat would repeat
    for token in TOKEN.finditer(pattern):
        text = token.group()
        if text.startswith("(?#"):
            continue
        if text == "(":
            groups.append(1)
            item = 1
        elif text == ")":
            item = groups.pop()
        elif text[0] in "{*+?":
            item *= _count(token)
        else:
            item = 1
        groups[-1] = max(groups[-1], item)
    return groups[0]


def _count(token: re.Match[str]) -> int:
    """How often a repeat repeats at most, or at least where that is unbounded.

    It is 1 for what is no repeat.
    """
    least = token["least"]
    most = token["most"] or token["exactly"]
    digits = (most or least or "").lstrip("0")
    return int(digits[:DIGITS] or 1)
