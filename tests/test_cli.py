"""The command line: flags follow signatures, bad input is one line and status 2, nothing is left
half written.
"""

import errno
import importlib
import inspect
import json
import os
import re
import shlex
import subprocess
import sys
from pathlib import Path

import pytest

from confide import cli
from confide.errors import NO_MEMORY, InputError, is_lack_of_memory
from confide.runtime import launch
from confide.specs import RedactSpec, SplitSpec

SRC = Path(cli.__file__).parents[1]
SPEC = {"corpus": {"reader": "lines", "path": "corpus.txt"}}


def confide(*arguments: str, folder: Path) -> subprocess.CompletedProcess:
    return subprocess.run(
        [sys.executable, "-m", "confide.cli", *arguments],
        cwd=folder,
        env=os.environ | {"PYTHONPATH": str(SRC)},
        capture_output=True,
        text=True,
    )


def test_a_stage_runs_with_json_or_a_file(tmp_path):
    (tmp_path / "corpus.txt").write_text("one line\nanother line\n" * 30)
    (tmp_path / "spec.json").write_text(json.dumps(SPEC))
    for name, spec in (("a.jsonl", json.dumps(SPEC)), ("b.jsonl", "@spec.json")):
        done = confide("split", "--spec", spec, "--output", name, folder=tmp_path)
        assert (done.returncode, done.stdout, done.stderr) == (0, "", "")
    assert (tmp_path / "a.jsonl").read_bytes() == (tmp_path / "b.jsonl").read_bytes() != b""


@pytest.mark.parametrize(
    ("spec", "message"),
    [
        ("{", "--spec:1: malformed JSON"),
        ("[]", "valid dictionary"),
        (json.dumps(SPEC | {"windows": 3}), "windows = 3: unknown key"),
        (json.dumps(SPEC | {"window": 0}), "window = 0:"),
        ("@nosuch.json", "nosuch.json: cannot be read"),
        (json.dumps(SPEC), "corpus.txt: cannot be read: No such file"),
    ],
)
def test_bad_input_is_one_line_status_2_and_no_output(tmp_path, spec, message):
    done = confide("split", "--spec", spec, "--output", "out/points.jsonl", folder=tmp_path)
    assert done.returncode == 2 and done.stdout == ""
    assert (
        done.stderr.startswith("confide split: error: ")
        and done.stderr.count("\n") == 1
        and message in done.stderr
    )
    assert not [path for path in tmp_path.rglob("*") if path.is_file()]


def test_unknown_commands_and_missing_flags(tmp_path):
    done = confide("splt", folder=tmp_path)
    assert done.returncode == 2 and "'splt' is no command: did you mean split?" in done.stderr
    done = confide("xyzzy", folder=tmp_path)
    assert done.returncode == 2 and "did you mean" not in done.stderr
    assert "'xyzzy' is no command (confide --help lists them)" in done.stderr
    done = confide("audit", "certificate.json", folder=tmp_path)
    assert done.returncode == 2 and "did you mean audit check?" in done.stderr
    done = confide("split", "--output", "x", folder=tmp_path)
    assert done.returncode == 2 and "--spec" in done.stderr and "Traceback" not in done.stderr


def test_help_of_the_program_and_of_a_stage(tmp_path):
    done = confide(folder=tmp_path)
    assert done.returncode == 0
    commands, head, stages = done.stdout.partition("Stages, which the workflow calls; --help")
    names = [line.split()[0] for line in commands.splitlines() if re.match("  [a-z]", line)]
    assert names == [*cli.COMMANDS] and head
    assert " ".join(stages.split()).endswith(", ".join(cli.STAGES))
    assert len(done.stdout.splitlines()) < 50
    done = confide("redact", "--help", folder=tmp_path)
    assert done.returncode == 0 and "--points" in done.stdout and "--spec" in done.stdout


@pytest.mark.parametrize("name", (*cli.STAGES, *cli.COMMANDS))
def test_the_sentence_of_a_command_is_the_first_paragraph_of_its_module(name):
    paragraph = importlib.import_module(cli.module_of(name)).__doc__.partition("\n\n")[0]
    sentence = cli.sentence_of(name)
    assert len(sentence.split()) > 4 and not sentence.startswith("`confide")
    assert sentence[0].isupper() and " ".join(paragraph.split()).endswith(sentence[1:])


