"""What all figures share: the runs that they are of, a heading, a caption, or being empty.

A figure is declared with its heading and with what a run must have to be in it.
"""

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property, wraps

from matplotlib.artist import Artist
from matplotlib.lines import Line2D

from confide.report.figures import style
from confide.report.figures.series import Series, by_corpus, chosen_gamma, group
from confide.report.figures.style import Drawing
from confide.report.results import Result
from confide.specs import ReportSpec

SEEDS = "Mean over {} seeds; whiskers: 95 % interval (Student's t); small dots: the seeds."
ONE_SEED = "One seed (n = 1), so no interval over seeds."
INTERVALS = "Means over {} seeds, of the intervals too."
AUTHORS = "An author is the mean over {} seeds."
NOTHING = "no run of this study has these measurements"
Drawn = tuple[Drawing, str, Sequence[Artist]]  # with its caption and legend
Draw = Callable[[ReportSpec, list[Result]], Drawing]


class Nothing(Exception):
    """There is nothing to draw, for a reason that the figure says."""


@dataclass(frozen=True)
class Shown:
    """A study's runs that have what a figure is of, and what it asks of them."""

    spec: ReportSpec
    results: list[Result]

    @cached_property
    def gamma(self) -> float:
        """The miss rate of figures without an axis for it."""
        return chosen_gamma(self.spec.gamma, self.results)

    @cached_property
    def corpora(self) -> dict[str, list[Result]]:
        return by_corpus(self.results)

    @cached_property
    def series(self) -> dict[str, list[Series]]:
        """By corpus."""
        return {name: group(self.results, name) for name in self.corpora}

    def handles(self, **more: object) -> list[Line2D]:
        """Legend entries of the series of all corpora."""
        return [series.handle(**more) for series in group(self.results)]

    def averaged(self, sentence: str = SEEDS, alone: str = ONE_SEED) -> str:
        """What a caption says of seeds: `sentence`, with their number, where there are several.

        Where rows have different numbers of seeds, the least and the most.
        """
        counts = Counter((result.run.name, result.run.gamma) for result in self.results).values()
        least = min(counts, default=1)
        most = max(counts, default=1)
        number = f"{most}" if least == most else f"{least} to {most}"
        return alone if most == 1 else sentence.format(number)

    def estimated(self) -> str:
        """What a caption says where the ranks of some canaries are no exact ones, else nothing."""
        runs = [
            result
            for result in self.results
            if result.metric("exposure", "estimated_share") is not None
            or result.along("exposure", "estimated_share")
        ]
        if not runs:
            return ""
        return f" In {len(runs)} runs some ranks are estimates; table.md has their intervals."

    def each(self, kind: str, name: str) -> str:
        """The values of a number of an attack, each once, for captions."""
        return ", ".join(dict.fromkeys(str(result.metric(kind, name)) for result in self.results))


def has_number(kind: str, name: str) -> Callable[[Result], bool]:
    """Whether a run has a number of an attack."""
    return lambda result: result.metric(kind, name) is not None


def figure(
    heading: str, having: Callable[[Result], object] | None = None, empty: str = NOTHING
) -> Callable[[Callable[[Shown], Drawn]], Draw]:
    """Declare a figure of the runs that have something; `empty`: what it says without any."""

    def declared(draw: Callable[[Shown], Drawn]) -> Draw:
        @wraps(draw)
        def finished(spec: ReportSpec, results: list[Result]) -> Drawing:
            results_to_draw = [result for result in results if having is None or having(result)]
            title = f"{heading} — {spec.title}"
            try:
                if having and not results_to_draw:
                    raise Nothing
                drawn, caption, legend = draw(Shown(spec, results_to_draw))
            except Nothing as reason:
                notice = str(reason) or empty
                return style.finish(style.blank(notice), title, notice)
            return style.finish(drawn, title, caption, legend)

        return finished

    return declared
