"""Write one page over all studies: every model, the best for each need, verdicts on the papers."""

import re
from pathlib import Path

from confide.files.io import read_file, write_text
from confide.files.jsons import JsonObject
from confide.output.escaping import embedded, rendered, table_of
from confide.report.pages import summary as pages
from confide.report.pages.certificate import as_html
from confide.report.results import load
from confide.report.verdicts.evidence import Study
from confide.specs import ReportSpec, SummarySpec
from confide.specs.files import ScanFile

FIGURE = re.compile(r'href="\.\./(studies/[^"]+)"')  # of a study, beside the page
# The same within Snakemake's report.
INSIDE = r"""href="javascript:app.showResultInfo('results/\1')\""""


def summary(
    spec: SummarySpec, *, results: Path, models: Path, claims: Path, page: Path, opening: Path
) -> None:
    """Write claims.csv, the page for a browser, and the opening of Snakemake's report.

    The opening is the same page as reStructuredText.

    What a claim asks for and was not measured is its verdict. What a search for secrets found is
    read beside each study; one that was not made is said to be so. InputError names a missing
    run's file.
    """
    studies = [Study(study, load(study.runs, results, models)) for study in spec.studies]
    judged = pages.judge(studies)
    text = pages.page(
        studies, judged, {study.study: search(results, study) for study in spec.studies}
    )
    write_text(claims, table_of(pages.claim_rows(judged)))
    write_text(page, as_html(text, "Summary", pages.STYLE))
    write_text(opening, embedded(within(rendered(text))))


def search(results: Path, study: ReportSpec) -> JsonObject | None:
    """scan.json of a study; None where it was not searched."""
    path = results / "studies" / study.study / "scan.json"
    return read_file(path, ScanFile) if path.exists() else None


def within(html: str) -> str:
    """The page as a part of Snakemake's report, whose figures are those of the report."""
    return FIGURE.sub(INSIDE, html)
