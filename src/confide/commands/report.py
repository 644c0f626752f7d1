"""`confide report [OPTION ...]`: one page with every result that was built, results/report.html.

It can be read without a network and without confide. Options are passed on to Snakemake, as those
of `confide run` are: give both the same.

  confide report                  of what params.yaml in this folder selects
  confide report -d mine          of the folder mine
"""

from confide.errors import InputError
from confide.runtime import packaged
from confide.runtime.afterwards import SUMMARY
from confide.runtime.plan import left

PAGE = "results/report.html"


def report(*options: str) -> None:
    """Become Snakemake, which writes the page; InputError where nothing has been built, or what was
    is of other settings: beside it would stand those of params.yaml as it is now.
    """
    folder = packaged.directory(options)
    summary = folder / SUMMARY
    if not summary.is_file():
        problem = "is not made yet, so there is nothing to report: `confide run` comes first"
        raise InputError(problem, file=summary)
    stale = [job for job in left(*options) if all((folder / file).exists() for file in job.outputs)]
    if stale:
        problem = (
            "was made of other settings, files or code than there are now, and so may others be: "
            "`confide run` makes it again"
        )
        raise InputError(problem, file=folder / stale[0].outputs[0])
    style = packaged.folder() / "workflow/report/report.css"
    packaged.become(["--report", PAGE, "--report-stylesheet", str(style), *options])
