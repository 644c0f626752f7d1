"""The gate of a study as a page: certificates against audits, the verdict first (gate.jinja)."""

from collections.abc import Sequence

from confide.certify.gate import NOT_AUDITED, STANDS, Case
from confide.output import templates
from confide.report.pages.certificate import as_html
from confide.report.pages.opening import rounded_up
from confide.report.tables.table import show

TITLE = "Certificates against audits"


def page(study: str, cases: Sequence[Case]) -> str:
    """HTML. Failures come first, then what was not audited."""
    ordered = sorted(cases, key=lambda case: (not case.failed, case.outcome != NOT_AUDITED))
    values = {
        "title": TITLE,
        "study": study,
        "cases": ordered,
        "failed": sum(case.failed for case in cases),
        "stand": sum(case.outcome == STANDS for case in cases),
        "unaudited": sum(case.outcome == NOT_AUDITED for case in cases),
        "up": lambda value: "–" if value is None else rounded_up(value),
        "number": lambda value: "–" if value is None else show(value),
        "percent": lambda value: "–" if value is None else f"{value:.0%}",
    }
    return as_html(templates.filled(__file__, values), TITLE)
