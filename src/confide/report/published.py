"""Numbers that the papers print, each with its place and with what is wrong with it.

They are in published.csv beside this file. A study names the figures and tables that it stands
beside (`published`); its report quotes their rows.
"""

from collections.abc import Iterable
from typing import NamedTuple

from confide.errors import InputError
from confide.files import beside


class Quote(NamedTuple):
    """One number as it is printed; `method` is ours of the same name, empty where there is none."""

    source: str  # key of a figure, table or file of results
    where: str
    method: str
    quantity: str
    value: str
    note: str


def all_quotes() -> list[Quote]:
    """Every row of the file, in its order."""
    return [Quote(**row) for row in beside.table(__file__)]


def sources() -> tuple[str, ...]:
    """Keys of all figures, tables and files that are quoted."""
    return tuple(dict.fromkeys(quote.source for quote in all_quotes()))


def quotes(sources: Iterable[str]) -> list[Quote]:
    """Rows of these sources, source by source; InputError for one that the file does not have."""
    quotes_by_source: dict[str, list[Quote]] = {}
    for quote in all_quotes():
        quotes_by_source.setdefault(quote.source, []).append(quote)
    rows = []
    for source in dict.fromkeys(sources):
        if source not in quotes_by_source:
            raise InputError(
                f"is not one of {', '.join(quotes_by_source)}", key="published", value=source
            )
        rows += quotes_by_source[source]
    return rows
