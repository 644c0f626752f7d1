"""YAML whose errors name a line: a file as plain values and as nodes that know where they stand."""

import contextlib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import yaml
from yaml.composer import Composer

from confide.errors import InputError
from confide.files.io import read_bytes

KeyPath = tuple[str | int, ...]
SIZE = 1 << 24  # bytes of a file
NODES = 1_000_000  # of a file whose aliases are written out
# Keys by which a template engine is told to run Python.
TEMPLATE = ("__use_yte__", "__definitions__", "__variables__")


# PyYAML checks no value of a tag, and so may raise any of these.
BROKEN = (yaml.YAMLError, AttributeError, LookupError, TypeError, ValueError, RecursionError)

LOADERS: tuple[type[Any], ...] = (yaml.SafeLoader,)  # each reads what the one before it refuses

if yaml.__with_libyaml__:

    class FastLoader(Composer, yaml.CSafeLoader):
        """libyaml's parser, a fifth of the time of Python's.

        Nodes are composed in Python all the same: libyaml's own composer calls itself without a
        limit, so that brackets within brackets would end the process.
        """

        def __init__(self, stream: Any) -> None:
            yaml.CSafeLoader.__init__(self, stream)
            Composer.__init__(self)

    LOADERS = (FastLoader, *LOADERS)


def compose(file: Path) -> tuple[yaml.Node | None, Any]:
    """A YAML file as nodes that know their lines, and as plain values.

    InputError if it is malformed or repeats a key.

    Guarantees: only plain values are built, whatever tags the file has; aliases that refer to
    aliases do not fill the memory; no key is one of those by which a file has Snakemake's template
    engine run its code.
    """
    content = read_bytes(file)
    if len(content) > SIZE:
        raise InputError(f"is longer than {SIZE} bytes", file=file)
    try:
        node, value = read(content)
    except yaml.MarkedYAMLError as error:
        line = error.problem_mark.line + 1 if error.problem_mark else None
        raise InputError(f"malformed YAML: {error.problem}", file=file, line=line) from None
    except yaml.reader.ReaderError as error:
        before = content.decode(errors="replace")[: error.position]
        line = before.count("\n") + 1
        raise InputError(f"malformed YAML: {error.reason}", file=file, line=line) from None
    except BROKEN as error:
        problem = next(iter(str(error).splitlines()), "")
        raise InputError(f"malformed YAML: {problem}", file=file) from None
    for path, line, again in [] if node is None else keys_of(node):
        if again:
            raise InputError("is defined twice", file=file, line=line, key=".".join(path))
        if path[-1] in TEMPLATE:
            problem = "makes a file a template, which may run any code: write the values themselves"
            raise InputError(problem, file=file, line=line, key=".".join(path))
    return node, value


def read(content: bytes) -> tuple[yaml.Node | None, Any]:
    """Nodes and plain values of YAML, or one of BROKEN.

    The last loader refuses, whose messages name more of what it found than those of libyaml.
    """
    for loader in LOADERS[:-1]:
        with contextlib.suppress(*BROKEN):
            return read_with(loader, content)
    return read_with(LOADERS[-1], content)


def read_with(loader: type[Any], content: bytes) -> tuple[yaml.Node | None, Any]:
    """The same by one of PyYAML's loaders."""
    node = yaml.compose(content, loader)
    if node is not None and written_out(node, {}) > NODES:
        raise ValueError(f"its aliases stand for more than {NODES} nodes")
    return node, loader(content).get_single_data()


def written_out(node: yaml.Node, sizes: dict[int, int]) -> int:
    """How many nodes there are with a copy in place of each alias; `sizes`: of nodes seen.

    ValueError in a circle.
    """
    if id(node) not in sizes:
        sizes[id(node)] = -1
        parts = node.value if isinstance(node, yaml.SequenceNode) else []
        if isinstance(node, yaml.MappingNode):
            parts = [part for pair in node.value for part in pair]
        sizes[id(node)] = 1 + sum(written_out(part, sizes) for part in parts)
    if sizes[id(node)] < 0:
        raise ValueError("an alias of what holds it")
    return sizes[id(node)]


def keys_of(
    node: yaml.Node, path: tuple[str, ...] = ()
) -> Iterator[tuple[tuple[str, ...], int, bool]]:
    """Path and line of every key, at any depth, and whether it stands in its mapping again.

    YAML itself would let the last one win.
    """
    if isinstance(node, yaml.MappingNode):
        seen: set[str] = set()
        for key, value in node.value:
            name = str(key.value)  # of a key that is no string, its nodes
            yield (*path, name), key.start_mark.line + 1, name in seen
            seen.add(name)
            yield from keys_of(value, (*path, name))
    elif isinstance(node, yaml.SequenceNode):
        for number, part in enumerate(node.value):
            yield from keys_of(part, (*path, str(number)))


def locate(node: yaml.Node | None, path: KeyPath) -> tuple[int | None, str]:
    """Line of the deepest node of a path that the file has, and the path as a user would write it.

    That is without the tags of alternatives, which are no keys of the file.
    """
    line = 1 if node is not None else None
    shown = []
    for number, part in enumerate(path):
        last = number == len(path) - 1
        if isinstance(node, yaml.MappingNode):
            pairs = {key.value: (key, value) for key, value in node.value}
            if str(part) in pairs:
                key, node = pairs[str(part)]
                line = key.start_mark.line + 1
            elif not last:
                continue  # the tag of an alternative: no key of the file
        elif (
            isinstance(node, yaml.SequenceNode) and isinstance(part, int) and part < len(node.value)
        ):
            node = node.value[part]
            line = node.start_mark.line + 1
        shown.append(str(part))
    return line, ".".join(shown)
