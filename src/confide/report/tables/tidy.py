"""All tables of a folder of results in one, a line for each number: for whoever analyses them.

Numbers are read from the table.csv of each study. Infinity stays infinite; what was not measured or
not claimed has no line.
"""

import csv
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from confide.errors import InputError
from confide.report.tables.columns import COLUMNS

# columns of table.csv that say which run a line is of, with their types
YES = {"True": True, "False": False}
TYPES: dict[str, Any] = {
    "gamma": float,
    "seed": int,
    "dedup": YES.__getitem__,
    "redact": YES.__getitem__,
}
OF_RUN = tuple(column.name for column in COLUMNS if column.block == "run")
FIELDS = ("study", *OF_RUN, "metric", "value")


def lines(results: Path) -> Iterator[dict[str, Any]]:
    """Lines with the keys FIELDS, study by study and run by run.

    A run that several studies show has its numbers in each. InputError where there is no table, or
    one is no table of a study, with its line.
    """
    files = sorted(results.glob("studies/*/table.csv"))
    if not files:
        raise InputError("has no table of a study (studies/*/table.csv)", file=results)
    for file in files:
        with file.open(newline="", encoding="utf-8") as rows:
            reader = csv.DictReader(rows)
            if lacking := set(OF_RUN) - set(reader.fieldnames or ()):
                raise InputError("is missing", file=file, line=1, key=min(lacking))
            for row in reader:
                yield from _numbers(file, reader.line_num, row)


def _numbers(file: Path, line: int, row: dict[str, str]) -> Iterator[dict[str, Any]]:
    """The numbers of one run."""
    name = "run"
    try:
        run = {}
        for name in OF_RUN:
            run[name] = TYPES.get(name, str)(row[name])
        for name, text in row.items():
            if name not in OF_RUN and text != "":
                study = {"study": file.parent.name}
                yield study | run | {"metric": name, "value": float(text)}
    except (KeyError, TypeError, ValueError):
        raise InputError(
            "is no value of this column", file=file, line=line, key=str(name)
        ) from None
