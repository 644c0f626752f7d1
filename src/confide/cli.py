"""`confide COMMAND ...`: every command is a function, and its flags are the function's signature.

Errors that a user can cause end with one line and status 2, checks that fail with status 1, and
faults of this program with status 3 and where they happened, no more: what Python says of them may
quote the corpus, and logs are released. A command never leaves half an output behind.

What is slow to import (specifications, the commands themselves) is imported once it is needed:
`confide --help` answers at once.
"""

import argparse
import difflib
import gc
import importlib
import inspect
import json
import os
import re
import shutil
import sys
import textwrap
import traceback
import typing
from collections.abc import Callable
from pathlib import Path
from types import NoneType, UnionType

from confide.errors import Failure, InputError, is_lack_of_memory
from confide.files import jsons, permissions
from confide.output.escaping import say, warn

if typing.TYPE_CHECKING:
    from confide.specs import Spec

# fmt: off
COMMANDS = (  # for a user, about in the order of use; no rule of the workflow calls them
    "example", "init", "recommend", "review", "forecast", "run", "watch", "report", "verify",
    "release", "attest", "generate", "synthesize", "export", "spend", "check", "epsilon", "rerun",
)
STAGES = (
    "fetch", "pretrained", "split", "plant", "tokenizer", "pipeline", "domain_policy",
    "word_list", "found_values", "fill_key", "dedup", "digests", "repeats", "copies", "redact",
    "recall", "marked", "partition", "gather", "neighbours", "train", "shadows", "gather_shadows",
    "certify", "evaluate", "attack", "count_candidates", "trajectory", "draw", "synthetic", "worth",
    "text_audit", "gate", "passed", "study", "summary", "panel", "leaderboard", "tuning", "scan",
    "track",
)
# fmt: on
TRACEBACK = "CONFIDE_TRACEBACK"  # set: faults are shown in full
# Commands whose files are for others, as far as the user's own umask lets them.
FOR_OTHERS = ("release", "attest")
DIVIDED = ("train",)  # stages that several processes can share
FOLDER = "folder"  # parameter of a command that reads what a run made there
ARGUMENTS = {str: str, Path: Path, list[Path]: Path}  # types of what may stand without a flag
INDENT = 17  # columns that the name of a command takes in the list of all
CALL = re.compile(r"^`[^`]*`: ")  # how a docstring says what to type
# How the docstring of a command says what a parameter is: `name: words`, up to the next or a gap.
PARAMETER = re.compile(r"^(\w+): (.+?)(?=^\w+: |\n\n|\Z)", re.M | re.S)
BROKEN_PIPE = 128 + 13  # what a shell says of a program whose reader has left


def module_of(name: str) -> str:
    """Dotted name of a command's module: command = module = function."""
    return f"confide.{'stages' if name in STAGES else 'commands'}.{name}"


def stage(name: str) -> Callable[..., None]:
    """The function of a command.

    Python looks for garbage again and again among all objects, and once more at its end. What an
    import makes stays to the end, and is hundreds of thousands of objects where PyTorch is among
    it: to leave them out takes a third off the time that a short job takes.
    """
    module = module_of(name)
    if module not in sys.modules:
        collects = gc.isenabled()
        gc.disable()
        try:
            importlib.import_module(module)
        finally:
            if collects:
                gc.enable()
        gc.freeze()
    return getattr(sys.modules[module], name)


def sentence_of(name: str) -> str:
    """What a command is for: the first paragraph of its module, which is read and not imported."""
    file = Path(__file__).parent.joinpath(*module_of(name).split(".")[1:]).with_suffix(".py")
    _, docstring, _ = file.read_text(encoding="utf-8").split('"""', 2)
    paragraph = docstring.partition("\n\n")[0]
    sentence = CALL.sub("", " ".join(paragraph.split()))
    return sentence[0].upper() + sentence[1:]


def overview() -> list[str]:
    """The lines of `confide --help`."""
    width = max(shutil.get_terminal_size().columns, 2 * INDENT)
    lines = ["usage: confide COMMAND ...", "       confide COMMAND --help"]
    lines += ["", "For you:"]
    for name in COMMANDS:
        text = textwrap.wrap(sentence_of(name), width - INDENT)
        heads = [f"  {name}", *[""] * (len(text) - 1)]
        lines += [head.ljust(INDENT) + line for head, line in zip(heads, text, strict=True)]
    lines += ["", "Stages, which the workflow calls; --help says what each is for:"]
    names = textwrap.wrap(", ".join(STAGES), width - 2)
    return [*lines, *(f"  {line}" for line in names)]


