"""Texts that attacks wrote out, side by side, as Markdown.

They are those of Domain Private Transformers, Tables 1 to 3 and Appendix E.4. What is secret in
them, or might be, was masked where they were made (`attacks/domains/examples.py`).
"""

from collections.abc import Iterable, Iterator
from typing import Any

from confide.output import escaping
from confide.output.escaping import markdown as plain
from confide.report.figures.series import group
from confide.report.results import Result
from confide.report.tables.table import table_lines
from confide.specs import ReportSpec

WITHHELD = "*(withheld: holds a secret in a form that cannot be masked)*"


def markdown(spec: ReportSpec, results: list[Result]) -> str:
    """All examples of a study: redactions, each model's answers, and the highest ratios."""
    named = [(series.label, series.results[0]) for series in group(results)]
    lines = [
        f"# Examples — {plain(spec.title)}",
        "",
        "`<MASK>`: found by a policy. `[label]`: a gold secret that no policy found. Neither is "
        "in the files of this study.",
        "",
    ]
    lines += _section(
        "What policies redact (Table 1)", ["judge", "domain", "held-out text"], _redactions(results)
    )
    head = ["model", "leaks, by judge", "what it goes on with"]
    for context, rows in _answers(named).items():
        lines += _section(f"{context[0]}: {context[1]} (Appendix E.4)", head, rows)
    head = ["score", "leaks, by judge", "end of the prompt", "what the model goes on with"]
    for (label, name), rows in _ranked(named).items():
        lines += _section(
            f"Highest likelihood ratios: {label}, {name} (Tables 2 and 3)", head, rows
        )
    return "\n".join(lines)


def _section(title: str, head: list[str], rows: Iterable[list[str]]) -> list[str]:
    return [f"## {title}", "", *table_lines(head, rows), ""] if (rows := list(rows)) else []


def _cell(text: str | None) -> str:
    """Text as it may stand between bars."""
    return WITHHELD if text is None else escaping.code(text.replace("\n", " ⏎ "))


def _leaks(row: dict[str, Any]) -> str:
    return ", ".join(plain(judge) for judge, leaks in row["leaks"].items() if leaks) or "–"


def _redactions(results: list[Result]) -> Iterator[list[str]]:
    """Those of each attack's first run: policies and texts are the same for all."""
    attacks = (metrics for result in results for metrics in result.all_of("leak"))
    rows = (row for metrics in attacks for row in metrics.get("redactions", ()))
    cells = ((plain(row["judge"]), plain(row["domain"]), _cell(row["text"])) for row in rows)
    return map(list, dict.fromkeys(cells))


def _answers(named: list[tuple[str, Result]]) -> dict[tuple[str, str], list[list[str]]]:
    """By prompt what each model answers to it."""
    found: dict[tuple[str, str], list[list[str]]] = {}
    for label, result in named:
        attacks = result.all_of("leak")
        for row in (row for metrics in attacks for row in metrics.get("examples", ())):
            context = f"{plain(row['prompt'])} prompt", _cell(row["context"])
            cells = [plain(label), _leaks(row), _cell(row["text"])]
            found.setdefault(context, []).append(cells)
    return found


def _ranked(named: list[tuple[str, Result]]) -> dict[tuple[str, str], list[list[str]]]:
    """By model and attack what has the highest ratios."""
    return {
        (plain(label), plain(name)): [
            [f"{row['score']:.2f}", _leaks(row), _cell(row["context"]), _cell(row["text"])]
            for row in metrics["examples"]
        ]
        for label, result in named
        for name, metrics in result.attacks.items()
        if metrics["attack"] == "domain_lira" and metrics.get("examples")
    }
