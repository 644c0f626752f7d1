"""The workflow that belongs to this installation, and Snakemake called with it.

In a checkout its files lie at the top, beside `src`. A wheel has them in the package, as
`_workflow` (setup.py), so that nobody needs a checkout to run it.
"""

import argparse
import os
import sys
from collections.abc import Sequence
from pathlib import Path

import confide
from confide.errors import InputError

PACKAGE = Path(confide.__path__[0])
PROFILE = "--profile"


def folder() -> Path:
    """The folder with the Snakefile, its rules, profiles and studies.

    InputError where this installation has none.
    """
    for place in (PACKAGE / "_workflow", PACKAGE.parents[1]):
        if (place / "Snakefile").is_file():
            return place
    raise InputError("this installation has no Snakefile: install confide again", file=PACKAGE)


def program() -> str:
    """What a user calls in this folder: Snakemake itself in a checkout, elsewhere `confide run`."""
    return "snakemake" if Path("Snakefile").exists() else "confide run"


def command(options: Sequence[str]) -> list[str]:
    """The command line of Snakemake with this workflow; `options` follow as they are.

    But for --profile: the name of a profile of the workflow's own, such as slurm, stands for its
    folder, unless a folder of that name is here.
    """
    home = folder()
    of_workflow = [
        f"--snakefile={home / 'Snakefile'}",
        f"--workflow-profile={home / 'profiles/default'}",
    ]
    return [
        sys.executable,
        "-m",
        "snakemake",
        *of_workflow,
        *with_profiles(options, home / "profiles"),
    ]


def with_profiles(options: Sequence[str], profiles: Path) -> list[str]:
    """The same options, with folders in place of names of profiles."""
    arguments: list[str] = []
    for option in options:
        head, equals, name = option.partition("=")
        if equals and head == PROFILE:
            arguments.append(f"{PROFILE}={profile(name, profiles)}")
        elif arguments and arguments[-1] == PROFILE:
            arguments.append(profile(option, profiles))
        else:
            arguments.append(option)
    return arguments


def profile(name: str, profiles: Path) -> str:
    """The folder of one of these profiles, called NAME or profiles/NAME; or the name itself."""
    folder = profiles / name.removeprefix("profiles/")
    is_one = folder.parent == profiles and folder.is_dir() and not Path(name).exists()
    return str(folder) if is_one else name


def directory(options: Sequence[str]) -> Path:
    """The folder in which Snakemake will work, by its options."""
    parser = argparse.ArgumentParser(prog="confide", add_help=False, allow_abbrev=False)
    parser.add_argument("-d", "--directory", type=Path, default=Path())
    return parser.parse_known_args(options)[0].directory


def become(options: Sequence[str]) -> None:
    """Put Snakemake in the place of this process, which hands it exit status and signals."""
    words = command(options)
    sys.stdout.flush()
    sys.stderr.flush()
    os.execv(words[0], words)
