"""Commands of ours in the README and the documentation are ones that exist: programs, targets,
stages, flags, runs and studies.

They are parsed by the programs' own parsers and not run.
"""

import argparse
import re
import shlex
from collections.abc import Iterator
from pathlib import Path

import dvc.cli.parser
import pytest
import snakemake.cli
import yaml
from pages import PAGES, ROOT, blocks

from confide import cli
from confide.config import jobs
from confide.config.params import load

PARAMS = load(ROOT / "params.yaml")
SHELL = ("bash", "sh", "shell", "console")
ASSIGNMENT = re.compile(r"[A-Z_]+=(.*)")
MAKEFILE = (ROOT / "Makefile").read_text()
TARGETS = set(re.findall(r"^([a-z-]+):", MAKEFILE, flags=re.M))
VARIABLES = set(re.findall(r"^([A-Z_]+) \?=", MAKEFILE, flags=re.M))
RULES = {
    name
    for path in (ROOT / "workflow/rules").glob("*.smk")
    for name in re.findall(r"^rule (\w+):", path.read_text(), flags=re.M)
}
STAGES_OF_DVC = set(yaml.safe_load((ROOT / "dvc.yaml").read_text())["stages"])


def commands(page: Path) -> Iterator[list[str]]:
    """Words of every command of a page's shell blocks; of consoles, only what follows a prompt."""
    for block in blocks(page, *SHELL):
        lines = block.text.replace("\\\n", " ").splitlines()
        for line in lines:
            if block.language == "console" and not line.startswith("$ "):
                continue
            words = shlex.shlex(line.removeprefix("$ "), posix=True, punctuation_chars=";&|")
            words.whitespace_split = True
            yield from divided(list(words))


def divided(words: list[str]) -> Iterator[list[str]]:
    """The commands of a line, which ; && and | divide."""
    command: list[str] = []
    for word in [*words, ";"]:
        if set(word) <= set(";&|"):
            if command:
                yield command
            command = []
        else:
            command.append(word)


FOUND = [
    (page, command)
    for page in (ROOT / "README.md", ROOT / "CONTRIBUTING.md", *PAGES)
    for command in commands(page)
]


def check_path(word: str) -> None:
    """A result is one of a run or study of params.yaml, a profile or a file of parameters is
    there.
    """
    parts = Path(word).parts
    if parts[:2] == ("results", "runs") and len(parts) > 3:
        runs = {run.run for name in PARAMS.runs for run in jobs.of_row(PARAMS, name)}
        assert "/".join(parts[2:4]) in runs, word
    elif parts[:2] == ("results", "studies") and len(parts) > 2:
        assert parts[2] in PARAMS.studies, word
    elif parts[:1] == ("profiles",):
        assert (ROOT / word).exists(), word


def check_make(words: list[str]) -> None:
    for word in words:
        assignment = re.match(r"([A-Z_]+)=", word)
        assert assignment[1] in VARIABLES if assignment else word in TARGETS, word


def check_confide(words: list[str]) -> None:
    name, *flags = words[1:] if words[:2] == ["audit", "check"] else words
    assert name in (*cli.STAGES, *cli.COMMANDS), name
    if cli.passes_on(cli.stage(name)):
        check_snakemake(flags)
        return
    parser = argparse.ArgumentParser()
    cli.add_flags(parser, cli.stage(name))
    if "--help" not in flags:
        parser.parse_args(flags)


def check_snakemake(words: list[str]) -> None:
    given = snakemake.cli.get_argument_parser().parse_args(words)
    for target in given.targets:
        named = re.fullmatch(r"(study|gate|scan)_(\w+)", target)
        assert (
            target in RULES | {"all"} or "/" in target or (named and named[2] in PARAMS.studies)
        ), target


def check_dvc(words: list[str]) -> None:
    given = dvc.cli.parser.get_main_parser().parse_args(words)
    for target in given.targets if words[0] == "repro" else []:
        assert target in STAGES_OF_DVC, target


CHECKS = {
    "make": check_make,
    "confide": check_confide,
    "snakemake": check_snakemake,
    "dvc": check_dvc,
}


@pytest.mark.parametrize(
    ("page", "command"),
    FOUND,
    ids=lambda value: value.stem if isinstance(value, Path) else " ".join(value),
)
def test_commands_are_ones_that_exist(page: Path, command: list[str]) -> None:
    words = list(command)
    while words and (assigned := ASSIGNMENT.fullmatch(words[0])):
        check_path(assigned[1])
        words = words[1:]
    if words and words[0] in CHECKS:
        CHECKS[words[0]](words[1:])
        for word in words[1:]:
            check_path(word)


def test_commands_of_all_four_programs_are_seen() -> None:
    assert {"make", "confide", "snakemake", "dvc"} <= {
        word for _, command in FOUND for word in command
    }


@pytest.mark.parametrize(
    "wrong",
    [
        *(
            "make nothing",
            "confide nothing",
            "confide epsilon --step 3",
            "dvc nothing",
            "dvc repro nothing",
        ),
        *(
            "snakemake --no-such-flag",
            "snakemake study_nothing",
            "snakemake results/studies/nothing/table.md",
        ),
        "confide verify results/runs/nothing/g0-s0/certificate.json",
    ],
)
def test_what_does_not_exist_is_noticed(wrong: str) -> None:
    with pytest.raises((AssertionError, SystemExit, dvc.cli.parser.DvcParserError)):
        test_commands_are_ones_that_exist(ROOT / "README.md", wrong.split())
