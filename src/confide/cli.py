"""`confide <stage> --spec JSON --input path ... --output path`: every stage is one function, its
flags are its signature.

Errors that a user can cause end with one line and status 2, checks that fail with status 1, and
faults of this program with status 3 and where they happened, no more: what Python says of them may
quote the corpus, and logs are released. A stage never leaves half an output behind.
"""

import argparse
import importlib
import inspect
import json
import os
import sys
import traceback
import types as builtin_types
import typing
from pathlib import Path

from confide.errors import Failure, InputError
from confide.files import jsons, permissions
from confide.files.io import read_bytes
from confide.output.escaping import say, warn
from confide.runtime.launch import LAUNCHED, launch
from confide.specs import Spec, parse

STAGES = (
    "fetch",
    "split",
    "plant",
    "tokenizer",
    "pipeline",
    "domain_policy",
    "dedup",
    "redact",
    "recall",
    "partition",
    "neighbours",
    "train",
    "shadows",
    "certify",
    "evaluate",
    "attack",
    "trajectory",
    "gate",
    "report",
    "summary",
    "scan",
    "track",
)
TRACEBACK = "CONFIDE_TRACEBACK"  # set: faults are shown in full
FOR_OTHERS = (
    "release",
    "attest",
)  # commands whose files are for others, as far as the user's own umask lets them
DIVIDED = ("train",)  # stages that several processes can share
COMMANDS = (  # for a user; no rule of the workflow calls them
    "init",
    "recommend",
    "check",
    "epsilon",
    "verify",
    "rerun",
    "release",
    "attest",
    "spend",
    "example",
)


def stage(name: str) -> typing.Callable[..., None]:
    """The function of a command: rule = module = function."""
    room = "stages" if name in STAGES else "commands"
    return getattr(importlib.import_module(f"confide.{room}.{name}"), name)


def add_flags(parser: argparse.ArgumentParser, function: typing.Callable[..., None]) -> None:
    """One flag per parameter: `spec` takes JSON or @file, Path one path, list[Path] several; a
    default makes it optional.

    A Path, or a list of them, before the * of the signature is an argument without a flag.
    """
    hints = typing.get_type_hints(function)
    for parameter in inspect.signature(function).parameters.values():
        kind = hints[parameter.name]
        optional = isinstance(kind, builtin_types.UnionType) and type(None) in typing.get_args(kind)
        if isinstance(kind, builtin_types.UnionType):
            kind = next(option for option in typing.get_args(kind) if option is not type(None))
        if parameter.kind is parameter.POSITIONAL_OR_KEYWORD and kind in (Path, list[Path]):
            parser.add_argument(parameter.name, type=Path, nargs=None if kind is Path else "+")
            continue
        if inspect.isclass(kind) and issubclass(kind, Spec):
            parser.add_argument(
                f"--{parameter.name}",
                required=not optional,
                metavar="JSON|@FILE",
                help=inspect.getdoc(kind),
            )
        elif kind is bool:
            parser.add_argument(f"--{parameter.name}", action="store_true")
        elif typing.get_origin(kind) is list:
            parser.add_argument(f"--{parameter.name}", type=Path, nargs="*", default=[])
        else:
            default = None if parameter.default is parameter.empty else parameter.default
            parser.add_argument(
                f"--{parameter.name}",
                type=kind,
                required=not optional and default is None,
                default=default,
            )


def read_spec(classes: list[type[Spec]], text: str) -> Spec:
    """A spec given as JSON text, or as @path to a JSON file; of several classes the one whose
    `kind` it names, or the first.
    """
    file = text[1:] if text.startswith("@") else None
    given = read_bytes(file) if file else text
    try:
        value = json.loads(given)
        jsons.check(
            given if isinstance(given, bytes) else given.encode(errors="surrogatepass"), value
        )
    except (jsons.Repeated, jsons.Nested) as error:
        raise InputError(
            str(error), file=file or "--spec", key=getattr(error, "key", None)
        ) from None
    except json.JSONDecodeError as error:
        raise InputError(
            f"malformed JSON: {error.msg}", file=file or "--spec", line=error.lineno
        ) from None
    except (
        ValueError,
        RecursionError,
    ) as error:  # not UTF-8, a number of thousands of digits, nested too deep
        raise InputError(
            f"malformed JSON ({type(error).__name__})", file=file or "--spec"
        ) from None
    kind = value.get("kind") if isinstance(value, dict) and len(classes) > 1 else None
    named = (
        cls
        for cls in classes
        if kind is not None and kind in typing.get_args(cls.model_fields["kind"].annotation)
    )
    return parse(next(named, classes[0]), value, file=file)


def run(name: str, arguments: list[str]) -> int:
    """Parse a stage's flags and call it, or start several processes that do; the exit status."""
    function = stage(name)
    parser = argparse.ArgumentParser(
        prog=f"confide {name}", description=inspect.getdoc(sys.modules[function.__module__])
    )
    add_flags(parser, function)
    if name in DIVIDED:
        parser.add_argument(
            "--processes", type=int, default=1, help="that share the work, on as many cores or GPUs"
        )
    given = vars(parser.parse_args(arguments))
    processes = given.pop("processes", 1)
    hints = typing.get_type_hints(function)
    for key, kind in hints.items():
        options = typing.get_args(kind) if isinstance(kind, builtin_types.UnionType) else (kind,)
        specs = [
            option for option in options if inspect.isclass(option) and issubclass(option, Spec)
        ]
        if specs and given.get(key) is not None:
            given[key] = read_spec(specs, given[key])
    if processes != 1 and LAUNCHED not in os.environ:
        return launch(processes, [name, *arguments])
    function(**given)
    return 0


def main(arguments: list[str] | None = None) -> int:
    """Entry point of the console script. Exit status: 0, 1 a failed check, 2 bad input, 3 a fault,
    130 interrupted.
    """
    arguments = sys.argv[1:] if arguments is None else arguments
    if arguments[:2] == ["audit", "check"]:
        arguments = arguments[1:]
    commands = (*STAGES, *COMMANDS)
    if not arguments or arguments[0] in ("-h", "--help"):
        say(
            *__doc__.splitlines(),
            f"Commands: {', '.join(commands)}",
            "Help on one: confide COMMAND --help",
        )
        return 0
    if arguments[0] not in commands:
        warn(f"confide: error: {arguments[0]!r} is not one of {', '.join(commands)}")
        return 2
    if arguments[0] not in FOR_OTHERS:
        permissions.private()
    try:
        return run(arguments[0], arguments[1:])
    except InputError as error:
        warn(f"confide {arguments[0]}: error: {error}")
        return 2
    except Failure as failure:
        for line in str(failure).splitlines():
            warn(f"confide {arguments[0]}: failed: {line}")
        return 1
    except KeyboardInterrupt:
        return 130
    except Exception as error:
        if TRACEBACK in os.environ:
            raise
        warn(
            f"confide {arguments[0]}: fault: {fault(error)}; {TRACEBACK}=1 shows more, corpus included"
        )
        return 3


def fault(error: Exception) -> str:
    """Kind of an error and the line of this package at which it arose, without what it says."""
    here = Path(__file__).parent
    frames = [
        frame
        for frame in traceback.extract_tb(error.__traceback__)
        if Path(frame.filename).is_relative_to(here)
    ]
    place = (
        f"{Path(frames[-1].filename).relative_to(here)}:{frames[-1].lineno}"
        if frames
        else "a place outside the package"
    )
    return f"{type(error).__name__} at {place}"


if __name__ == "__main__":
    sys.exit(main())
