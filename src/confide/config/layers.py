"""Parameters from several places that remember where they come from: errors name the place.

A file may include others below its folder, which only define names that no other of these files
defines. What comes from elsewhere (a further file, the command line) is laid over all of them.
"""

import difflib
import os
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import yaml
from pydantic import BaseModel, ValidationError

from confide.config.yaml_lines import KeyPath, compose, locate
from confide.errors import InputError
from confide.files.folders import is_below

INCLUDE = "include"  # key of the files that belong to a file
WRITTEN_OUT = "expected keys with values, written out here: no name"
# Names of included files stand in command lines, and on pages that Snakemake writes.
PLAIN = re.compile(r"[\w./][\w./ -]*")
NO_NAME = "a file's name is letters, digits, blanks, _, ., / and -, and does not begin with -"
CHOICES = (INCLUDE, "select", "papers", "tracking")  # keys that define no names


class Problem(NamedTuple):
    """What is wrong with the value at a path of keys."""

    path: KeyPath
    value: Any
    message: str


class Layer(NamedTuple):
    """Values from one source, of which a later one is laid over earlier ones.

    The nodes of a file know their lines.
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


def read_layers(file: Path) -> list[Layer]:
    """The layers of a file of parameters: those of the files that it includes, and then its own.

    Raises InputError, with file, line and key, for an included file that is not below the folder of
    `file`, that holds anything but definitions, or that defines a name which another one defines.
    """
    layer = read_layer(file)
    paths = list(included(layer))
    layer.values.pop(INCLUDE, None)
    layers = [*map(read_definitions, paths), layer]
    refuse_second_definitions(layers)
    return layers


def included(layer: Layer) -> Iterator[Path]:
    """Paths of the files that a file includes; they are given as seen from its folder."""
    listed = layer.values.get(INCLUDE, [])
    if not isinstance(listed, list):
        raise refused(Problem((INCLUDE,), listed, "expected a list of files"), [layer])
    for index, name in enumerate(listed):
        place = (INCLUDE, index)
        if not isinstance(name, str):
            raise refused(Problem(place, name, "expected the name of a file"), [layer])
        if not PLAIN.fullmatch(os.path.normpath(name)):
            raise refused(Problem(place, name, NO_NAME), [layer])
        if name in listed[:index]:
            raise refused(Problem(place, name, "is listed twice"), [layer])
        path = Path(layer.source).parent / name
        if not is_below(path, Path(layer.source).parent):
            problem = Problem(place, name, "is not below the folder of the file that includes it")
            raise refused(problem, [layer])
        if not os.path.isfile(path):  # which no name makes fail
            raise refused(Problem(place, name, "there is no such file"), [layer])
        yield path


def read_definitions(file: Path) -> Layer:
    """The layer of a file that is included: blocks of names and what they stand for."""
    layer = read_layer(file)
    for key, value in layer.values.items():
        if key in CHOICES:
            problem = "only the file that includes this one may say that"
            raise refused(Problem((key,), value, problem), [layer])
        if not isinstance(value, dict):
            problem = "expected names with what they stand for"
            raise refused(Problem((key,), value, problem), [layer])
    return layer


def refuse_second_definitions(layers: Sequence[Layer]) -> None:
    """Raise InputError for a name that two layers define, with both places."""
    seen: dict[KeyPath, Layer] = {}
    for layer in layers:
        for block, definitions in layer.values.items():
            defines = isinstance(definitions, dict) and block not in CHOICES
            for name in definitions if defines else ():
                other = seen.setdefault((block, name), layer)
                if other is not layer:
                    line = locate(other.node, (block, name))[0]
                    problem = f"is defined in {other.source}:{line}, too"
                    raise refused(Problem((block, name), None, problem), [layer])


def merged(layers: Sequence[Layer]) -> dict[str, Any]:
    """Values of all layers, whose mappings are merged key by key.

    Of anything else the last one counts.
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
    """How many parts of a path some values have.

    The tags of alternatives, which no file has, are passed over.
    """
    count = 0
    for part in path:
        if isinstance(values, dict):
            has_it = part in values
        else:
            has_it = isinstance(values, list) and isinstance(part, int) and part < len(values)
        if has_it:
            values = values[part]
            count += 1
    return count


def refused(problem: Problem, layers: Sequence[Layer]) -> InputError:
    """The one-line error of a problem, and of the layer that it is in."""
    layer = nearest(layers, problem.path)
    line, key = locate(layer.node if layer else None, problem.path)
    value = problem.value
    shown = type(value).__name__ if isinstance(value, dict | list) else value
    source = layer.source if layer else None
    return InputError(problem.message, file=source, line=line, key=key, value=shown)


def typed(error: ValidationError, model: type[BaseModel]) -> Problem:
    """The first thing that does not fit the types of a model.

    An unknown key comes before all else: a misspelt one is the reason why another is missing.
    """
    mistakes = error.errors()
    unknown = (mistake for mistake in mistakes if mistake["type"] == "extra_forbidden")
    first = next(unknown, mistakes[0])
    kind = first["type"]
    path = first["loc"]
    context = first.get("ctx", {})
    if kind in ("union_tag_invalid", "union_tag_not_found"):
        path = (*path, context["discriminator"].strip("'"))
    if kind == "union_tag_invalid":
        known_tags = [tag.strip("'") for tag in context["expected_tags"].split(", ")]
        suggestion = meant(context["tag"], known_tags)
        message = f"not one of {context['expected_tags']}{suggestion and f'; {suggestion}'}"
        return Problem(path, context["tag"], message)
    if kind in ("missing", "union_tag_not_found"):
        return Problem(path, None, "is missing")
    if kind == "model_attributes_type":
        return Problem(path, first["input"], WRITTEN_OUT)
    if kind != "extra_forbidden":
        return Problem(path, first["input"], first["msg"])
    known_keys = keys_at(model.model_json_schema(), path[:-1])
    others = [key for key in known_keys if key != path[-1]]
    suggestion = meant(str(path[-1]), others)
    return Problem(path, first["input"], f"unknown key{suggestion and f': {suggestion}'}")


def meant(name: str, known: Iterable[str]) -> str:
    """A suggestion, where a wrong name is like one that is known; else nothing."""
    close = difflib.get_close_matches(name, list(known), n=1)
    return f"did you mean {close[0]}?" if close else ""


def keys_at(schema: Mapping[str, Any], path: KeyPath) -> list[str]:
    """The keys that a JSON schema knows at a path, whose parts may be tags of alternatives."""
    shared = schema.get("$defs", {})

    def resolved(node: Any) -> Mapping[str, Any]:
        """A part of the schema, or what it refers to; of something optional, the thing itself."""
        if not isinstance(node, Mapping):
            return {}
        if "$ref" in node:
            return resolved(shared[node["$ref"].rpartition("/")[2]])
        kinds = [kind for kind in node.get("anyOf", []) if kind.get("type") != "null"]
        return resolved(kinds[0]) if len(kinds) == 1 else node

    node = resolved(schema)
    for part in path:
        tags = node.get("discriminator", {}).get("mapping", {})
        if part in tags:
            node = resolved({"$ref": tags[part]})
        elif isinstance(part, int):
            node = resolved(node.get("items"))
        else:
            properties = node.get("properties", {})
            node = resolved(properties.get(part, node.get("additionalProperties")))
    return list(node.get("properties", {}))
