"""Texts for the eye, side by side, as Markdown (examples.jinja).

They are those that models write to be handed out, and those of attacks: Domain Private
Transformers, Tables 1 to 3 and Appendix E.4. What is secret in them, or might be, was masked where
they were made (`attacks/domains/examples.py`).
"""

from confide.output import templates
from confide.report.figures.series import group
from confide.report.results import Json, Result
from confide.specs import ReportSpec


def markdown(spec: ReportSpec, results: list[Result]) -> str:
    """All examples of a study: redactions, each model's answers, and the highest ratios.

    Policies and texts of redactions are the same for all runs, so each line is told once.
    """
    labelled_results = [(series.label, series.results[0]) for series in group(results)]
    redactions: dict[tuple, Json] = {}
    for result in results:
        for metrics in result.all_of("leak"):
            for row in metrics.get("redactions", ()):
                redactions.setdefault((row["judge"], row["domain"], row["text"]), row)
    answers: dict[tuple[str, str], list[tuple[str, Json]]] = {}  # by prompt
    for label, result in labelled_results:
        for metrics in result.all_of("leak"):
            for row in metrics.get("examples", ()):
                answers.setdefault((row["prompt"], row["context"]), []).append((label, row))
    ranked = {
        (label, name): metrics["examples"]
        for label, result in labelled_results
        for name, metrics in result.attacks.items()
        if metrics["attack"] == "domain_lira" and metrics.get("examples")
    }
    handed_out: dict[str, dict[str | None, None]] = {}  # by whose they are, each once
    for label, result in labelled_results:
        for row in result.attacks.get("worth", {}).get("examples", ()):
            whose = "the corpus itself" if row["kind"] == "real" else label
            handed_out.setdefault(whose, {})[row["text"]] = None
    values = {
        "title": spec.title,
        "handed_out": handed_out,
        "redactions": redactions.values(),
        "answers": answers,
        "ranked": ranked,
    }
    return templates.filled(__file__, values)