def test_help_imports_nothing_that_is_slow():
    script = """
import sys
from confide import cli
assert cli.main(["--help"]) == cli.main([]) == 0 and cli.main(["nosuch"]) == 2
slow = {"numpy", "pydantic", "torch", "safetensors", "confide.specs"}
print(sorted(slow & set(sys.modules)), file=sys.stderr)
"""
    done = subprocess.run(
        [sys.executable, "-c", script],
        env=os.environ | {"PYTHONPATH": str(SRC)},
        capture_output=True,
        text=True,
        check=True,
    )
    assert done.stderr.splitlines()[-1] == "[]"


def test_only_divided_stages_are_started_several_times(monkeypatch):
    launched = []
    called = []

    def shared(*, output: Path) -> None:
        called.append("train")

    def own(*, output: Path, processes: int = 1) -> None:
        called.append(processes)

    monkeypatch.delenv(launch.LAUNCHED, raising=False)
    monkeypatch.setattr(
        launch, "launch", lambda *given, **named: launched.append((*given, named)) or 0
    )
    monkeypatch.setattr(cli, "stage", {"train": shared, "shadows": own}.get)
    flags = ["--output", "x", "--processes", "4"]
    assert cli.run("shadows", flags) == 0 and called == [4] and not launched
    assert cli.run("train", flags) == 0 and called == [4]
    assert launched == [({"processes": 4, "nodes": 1, "arguments": ["train", *flags]},)]
    flags = ["--output", "x", "--nodes", "2"]
    assert cli.run("train", flags) == 0 and called == [4]
    assert launched[1:] == [({"processes": 1, "nodes": 2, "arguments": ["train", *flags]},)]


@pytest.mark.parametrize("flag", ["-d", "--directory"])
def test_a_folder_is_named_as_run_names_it(monkeypatch, flag):
    """Whoever has typed `confide run -d mine` types `-d mine` again."""
    given = []

    def recommend(folder: Path = Path(), *, size: int = 1) -> None:
        """size: how much."""
        given.append((folder, size))

    def watch(*, folder: Path = Path()) -> None:
        given.append(folder)

    monkeypatch.setattr(cli, "stage", {"recommend": recommend, "watch": watch}.get)
    assert cli.run("recommend", [flag, "mine", "--size", "2"]) == cli.run("watch", [flag, "b"]) == 0
    assert cli.run("recommend", ["mine"]) == cli.run("watch", []) == 0
    assert given == [(Path("mine"), 2), Path("b"), (Path("mine"), 1), Path()]


@pytest.mark.parametrize("name", cli.STAGES)
def test_every_stage_has_the_signature_that_the_command_line_needs(name):
    function = cli.stage(name)
    first, *others = inspect.signature(function).parameters.values()
    # what puts files together, or makes something up
    if name.startswith("gather") or name in ("repeats", "copies", "fill_key", "passed"):
        others = [first, *others]
    else:
        assert first.name == "spec"
    assert all(parameter.kind is parameter.KEYWORD_ONLY for parameter in others)
    for parameter in others:
        number = parameter.annotation is int and parameter.default is not parameter.empty
        share = parameter.name == "share" and parameter.annotation in (str, str | None)
        digest = parameter.name == "policies" and parameter.annotation is str
        assert (
            number
            or share
            or digest
            or parameter.annotation
            in (
                Path,
                Path | None,
                list[Path],
                list[Path] | None,
            )
        ), parameter


def test_flags_of_each_kind():
    import argparse

    def stage(
        spec: SplitSpec,
        *,
        one: Path,
        many: list[Path],
        some: list[Path] | None = None,
        maybe: Path | None = None,
        n: int = 3,
    ) -> None:
        """A stage."""

    parser = argparse.ArgumentParser()
    cli.add_flags(parser, stage)
    given = parser.parse_args(["--spec", "{}", "--one", "a", "--many", "b", "c"])
    assert (given.one, given.many, given.maybe) == (
        Path("a"),
        [Path("b"), Path("c")],
        None,
    ) and not given.some
    assert (
        given.n == 3
        and parser.parse_args(["--spec", "{}", "--one", "a", "--many", "--n", "5"]).n == 5
    )
    given = parser.parse_args(["--spec", "{}", "--one", "a", "--some", "d", "--maybe", "e"])
    assert (given.some, given.maybe, given.many) == ([Path("d")], Path("e"), [])


def test_paths_before_the_star_are_arguments_without_a_flag():
    import argparse

    def one(path: Path, *, other: Path | None = None) -> None:
        """A command."""

    def several(paths: list[Path], *, flag: bool = False) -> None:
        """Another."""

    parser = argparse.ArgumentParser()
    cli.add_flags(parser, one)
    assert parser.parse_args(["a", "--other", "b"]) == argparse.Namespace(
        path=Path("a"), other=Path("b")
    )
    parser = argparse.ArgumentParser()
    cli.add_flags(parser, several)
    assert parser.parse_args(["a", "b", "--flag"]) == argparse.Namespace(
        paths=[Path("a"), Path("b")], flag=True
    )
    with pytest.raises(SystemExit):
        parser.parse_args(["--flag"])


