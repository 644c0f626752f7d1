"""The rows of a panel, which is one corpus and one model, from what its runs left or from a file.

What is kept of a run is what its certificate claims, what its audits say, and what it is worth.
"""

import math
from dataclasses import dataclass, fields, replace
from pathlib import Path
from typing import Any

from confide.files.io import number, read_file
from confide.methods import METHODS, UNTOUCHED
from confide.report.figures.style import look
from confide.report.leaderboard.standing import CELLS, OUT, Claimed, audited, claimed
from confide.report.results import Result, load
from confide.report.seeds import mean_of
from confide.specs import PanelSpec, RankedRun
from confide.specs.files import PanelFile

UTILITY = "bits_per_character"
BESIDE = ("accuracy_public", "accuracy_private", "ppl_public", "ppl_private")
ALL = "all tokens"
PUBLIC = "public tokens"
UNITS = {ALL: "bits per character", PUBLIC: "bits per token"}  # by what is predicted
PASSES = "passes"  # over the training text
FILES = ("certificate", "evaluate")  # of a run, beside its attacks


@dataclass(frozen=True)
class Asked:
    """What the sample sheet says of one row at one miss rate."""

    name: str
    method: str
    dataset: str
    model: str
    init: str | None  # the row that it started from
    variant: str | None
    recipe: str
    gamma: float
    dedup: bool
    redact: bool
    covered: bool
    filled: bool | str


ASKED = [field.name for field in fields(Asked)]


@dataclass(frozen=True)
class Entry(Asked):
    """A row with what there is of its runs.

    seeds: those that it asks for. claims: by cell the largest of its seeds; none without a seed.
    outcomes: of the audits of those that were run. numbers: of those that count.
    """

    seeds: tuple[int, ...]
    claims: dict[str, Claimed]
    outcomes: dict[int, str]
    numbers: dict[int, dict[str, float]]

    @property
    def asked(self) -> tuple[object, ...]:
        """What the sample sheet says of it, but for its seeds."""
        return tuple(getattr(self, name) for name in ASKED)

    @property
    def missing(self) -> list[int]:
        """Seeds that were not run, or whose files are not all there."""
        return [seed for seed in self.seeds if seed not in self.outcomes]

    @property
    def refuted(self) -> list[int]:
        """Seeds whose audit speaks against their certificate."""
        return [seed for seed, outcome in self.outcomes.items() if outcome in OUT]

    @property
    def is_ours(self) -> bool:
        """Whether it has what none of the papers has: a cover, or values in place of masks."""
        return self.covered or bool(self.filled)

    @property
    def is_start(self) -> bool:
        """Whether it is what all others started from, which nobody's method improved."""
        return self.method == UNTOUCHED

    @property
    def label(self) -> str:
        """What tables call it."""
        label = look(self.method).label
        if self.covered and not METHODS[self.method].needs_cover:
            label += " behind a cover"
        if self.filled:
            label += ", made-up values" if self.filled is True else ", values of public text"
        if self.covered and self.dedup:
            label += ", deduplicated"
        return label if self.variant is None else f"{label} ({self.variant})"

    @property
    def family(self) -> tuple[object, ...]:
        """What rows have in common that differ in their budget, and what belongs to it, alone."""
        return (self.method, self.dataset, self.dedup, self.redact, self.variant, self.gamma)

    def each(self, name: str) -> dict[int, float]:
        """A number of the evaluation by seed, where it is known."""
        return {seed: known[name] for seed, known in self.numbers.items() if name in known}

    def bits(self, tokens: str) -> dict[int, float]:
        """Bits that it takes by seed, the fewer the better, of ALL tokens or of PUBLIC ones."""
        if tokens == ALL:
            return self.each(UTILITY)
        return {seed: math.log2(value) for seed, value in self.each("ppl_public").items()}

    def mean(self, name: str) -> float | None:
        """Its mean over the seeds; None where no seed has it."""
        values = list(self.each(name).values())
        return mean_of(values) if values else None

    def joined(self, earlier: "Entry") -> "Entry":
        """It with the seeds that it asks for, has not, and that an earlier row has.

        Its claims then bound those of both.
        """
        lent = [seed for seed in self.missing if seed in earlier.outcomes]
        if not lent:
            return self
        both = (earlier.claims, self.claims)
        claims = {
            cell: max((one[cell] for one in both if cell in one), key=lambda claim: claim.epsilon)
            for cell in earlier.claims | self.claims
        }
        numbers = {seed: earlier.numbers[seed] for seed in lent if seed in earlier.numbers}
        return replace(
            self,
            claims=claims,
            outcomes={seed: earlier.outcomes[seed] for seed in lent} | self.outcomes,
            numbers=numbers | self.numbers,
        )


