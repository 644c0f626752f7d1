"""The gate of a study as a page: certificates against audits, the verdict first (gate.jinja)."""

from collections.abc import Sequence

from confide.certify.gate import NOT_AUDITED, SKIPPED, STANDS, Case
from confide.output import templates
from confide.output.rounding import percent_down, rounded_down, rounded_up
from confide.report.pages.certificate import as_html
from confide.report.tables.table import show

TITLE = "Certificates against audits"


def page(study: str, cases: Sequence[Case]) -> str:
    """HTML. Failures come first, then what was not audited, and last what was skipped."""
    ordered = sorted(cases, key=urgency)
    values = {
        "title": TITLE,
        "study": study,
        "cases": ordered,
        "failed": sum(case.failed for case in cases),
        "stand": sum(case.outcome == STANDS for case in cases),
        "unaudited": sum(case.outcome == NOT_AUDITED for case in cases),
        "up": lambda value: "–" if value is None else rounded_up(value),
        "down": lambda value: "–" if value is None else rounded_down(value),
        "number": lambda value: "–" if value is None else show(value),
        "percent": lambda value: "–" if value is None else percent_down(value),
    }
    return as_html(templates.filled(__file__, values), TITLE)


def urgency(case: Case) -> int:
    """Place of a comparison on the page; 0 comes first."""
    if case.failed:
        return 0
    return {NOT_AUDITED: 1, SKIPPED: 3}.get(case.outcome, 2)
