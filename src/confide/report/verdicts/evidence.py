"""What a claim is decided by: the runs of a study, and the verdict in a word.

Nothing here knows an answer: a verdict is a function of measured numbers, and the sentence beside
it says which. What may differ from seed to seed is shown by several seeds alone: by a t-test over
them where numbers are compared, in pairs of equal seeds, with all tests on a study corrected for
their number (`settled`).
"""

import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

from confide.report.figures.levels import at_level
from confide.report.results import Json, Result
from confide.report.seeds import LEVEL, all_below, holm, mean_of, says_anything
from confide.report.tables.table import Row, groups, of_seeds, rows, show
from confide.specs import ReportSpec

HOLDS = "holds"
PUBLISHED = "holds only as published"
FAILS = "does not hold"
OPEN = "not shown"
ONE_SEED = "not shown (one seed)"
APART = "not comparable"
UNKNOWN = "not measured"
# an attack to which guessing may look like a larger AUC than this tells nothing of guessing
WIDEST = 0.65
# a row whose validation perplexity ends this much above its lowest was trained for too long, or too
# fast: what its last epoch says is of its recipe, not of its method
UNLEARNED = 1.1
# perplexities move by about 3 % from seed to seed: one seed contradicts a claim from here on
FAR = math.log(1.1)


class NotMeasured(Exception):
    """What a claim asks for was not measured, or is no run of the study."""


class NotComparable(Exception):
    """What a claim compares has nothing in common to be compared at."""


class Verdict(NamedTuple):
    """A word of those above, and the numbers that it rests on.

    `p`: of the test over seeds without which the word would be OPEN; None where there is no such.
    """

    word: str
    evidence: str
    p: float | None = None


@dataclass(frozen=True)
class Study:
    """The results of one study."""

    spec: ReportSpec
    results: list[Result]

    @cached_property
    def table(self) -> dict[tuple[str, float], list[Row]]:
        """Lines of table.csv by row of the sample sheet and miss rate."""
        return groups(rows(self.results))

    def gammas(self, name: str) -> list[float]:
        """Miss rates at which a row was trained; NotMeasured where the study lacks the row."""
        gammas = sorted(gamma for row, gamma in self.table if row == name)
        if not gammas:
            raise NotMeasured(f"{self.spec.study} has no run {name}")
        return gammas

    def runs(self, name: str, gamma: float | None = None) -> list[Result]:
        """The seeds of a row, at the miss rate nearest to the given one (None: the paper's 0.1)."""
        at = self._nearest(name, gamma)
        return [
            result for result in self.results if (result.run.name, result.run.gamma) == (name, at)
        ]

    def rows(self, name: str, gamma: float | None = None) -> list[Row]:
        """Lines of table.csv of these runs."""
        return self.table[name, self._nearest(name, gamma)]

    def number(self, name: str, column: str, gamma: float | None = None) -> float:
        """A column of table.csv over the seeds: the largest of bounds, else the mean; NotMeasured
        where none of them has it.
        """
        return of_seeds(column, list(self.each(name, column, gamma).values()))

    @property
    def seeds(self) -> int:
        """How many seeds every row has at least."""
        return min(len({row["seed"] for row in rows}) for rows in self.table.values())

    def each(self, name: str, column: str, gamma: float | None = None) -> dict[int, float]:
        """A column of table.csv by seed; NotMeasured where none of them has it.

        Exposures that are estimates judge no claim.
        """
        exposures = column.startswith("exposure_")
        value_by_seed = {
            row["seed"]: float(value)
            for row in self.rows(name, gamma)
            if (value := row.get(column)) is not None
            and not (exposures and row.get("exposure_estimated") is not None)
        }
        if not value_by_seed:
            raise NotMeasured(f"{self.spec.study}: {name}.{column} was not measured")
        return value_by_seed

    def numbers(self, names: Iterable[str], column: str, gamma: float | None = None) -> list[float]:
        """The same of several rows."""
        return [self.number(name, column, gamma) for name in names]

    def metric(self, name: str, kind: str, key: str, gamma: float | None = None) -> float:
        """Mean over the seeds of a number of an attack; NotMeasured where none of them has it."""
        values = (result.metric(kind, key) for result in self.runs(name, gamma))
        return mean(values, f"{self.spec.study}: {name}.{kind}.{key}")

    def at_perplexity(
        self, names: Iterable[str], level: float, kind: str, measure: Callable[[Json], float | None]
    ) -> dict[str, dict[int, float]]:
        """A number of an attack on rows where each has a validation perplexity; by seed.

        NotComparable where a row has no two epochs just above and just below it.
        """
        numbers = {}
        for name in names:
            each = {run.run.seed: at_level(run, level, kind, measure) for run in self.runs(name)}
            numbers[name] = {seed: value for seed, value in each.items() if value is not None}
            if not numbers[name]:
                raise NotComparable(
                    f"{name} has no epochs near validation perplexity {show(level)} on both sides"
                )
        return numbers

    def _nearest(self, name: str, gamma: float | None) -> float:
        return min(
            self.gammas(name), key=lambda other: abs(other - (0.1 if gamma is None else gamma))
        )


