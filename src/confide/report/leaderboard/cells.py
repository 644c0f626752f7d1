"""The cells of a leaderboard: the best of the papers' methods and of ours, and whether they differ.

A panel is a corpus and a model. For each epsilon and each of three claims, those rows stand whose
runs certify it. Of rows that differ in their budget alone, the one that claims most stands, which
no test text decides. The best of a side has the fewest bits per character of test text.

That one side is better is shown if its best is better than each row of the other side, by a paired
t-test over equal seeds (all must be: the largest p counts), corrected for how many rows it was
chosen from (Bonferroni), and then for the number of cells (Holm).
"""

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import NamedTuple

from confide.certify.facts import TOKENS
from confide.methods import METHODS
from confide.report.figures.style import look
from confide.report.leaderboard.standing import (
    CAUGHT,
    CELLS,
    MISSED,
    OUT,
    RECORD,
    Claimed,
    audited,
    claimed,
)
from confide.report.results import Result, load
from confide.report.seeds import LEVEL, Estimate, all_below, holm, mean_of, over_seeds
from confide.specs import LeaderboardSpec, PanelSpec, RankedRun

BETTER = "significantly better"
WORSE = "significantly worse"
OPEN = "not shown"
ONE_SEED = "only one seed"
OURS_ALONE = "only ours certifies it"
PAPERS_ALONE = "none of ours certifies it"
NOBODY = "nobody certifies it"
UTILITY = "bits_per_character"
BESIDE = ("accuracy_public", "accuracy_private", "ppl_public", "ppl_private")
FILES = ("certificate", "evaluate")  # of a run, beside its attacks


@dataclass(frozen=True)
class Entry:
    """The seeds of one row of the sample sheet at one miss rate: those that count, and the others.

    outcomes: of the audits of those that were run.
    """

    runs: tuple[RankedRun, ...]
    results: dict[int, Result]
    outcomes: dict[int, str]
    delta: float

    @property
    def first(self) -> RankedRun:
        """Its first seed, which says what all have in common."""
        return self.runs[0]

    @property
    def missing(self) -> list[int]:
        """Seeds that were not run, or whose files are not all there."""
        return [run.seed for run in self.runs if run.seed not in self.outcomes]

    @property
    def refuted(self) -> list[int]:
        """Seeds whose audit speaks against their certificate."""
        return [seed for seed, outcome in self.outcomes.items() if outcome in OUT]

    @property
    def label(self) -> str:
        """What tables call it."""
        run = self.first
        label = look(run.method).label
        if run.covered and not METHODS[run.method].needs_cover:
            label += " behind a cover"
        if run.covered and run.dedup:
            label += ", deduplicated"
        return label if run.variant is None else f"{label} ({run.variant})"

    @property
    def family(self) -> tuple[object, ...]:
        """What rows have in common that differ in their budget, and what belongs to it, alone."""
        run = self.first
        return (run.method, run.dataset, run.dedup, run.redact, run.variant, run.gamma)

    @cached_property
    def claims(self) -> dict[str, Claimed]:
        """By cell the largest claim of its seeds; none without a seed."""
        by_cell = {}
        for cell in CELLS if self.results else ():
            of_seeds = [
                claimed(result, cell, covered=self.first.covered, delta=self.delta)
                for result in self.results.values()
            ]
            by_cell[cell] = max(of_seeds, key=lambda claim: claim.epsilon)
        return by_cell

    def each(self, name: str) -> dict[int, float]:
        """A number of the evaluation by seed, where it is known."""
        return {
            seed: float(value)
            for seed, result in self.results.items()
            if (value := result.evaluation.get(name)) is not None
        }

    def mean(self, name: str) -> float | None:
        """Its mean over the seeds; None where no seed has it."""
        values = list(self.each(name).values())
        return mean_of(values) if values else None


class Cell(NamedTuple):
    """One comparison; `difference`: ours less theirs, in bits per character, over equal seeds."""

    study: str
    title: str
    secret: str  # one of CELLS
    epsilon: float
    papers: Entry | None
    ours: Entry | None
    difference: Estimate | None
    p: float | None  # None: no test over seeds
    verdict: str
    corrected: float | None = None
    missing: int = 0  # runs of the panel
    refuted: int = 0

    @property
    def pairs(self) -> int:
        """How many seeds both sides have."""
        return len(self.difference.each) if self.difference else 0


def entries(panel: PanelSpec, delta: float, results: Path, models: Path) -> list[Entry]:
    """The rows of a panel with what there is of them; InputError for a file that is damaged."""
    rows: dict[tuple[str, float], list[RankedRun]] = {}
    for run in panel.runs:
        rows.setdefault((run.name, run.gamma), []).append(run)
    return [entry(tuple(runs), delta, results, models) for runs in rows.values()]


