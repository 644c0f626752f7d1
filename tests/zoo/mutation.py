"""Seeded faults: a function of the project runs with a part of its code replaced, wherever it has
been imported to.

What is changed is the real code, so a fault reads like the slip of a programmer. A fault names its
function as `module:function` and the part as an expression or as statements. Both are compared as
syntax trees: layout, quotes, comments and line breaks of the function do not matter. A function or
a part that is no longer there is an error that names it, because the fault has to follow the code.
"""

import ast
import importlib
import inspect
import sys
import textwrap
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, ExitStack, contextmanager
from operator import attrgetter
from types import FunctionType
from typing import Any, NamedTuple

from confide.errors import InputError

FAULTY = "<fault>"  # the file name of faulty code, for tracebacks
NOTICED = (
    AssertionError,
    InputError,
    ArithmeticError,
)  # a check fails, or the project itself refuses
ELSEWHERE = "the fault is out of date"


class Fault(NamedTuple):
    """`by`: a check that must notice it; table.py finds out which others do. `inject` makes it true
    while it is open.
    """

    name: str
    says: str
    by: str
    inject: Callable[[], AbstractContextManager[Any]]


def edit(place: str, *changes: tuple[str, str]) -> Callable[[], AbstractContextManager[None]]:
    """A fault: in the function `module:name` each first part, which is there once, is replaced by
    the second.
    """

    @contextmanager
    def injected() -> Iterator[None]:
        target = function_at(place)
        own = target.__code__
        if own.co_filename == FAULTY:
            raise LookupError(f"{place} is faulty already: put both changes into one edit")
        target.__code__ = changed_code(place, target, changes)
        forget()
        try:
            yield
        finally:
            target.__code__ = own
            forget()

    return injected


def slip(name: str, says: str, by: str, place: str, *changes: tuple[str, str]) -> Fault:
    """A fault that is one `edit`."""
    return Fault(name, says, by, edit(place, *changes))


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


def function_at(place: str) -> FunctionType:
    """The function that `module:name` names, without what decorators have wrapped around it."""
    module, _, name = place.partition(":")
    try:
        return inspect.unwrap(attrgetter(name)(importlib.import_module(module)))
    except (ImportError, AttributeError) as error:
        raise LookupError(f"{ELSEWHERE}: there is no {place} ({error})") from error


def changed_code(place: str, target: FunctionType, changes: tuple[tuple[str, str], ...]) -> Any:
    """The code of a function after changes to its syntax tree."""
    tree = ast.parse(textwrap.dedent(inspect.getsource(target)))
    tree.body[0].decorator_list.clear()
    for old, new in changes:
        change = Change(old, new)
        tree = change.visit(tree)
        if change.times != 1:
            raise LookupError(f"{ELSEWHERE}: {place} holds {change.times} times, not once: {old}")
    made: dict[str, Any] = {}
    exec(compile(ast.fix_missing_locations(tree), FAULTY, "exec"), target.__globals__, made)
    return made[target.__name__].__code__


class Change(ast.NodeTransformer):
    """Replaces an expression, or consecutive statements, wherever they are in a tree; counts how
    often.

    The body of a statement may be written as `...`: it can be any, and stands where the new
    statements have `...`.
    """

    def __init__(self, old: str, new: str):
        self.old = ast.parse(old).body
        self.new = ast.parse(new).body
        self.times = 0
        self.of_expressions = all(
            len(part) == 1 and isinstance(part[0], ast.Expr) for part in (self.old, self.new)
        )

    def visit(self, node: ast.AST) -> ast.AST:
        """The node after the change. What has been put in is not searched again."""
        if self.of_expressions and same(node, self.old[0].value):
            self.times += 1
            return self.new[0].value
        node = self.generic_visit(node)
        if not self.of_expressions:
            for _, value in ast.iter_fields(node):
                if isinstance(value, list):
                    self.replace_statements(value)
        return node

    def replace_statements(self, block: list[ast.AST]) -> None:
        """Replace the statements where they are a part of a block, which stays a block if nothing
        is left of it.
        """
        size = len(self.old)
        for start in reversed(range(len(block) - size + 1)):
            found = block[start : start + size]
            if all(map(same, found, self.old)):
                self.times += 1
                bodies = [
                    one.body for one, old in zip(found, self.old, strict=True) if any_body(old)
                ]
                block[start : start + size] = [with_body(new, *bodies) for new in self.new]
                if not block:
                    block.append(ast.Pass())


def same(one: ast.AST, pattern: ast.AST) -> bool:
    """Whether two trees are the same code, but for a body that the pattern leaves open."""
    if type(one) is not type(pattern):
        return False
    if any_body(pattern):
        one = type(one)(**dict(ast.iter_fields(one)) | {"body": pattern.body})
    return ast.dump(one) == ast.dump(pattern)


def any_body(statement: ast.AST) -> bool:
    """Whether the body of a statement is `...` alone."""
    body = getattr(statement, "body", None)
    return isinstance(body, list) and len(body) == 1 and ast.unparse(body) == "..."


def with_body(statement: ast.AST, body: list[ast.AST] | None = None) -> ast.AST:
    """A statement whose own body, if that is `...`, is another one."""
    if body is not None and any_body(statement):
        return type(statement)(**dict(ast.iter_fields(statement)) | {"body": body})
    return statement


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
