"""What follows from the parameters is worked out once, however many jobs ask for it."""

import functools
import weakref
from collections.abc import Callable, Hashable
from typing import Concatenate, ParamSpec, TypeVar

from confide.specs import Params

Names = ParamSpec("Names")
Result = TypeVar("Result")


def kept(
    function: Callable[Concatenate[Params, Names], Result],
) -> Callable[Concatenate[Params, Names], Result]:
    """A function of the parameters and of hashable values, which is called once for each of these.

    Parameters are frozen, but cannot be hashed: results are kept for one object, not for its equal,
    and no longer than that object lives. Every caller gets the same result, so it must be immutable
    or left as it is.
    """
    results_of: dict[int, dict[Hashable, Result]] = {}

    @functools.wraps(function)
    def remembered(params: Params, /, *args: Names.args, **kwargs: Names.kwargs) -> Result:
        identity = id(params)
        if identity not in results_of:
            results_of[identity] = {}
            weakref.finalize(params, results_of.pop, identity, None)
        results = results_of[identity]
        key = (args, tuple(sorted(kwargs.items())))
        if key not in results:
            results[key] = function(params, *args, **kwargs)
        return results[key]

    return remembered