def refusal(name: str) -> str:
    """What to say of a command that there is none of."""
    close = difflib.get_close_matches(name, (*COMMANDS, *STAGES), n=1)
    if name == "audit":
        close = ["audit check"]
    meant = f": did you mean {close[0]}?" if close else ""
    return f"confide: error: {name!r} is no command{meant} (confide --help lists them)"


def alternatives(annotation: typing.Any) -> list[typing.Any]:
    """The types that an annotation allows, None aside."""
    if not isinstance(annotation, UnionType):
        return [annotation]
    return [kind for kind in typing.get_args(annotation) if kind is not NoneType]


def spec_classes(annotation: typing.Any) -> list[type["Spec"]]:
    """Those of them that are specifications."""
    from confide.specs import Spec

    kinds = alternatives(annotation)
    return [kind for kind in kinds if inspect.isclass(kind) and issubclass(kind, Spec)]


def words_on(function: Callable[..., None]) -> dict[str, str]:
    """What the docstring of a command says of its parameters, for argparse."""
    said = PARAMETER.findall(inspect.getdoc(function) or "")
    return {name: " ".join(words.split()).replace("%", "%%") for name, words in said}


def passes_on(function: Callable[..., None]) -> bool:
    """Whether a command takes its arguments as they are, for another program."""
    parameters = inspect.signature(function).parameters.values()
    return any(parameter.kind is parameter.VAR_POSITIONAL for parameter in parameters)


def add_flags(parser: argparse.ArgumentParser, function: Callable[..., None]) -> None:
    """One flag per parameter: `spec` takes JSON or @file, Path one path, list[Path] several.

    A default, or None among the types, makes a flag optional. A name, a Path, or a list of them,
    before the * of the signature is an argument without a flag, and may be left out where it has a
    default.
    """
    hints = typing.get_type_hints(function)
    words = words_on(function)
    for parameter in inspect.signature(function).parameters.values():
        flag = f"--{parameter.name}"
        said = words.get(parameter.name)
        kind = alternatives(hints[parameter.name])[0]
        optional = NoneType in typing.get_args(hints[parameter.name])
        if parameter.kind is parameter.POSITIONAL_OR_KEYWORD and kind in ARGUMENTS:
            nargs = "+" if kind == list[Path] else None
            default = None
            if parameter.default is not parameter.empty:
                nargs = "?"
                default = parameter.default
                said = with_default(said, default)
            kind = ARGUMENTS[kind]
            parser.add_argument(parameter.name, type=kind, nargs=nargs, default=default, help=said)
        elif spec_classes(kind):
            description = inspect.getdoc(kind)
            parser.add_argument(flag, required=not optional, metavar="JSON|@FILE", help=description)
        elif kind is bool:
            parser.add_argument(flag, action="store_true", help=said)
        elif typing.get_origin(kind) is list:
            parser.add_argument(flag, type=Path, nargs="*", default=[], help=said)
        else:
            default = None if parameter.default is parameter.empty else parameter.default
            required = not optional and default is None
            if default is not None:
                said = with_default(said, default)
            parser.add_argument(flag, type=kind, required=required, default=default, help=said)


def with_default(said: str | None, default: object) -> str:
    """Help on a parameter, with its default."""
    return f"{said or ''} (default: {default})".lstrip()


def read_spec(classes: list[type["Spec"]], text: str) -> "Spec":
    """A specification, from JSON text or from @path of a JSON file.

    Of several classes it is of the one whose `kind` it names, or of the first.
    """
    from confide.files.io import REFUSED, read_bytes, refused_json
    from confide.specs import parse

    file = text[1:] if text.startswith("@") else None
    content = read_bytes(file) if file else text.encode(errors="surrogatepass")
    place = file or "--spec"
    try:
        value = json.loads(content)
        jsons.check(content, value)
    except REFUSED as error:
        raise refused_json(error, place) from None
    except (ValueError, RecursionError) as error:
        # not UTF-8, a number of thousands of digits, nested too deep
        raise InputError(f"malformed JSON ({type(error).__name__})", file=place) from None
    return parse(_named(classes, value), value, file=file)


