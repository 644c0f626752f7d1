"""The opening page: what is certified and measured, what to choose, what became of every claim.

Its words are in summary.jinja.
"""

from collections import Counter
from collections.abc import Iterable
from typing import NamedTuple

from confide.output import templates
from confide.report.figures import style
from confide.report.figures.glance import embedded, glance
from confide.report.pages.needs import HELP, choose
from confide.report.pages.numbers import Searches, numbers
from confide.report.seeds import LEVEL, detectable
from confide.report.tables.table import Row, cell, show, worse_than_unigram
from confide.report.verdicts.claims import CLAIMS
from confide.report.verdicts.evidence import (
    APART,
    FAILS,
    HOLDS,
    ONE_SEED,
    OPEN,
    PUBLISHED,
    UNKNOWN,
    Claim,
    Study,
    Verdict,
    settled,
)

MARKS = {
    HOLDS: "✓",
    PUBLISHED: "◐",
    FAILS: "✗",
    OPEN: "?",
    ONE_SEED: "?",
    APART: "≠",
    UNKNOWN: "–",
}
OVERVIEW = {  # column of table.csv -> heading
    "epsilon_secret_caught": "ε, caught secret",
    "epsilon_secret_caught_literal": "ε, one copy of it",
    "epsilon_secret_missed": "ε, missed secret",
    "epsilon_any_record": "ε, any record",
    "epsilon_bayesian": "Bayesian ε",
    "epsilon_bayesian_literal": "Bayesian ε, one copy",
    "ppl": "PPL",
    "ppl_public": "PPL, public",
    "ppl_unigram_redacted": "unigram, public",
    "ppl_private": "PPL, private",
    "accuracy": "accuracy",
    "exposure_mean": "exposure",
    "exposure_max": "largest",
    "mia_auc": "MIA",
    "group_mia_auc": "group MIA",
    "lira_auc": "LiRA",
    "audit_secret": "ε refuted",
    "sequence_exposure": "exposure",
    "tab_canaries": "tab",
    "author_inference": "author named",
    "passes": "passes",
}
STYLE = (
    "td,th{white-space:nowrap}"
    "td:first-child,th:first-child{position:sticky;left:0;background:#fff}"
    "li{margin:.4em 0}img{max-width:100%;height:auto}"
)


class Judged(NamedTuple):
    """A claim with what became of it; verdict None: a study that it needs was not run."""

    claim: Claim
    verdict: Verdict | None


def judge(studies: Iterable[Study]) -> list[Judged]:
    """Every claim of the papers, against these studies.

    Tests are corrected for the number of those on the same studies, so that no verdict depends on
    what else was run.
    """
    study_by_name = {study.spec.study: study for study in studies}
    found: dict[Claim, Verdict | None] = {}
    for names in dict.fromkeys(claim.studies for claim in CLAIMS):
        alike = [claim for claim in CLAIMS if claim.studies == names]
        verdicts = settled(claim.judge(study_by_name) for claim in alike)
        found |= zip(alike, verdicts, strict=True)
    return [Judged(claim, found[claim]) for claim in CLAIMS]


def power(judged: Iterable[Judged], studies: Iterable[Study]) -> str:
    """What the tests over seeds could show, in a sentence; empty where there was none.

    For the fewest seeds of a study that has several, and the strictest level that Holm's correction
    asks for.
    """
    tests = Counter(
        claim.studies for claim, verdict in judged if verdict is not None and verdict.p is not None
    )
    seeds = [study.seeds for study in studies if study.seeds > 1]
    if not tests or not seeds:
        return ""
    few = min(seeds)
    most = max(tests.values())
    least = detectable(few, LEVEL / most)
    return (
        f"With {few} seeds and {most} tests on a study, the strictest of these shows with a power "
        f"of 80 % a difference of {show(least)} standard deviations over seeds."
    )


def claim_rows(judged: Iterable[Judged]) -> list[dict[str, str]]:
    """Lines of claims.csv."""
    return [
        {
            "paper": claim.paper,
            "section": claim.section,
            "where": claim.where,
            "claim": claim.words,
            "verdict": verdict.word if verdict else "not run",
            "evidence": verdict.evidence if verdict else "",
            "studies": " ".join(claim.studies),
            "figure": claim.figure,
        }
        for claim, verdict in judged
    ]


def page(studies: list[Study], judged: list[Judged], searches: Searches | None = None) -> str:
    """The page in Markdown, to stand in a folder beside studies/.

    searches: scan.json of each study, by its name. Of the papers nothing is said where no study
    belongs to one.

    The miss rate is no choice that anybody has: where the best model for each need is named, all
    methods stand at one, that of the policy as it is.
    """
    count_of = Counter(
        judgement.verdict.word for judgement in judged if judgement.verdict is not None
    )
    counts = [
        f"{mark} {word}: {count_of[word]}" for word, mark in MARKS.items() if word in count_of
    ]
    papers: dict[str, list[Judged]] = {}
    for judgement in judged:
        if judgement.verdict is not None:
            papers.setdefault(judgement.claim.paper, []).append(judgement)
    values = {
        "numbers": numbers(models_of(studies), searches or {}),
        "alternative": "Certified ε of a record and largest exposure of each model",
        "image": overview(studies[0]),
        "studies": studies,
        "counts": "; ".join(counts),
        "columns": _shown,
        "overview": OVERVIEW,
        "missed": missed,
        "marked": marked,
        "advice": choose(row for rows in studies[0].table.values() for row in rows),
        "help": HELP,
        "papers": papers,
        "marks": MARKS,
        "place": place,
        "power": power(judged, studies),
        "untold": [judgement for judgement in judged if judgement.verdict is None],
    }
    return templates.filled(__file__, values)


def models_of(studies: Iterable[Study]) -> list[Row]:
    """A line of table.csv of every model, once where several studies have it."""
    by_run = {row["run"]: row for study in studies for rows in study.table.values() for row in rows}
    return list(by_run.values())


def overview(study: Study) -> str:
    """The figure that opens the page: each row of a study, where it misses least."""
    models: dict[str, list[Row]] = {}
    for name, gamma in sorted(study.table, key=lambda key: key[1]):
        models.setdefault(name, study.table[name, gamma])
    order = dict.fromkeys(name for name, _ in study.table)
    with style.settings():
        return embedded(glance({name: models[name] for name in order}))


def place(claim: Claim) -> str:
    """Where a claim stands in its paper."""
    section = claim.section if claim.section[:1].isalpha() else f"section {claim.section}"
    return f"{section}, {claim.where}" if claim.where else section


def _shown(study: Study) -> list[str]:
    """Columns of the overview in which any model of a study has a value."""
    table = [row for rows in study.table.values() for row in rows]
    return [name for name in OVERVIEW if any(row.get(name) is not None for row in table)]


def missed(rows: list[Row]) -> str:
    """The measured miss rate with its bound; unknown where the corpus names no secrets."""
    rate, bound = (cell(rows, name) for name in ("gamma_measured", "gamma_upper"))
    return "unknown" if bound == "–" else f"{rate} ({bound})"


def marked(rows: list[Row], column: str) -> str:
    """A cell, with a mark at the perplexity of a model that a unigram model outdoes."""
    text = cell(rows, column)
    return f"{text} ⚠" if column == "ppl_public" and any(map(worse_than_unigram, rows)) else text
