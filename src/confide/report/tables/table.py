"""Tables of a study, in CSV, Markdown and flat JSON.

There is one row per run, with what is certified beside what is measured. Infinity is written as inf
in CSV, "inf" in JSON and ∞ in Markdown; what was not measured or not claimed is left empty.
"""

import math
from collections.abc import Iterable
from typing import Any

from confide.files.io import number
from confide.output.escaping import code, table_of
from confide.output.escaping import markdown as plain
from confide.report.published import quotes
from confide.report.results import Result
from confide.report.tables import author_columns, domain_columns
from confide.report.tables.columns import BLOCKS, COLUMNS, Column
from confide.specs import ReportSpec

Row = dict[str, Any]


def rows(results: Iterable[Result]) -> list[Row]:
    """One row per run, in the order of the specification.

    All have the same keys: those of COLUMNS, and what was found in the data.
    """
    results = list(results)
    found = []
    for result in results:
        own = {column.name: column.value(result) for column in COLUMNS}
        own |= domain_columns.columns(result) | author_columns.columns(result, results)
        found.append(own)
    names = dict.fromkeys(name for row in found for name in row)
    return [{name: row.get(name) for name in names} for row in found]


def columns(table: list[Row]) -> list[Column]:
    """The columns of a table: COLUMNS, and those that were found in the data."""
    by_domain = [
        form._replace(name=name) for name in table[0] if (form := domain_columns.form(name))
    ]
    by_author = [
        author_columns.COLUMNS[name] for name in table[0] if name in author_columns.COLUMNS
    ]
    return [*COLUMNS, *by_domain, *by_author]


def as_csv(table: list[Row]) -> str:
    """Comma-separated text of rows with equal keys.

    None is empty, infinity is inf, numbers are in full precision.
    """
    return table_of(table)


def summary(table: list[Row]) -> dict[str, float | str]:
    """Flat numbers, mean over seeds: "name.g0.1.column"."""
    numeric = [c.name for c in columns(table) if c.block != "run"]
    found: dict[str, float | str] = {}
    for (name, gamma), group in groups(table).items():
        for column in numeric:
            values = [row[column] for row in group if row[column] is not None]
            if values:
                found[f"{name}.g{gamma:g}.{column}"] = number(sum(values) / len(values))
    return found


def worse_than_unigram(row: Row) -> bool:
    """Whether guessing tokens by their frequency in redacted text is better on public tokens."""
    own = row.get("ppl_public")
    guess = row.get("ppl_unigram_redacted")
    return own is not None and guess is not None and own > guess


def epoch_rows(results: Iterable[Result]) -> list[Row]:
    """One row per run and epoch."""
    return [
        {"run": result.run.run, **epoch._asdict()} for result in results for epoch in result.epochs
    ]


PROTECTS = {  # unit as certificates name it -> what its choice means
    "one secret's tokens, their number public": (
        "what a secret says that the policy catches; where one is, is public"
    ),
    "one turn of a dialogue": (
        "a secret within one line; most turns can be public, but what several say together is a "
        "group"
    ),
    "one whole dialogue": (
        "all that one dialogue says together; nearly all hold a secret, so little is public"
    ),
    "one sentence": "a secret within one sentence; what several sentences say together is a group",
    "one window of consecutive words": (
        "a secret within one window; one that a window's edge cuts in two is a group of two"
    ),
}


def markdown(
    spec: ReportSpec, table: list[Row], conditions: Iterable[str] = (), units: Iterable[str] = ()
) -> str:
    """The whole table in readable blocks, with what columns mean and what the papers print."""
    lines = [
        f"# {plain(spec.title)}",
        "",
        "Every ε holds under the conditions of its certificate; ∞: nothing is certified; –: not "
        "measured or not claimed.",
        "Mean ± standard deviation over seeds; an interval is the mean of the runs' own.",
        *(
            f"Condition of the Bayesian ε: {plain(condition)}."
            for condition in dict.fromkeys(conditions)
        ),
        *(
            f"What is protected: {plain(one)}, that is {PROTECTS.get(one, 'a secret within it')}."
            for one in dict.fromkeys(units)
        ),
        "",
    ]
    grouped = groups(table)
    for block, words in BLOCKS.items():
        own = [column for column in columns(table) if column.block == block]
        used = [column for column in own if any(row[column.name] is not None for row in table)]
        if used:
            lines += [f"## {words}", "", *_block(used, grouped), "", *_meaning(used), ""]
    if spec.published:
        head = ["source", "method", "quantity", "printed", "note"]
        printed = (map(plain, quote[1:]) for quote in quotes(spec.published))
        lines += ["## What the papers print", "", *table_lines(head, printed), ""]
    return "\n".join(lines)


def _meaning(columns: list[Column]) -> list[str]:
    """What columns mean; those of one form that were found in the data, once."""
    lines = []
    for column in columns:
        if not column.name.endswith("_high"):
            form = domain_columns.form(column.name)
            lines.append(f"- {code(form.name if form else heading(column.name))}: {column.words}")
    return list(dict.fromkeys(lines))


def groups(table: list[Row]) -> dict[tuple[str, float], list[Row]]:
    """Rows by sample-sheet row and gamma: the seeds of one experiment."""
    found: dict[tuple[str, float], list[Row]] = {}
    for row in table:
        found.setdefault((row["name"], row["gamma"]), []).append(row)
    return found


def _block(columns: list[Column], groups: dict[tuple[str, float], list[Row]]) -> list[str]:
    """Lines of one table; a pair of columns x_low, x_high becomes one interval x."""
    shown = [column.name for column in columns if not column.name.endswith("_high")]
    variants = {
        name: group[0]["variant"] if group[0]["variant"] not in (None, name) else "–"
        for (name, _), group in groups.items()
    }
    several = any(variant != "–" for variant in variants.values())
    names = ["name", "variant"] if several else ["name"]
    head = [*names, "γ simulated", "seeds", *(plain(heading(name)) for name in shown)]
    body = []
    for (name, gamma), group in groups.items():
        told = [plain(name), plain(variants[name])] if several else [plain(name)]
        values = [cell(group, column) for column in shown]
        body.append([*told, f"{gamma:g}", str(len(group)), *values])
    return table_lines(head, body)


def heading(column: str) -> str:
    """A column's name, or an interval's by its lower end."""
    return column.removesuffix("_low") + " 95 %" * column.endswith("_low")


def cell(group: list[Row], column: str) -> str:
    """The seeds of one experiment in a column: mean with spread, or an interval's mean ends."""
    rows = [row for row in group if row[column] is not None]
    if not rows:
        return "–"
    known = [row[column] for row in rows]
    mean = sum(known) / len(known)
    if column.endswith("_low"):
        high = sum(row[f"{column.removesuffix('low')}high"] for row in rows) / len(rows)
        return f"[{show(mean)}, {show(high)}]"
    if len(known) == 1 or len(set(known)) == 1 or not math.isfinite(mean):
        return show(mean)
    spread = math.sqrt(sum((value - mean) ** 2 for value in known) / (len(known) - 1))
    return f"{show(mean)} ± {spread:.2g}" if spread < 1000 else f"{show(mean)} ± {show(spread)}"


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