def mean(values: Iterable[float | None], what: str) -> float:
    """Arithmetic mean of what is known; NotMeasured where there is nothing."""
    numbers = [float(value) for value in values if value is not None]
    if not numbers:
        raise NotMeasured(f"{what} was not measured")
    return sum(numbers) / len(numbers)


def between(values: Iterable[float]) -> str:
    """ "1.2" or "1.2 to 3.4"."""
    numbers = list(values)
    if not numbers:
        raise NotMeasured("nothing of this was measured")
    low = show(min(numbers))
    high = show(max(numbers))
    return low if low == high else f"{low} to {high}"


def decide(condition: bool, evidence: str, otherwise: str = FAILS) -> Verdict:
    """HOLDS under a condition."""
    return Verdict(HOLDS if condition else otherwise, evidence)


def above_level(
    study: Study, name: str, column: str, level: float, gamma: float | None = None
) -> list[float]:
    """By how much each seed of a row lies above a level."""
    return [value - level for value in study.each(name, column, gamma).values()]


def above_ratio(logs: list[float], ratio: float) -> list[float]:
    """Logarithms of ratios, less that of the largest ratio that a claim allows."""
    return [value - math.log(ratio) for value in logs]


def paired(first: dict[int, float], second: dict[int, float]) -> list[float]:
    """By how much the first row's numbers are larger than the second's, of the seeds of both."""
    return list(by_seed(first, second).values())


def by_seed(first: dict[int, float], second: dict[int, float]) -> dict[int, float]:
    """The same, each with its seed."""
    seeds = sorted(first.keys() & second.keys())
    if not seeds:
        raise NotMeasured("the same seed of both rows was not run")
    return {seed: first[seed] - second[seed] for seed in seeds}


def logarithms(numbers: dict[int, float]) -> dict[int, float]:
    """Logarithms of a row's numbers, by seed."""
    return {seed: math.log(value) for seed, value in numbers.items()}


def log_ratios(first: dict[int, float], second: dict[int, float]) -> list[float]:
    """Logarithms of the ratios of two rows' numbers, of the seeds that both have."""
    return paired(logarithms(first), logarithms(second))


def ratios(
    study: Study, names: tuple[str, str], column: str = "ppl", gamma: float | None = None
) -> list[float]:
    """The same of a column of two rows of one study."""
    first, second = (study.each(name, column, gamma) for name in names)
    return log_ratios(first, second)


def refuse_unlearned(study: Study, names: Iterable[str], *, private: bool = False) -> None:
    """NotComparable where the last epoch of a row unlearned what an earlier one knew.

    That is by the perplexity of validation text, or of its private tokens alone, in the mean over
    seeds. Rows without one pass.
    """
    column = "valid_ppl_private" if private else "valid_ppl"
    where = "of private tokens " if private else ""
    for name in names:
        of_seeds = [
            [ppl for epoch in run.epochs if (ppl := getattr(epoch, column)) is not None]
            for run in study.runs(name)
        ]
        known = [ppl for ppl in of_seeds if ppl]
        if known and mean_of([ppl[-1] / min(ppl) for ppl in known]) > UNLEARNED:
            raise NotComparable(
                f"{name} unlearns: its validation perplexity {where}is "
                f"{show(mean_of([min(ppl) for ppl in known]))} at its lowest and "
                f"{show(mean_of([ppl[-1] for ppl in known]))} at the end"
            )