def _named(classes: list[type["Spec"]], value: typing.Any) -> type["Spec"]:
    """The class that a value says it is of."""
    kind = value.get("kind") if isinstance(value, dict) else None
    for cls in classes[1:] if kind is not None else []:
        if kind in typing.get_args(cls.model_fields["kind"].annotation):
            return cls
    return classes[0]


def run(name: str, arguments: list[str]) -> int:
    """Parse a command's flags and call it, or start several processes that do; the exit status."""
    function = stage(name)
    if passes_on(function):
        if arguments[:1] in (["-h"], ["--help"]):
            say(*(inspect.getdoc(sys.modules[function.__module__]) or "").splitlines())
        else:
            function(*arguments)
        return 0
    description = inspect.getdoc(sys.modules[function.__module__])
    parser = argparse.ArgumentParser(prog=f"confide {name}", description=description)
    add_flags(parser, function)
    if name in DIVIDED:
        of_node = "of each node that share the work, on as many cores or GPUs"
        parser.add_argument("--processes", type=int, default=1, help=of_node)
        of_job = "of a job of Slurm's, whose processes share the work"
        parser.add_argument("--nodes", type=int, default=1, help=of_job)
    works_in_a_folder = FOLDER in inspect.signature(function).parameters
    if works_in_a_folder:
        same = "the same as folder, in the words of `confide run`."
        parser.add_argument("-d", "--directory", type=Path, help=same)
    values = vars(parser.parse_args(arguments))
    directory = values.pop("directory") if works_in_a_folder else None
    if directory is not None:
        values[FOLDER] = directory
    counts = ("processes", "nodes") if name in DIVIDED else ()
    divided = {key: values.pop(key) for key in counts}
    for key, annotation in typing.get_type_hints(function).items():
        classes = spec_classes(annotation)
        if classes and values.get(key) is not None:
            values[key] = read_spec(classes, values[key])
    if any(count != 1 for count in divided.values()):
        from confide.runtime.launch import LAUNCHED, launch

        if LAUNCHED not in os.environ:
            return launch(**divided, arguments=[name, *arguments])
    function(**values)
    return 0


def main(arguments: list[str] | None = None) -> int:
    """Entry point of the console script.

    Exit status: 0, 1 a failed check, 2 bad input, 3 a fault, 130 interrupted, 141 nobody reads on.
    """
    try:
        return obey(sys.argv[1:] if arguments is None else arguments)
    except BrokenPipeError:  # as of `confide verify ... | head -1`
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())  # Python flushes at its end
        return BROKEN_PIPE


def obey(arguments: list[str]) -> int:
    """Call a command, and say in a line what went wrong; the exit status."""
    if arguments[:2] == ["audit", "check"]:
        arguments = arguments[1:]
    if not arguments or arguments[0] in ("-h", "--help"):
        say(*overview())
        return 0
    name, *flags = arguments
    if name not in (*STAGES, *COMMANDS):
        warn(refusal(name))
        return 2
    if name not in FOR_OTHERS:
        permissions.private()
    try:
        return run(name, flags)
    except InputError as error:
        warn(f"confide {name}: error: {error}")
        return 2
    except Failure as failure:
        warn(*(f"confide {name}: failed: {line}" for line in str(failure).splitlines()))
        return 1
    except KeyboardInterrupt:
        return 130
    except BrokenPipeError:
        raise
    except Exception as error:
        if TRACEBACK in os.environ:
            raise
        if is_lack_of_memory(error):
            warn(f"confide {name}: error: out of memory")
            return 2
        more = f"{TRACEBACK}=1 shows more, corpus included"
        warn(f"confide {name}: fault: {fault(error)}; {more}")
        return 3


def fault(error: Exception) -> str:
    """Kind of an error and the line of this package at which it arose, without what it says."""
    here = Path(__file__).parent
    place = "a place outside the package"
    for frame in traceback.extract_tb(error.__traceback__):
        file = Path(frame.filename)
        if file.is_relative_to(here):
            place = f"{file.relative_to(here)}:{frame.lineno}"
    return f"{type(error).__name__} at {place}"


if __name__ == "__main__":
    sys.exit(main())