def test_a_path_with_a_default_may_be_left_out():
    import argparse

    def command(folder: Path = Path("here"), *, size: int = 1) -> None:
        """folder: where."""

    parser = argparse.ArgumentParser()
    cli.add_flags(parser, command)
    assert parser.parse_args([]).folder == Path("here")
    assert parser.parse_args(["there"]).folder == Path("there")
    assert "where. (default: here)" in parser.format_help()


@pytest.mark.parametrize("name", cli.COMMANDS)
def test_every_option_of_a_users_command_says_what_it_is_for(name):
    import argparse

    parser = argparse.ArgumentParser()
    if not cli.passes_on(cli.stage(name)):  # its options are another program's
        cli.add_flags(parser, cli.stage(name))
    known = set(cli.words_on(cli.stage(name)))
    assert known <= set(inspect.signature(cli.stage(name)).parameters) | {"Guarantees"}
    assert not [action.dest for action in parser._actions if len((action.help or "").split()) < 2]
    parser.format_help()


def test_a_parameter_is_described_up_to_the_next_one_or_a_gap():
    def command(one: Path, *, two: float = 0.5, three: bool = False) -> None:
        """Do it.

        one: a file,
        of which 5% are read.
        two: how much.
        Guarantees: nothing else.

        three of them: no description.
        """

    assert cli.words_on(command) == {
        "one": "a file, of which 5%% are read.",
        "two": "how much.",
        "Guarantees": "nothing else.",
    }


def test_a_reader_that_leaves_is_no_fault():
    script = (
        "import sys; from confide import cli; "
        "cli.overview = lambda: ['a line'] * 100000; sys.exit(cli.main(['--help']))"
    )
    pipe = f"set -o pipefail; {sys.executable} -c {shlex.quote(script)} | head -n 1"
    done = subprocess.run(
        ["bash", "-c", pipe],
        env=os.environ | {"PYTHONPATH": str(SRC)},
        capture_output=True,
        text=True,
    )
    assert (done.returncode, done.stdout, done.stderr) == (141, "a line\n", "")


@pytest.mark.parametrize("name", cli.COMMANDS)
def test_every_other_command_has_help(capsys, name):
    if cli.passes_on(cli.stage(name)):
        assert cli.run(name, ["--help"]) == 0
        head = f"`confide {name} [OPTION ...]`: "
    else:
        with pytest.raises(SystemExit) as left:
            cli.run(name, ["--help"])
        assert left.value.code == 0
        head = f"usage: confide {name}"
    said = capsys.readouterr().out
    assert said.startswith(head) and len(said.split()) > 20


def test_specs_are_checked_against_their_own_class():
    with pytest.raises(InputError, match="policy"):
        cli.read_spec([RedactSpec], json.dumps(SPEC))


@pytest.mark.parametrize("phrase", NO_MEMORY)
def test_each_phrase_says_that_memory_lacks(phrase):
    assert is_lack_of_memory(RuntimeError(f"Error: {phrase.capitalize()}."))
    later = ValueError("not read")
    later.__cause__ = RuntimeError(phrase)
    assert is_lack_of_memory(later)


def test_a_class_says_that_memory_lacks_whatever_its_message():
    class OutOfMemoryError(RuntimeError):  # as PyTorch names it
        pass

    assert is_lack_of_memory(OutOfMemoryError()) and is_lack_of_memory(MemoryError())
    assert not is_lack_of_memory(RuntimeError("shape mismatch"))


@pytest.mark.parametrize(
    "error",
    [
        MemoryError(),
        OSError(errno.ENOMEM, "Cannot allocate memory"),
        ImportError("libtorch.so: failed to map segment from shared object"),
        RuntimeError("could not execute a primitive"),
        RuntimeError("std::bad_alloc"),
        SystemError("error return without exception set"),
        RuntimeError("DefaultCPUAllocator: can't allocate memory: you tried to allocate 9 bytes"),
    ],
)
def test_a_lack_of_memory_is_one_line_and_no_fault(monkeypatch, capsys, error):
    def runs_out(name, flags):
        raise error

    monkeypatch.setattr(cli, "run", runs_out)
    assert cli.main(["epsilon"]) == 2
    assert capsys.readouterr().err == "confide epsilon: error: out of memory\n"
