"""One page over all studies: every model, the best for each need, and a verdict on every claim of the papers."""

import re
from pathlib import Path

from confide.io import atomic
from confide.report import summary as pages
from confide.report.certificate import as_html, rendered
from confide.report.claims.evidence import Study
from confide.report.results import load
from confide.report.tables import as_csv
from confide.specs import SummarySpec

FIGURE = re.compile(r'href="\.\./(studies/[^"]+)"')  # of a study, beside the page
INSIDE = r"""href="javascript:app.showResultInfo('results/\1')\""""  # the same within Snakemake's report


def summary(spec: SummarySpec, *, results: Path, models: Path, claims: Path, page: Path, opening: Path) -> None:
    """Write claims.csv, the page for a browser, and the same as the opening of Snakemake's report (reStructuredText).

    What a claim asks for and was not measured is its verdict. InputError names a missing run's file.
    """
    studies = [Study(study, load(study.runs, results, models)) for study in spec.studies]
    judged = pages.judge(studies)
    text = pages.page(studies, judged)
    html = as_html(text, "Summary", pages.STYLE)
    for path, written in ((claims, as_csv(pages.claim_rows(judged))), (page, html), (opening, embedded(rendered(text)))):
        with atomic(path) as temporary:
            temporary.write_text(written)


def embedded(html: str) -> str:
    """A part of a page as raw HTML within reStructuredText, its figures those of the report.

    Snakemake's report is a template, which would run what stands in braces: titles of studies may have some.
    """
    lines = FIGURE.sub(INSIDE, html).replace("{", "&#123;").replace("}", "&#125;").splitlines()
    return "\n".join([".. raw:: html", "", *(f"   {line}" for line in lines)]) + "\n"
