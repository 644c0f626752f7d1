"""The lists of docs/threat_model.md: what is said of each kind of file, so that tests can hold it
against what is there.
"""

import re
from fnmatch import fnmatch
from pathlib import Path
from typing import NamedTuple

PAGE = Path(__file__).parents[2] / "docs/threat_model.md"


GOES = {  # how a list of the page begins: what `dvc push`, MLflow and `confide release` do
    "These stay": ("no", "no", "no"),
    "`dvc push` sends these:": ("yes", "no", "no"),
    "`dvc push` sends these, and MLflow shows": ("yes", "yes", "no"),
    "`dvc push` sends these, and `confide release` copies": ("yes", "no", "yes"),
    "`confide release` rounds": ("no", "no", "rounded"),
}


class Row(NamedTuple):
    """One kind of file."""

    patterns: list[str]
    mode: str
    push: str
    mlflow: str
    released: str


def section(title: str) -> str:
    """The part of the page below a heading."""
    return PAGE.read_text().split(f"## {title}\n")[1].split("\n## ")[0]


def named(item: str) -> list[str]:
    """Patterns of an item of a list: what stands before its colon."""
    return re.findall(r"`([^`]+)`", item.split(": ")[0])


def rows() -> list[Row]:
    """All kinds, in the order of the page."""
    first, *lists = section("Every kind of file").split("\n**")
    (closed,) = re.findall(r"those of ([^:]+?)\s+lie in a folder of mode 0700", first)
    folders = re.findall(r"`([^`]+)`", closed)
    found = []
    for one in lists:
        (goes,) = (how for begins, how in GOES.items() if one.startswith(begins))
        for item in re.findall(r"^- (.*)", one, flags=re.M):
            patterns = named(item)
            mode = "in 0700" if patterns[0].split("/")[0] in folders else "0600"
            found.append(Row(patterns, mode, *goes))
    return found


class Place(NamedTuple):
    """One kind of file outside the project, which stays there; `~` is the home, `$TMPDIR` the
    folder of temporary files. open: whether the umask says who can read it.
    """

    pattern: str
    open: bool


def places() -> list[Place]:
    """All kinds that the page names, in its order."""
    items = re.findall(r"^- (.*)", section("Outside the project"), flags=re.M)
    return [Place(pattern, "(your umask" in item) for item in items for pattern in named(item)]


def row_of(path: str) -> Row | None:
    """The kind that a file, relative to the project, is of: that with the longest pattern."""
    fitting = [
        (len(pattern), row) for row in rows() for pattern in row.patterns if fnmatch(path, pattern)
    ]
    return max(fitting, key=lambda one: one[0])[1] if fitting else None


def built_files(folder: Path) -> dict[str, Row | None]:
    """What a project holds beside its sources."""
    own = (
        "Snakefile",
        "params.yaml",
        "dvc.",
        "workflow/",
        "profiles/",
        "studies/",
        "src/",
        "data/own/",
        "docs/",
    )
    own += (".git/", ".dvcignore")
    paths = (
        str(path.relative_to(folder))
        for path in sorted(folder.rglob("*"))
        if path.is_file() or path.is_symlink()
    )
    return {
        path: row_of(path)
        for path in paths
        if not path.startswith(own) and not path.endswith(".gitignore")
    }
