"""Tables of a study, in CSV, Markdown and flat JSON.

There is one row per run, with what is certified beside what is measured. Of several seeds a table
shows the mean of what is measured, and the largest of what is promised. Infinity is written as inf
in CSV, "inf" in JSON and ∞ in Markdown; what was not measured or not claimed is left empty. The
words of table.md are in table.jinja.
"""

import math
from collections.abc import Iterable
from typing import Any

from confide.files.io import number
from confide.output import templates
from confide.output.rounding import rounded_up
from confide.report.published import quotes
from confide.report.results import Result, unigram_like
from confide.report.seeds import half_width, mean_of
from confide.report.tables import author_columns, domain_columns
from confide.report.tables.columns import BLOCKS, COLUMNS, Column
from confide.specs import ReportSpec

Row = dict[str, Any]
PROMISED = ("delta", "epsilon_", "gamma_upper")  # how columns begin of what is certified
MOST_TURNED = 4  # experiments of which each has a column: of more, each has a line
# The first column is what is measured, in words; on a telephone the numbers need the room.
STYLE = (
    "td:first-child{white-space:normal}"
    "@media(max-width:700px){td,th{font-size:.8em;padding:.2em .3em}"
    "td:first-child{overflow-wrap:anywhere;min-width:8em}}"
)


def rows(results: Iterable[Result]) -> list[Row]:
    """One row per run, in the order of the specification.

    All have the same keys: those of COLUMNS, and what was found in the data.
    """
    results = list(results)
    table = []
    for result in results:
        values = {column.name: column.value(result) for column in COLUMNS}
        values |= domain_columns.columns(result) | author_columns.columns(result, results)
        table.append(values)
    names = dict.fromkeys(name for row in table for name in row)
    return [{name: row.get(name) for name in names} for row in table]


def columns(table: list[Row]) -> list[Column]:
    """The columns of a table: COLUMNS, and those that were found in the data."""
    by_domain = [
        form._replace(name=name) for name in table[0] if (form := domain_columns.form(name))
    ]
    by_author = [
        author_columns.COLUMNS[name] for name in table[0] if name in author_columns.COLUMNS
    ]
    return [*COLUMNS, *by_domain, *by_author]


def summary(table: list[Row]) -> dict[str, float | str]:
    """Flat numbers of all seeds: "name.g0.1.column"."""
    numeric = [c.name for c in columns(table) if c.block != "run"]
    found: dict[str, float | str] = {}
    for (name, gamma), group in groups(table).items():
        for column in numeric:
            values = [row[column] for row in group if row[column] is not None]
            if values:
                found[f"{name}.g{gamma:g}.{column}"] = number(of_seeds(column, values))
    return found


def of_seeds(column: str, values: list[float]) -> float:
    """One number of what a column holds for each seed: the largest of promises, else the mean."""
    return max(values) if is_promised(column) else mean_of(values)


def is_promised(column: str) -> bool:
    """Whether a column holds bounds from above that are certified, and not what a paper prints."""
    return column.startswith(PROMISED) and not column.endswith("_published")


def worse_than_unigram(row: Row) -> bool:
    """Whether guessing tokens by their frequency is better on public tokens."""
    ppl = row.get("ppl_public")
    guess = row.get(unigram_like(row))
    return ppl is not None and guess is not None and ppl > guess


def epoch_rows(results: Iterable[Result]) -> list[Row]:
    """One row per run and epoch."""
    return [
        {"run": result.run.run, **epoch._asdict()} for result in results for epoch in result.epochs
    ]


def markdown(
    spec: ReportSpec, table: list[Row], conditions: Iterable[str] = (), units: Iterable[str] = ()
) -> str:
    """The whole table in readable blocks, with what columns mean and what the papers print.

    A pair of columns x_low, x_high becomes one interval x. Of a few experiments each has a column,
    so that nothing is wider than a page; of more, each has a line.
    """
    used: dict[str, list[Column]] = {}
    for column in columns(table):
        if any(row[column.name] is not None for row in table):
            used.setdefault(column.block, []).append(column)
    experiments = groups(table)
    values = {
        "spec": spec,
        "is_turned": len(experiments) <= MOST_TURNED,
        "conditions": dict.fromkeys(conditions),
        "units": dict.fromkeys(units),
        "blocks": {
            title: [column for column in used[block] if not column.name.endswith("_high")]
            for block, title in BLOCKS.items()
            if block in used
        },
        "groups": experiments,
        "variants": {
            row["name"]: row["variant"]
            for row in table
            if row["variant"] not in (None, row["name"])
        },
        "heading": heading,
        "cell": cell,
        "meanings": _meanings,
        "quotes": quotes(spec.published),
    }
    return templates.filled(__file__, values)


def _meanings(columns: list[Column]) -> dict[tuple[str, str], None]:
    """Columns and what they mean; those of one form that were found in the data, once."""
    meanings: dict[tuple[str, str], None] = {}
    for column in columns:
        form = domain_columns.form(column.name)
        meanings[form.name if form else heading(column.name), column.words] = None
    return meanings


def groups(table: list[Row]) -> dict[tuple[str, float], list[Row]]:
    """Rows by sample-sheet row and gamma: the seeds of one experiment."""
    by_experiment: dict[tuple[str, float], list[Row]] = {}
    for row in table:
        by_experiment.setdefault((row["name"], row["gamma"]), []).append(row)
    return by_experiment


def heading(column: str) -> str:
    """A column's name, or an interval's by its lower end."""
    return column.removesuffix("_low") + " 95 %" * column.endswith("_low")


def cell(group: list[Row], column: str) -> str:
    """The seeds of one experiment in a column: mean and interval, or the mean ends of their own.

    An interval whose ends are printed alike is left out. Of what is promised it is the largest,
    rounded up.
    """
    rows = [row for row in group if row[column] is not None]
    if not rows:
        return "–"
    values = [row[column] for row in rows]
    fewer = f" (n = {len(values)})" if len(values) < len(group) else ""
    if is_promised(column):
        return rounded_up(of_seeds(column, values), 3) + fewer
    mean = mean_of(values)
    if column.endswith("_low"):
        high = sum(row[f"{column.removesuffix('low')}high"] for row in rows) / len(rows)
        return f"[{show(mean)}, {show(high)}]"
    half = half_width(values)
    if show(mean - half) == show(mean + half):
        return show(mean) + fewer
    return f"{show(mean)} ± {f'{half:.2g}' if half < 100 else show(half)}{fewer}"


def show(value: float) -> str:
    """A number for reading: three significant digits, ∞ for infinity."""
    if math.isinf(value):
        return "∞"
    if value == 0 or 1e-3 <= abs(value) < 1000:
        return f"{value:.3g}"
    return f"{value:,.0f}" if abs(value) >= 1000 else f"{value:.2g}"


def table_lines(head: list[str], body: Iterable[Iterable[str]]) -> list[str]:
    """A table in Markdown."""
    return ["| " + " | ".join(cells) + " |" for cells in (head, ["---"] * len(head), *body)]
