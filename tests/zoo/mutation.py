"""Seeded faults: a function of the project runs with a part of its source text replaced, wherever
it has been imported to.

What is changed is the real code, so a fault reads like the slip of a programmer. One whose text is
no longer there is an error that names it: it has to follow the code.
"""

import inspect
import sys
import textwrap
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, ExitStack, contextmanager
from typing import Any, NamedTuple

from confide.errors import InputError

FAULTY = "<fault>"  # the file name of faulty code, for tracebacks
NOTICED = (
    AssertionError,
    InputError,
    ArithmeticError,
)  # a check fails, or the project itself refuses


class Fault(NamedTuple):
    """`by`: a check that must notice it; table.py finds out which others do. `inject` makes it true
    while it is open.
    """

    name: str
    says: str
    by: str
    inject: Callable[[], AbstractContextManager[Any]]


def edit(
    function: Callable[..., Any], *changes: tuple[str, str]
) -> Callable[[], AbstractContextManager[None]]:
    """A fault: in the function's source each first text, which stands there once, is replaced by
    the second.
    """
    target = inspect.unwrap(function)
    original = textwrap.dedent(
        inspect.getsource(target)
    )  # now: the file may have changed by the time of the fault

    @contextmanager
    def injected() -> Iterator[None]:
        source, own = original, target.__code__
        if own.co_filename == FAULTY:
            raise LookupError(
                f"{target.__qualname__} is faulty already: put both changes into one edit"
            )
        for old, new in changes:
            if source.count(old) != 1:
                raise LookupError(
                    f"the fault is out of date: {target.__qualname__} does not hold once: {old}"
                )
            source = source.replace(old, new)
        made: dict[str, Any] = {}
        exec(compile(source, FAULTY, "exec"), target.__globals__, made)
        target.__code__ = inspect.unwrap(made[target.__name__]).__code__
        forget()
        try:
            yield
        finally:
            target.__code__ = own
            forget()

    return injected


def both(
    *faults: Callable[[], AbstractContextManager[None]],
) -> Callable[[], AbstractContextManager[None]]:
    """A fault of several edits."""

    @contextmanager
    def injected() -> Iterator[None]:
        with ExitStack() as stack:
            for fault in faults:
                stack.enter_context(fault())
            yield

    return injected


def forget() -> None:
    """Empty the caches of privacy prices, which hold what faulty code computed."""
    for name, module in list(sys.modules.items()):
        if name.startswith("confide.dp"):
            for value in list(vars(module).values()):
                if hasattr(value, "cache_clear"):
                    value.cache_clear()


def noticed(check: Callable[[], None]) -> bool:
    """Whether a check fails, or the project refuses to do what it asks; any other exception is an
    error of the zoo.
    """
    try:
        check()
    except NOTICED:
        return True
    return False