# From runs
# -------------------------------------------------------------------------------------------------


def entries(panel: PanelSpec, results: Path, models: Path) -> list[Entry]:
    """The rows of a panel with what there is of them; InputError for a file that is damaged."""
    return [entry(runs, panel.delta, results, models) for runs in by_row(panel)]


def by_row(panel: PanelSpec) -> list[list[RankedRun]]:
    """The runs of a panel, row by row."""
    rows: dict[tuple[str, float], list[RankedRun]] = {}
    for run in panel.runs:
        rows.setdefault((run.name, run.gamma), []).append(run)
    return list(rows.values())


def entry(runs: list[RankedRun], delta: float, results: Path, models: Path) -> Entry:
    """One row; a run whose audit speaks against its certificate does not count."""
    found = {
        run.seed: load([run], results, models)[0] for run in runs if there(run, results, models)
    }
    return measured(runs, found, {seed: audited(result) for seed, result in found.items()}, delta)


def measured(
    runs: list[RankedRun], found: dict[int, Result], outcomes: dict[int, str], delta: float
) -> Entry:
    """A row of runs, of which some were found, with what their audits say."""
    kept = {seed: result for seed, result in found.items() if outcomes[seed] not in OUT}
    covered = runs[0].covered
    claims = {}
    for cell in CELLS if kept else ():
        of_seeds = [claimed(one, cell, covered=covered, delta=delta) for one in kept.values()]
        claims[cell] = max(of_seeds, key=lambda claim: claim.epsilon)
    return Entry(
        **{name: getattr(runs[0], name) for name in ASKED},
        seeds=tuple(run.seed for run in runs),
        claims=claims,
        outcomes=outcomes,
        numbers={seed: numbers_of(result) for seed, result in kept.items()},
    )


def there(run: RankedRun, results: Path, models: Path) -> bool:
    """Whether all that a leaderboard reads of a run was made."""
    folder = results / "runs" / run.run
    files = [folder / f"{stem}.json" for stem in (*FILES, *run.attacks)]
    return all(file.is_file() for file in (*files, models / run.run / "metrics.jsonl"))


def numbers_of(result: Result) -> dict[str, float]:
    """What a model is worth, and how often it read the text, as far as that is known."""
    values = {name: result.evaluation.get(name) for name in (UTILITY, *BESIDE)}
    values[PASSES] = result.passes
    return {name: float(value) for name, value in values.items() if value is not None}


# In files
# -------------------------------------------------------------------------------------------------


def joined(rows: list[Entry], earlier: list[Entry]) -> list[Entry]:
    """Rows with the seeds that a panel has which was made earlier, on another machine perhaps.

    Nothing is taken of rows of which the sample sheet said something else. What a recipe's or a
    budget's name stood for then is not known: where that has changed, the earlier file must go.
    """
    known = {row.asked: row for row in earlier}
    return [row.joined(known[row.asked]) if row.asked in known else row for row in rows]


def file_of(rows: list[Entry]) -> dict[str, Any]:
    """What the file of a panel holds."""
    return {"rows": [stored(row) for row in rows]}


def stored(row: Entry) -> dict[str, Any]:
    """A row as that file has it."""
    claims = {
        cell: {"epsilon": number(claim.epsilon), "unit": claim.unit, "rests": claim.rests}
        for cell, claim in row.claims.items()
    }
    runs = [
        {"seed": seed, "outcome": outcome, "numbers": row.numbers.get(seed, {})}
        for seed, outcome in row.outcomes.items()
    ]
    said = {name: getattr(row, name) for name in ASKED}
    return said | {"seeds": list(row.seeds), "claims": claims or None, "runs": runs}


def read(path: Path) -> list[Entry]:
    """The rows of a panel's file; InputError for one that is not what `stored` writes."""
    return [
        Entry(
            **{name: row[name] for name in ASKED},
            seeds=tuple(row["seeds"]),
            claims={
                cell: Claimed(float(claim["epsilon"]), claim["unit"], claim["rests"])
                for cell, claim in (row["claims"] or {}).items()
            },
            outcomes={run["seed"]: run["outcome"] for run in row["runs"]},
            numbers={run["seed"]: run["numbers"] for run in row["runs"] if run["numbers"]},
        )
        for row in read_file(path, PanelFile)["rows"]
    ]
