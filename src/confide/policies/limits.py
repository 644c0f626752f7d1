"""How long a search may take with one text, so that a pattern that tries every way to fail
(`(a+)+$`) stops no job.

Python's `re` has no time limit, but it answers signals while it matches. One timer ticks for the
whole process, in processor time: a text pays two assignments and no system call. Before Python
3.11.7 `re` answers within one attempt only: a search that starts anew at each place ends by itself,
and is then refused for the time that it took. Memory that grows in the meantime, as for
`((a?){1000}){1000}`, is bounded by refusing such patterns.
"""

import atexit
import signal
import time
from collections.abc import Callable, Iterator
from re import _parser as parser
from typing import Any

TICK = 0.25  # seconds of processor time
TICKS = 40  # which a search may take
REPEATS = 1_000_000  # product of the counts of repeats within repeats


class _Clock:
    left: float | None = None  # ticks; None: nothing is searched
    # processor time of the last tick that Python heard: of several that it did not, it hears one
    ticked = 0.0


def limited(search: Callable[[Any], Any], ticks: int | None = None) -> Callable[[Any], Any]:
    """The same function of one argument; TimeoutError where it takes more than `ticks` (TICKS). For
    the main thread.
    """
    signal.signal(signal.SIGVTALRM, _tick)
    signal.setitimer(signal.ITIMER_VIRTUAL, TICK, TICK)
    _Clock.ticked = time.process_time()
    atexit.register(
        signal.setitimer, signal.ITIMER_VIRTUAL, 0
    )  # a tick after Python's last handler would end the process
    most = TICKS if ticks is None else ticks

    def within(given: Any) -> Any:
        _Clock.left = most
        try:
            found = search(given)
            _listen()
            return found
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


def repeats(pattern: str) -> int:
    """Largest product of the counts of repeats that stand within one another; an unbounded one
    counts as its least.
    """
    return _repeats(parser.parse(pattern))


def _repeats(tree: parser.SubPattern) -> int:
    found = 1
    for kind, value in tree:
        count = 1
        if kind in (parser.MAX_REPEAT, parser.MIN_REPEAT, parser.POSSESSIVE_REPEAT):
            low, high, _ = value
            count = max(1, int(low if high is parser.MAXREPEAT else high))
        found = max(found, count * max(map(_repeats, _parts(value)), default=1))
    return found


def _parts(value: Any) -> Iterator[parser.SubPattern]:
    """Subpatterns of a node, however it holds them."""
    if isinstance(value, parser.SubPattern):
        yield value
    elif isinstance(value, tuple | list):
        for inner in value:
            yield from _parts(inner)
