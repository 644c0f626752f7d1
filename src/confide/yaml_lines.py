"""YAML whose errors name a line: a file as plain values and as nodes that know where they stand."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import yaml

from confide.errors import InputError

KeyPath = tuple[str | int, ...]


def compose(file: Path) -> tuple[yaml.Node | None, Any]:
    """A YAML file as nodes that know their lines, and as plain values. InputError if it is malformed or repeats a key."""
    try:
        text = file.read_text()
        node, value = yaml.compose(text, yaml.SafeLoader), yaml.safe_load(text)
    except (OSError, UnicodeDecodeError) as error:
        raise InputError(f"cannot be read: {getattr(error, 'strerror', None) or error}", file=file) from None
    except yaml.MarkedYAMLError as error:
        line = error.problem_mark.line + 1 if error.problem_mark else None
        raise InputError(f"malformed YAML: {error.problem}", file=file, line=line) from None
    if node is not None:
        for path, line in repeated(node):
            raise InputError("is defined twice", file=file, line=line, key=".".join(path))
    return node, value


def repeated(node: yaml.Node, path: tuple[str, ...] = ()) -> Iterator[tuple[tuple[str, ...], int]]:
    """Paths and lines of keys that stand twice in one mapping; YAML itself would let the last one win."""
    if isinstance(node, yaml.MappingNode):
        seen: set[str] = set()
        for key, value in node.value:
            if key.value in seen:
                yield (*path, key.value), key.start_mark.line + 1
            seen.add(key.value)
            yield from repeated(value, (*path, key.value))


def locate(node: yaml.Node | None, path: KeyPath) -> tuple[int | None, str]:
    """Line of the deepest node of a path that the file has, and the path without the tags of alternatives."""
    line, shown = (1 if node is not None else None), []
    for number, part in enumerate(path):
        last = number == len(path) - 1
        if isinstance(node, yaml.MappingNode):
            pairs = {key.value: (key, value) for key, value in node.value}
            if str(part) in pairs:
                key, node = pairs[str(part)]
                line = key.start_mark.line + 1
            elif not last:
                continue  # the tag of an alternative: no key of the file
        elif isinstance(node, yaml.SequenceNode) and isinstance(part, int) and part < len(node.value):
            node = node.value[part]
            line = node.start_mark.line + 1
        shown.append(str(part))
    return line, ".".join(shown)
