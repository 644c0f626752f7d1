"""The end of a run that succeeded: where what it has made can be read."""

from pathlib import Path

from confide.output.escaping import say

SUMMARY = Path("results/summary/index.html")  # made last of all pages
STUDIES = Path("results/studies")
ASSESSMENTS = "assessment_*.html"


def tell(folder: Path, started: float) -> None:
    """Print how all results come on one page, and where those for an assessment lie.

    Nothing where this run has made no summary, as one of `prepare` alone.

    folder: in which Snakemake worked. started: when it began, in seconds since the epoch.
    """
    summary = folder / SUMMARY
    if not summary.is_file() or summary.stat().st_mtime < started:
        return
    say("", f"All results: {SUMMARY}; as one file that can be handed on: confide report")
    for study in sorted((folder / STUDIES).iterdir()):
        if any(study.glob(ASSESSMENTS)):
            pages = STUDIES / study.name / ASSESSMENTS
            say(f"For a data protection officer, a page of each model: {pages}")
