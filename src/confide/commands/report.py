"""`confide report [OPTION ...]`: one page with every result that was built, results/report.html.

It can be read without a network and without confide. Options are passed on to Snakemake, as those
of `confide run` are: give both the same.

  confide report                  of what params.yaml in this folder selects
  confide report -d mine          of the folder mine
"""

from confide.errors import InputError
from confide.runtime import packaged

MADE_LAST = "results/summary/index.html"
PAGE = "results/report.html"


def report(*options: str) -> None:
    """Become Snakemake, which writes the page; InputError where nothing has been built."""
    summary = packaged.directory(options) / MADE_LAST
    if not summary.is_file():
        problem = "is not made yet, so there is nothing to report: `confide run` comes first"
        raise InputError(problem, file=summary)
    style = packaged.folder() / "workflow/report/report.css"
    packaged.become(["--report", PAGE, "--report-stylesheet", str(style), *options])
