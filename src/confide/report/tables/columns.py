"""The columns of table.csv, in their order (columns.csv), and the blocks of table.md."""

from collections.abc import Callable
from typing import Any, NamedTuple

from confide.files import beside
from confide.report.pages import audits
from confide.report.results import Result


class Column(NamedTuple):
    """A column of table.csv: its block in table.md, its meaning, and where its value comes from.

    `source`: one of SOURCES, or an attack. A column that was found in the data has none.
    """

    name: str
    block: str
    words: str
    source: str = ""
    field: str = ""

    def value(self, result: Result) -> Any:
        if self.source in SOURCES:
            return SOURCES[self.source](result, self.field)
        return result.metric(self.source, self.field)


SOURCES: dict[str, Callable[[Result, str], Any]] = {
    "run": lambda result, field: getattr(result.run, field),
    "result": getattr,
    "evaluation": lambda result, field: result.evaluation.get(field),
    "claim": Result.claim,
    "headline": Result.headline,
    "refuted": audits.lower,
    "rings": audits.rings,
}


def declared(module: str) -> tuple[Column, ...]:
    """The columns in the file that lies beside a module."""
    return tuple(Column(**line) for line in beside.table(module))


COLUMNS = declared(__file__)

BLOCKS = {
    "certified": "What is certified",
    "utility": "What the model is worth",
    "exposure": "What it remembers: canaries",
    "membership": "What it remembers: membership",
    "authors": "What it says of authors, and which of them it serves less",
    "leak": "What it says of other domains when prompted with one",
    "ratios": "Whether likelihood ratios tell what it says of other domains",
    "texts": "What texts that it wrote are worth, and what they give away",
    "audit": "What an audit refutes: lower bounds on ε, to stand beside the certified ones",
}
