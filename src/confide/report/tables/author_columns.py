"""Columns of table.csv that only studies of authors have (author_columns.csv).

They are those of Privacy Regularization, Table 1 and Figures 2 and 3. A run has those that its
attacks and its evaluation give; `author_gap` compares it with the study's non-private run.
"""

from typing import Any

from confide.report.figures.authors import gap
from confide.report.results import Json, Result
from confide.report.tables.columns import declared

INTERVAL = ("", "_low", "_high")
COLUMNS = {column.name: column for column in declared(__file__)}


def columns(result: Result, results: list[Result]) -> dict[str, Any]:
    """Values by name of a run's own columns; none for a study without authors."""
    values = {
        name: _number(result.attacks[column.source], column.field)
        for name, column in COLUMNS.items()
        if column.source in result.attacks
    }
    return values | _gap(result, results)


def _number(attack: Json, field: str) -> float | None:
    """What an attack says in a field, such as canaries.mean; the mean where it says several."""
    *groups, name = field.split(".")
    for group in groups:
        attack = attack.get(group) or {}
    value = attack.get(name)
    if isinstance(value, list):
        return sum(value) / len(value) if value else None
    return value


def _gap(result: Result, results: list[Result]) -> dict[str, float]:
    """The gap where there are authors enough and another run to compare with."""
    if result.unprotected or (estimate := gap([result], results)) is None:
        return {}
    return {
        f"author_gap{end}": value for end, value in zip(INTERVAL, estimate.numbers, strict=True)
    }
