"""The table of docs/threat_model.md: what is said of each kind of file, so that tests can hold it
against what is there.
"""

import re
from fnmatch import fnmatch
from pathlib import Path
from typing import NamedTuple

PAGE = Path(__file__).parents[2] / "docs/threat_model.md"


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


def rows() -> list[Row]:
    """All kinds, in the order of the page."""
    cells = [
        line.strip("|").split(" | ")
        for line in section("Every kind of file").splitlines()
        if line.startswith("| `")
    ]
    return [
        Row(re.findall(r"`([^`]+)`", files), *(cell.strip() for cell in said))
        for files, _, *said in cells
    ]


class Place(NamedTuple):
    """One kind of file outside the project; `~` is the home, `$TMPDIR` the folder of temporary
    files.
    """

    pattern: str
    mode: str
    stays: bool


def places() -> list[Place]:
    """All kinds of which the page names a pattern, in its order."""
    cells = [
        [cell.strip() for cell in line.strip("| ").split(" | ")]
        for line in section("Outside the project").splitlines()
        if line.startswith("| ")
    ]
    return [
        Place(where.strip("`"), mode, long.startswith("stays"))
        for where, _, mode, long in cells
        if where.startswith("`")
    ]


def row_of(path: str) -> Row | None:
    """The first kind that a file, relative to the project, is of."""
    return next(
        (row for row in rows() if any(fnmatch(path, pattern) for pattern in row.patterns)), None
    )


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
