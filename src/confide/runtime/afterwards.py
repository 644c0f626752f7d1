"""The end of a run that succeeded: where what it has made can be read, or what to do next."""

from pathlib import Path

from confide.output.escaping import say

SUMMARY = Path("results/summary/index.html")  # made last of all pages
STUDIES = Path("results/studies")
MEASURED = "data/work/*/*/recall.json"  # what is measured of policies, as `prepare` does
ASSESSMENTS = "assessment_*.html"


def tell(folder: Path, started: float) -> None:
    """Print how all results come on one page, and where those for an assessment lie.

    After `prepare` alone, which makes no summary: what tells what comes of it.

    folder: in which Snakemake worked. started: when it began, in seconds since the epoch.
    """

    def is_new(file: Path) -> bool:
        return file.is_file() and file.stat().st_mtime >= started

    if not is_new(folder / SUMMARY):
        if any(map(is_new, folder.glob(MEASURED))):
            say(
                "",
                "What each method would guarantee, and what the policies miss: confide recommend",
            )
        return
    say("", f"All results: {SUMMARY}; as one file that can be handed on: confide report")
    for study in sorted((folder / STUDIES).iterdir()):
        if any(study.glob(ASSESSMENTS)):
            pages = STUDIES / study.name / ASSESSMENTS
            say(f"For a data protection officer, a page of each model: {pages}")