def p_of(samples: Sequence[Sequence[float]]) -> float | None:
    """Two-sided p-value that all samples lie on the side of 0 that their means say.

    None where some have one seed, or an infinite number, and no test says anything.
    """
    if not all(map(says_anything, samples)):
        return None
    return all_below(samples).p


def below(samples: Sequence[Sequence[float]], evidence: str, far: float) -> Verdict:
    """Whether all samples lie below 0 in the mean, with the test over seeds that shows it.

    One seed shows nothing, unless it lies further above than `far`.
    """
    top = max(map(mean_of, samples))
    if min(map(len, samples)) < 2:
        return Verdict(FAILS if top > far else ONE_SEED, evidence)
    p = p_of(samples)
    return Verdict(OPEN if p is None else HOLDS if top < 0 else FAILS, evidence, p)


def guessing(
    values: list[float],
    low: list[float],
    high: list[float],
    explained: float,
    band: float,
    open_low: float,
) -> str:
    """Whether an attack with these AUCs only guesses: HOLDS, FAILS, or OPEN where it is unclear.

    explained: the AUC that members' form gives without the model, at least 0.5. band: upper end of
    what guessing gives with so many members. open_low: lower end for a model that is not protected,
    which shows that the attack can find something. That chance cannot be ruled out is no proof of
    it: an attack with few members rules out nothing.
    """
    if max(low) > explained:
        return FAILS
    is_telling = band <= WIDEST and max(high) < open_low
    return HOLDS if is_telling and max(values) <= max(explained, band) else OPEN


class Claim(NamedTuple):
    """A claim of a paper: where it stands, what it says in our words, and what tests it.

    `needs`: "seeds" where one seed can only contradict it.
    """

    paper: str
    section: str
    where: str
    words: str
    needs: str
    studies: tuple[str, ...]  # of params.yaml; all are needed
    figure: str  # of the first of them
    verdict: Callable[..., Verdict]  # of as many Study

    def judge(self, studies: dict[str, Study]) -> Verdict | None:
        """None where a study that it needs was not run."""
        if not all(name in studies for name in self.studies):
            return None
        needed = [studies[name] for name in self.studies]
        try:
            verdict = self.verdict(*needed)
        except NotMeasured as missing:
            return Verdict(UNKNOWN, str(missing))
        except NotComparable as apart:
            return Verdict(APART, str(apart))
        single = min(study.seeds for study in needed) == 1
        untested = verdict.p is None and verdict.word in (HOLDS, PUBLISHED)
        if self.needs == "seeds" and single and untested:
            return verdict._replace(word=ONE_SEED)
        return verdict


def settled(verdicts: Iterable[Verdict | None]) -> list[Verdict | None]:
    """Verdicts that rest on a test over seeds, corrected for the number of these tests (Holm).

    Where the corrected p-value is not below 5 % the verdict is OPEN, whatever its side.
    """
    all_verdicts = list(verdicts)
    tested = [verdict for verdict in all_verdicts if verdict is not None and verdict.p is not None]
    corrected = iter(holm([verdict.p for verdict in tested if verdict.p is not None]))
    return [
        verdict
        if verdict is None or verdict.p is None
        else _settled(verdict, next(corrected), len(tested))
        for verdict in all_verdicts
    ]


def _settled(verdict: Verdict, p: float, tests: int) -> Verdict:
    evidence = f"{verdict.evidence}; over seeds p {plain_p(verdict.p or 0.0)}"
    evidence += f", corrected for {tests} tests {plain_p(p)}"
    return verdict._replace(word=verdict.word if p < LEVEL else OPEN, evidence=evidence)


def plain_p(p: float) -> str:
    """A p-value for reading."""
    return "< 0.001" if p < 0.001 else f"= {p:.2g}"