def entry(runs: tuple[RankedRun, ...], delta: float, results: Path, models: Path) -> Entry:
    """One row; a run whose audit speaks against its certificate does not count."""
    found = {
        run.seed: load([run], results, models)[0] for run in runs if there(run, results, models)
    }
    outcomes = {seed: audited(result) for seed, result in found.items()}
    kept = {seed: result for seed, result in found.items() if outcomes[seed] not in OUT}
    return Entry(runs, kept, outcomes, delta)


def there(run: RankedRun, results: Path, models: Path) -> bool:
    """Whether all that a leaderboard reads of a run was made."""
    folder = results / "runs" / run.run
    files = [folder / f"{stem}.json" for stem in (*FILES, *run.attacks)]
    return all(file.is_file() for file in (*files, models / run.run / "metrics.jsonl"))


def cells(spec: LeaderboardSpec, panels: dict[str, list[Entry]]) -> list[Cell]:
    """All cells, panel by panel, with verdicts that are corrected for the number of tests."""
    compared = [
        compare(panel, panels[panel.study], cell, epsilon)
        for panel in spec.panels
        for cell in CELLS
        for epsilon in spec.epsilons
    ]
    corrected = iter(holm([cell.p for cell in compared if cell.p is not None]))
    return [cell if cell.p is None else settled(cell, next(corrected)) for cell in compared]


def settled(cell: Cell, p: float) -> Cell:
    """A tested cell with its verdict, by its corrected p-value."""
    verdict = cell.verdict if p < LEVEL else OPEN
    return cell._replace(verdict=verdict, corrected=p)


def compare(panel: PanelSpec, rows: Sequence[Entry], secret: str, epsilon: float) -> Cell:
    """One cell, before the number of tests is known."""
    stand = standing(rows, secret, epsilon)
    papers = [row for row in stand if not row.first.covered]
    ours = [row for row in stand if row.first.covered]
    best_paper = best(papers)
    best_own = best(ours)
    cell = Cell(
        panel.study,
        panel.title,
        secret,
        epsilon,
        papers=best_paper,
        ours=best_own,
        difference=None,
        p=None,
        verdict=NOBODY,
        missing=sum(len(row.missing) for row in rows),
        refuted=sum(len(row.refuted) for row in rows),
    )
    if best_paper is None or best_own is None:
        alone = OURS_ALONE if best_own else PAPERS_ALONE if best_paper else NOBODY
        return cell._replace(verdict=alone)
    pairs = paired(best_own, best_paper)
    cell = cell._replace(difference=over_seeds(pairs) if pairs else None)
    papers_lead = worth(best_paper) < worth(best_own)
    winner = best_paper if papers_lead else best_own
    chosen_from = papers if papers_lead else ours
    others = ours if papers_lead else papers
    p = beaten(winner, others)
    if p is None:
        return cell._replace(verdict=ONE_SEED)
    verdict = WORSE if papers_lead else BETTER
    return cell._replace(p=min(1.0, p * len(chosen_from)), verdict=verdict)


def standing(rows: Iterable[Entry], secret: str, epsilon: float) -> list[Entry]:
    """Rows whose claim is finite and at most epsilon: of each family that which spends most.

    All must be about the same unit; where tokens are told apart, that is said beside.
    """
    able = [row for row in rows if row.claims and row.each(UTILITY)]
    unit = next((row.claims[secret].unit for row in able if row.claims[secret].unit != TOKENS), "")
    by_family: dict[tuple[object, ...], Entry] = {}
    for row in able:
        claim = row.claims[secret]
        if claim.epsilon > epsilon or claim.unit not in (unit, TOKENS):
            continue
        other = by_family.get(row.family)
        if other is None or spent(row, secret) > spent(other, secret):
            by_family[row.family] = row
    return list(by_family.values())


def spent(row: Entry, secret: str) -> tuple[float, ...]:
    """By what rows of one family are ordered: what they claim in this cell, and elsewhere."""
    return tuple(row.claims[cell].epsilon for cell in (secret, MISSED, CAUGHT, RECORD))


def worth(row: Entry) -> float:
    """Mean bits per character over the seeds: the fewer, the better."""
    return mean_of(list(row.each(UTILITY).values()))


def best(rows: Sequence[Entry]) -> Entry | None:
    """The row with the fewest bits; None of none."""
    return min(rows, key=worth, default=None)


def paired(first: Entry, second: Entry) -> list[float]:
    """Differences in bits of the seeds that both have."""
    one = first.each(UTILITY)
    other = second.each(UTILITY)
    return [one[seed] - other[seed] for seed in sorted(one.keys() & other.keys())]


def beaten(winner: Entry, others: Iterable[Entry]) -> float | None:
    """P-value that a row is better than each of some others; None where a pair has one seed."""
    samples = [paired(winner, other) for other in others]
    if any(len(sample) < 2 or not all(map(math.isfinite, sample)) for sample in samples):
        return None
    tested = all_below(samples)
    return tested.p if tested.below else 1.0
