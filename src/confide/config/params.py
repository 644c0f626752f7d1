"""params.yaml: read once, by the workflow, and checked as a whole before any job is planned.

It may include files of further definitions (`include`). Further files may be laid over all that,
and values from the command line over these. Nobody else reads these files first: Snakemake's own
reader hands a file that asks for it to a template engine, which runs any Python.

Errors are one line: file, line, key, value and what is wrong. Beyond the types of `specs.Params`,
every name must be defined where it is used, and rows that could not run (no budget where a method
adds noise, a warm start of another kind) are refused.
"""

import argparse
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import yaml
from pydantic import ValidationError

from confide.config import definitions, rows
from confide.config.layers import Layer, Problem, merged, read_layers, refused, typed
from confide.errors import InputError
from confide.output.escaping import warn
from confide.specs import Params, ParamsFile

FILE = Path("params.yaml")
SCHEMA = Path("workflow/schemas/params.schema.yaml")


class Composed(NamedTuple):
    """Parameters of several files, laid over each other."""

    values: dict[str, Any]  # plain
    params: Params  # the same, checked
    files: list[Path]  # that they come from, included ones among them


def load(file: Path = FILE) -> Params:
    """Read and check a file and those that it includes; InputError names the first problem."""
    return check_layers(read_layers(file))


def load_layers(files: Sequence[Path], overrides: Mapping[str, Any]) -> Composed:
    """Files, each laid over those before it, and over all of them values of the command line."""
    layers = [layer for file in files for layer in read_layers(file)]
    sources = [Path(layer.source) for layer in layers]
    if overrides:
        layers.append(Layer("--config", None, dict(overrides)))
    return Composed(values=merged(layers), params=check_layers(layers), files=sources)


def check_layers(layers: Sequence[Layer]) -> Params:
    """Check layers as a whole; InputError names the first problem and the layer that it is in."""
    return validated(merged(layers), layers)


def validated(config: Any, layers: Sequence[Layer]) -> Params:
    """The checked parameters; `layers` are where they come from, for errors."""
    try:
        params = Params.model_validate(config)
    except ValidationError as error:
        raise refused(typed(error, ParamsFile), layers) from None
    for check_one in CHECKS:
        for problem in check_one(params):
            raise refused(problem, layers)
    return params


# Each may rely on what the ones before it have checked.
CHECKS: tuple[Callable[[Params], Iterator[Problem]], ...] = (
    definitions.names,
    definitions.references,
    definitions.canaries,
    definitions.tokenizers,
    definitions.filled,
    definitions.learned,
    definitions.conversations,
    definitions.reviews,
    definitions.policies,
    definitions.shadows,
    definitions.privacy,
    definitions.recipes,
    definitions.publicity,
    rows.rows,
    rows.warm_starts,
    rows.new_tokens,
    rows.one_text_twice,
    rows.texts,
    definitions.own_models,
    definitions.own_texts,
    definitions.lists,
    definitions.studies,
    definitions.tuning,
    definitions.tracking,
    definitions.names_of_files,
    rows.corpora,
)


def schema() -> str:
    """JSON schema of a file of parameters, as YAML, for editors.

    No key is required, since other files may have it.
    """
    document = ParamsFile.model_json_schema()
    del document["required"]
    return yaml.safe_dump(document, sort_keys=True, width=120, allow_unicode=True)


def main() -> int:
    """`python -m confide.config.params [FILE]` checks a file; --write-schema renews the schema."""
    parser = argparse.ArgumentParser(prog="confide.config.params", description=main.__doc__)
    parser.add_argument("file", type=Path, nargs="?", default=FILE)
    parser.add_argument("--write-schema", action="store_true")
    arguments = parser.parse_args()
    if arguments.write_schema:
        SCHEMA.write_text(schema())
        return 0
    try:
        load(arguments.file)
    except InputError as error:
        warn(error)
        return 2
    return 0


if __name__ == "__main__":
    sys.exit(main())
