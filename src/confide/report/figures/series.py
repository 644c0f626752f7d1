"""Runs grouped into what a figure draws: one series per row of the sample sheet, points over gamma,
spread over seeds.
"""

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any, NamedTuple

from matplotlib.axes import Axes
from matplotlib.lines import Line2D

from confide.output.escaping import visible
from confide.report.figures.style import FILLS, Look, look, tinted
from confide.report.results import Result

Value = Callable[[Result], float | None]


class Spread(NamedTuple):
    """A number over the seeds of one gamma."""

    gamma: float
    mean: float
    low: float
    high: float
    values: tuple[float, ...]


@dataclass(frozen=True, slots=True)
class Series:
    """All runs of one `name`; `fill` and tint tell apart the models, variants and ablations of one
    method.
    """

    label: str
    look: Look
    fill: str
    results: tuple[Result, ...]

    @property
    def gammas(self) -> list[float]:
        return sorted({result.run.gamma for result in self.results})

    def at(self, gamma: float) -> list[Result]:
        """Runs at the series' gamma nearest to the given one, one per seed."""
        nearest = min(self.gammas, key=lambda own: abs(own - gamma))
        return [result for result in self.results if result.run.gamma == nearest]

    def flat(self) -> bool:
        """Whether the method ignores the policy and was therefore run at one gamma that stands for
        all.
        """
        return not self.look.policy and len(self.gammas) == 1

    def spread(self, value: Value) -> list[Spread]:
        """Mean and range over seeds at each gamma where the value exists."""
        found = []
        for gamma in self.gammas:
            values = [value(result) for result in self.results if result.run.gamma == gamma]
            known = tuple(float(number) for number in values if number is not None)
            if known:
                found.append(Spread(gamma, sum(known) / len(known), min(known), max(known), known))
        return found

    def marks(self, **more: Any) -> dict[str, Any]:
        """Line2D properties of the series."""
        own = {
            "color": self.look.color,
            "marker": self.look.marker,
            "linestyle": self.look.line,
            "fillstyle": self.fill,
        }
        return own | {"markerfacecoloralt": "white", "markeredgewidth": 1.1} | more

    def handle(self) -> Line2D:
        """Legend entry."""
        return Line2D([], [], **self.marks(label=self.label))


def averaged(seeds: int, words: str = "Mean over {} seeds; whiskers: their range.") -> str:
    """What a caption says of its seeds; `words`, with their number, where there are several."""
    return "One seed." if seeds == 1 else words.format(seeds)


def corpora(results: Iterable[Result]) -> list[str]:
    """What a study's runs are tested on, in order of first use: perplexities of one may share an
    axis.
    """
    return list(dict.fromkeys(result.corpus for result in results))


def group(results: Iterable[Result], corpus: str | None = None) -> list[Series]:
    """Series of one corpus (None: of all) in the order of the sample sheet; looks agree over all
    panels of a study.
    """
    results = list(results)
    models = {result.run.model for result in results}
    names = list(dict.fromkeys(result.run.name for result in results))
    first = {
        name: next(result.run for result in results if result.run.name == name) for name in names
    }
    found = []
    for name in names:
        own = first[name]
        labels = list(
            dict.fromkeys(
                _label(first[other], models) for other in names if first[other].method == own.method
            )
        )
        place = labels.index(_label(own, models)) % len(FILLS)
        members = tuple(r for r in results if r.run.name == name and corpus in (None, r.corpus))
        if members:
            found.append(
                Series(_label(own, models), tinted(look(own.method), place), FILLS[place], members)
            )
    return found


def _label(run: Any, models: set[str]) -> str:
    if run.variant is not None:
        return visible(f"{look(run.method).label} ({run.variant})")
    parts = (
        [run.model] * (len(models) > 1)
        + ["no dedup"] * (not run.dedup)
        + ["no redaction"] * (not run.redact)
    )
    parts += ["+".join(run.domains)] if run.domains else []
    return visible(look(run.method).label + (f" ({', '.join(parts)})" if parts else ""))


def chosen_gamma(gamma: float | None, results: Iterable[Result]) -> float:
    """The gamma of figures without a gamma axis: the given one, else of those run the nearest to
    the papers' 0.1.
    """
    if gamma is not None:
        return gamma
    run = sorted({result.run.gamma for result in results if look(result.run.method).policy})
    return min(run or [0.0], key=lambda own: abs(own - 0.1))


def shifts(drawn: list[Series]) -> dict[str, float]:
    """Small offsets in gamma, by label, that set series side by side where their points
    coincide.
    """
    moving = [series for series in drawn if not series.flat()]
    gammas = [gamma for series in moving for gamma in series.gammas]
    step = 0.011 * (max(gammas) - min(gammas)) if gammas else 0.0
    return {
        series.label: (number - (len(moving) - 1) / 2) * step
        for number, series in enumerate(moving)
    }


def against_gamma(
    axes: Axes, drawn: list[Series], value: Value, bounds: tuple[Value, Value] | None = None
) -> None:
    """Draw mean over seeds against gamma; whiskers are the range over seeds, or given bounds where
    there is one seed.

    A method that ignores the policy is a horizontal line, with its marker and whisker at the right
    edge.
    """
    offsets = shifts(drawn)
    for series in drawn:
        points = series.spread(value)
        place: dict[str, Any] = {}
        x = [point.gamma + offsets.get(series.label, 0.0) for point in points]
        if points and series.flat():
            axes.axhline(points[0].mean, **series.marks(marker="", linewidth=1.3))
            x = [1.0]
            place = {"transform": axes.get_yaxis_transform(), "clip_on": False}
        for number, point in enumerate(points):
            ends = [point.low, point.high]
            if bounds and len(point.values) == 1:
                ends = [series.spread(bound)[number].mean for bound in bounds]
            axes.plot(
                [x[number]] * 2,
                ends,
                color=series.look.color,
                linewidth=1.2,
                solid_capstyle="butt",
                **place,
            )
        axes.plot(x, [point.mean for point in points], **series.marks(**place))
