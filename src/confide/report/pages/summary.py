"""The opening page: what is certified and measured, what to choose, what became of every claim."""

from collections.abc import Iterable, Iterator
from typing import NamedTuple

from confide.output.escaping import markdown
from confide.report.pages.needs import HELP, choose
from confide.report.tables.table import Row, cell, columns, table_lines, worse_than_unigram
from confide.report.verdicts.claims import CLAIMS
from confide.report.verdicts.evidence import (
    FAILS,
    HOLDS,
    OPEN,
    PUBLISHED,
    UNKNOWN,
    Claim,
    Study,
    Verdict,
)

MARKS = {HOLDS: "✓", PUBLISHED: "◐", FAILS: "✗", OPEN: "?", UNKNOWN: "–"}
OVERVIEW = {  # column of table.csv -> heading
    "epsilon_secret_caught": "ε, caught secret",
    "epsilon_secret_caught_literal": "ε, one copy of it",
    "epsilon_secret_missed": "ε, missed secret",
    "epsilon_replace_one": "ε, record",
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
    "li{margin:.4em 0}"
)
LEGEND = (
    "ε: replace-one, at the study's δ; ∞: nothing is certified; –: not claimed or not measured. "
    "Caught and missed secrets, and Bayesian ε: masked in all copies of their text; one copy: "
    "that alone, so that a later one comes back (–: the same, where nothing is deduplicated). γ "
    "simulated: what the policy was made to miss; γ measured: what it misses of the corpus's own "
    "secrets, of the label that fares worst, and at most (95 %). PPL: on test text; ⚠: worse on "
    "public tokens than a unigram model, which guesses each token as often as it stands in the "
    f"redacted training text. {HELP} Exposure: mean and largest, bits. MIA, LiRA: area under the "
    "ROC curve, 0.5 is guessing. ε refuted: what an audit shows at least. Intervals, chance "
    "bands and times: in each study's table and figures."
)
WORDS = (
    "**holds**: with our measurements and an ε that is certified. **holds only as published**: "
    "with the paper's own setting, counting or comparison, and not beyond it. **does not hold**: "
    "our measurements contradict it. **not shown**: they cannot tell. Every verdict is computed "
    "from the numbers beside it."
)


class Judged(NamedTuple):
    """A claim with what became of it; verdict None: a study that it needs was not run."""

    claim: Claim
    verdict: Verdict | None


def judge(studies: Iterable[Study]) -> list[Judged]:
    """Every claim of the papers, against these studies."""
    known = {study.spec.study: study for study in studies}
    return [Judged(claim, claim.judge(known)) for claim in CLAIMS]


def claim_rows(judged: Iterable[Judged]) -> list[dict[str, str]]:
    """Lines of claims.csv."""
    return [
        {
            "paper": claim.paper,
            "where": claim.where,
            "claim": claim.words,
            "verdict": verdict.word if verdict else "not run",
            "evidence": verdict.evidence if verdict else "",
            "studies": " ".join(claim.studies),
            "figure": claim.figure,
        }
        for claim, verdict in judged
    ]


def page(studies: list[Study], judged: list[Judged]) -> str:
    """The page in Markdown, to stand in a folder beside studies/."""
    return "\n".join([*_studies(studies, judged), *_needs(studies[0]), *_claims(judged)]) + "\n"


def _studies(studies: list[Study], judged: list[Judged]) -> Iterator[str]:
    models = len({result.run.run for study in studies for result in study.results})
    words = [one.verdict.word for one in judged if one.verdict is not None]
    counts = "; ".join(
        f"{mark} {word}: {words.count(word)}" for word, mark in MARKS.items() if word in words
    )
    found = (
        f"Models: {models}. Studies: {len(studies)}. Claims of the papers: "
        f"{counts or 'none tested'}."
    )
    yield from ("# Summary", "", found, "")
    yield from ("## What is certified, what was measured", "", LEGEND, "")
    for study in studies:
        table = [row for rows in study.table.values() for row in rows]
        known = {column.name for column in columns(table)}
        shown = [
            name
            for name in OVERVIEW
            if name in known and any(row.get(name) is not None for row in table)
        ]
        head = ["row of the sample sheet", "γ simulated", "γ measured (at most)", "seeds"]
        head += [OVERVIEW[name] for name in shown]
        body = []
        for (name, gamma), rows in study.table.items():
            cells = [marked(rows, column) for column in shown]
            body.append([markdown(name), f"{gamma:g}", missed(rows), str(len(rows)), *cells])
        yield from (f"### {markdown(study.spec.title)}", "", *table_lines(head, body), "")


def missed(rows: list[Row]) -> str:
    """The measured miss rate with its bound; unknown where the corpus names no secrets."""
    rate, bound = (cell(rows, name) for name in ("gamma_measured", "gamma_upper"))
    return "unknown" if bound == "–" else f"{rate} ({bound})"


def marked(rows: list[Row], column: str) -> str:
    """A cell, with a mark at the perplexity of a model that a unigram model outdoes."""
    text = cell(rows, column)
    return f"{text} ⚠" if column == "ppl_public" and any(map(worse_than_unigram, rows)) else text


def _needs(study: Study) -> Iterator[str]:
    """The best model for each need.

    The miss rate is no choice that anybody has: all methods stand at one, that of the policy as it
    is.
    """
    advice = choose(row for rows in study.table.values() for row in rows)
    words = (
        "Of these models the best that meets each need; on another corpus it may be another: "
        f"`confide recommend`. {advice.compared}"
    )
    yield from (f"## Which method for which need — {markdown(study.spec.title)}", "", words, "")
    for need, row, why in advice.choices:
        yield f"- {need}: **{markdown(row or '–')}** ({markdown(why)})"
    yield ""


def _claims(judged: list[Judged]) -> Iterator[str]:
    yield from ("## What the papers claim", "", WORDS, "")
    told: dict[str, list[str]] = {}  # by paper
    untold = []
    for claim, verdict in judged:
        if verdict is None:
            untold.append(claim)
        else:
            told.setdefault(claim.paper, []).append(_line(claim, verdict))
    for paper, lines in told.items():
        yield from (f"### {paper}", "", *lines, "")
    if untold:
        missing = ", ".join(dict.fromkeys(name for claim in untold for name in claim.studies))
        words = f"{len(untold)} more claims need studies that were not selected: {missing}."
        yield from (words, "")


def _line(claim: Claim, verdict: Verdict) -> str:
    figure = f"[{claim.figure.replace('_', ' ')}](../studies/{claim.studies[0]}/{claim.figure}.svg)"
    return (
        f"- {MARKS[verdict.word]} **{verdict.word}** — {claim.where}, {claim.words}: "
        f"{markdown(verdict.evidence)} ({figure})"
    )
