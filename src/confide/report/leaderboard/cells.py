"""The cells of a leaderboard: the best of the papers' methods and of ours, and whether they differ.

A panel is a corpus and a model. For each epsilon and each of three claims, those rows stand whose
runs certify it. Of rows that differ in their budget alone, the one that claims most stands, which
no test text decides. The best of a side has the fewest bits per character of test text. That
counts what nobody should learn, too, so all is compared once more by public tokens alone. The start
that nothing was trained on is on no side: it is what both should be better than.

That one side is better is shown if its best is better than each row of the other side, by a paired
t-test over equal seeds (all must be: the largest p counts), corrected for how many rows it was
chosen from (Bonferroni), and then for the number of cells (Holm).
"""

from collections.abc import Iterable, Sequence
from typing import NamedTuple

from confide.certify.facts import TOKENS
from confide.report.leaderboard.panels import UNITS, Entry
from confide.report.leaderboard.standing import CAUGHT, CELLS, MISSED, RECORD
from confide.report.seeds import (
    LEVEL,
    Estimate,
    all_below,
    holm,
    mean_of,
    over_seeds,
    says_anything,
)
from confide.specs import LeaderboardSpec

BETTER = "significantly better"
WORSE = "significantly worse"
OPEN = "not shown"
ONE_SEED = "only one seed"
OURS_ALONE = "only ours certifies it"
PAPERS_ALONE = "none of ours certifies it"
NOBODY = "nobody certifies it"
NOT_RUN = "not run yet"  # rows of a side that might certify it


class Cell(NamedTuple):
    """One comparison; `difference`: ours less theirs, in bits, over equal seeds."""

    study: str
    title: str
    tokens: str  # one of UNITS
    secret: str  # one of CELLS
    epsilon: float
    papers: Entry | None
    ours: Entry | None
    start: Entry | None  # what no method improved, if that was measured
    difference: Estimate | None
    p: float | None  # None: no test over seeds
    verdict: str
    corrected: float | None = None
    missing: int = 0  # runs of the panel
    refuted: int = 0

    @property
    def best_rows(self) -> list[Entry]:
        """The best row of each side that has one, theirs first."""
        return [entry for entry in (self.papers, self.ours) if entry is not None]

    @property
    def behind(self) -> list[Entry]:
        """Those of them that take more bits than the start."""
        if self.start is None:
            return []
        least = worth(self.start, self.tokens)
        return [entry for entry in self.best_rows if worth(entry, self.tokens) > least]

    @property
    def pairs(self) -> int:
        """How many seeds both sides have."""
        return len(self.difference.each) if self.difference else 0


def cells(spec: LeaderboardSpec, panels: dict[str, list[Entry]]) -> list[Cell]:
    """All cells, panel by panel, with verdicts that are corrected for the number of tests."""
    compared = [
        compare(study, title, panels[study], tokens=tokens, secret=secret, epsilon=epsilon)
        for study, title in spec.panels.items()
        for tokens in UNITS
        for secret in CELLS
        for epsilon in spec.epsilons
    ]
    corrected = iter(holm([cell.p for cell in compared if cell.p is not None]))
    return [cell if cell.p is None else settled(cell, next(corrected)) for cell in compared]


def of_panel(cells: Iterable[Cell], study: str, tokens: str) -> list[Cell]:
    """The comparisons of a panel by some tokens."""
    return [cell for cell in cells if cell.study == study and cell.tokens == tokens]


def settled(cell: Cell, p: float) -> Cell:
    """A tested cell with its verdict, by its corrected p-value."""
    verdict = cell.verdict if p < LEVEL else OPEN
    return cell._replace(verdict=verdict, corrected=p)


def compare(
    study: str, title: str, rows: Sequence[Entry], *, tokens: str, secret: str, epsilon: float
) -> Cell:
    """One cell, before the number of tests is known."""
    stand = standing(rows, secret, epsilon)
    papers = [row for row in stand if not row.is_ours and not row.is_start]
    ours = [row for row in stand if row.is_ours and not row.is_start]
    best_paper = best(papers, tokens)
    best_own = best(ours, tokens)
    cell = Cell(
        study,
        title,
        tokens,
        secret,
        epsilon,
        papers=best_paper,
        ours=best_own,
        start=next((row for row in stand if row.is_start), None),
        difference=None,
        p=None,
        verdict=NOBODY,
        missing=sum(len(row.missing) for row in rows),
        refuted=sum(len(row.refuted) for row in rows),
    )
    if best_paper is None or best_own is None:
        alone = OURS_ALONE if best_own else PAPERS_ALONE if best_paper else NOBODY
        lacks = {True: best_own is None, False: best_paper is None}
        unknown = any(lacks[row.is_ours] for row in rows if not (row.outcomes or row.is_start))
        return cell._replace(verdict=NOT_RUN if unknown else alone)
    pairs = paired(best_own, best_paper, tokens)
    cell = cell._replace(difference=over_seeds(pairs) if pairs else None)
    papers_lead = worth(best_paper, tokens) < worth(best_own, tokens)
    winner = best_paper if papers_lead else best_own
    chosen_from = papers if papers_lead else ours
    others = ours if papers_lead else papers
    p = beaten(winner, others, tokens)
    if p is None:
        return cell._replace(verdict=ONE_SEED)
    verdict = WORSE if papers_lead else BETTER
    return cell._replace(p=min(1.0, p * len(chosen_from)), verdict=verdict)


def standing(rows: Iterable[Entry], secret: str, epsilon: float) -> list[Entry]:
    """Rows whose claim is finite and at most epsilon: of each family that which spends most.

    All must be about the same unit; where tokens are told apart, that is said beside.
    """
    able = [row for row in rows if row.claims and all(row.bits(tokens) for tokens in UNITS)]
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


def worth(row: Entry, tokens: str) -> float:
    """Mean bits over the seeds: the fewer, the better."""
    return mean_of(list(row.bits(tokens).values()))


def best(rows: Sequence[Entry], tokens: str) -> Entry | None:
    """The row with the fewest bits; None of none."""
    return min(rows, key=lambda row: worth(row, tokens), default=None)


def paired(first: Entry, second: Entry, tokens: str) -> list[float]:
    """Differences in bits of the seeds that both have."""
    one = first.bits(tokens)
    other = second.bits(tokens)
    return [one[seed] - other[seed] for seed in sorted(one.keys() & other.keys())]


def beaten(winner: Entry, others: Iterable[Entry], tokens: str) -> float | None:
    """P-value that a row is better than each of some others; None where a pair has one seed."""
    samples = [paired(winner, other, tokens) for other in others]
    if not all(map(says_anything, samples)):
        return None
    tested = all_below(samples)
    return tested.p if tested.below else 1.0
