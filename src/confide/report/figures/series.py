"""What a figure draws: a series for each row of the sample sheet, a point for each gamma.

Numbers over seeds become means with an interval, and a small dot for each seed.
"""

from collections.abc import Callable, Iterable, Sized
from dataclasses import dataclass
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.lines import Line2D

from confide.output.escaping import visible
from confide.report.figures.style import FILLS, TINTS, Look, entry, look, tinted
from confide.report.results import Result
from confide.report.seeds import Estimate, mean_of, over_seeds
from confide.specs import ReportRun

Value = Callable[[Result], float | None]
WHISKER: dict[str, Any] = {"linewidth": 1.3}
# one seed, over whiskers and below the mean's marker
SEED: dict[str, Any] = {
    "linestyle": "",
    "marker": "o",
    "markersize": 3,
    "markerfacecolor": "white",
    "markeredgewidth": 0.8,
    "zorder": 2.5,
}
BUTT: dict[str, Any] = {"solid_capstyle": "butt"}


def over_runs(runs: Iterable[Result], value: Value) -> Estimate | None:
    """Mean and interval of a number over the runs that have it; None where none has."""
    numbers = [number for result in runs if (number := value(result)) is not None]
    return over_seeds(numbers) if numbers else None


def pooled(estimates: Iterable[Estimate]) -> Estimate:
    """Mean of the values and means of the intervals' ends."""
    all_estimates = list(estimates)
    value, low, high = (
        mean_of(column)
        for column in zip(*(estimate.numbers for estimate in all_estimates), strict=True)
    )
    return Estimate(
        value, low=low, high=high, each=tuple(estimate.value for estimate in all_estimates)
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class Series:
    """All runs of one row of the sample sheet.

    `fill` and tint tell apart the models, variants and ablations of one method.
    """

    label: str
    look: Look
    fill: str
    results: tuple[Result, ...]

    @property
    def gammas(self) -> list[float]:
        return sorted({result.run.gamma for result in self.results})

    def nearest(self, gamma: float) -> float:
        """The gamma of the series that is nearest to the given one."""
        return min(self.gammas, key=lambda other: abs(other - gamma))

    def at(self, gamma: float) -> list[Result]:
        """Runs at the series' gamma nearest to the given one, one per seed."""
        nearest = self.nearest(gamma)
        return [result for result in self.results if result.run.gamma == nearest]

    def flat(self) -> bool:
        """Whether the method ignores the policy, so that its one gamma stands for all."""
        return not self.look.policy and len(self.gammas) == 1

    def spread(
        self, value: Value, bounds: tuple[Value, Value] | None = None
    ) -> dict[float, Estimate]:
        """Mean and interval over seeds at each gamma where the value exists.

        Where one seed has it, the ends are the given bounds.
        """
        by_gamma = {}
        for gamma in self.gammas:
            runs = [result for result in self.at(gamma) if value(result) is not None]
            estimate = over_runs(runs, value)
            if estimate is None:
                continue
            if bounds and len(runs) == 1:
                low, high = (bound(runs[0]) for bound in bounds)
                if low is not None and high is not None:
                    estimate = estimate._replace(low=low, high=high)
            by_gamma[gamma] = estimate
        return by_gamma

    def marks(self, **more: Any) -> dict[str, Any]:
        """Line2D properties of the series."""
        properties = {
            "color": self.look.color,
            "marker": self.look.marker,
            "linestyle": self.look.line,
            "fillstyle": self.fill,
        }
        return properties | {"markerfacecoloralt": "white", "markeredgewidth": 1.1} | more

    def handle(self, **more: Any) -> Line2D:
        """Legend entry."""
        return entry(**{"label": self.label} | self.marks(**more))


def by_corpus(results: Iterable[Result]) -> dict[str, list[Result]]:
    """Runs by what they are tested on: perplexities of one corpus may share an axis."""
    grouped: dict[str, list[Result]] = {}
    for result in results:
        grouped.setdefault(result.corpus, []).append(result)
    return grouped


def group(results: Iterable[Result], corpus: str | None = None) -> list[Series]:
    """Series of one corpus (None: of all) in the order of the sample sheet.

    Looks agree over all panels of a study.
    """
    rows: dict[str, list[Result]] = {}
    for result in results:
        rows.setdefault(result.run.name, []).append(result)
    models = {result.run.model for runs in rows.values() for result in runs}
    labels: dict[str, dict[str, None]] = {}  # by method, in order of first use
    all_series = []
    for runs in rows.values():
        run = runs[0].run
        label = _label(run, models)
        labels_of_method = labels.setdefault(run.method, {})
        labels_of_method.setdefault(label)
        place = list(labels_of_method).index(label)
        members = tuple(result for result in runs if corpus in (None, result.corpus))
        if members:
            tint = tinted(look(run.method), (place + place // len(FILLS)) % len(TINTS))
            fill = FILLS[place % len(FILLS)]
            all_series.append(Series(label=label, look=tint, fill=fill, results=members))
    return all_series


def _label(run: ReportRun, models: set[str]) -> str:
    """A method with what tells its rows apart: the variant, or model, ablations and domains."""
    label = look(run.method).label
    if run.variant is not None:
        return visible(f"{label} ({run.variant})")
    parts = {
        run.model: len(models) > 1,
        "no dedup": not run.dedup,
        "no redaction": not run.redact,
        "+".join(run.domains or ()): bool(run.domains),
    }
    differences = ", ".join(part for part, differs in parts.items() if differs)
    return visible(f"{label} ({differences})" if differences else label)


def chosen_gamma(gamma: float | None, results: Iterable[Result]) -> float:
    """The gamma of figures without a gamma axis: the given one, or that run nearest to 0.1.

    Of two as near it is the larger one.
    """
    if gamma is not None:
        return gamma
    run = {result.run.gamma for result in results if look(result.run.method).policy}
    return min(run or [0.0], key=lambda other: (abs(other - 0.1), -other))


def shifts(drawn: list[Series]) -> dict[str, float]:
    """Offsets in gamma, by label, that set series side by side where their points coincide."""
    moving = [series for series in drawn if not series.flat()]
    gammas = [gamma for series in moving for gamma in series.gammas]
    step = 0.011 * (max(gammas) - min(gammas)) if gammas else 0.0
    return {
        series.label: (number - (len(moving) - 1) / 2) * step
        for number, series in enumerate(moving)
    }


def whisker(axes: Axes, series: Series, x: Any, y: Any, **line: Any) -> None:
    """A line in the colour of a series; one of x and y is a pair of ends, the other a number."""
    axes.plot(np.broadcast_to(x, 2), np.broadcast_to(y, 2), **{"color": series.look.color} | line)


def mark(
    axes: Axes,
    series: Series,
    x: float | Estimate,
    y: float | Estimate,
    line: dict[str, Any] = WHISKER,
    **more: Any,
) -> None:
    """A point of a series, with whiskers where a coordinate has an interval.

    `line`: properties of the whiskers; `more`: of the point.
    """
    right, up = (place.value if isinstance(place, Estimate) else place for place in (x, y))
    if isinstance(y, Estimate):
        whisker(axes, series, right, y.ends, **line)
    if isinstance(x, Estimate):
        whisker(axes, series, x.ends, up, **line)
    each_seed(axes, series, x, y)
    axes.plot([right], [up], **series.marks(linestyle="", markersize=7) | more)


def each_seed(
    axes: Axes, series: Series, x: float | Estimate, y: float | Estimate, **more: Any
) -> None:
    """A small dot for each of several seeds; a coordinate that is no mean over them is shared."""
    places = [
        place.each or (place.value,) if isinstance(place, Estimate) else (place,)
        for place in (x, y)
    ]
    seeds = max(map(len, places))
    if seeds < 2:
        return
    right, up = (place if len(place) == seeds else place[:1] * seeds for place in places)
    axes.plot(right, up, **SEED | {"markeredgecolor": series.look.color} | more)


def joined(
    axes: Axes,
    series: Series,
    x: list[float],
    points: Iterable[Estimate],
    line: dict[str, Any],
    **marks: Any,
) -> None:
    """Points of a series with whiskers and a line from one to the next."""
    values = list(points)
    edge = {name: line[name] for name in ("transform", "clip_on") if name in line}
    for place, point in zip(x, values, strict=True):
        whisker(axes, series, place, point.ends, **line)
        each_seed(axes, series, place, point, **edge)
    axes.plot(x, [point.value for point in values], **series.marks(**marks))


def name_rows(axes: Axes, labels: list[str]) -> range:
    """Name the rows of a panel, one for each label, from above; returns their places."""
    places = range(len(labels), 0, -1)
    axes.set_yticks(list(places), labels)
    axes.set_ylim(0.4, len(labels) + 0.6)
    return places


def row_heights(rows: Iterable[Sized]) -> list[int]:
    """Relative heights of panels with a row for each series."""
    return [max(2, len(row)) for row in rows]


def against_gamma(
    axes: Axes, drawn: list[Series], value: Value, bounds: tuple[Value, Value] | None
) -> None:
    """Draw mean over seeds against gamma, with the interval as whiskers, and each seed as a dot.

    Where there is one seed, whiskers are the given bounds. A method that ignores the policy is a
    horizontal line, with its marker and whisker at the right edge.
    """
    offsets = shifts(drawn)
    for series in drawn:
        points = series.spread(value, bounds)
        place: dict[str, Any] = {}
        x = [gamma + offsets.get(series.label, 0.0) for gamma in points]
        if points and series.flat():
            (level,) = points.values()
            axes.axhline(level.value, **series.marks(marker="", linewidth=1.3))
            x = [1.0]
            place = {"transform": axes.get_yaxis_transform(), "clip_on": False}
        line = {"linewidth": 1.0, "alpha": 0.55} | BUTT | place
        joined(axes, series, x, points.values(), line, **place)
