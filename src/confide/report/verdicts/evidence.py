"""What a claim is decided by: the runs of a study, and the verdict in a word.

Nothing here knows an answer: a verdict is a function of measured numbers, and the sentence beside
it says which.
"""

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

from confide.report.results import Result
from confide.report.seeds import Estimate
from confide.report.tables.table import Row, groups, rows, show
from confide.specs import ReportSpec

HOLDS = "holds"
PUBLISHED = "holds only as published"
FAILS = "does not hold"
OPEN = "not shown"
UNKNOWN = "not measured"
# an attack to which guessing may look like a larger AUC than this tells nothing of guessing
WIDEST = 0.65


class NotMeasured(Exception):
    """What a claim asks for was not measured, or is no run of the study."""


class Verdict(NamedTuple):
    """A word of those above, and the numbers that it rests on."""

    word: str
    evidence: str


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
        found = sorted(gamma for own, gamma in self.table if own == name)
        if not found:
            raise NotMeasured(f"{self.spec.study} has no run {name}")
        return found

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
        """Mean over the seeds of a column of table.csv; NotMeasured where none of them has it."""
        values = (row.get(column) for row in self.rows(name, gamma))
        return mean(values, f"{self.spec.study}: {name}.{column}")

    def numbers(self, names: Iterable[str], column: str, gamma: float | None = None) -> list[float]:
        """The same of several rows."""
        return [self.number(name, column, gamma) for name in names]

    def estimate(self, name: str, column: str) -> Estimate:
        """Means over the seeds of a column of table.csv and of its interval's ends."""
        value, low, high = (self.number(name, f"{column}{end}") for end in ("", "_low", "_high"))
        return Estimate(value, low=low, high=high)

    def metric(self, name: str, kind: str, key: str, gamma: float | None = None) -> float:
        """Mean over the seeds of a number of an attack; NotMeasured where none of them has it."""
        values = (result.metric(kind, key) for result in self.runs(name, gamma))
        return mean(values, f"{self.spec.study}: {name}.{kind}.{key}")

    def _nearest(self, name: str, gamma: float | None) -> float:
        return min(self.gammas(name), key=lambda own: abs(own - (0.1 if gamma is None else gamma)))


def mean(values: Iterable[float | None], what: str) -> float:
    """Arithmetic mean of what is known; NotMeasured where there is nothing."""
    known = [float(value) for value in values if value is not None]
    if not known:
        raise NotMeasured(f"{what} was not measured")
    return sum(known) / len(known)


def between(values: Iterable[float]) -> str:
    """ "1.2" or "1.2 to 3.4"."""
    found = list(values)
    low = show(min(found))
    high = show(max(found))
    return low if low == high else f"{low} to {high}"


def decide(condition: bool, evidence: str, otherwise: str = FAILS) -> Verdict:
    """HOLDS under a condition."""
    return Verdict(HOLDS if condition else otherwise, evidence)


def lower_perplexity(study: Study, names: tuple[str, str], of: str = "") -> Verdict:
    """Whether the first of two rows has lower test perplexity at equal epsilon of a caught secret.

    `of`: what the sentence adds of this epsilon.
    """
    own, other = study.numbers(names, "ppl")
    spent, allowed = study.numbers(names, "epsilon_secret_caught")
    words = (
        f"test perplexity {show(own)} against {show(other)} at ε = {show(spent)} and "
        f"{show(allowed)}{of}"
    )
    return decide(own < other and spent <= 1.01 * allowed, words)


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
    told = band <= WIDEST and max(high) < open_low
    return HOLDS if told and max(values) <= max(explained, band) else OPEN


class Claim(NamedTuple):
    """A claim of a paper: where it stands, what it says in our words, and what tests it."""

    paper: str
    where: str
    words: str
    studies: tuple[str, ...]  # of params.yaml; all are needed
    figure: str  # of the first of them
    verdict: Callable[..., Verdict]  # of as many Study

    def judge(self, studies: dict[str, Study]) -> Verdict | None:
        """None where a study that it needs was not run."""
        if not all(name in studies for name in self.studies):
            return None
        try:
            return self.verdict(*(studies[name] for name in self.studies))
        except NotMeasured as missing:
            return Verdict(UNKNOWN, str(missing))
