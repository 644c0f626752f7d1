"""Parameters from several places, each laid over those before it, that remember where they come
from: errors name the place.
"""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import yaml
from pydantic import ValidationError

from confide.config.yaml_lines import KeyPath, compose, locate
from confide.errors import InputError


class Problem(NamedTuple):
    """What is wrong with the value at a path of keys."""

    path: KeyPath
    value: Any
    message: str


class Layer(NamedTuple):
    """Values from one source, a later one laid over earlier ones; the nodes of a file know their
    lines.
    """

    source: Path | str
    node: yaml.Node | None
    values: dict[str, Any]


def read_layer(file: Path) -> Layer:
    """The plain values of a file of parameters; InputError where it is anything else."""
    node, values = compose(file)
    if not isinstance(values, dict):
        raise InputError("expected keys with values, such as `select: [NAME]`", file=file)
    return Layer(file, node, values)


def merged(layers: Sequence[Layer]) -> dict[str, Any]:
    """Values of all layers: mappings are merged key by key, of anything else the last one
    counts.
    """
    together: dict[str, Any] = {}
    for layer in layers:
        together = laid_over(together, layer.values)
    return together


def laid_over(below: dict[str, Any], above: Mapping[str, Any]) -> dict[str, Any]:
    """A copy of a mapping with another one laid over it."""
    together = dict(below)
    for key, value in above.items():
        if isinstance(value, Mapping):
            lower = together.get(key)
            together[key] = laid_over(lower if isinstance(lower, dict) else {}, value)
        else:
            together[key] = value
    return together


def nearest(layers: Sequence[Layer], path: KeyPath) -> Layer | None:
    """The layer that has most of a path: of several such the last one, which counts."""
    return max(reversed(layers), key=lambda layer: known(layer.values, path), default=None)


def known(values: Any, path: KeyPath) -> int:
    """How many parts of a path some values have; the tags of alternatives, which no file has, are
    passed over.
    """
    found = 0
    for part in path:
        if isinstance(values, dict):
            has_it = part in values
        else:
            has_it = isinstance(values, list) and isinstance(part, int) and part < len(values)
        if has_it:
            values = values[part]
            found += 1
    return found


def refused(problem: Problem, layers: Sequence[Layer]) -> InputError:
    """The one-line error of a problem, and of the layer that it is in."""
    layer = nearest(layers, problem.path)
    line, key = locate(layer.node if layer else None, problem.path)
    shown = (
        type(problem.value).__name__ if isinstance(problem.value, dict | list) else problem.value
    )
    return InputError(
        problem.message, file=layer.source if layer else None, line=line, key=key, value=shown
    )


def typed(error: ValidationError) -> Problem:
    """The first thing that does not fit the types."""
    first = error.errors()[0]
    kind = first["type"]
    context = first.get("ctx", {})
    path = first["loc"]
    value = first["input"]
    if kind == "union_tag_invalid":
        return Problem(
            (*path, context["discriminator"].strip("'")),
            context["tag"],
            f"not one of {context['expected_tags']}",
        )
    if kind == "union_tag_not_found":
        return Problem((*path, context["discriminator"].strip("'")), None, "is missing")
    if kind == "missing":
        return Problem(path, None, "is missing")
    return Problem(path, value, "unknown key" if kind == "extra_forbidden" else first["msg"])
