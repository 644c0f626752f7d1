"""The end of a run that succeeded: where what it has made can be read, or what to do next."""

import os
import shlex
from pathlib import Path

from confide.output.escaping import say

SUMMARY = Path("results/summary/index.html")  # made last of all pages
STUDIES = Path("results/studies")
MEASURED = "data/work/*/*/recall.json"  # what is measured of policies, as `prepare` does
ASSESSMENTS = "assessment_*.html"


def tell(folder: Path, started: float) -> None:
    """Print how all results come on one page, and where those for an assessment lie.

    After `prepare` alone, which makes no summary: what tells what comes of it.

    Where the user's shell stands in another folder than Snakemake worked in, each names that.

    folder: in which Snakemake worked. started: when it began, in seconds since the epoch.
    """

    def is_new(file: Path) -> bool:
        return file.is_file() and file.stat().st_mtime >= started

    stands_there = Path(os.environ.get("PWD", folder)).resolve() == folder.resolve()
    named = "" if stands_there else f" {shlex.quote(str(folder))}"
    option = f" -d{named}" if named else ""
    seen = Path() if stands_there else folder
    if not is_new(folder / SUMMARY):
        if any(map(is_new, folder.glob(MEASURED))):
            advice = "What each method would guarantee, and what the policies miss"
            say("", f"{advice}: confide recommend{named}")
        return
    one_file = f"as one file, for those who may see the text: confide report{option}"
    say("", f"All results: {seen / SUMMARY}; {one_file}")
    for study in sorted((folder / STUDIES).iterdir()):
        if any(study.glob(ASSESSMENTS)):
            pages = seen / STUDIES / study.name / ASSESSMENTS
            say(f"For a data protection officer, a page of each model: {pages}")
