"""Whose perplexity a method raises: authors with much and with little training text.

The paper (Privacy Regularization, Figure 3c) subtracts perplexities, which weighs authors who are
hard to predict more; here the change is relative to the non-private model, per author, and beside
the five at either end stand all, in fifths.
"""

from typing import Any

from matplotlib.artist import Artist
from matplotlib.axes import Axes

from confide.report.figures import style
from confide.report.figures.authors import (
    FEW,
    Change,
    baseline,
    changes,
    difference,
    ends,
    mean_over,
    quantiles,
)
from confide.report.figures.frame import Drawn, Nothing, Shown, figure
from confide.report.figures.series import (
    BUTT,
    Series,
    joined,
    mark,
    name_rows,
    whisker,
)
from confide.report.figures.style import BOX, FAINT, INK

MOST = "^"
LEAST = "v"
FAR = 500  # per cent: changes above which axes are logarithmic
LINEAR = 10  # below which these are linear still
TICKS = (-10_000, -100, 0, 100, 10_000)  # of such axes
FIFTHS = 3.2  # inches of the panel of all authors
Compared = list[tuple[Series, list[Change]]]


@figure(
    "Utility by author",
    empty="no run of this study can be compared author by author with a non-private one",
)
def subgroups(shown: Shown) -> Drawn:
    """Per corpus a line of both ends and their gap by series, and one of all authors in fifths."""
    compared_by = {name: _compared(shown, name) for name in shown.corpora}
    rows = {name: compared for name, compared in compared_by.items() if compared}
    if not rows:
        raise Nothing
    heights = [
        height
        for compared in rows.values()
        for height in (1.1 + max(2.2, 0.36 * len(compared)), FIFTHS)
    ]
    drawn = style.figure(style.WIDTH, sum(heights))
    grid = drawn.add_gridspec(len(heights), 2, height_ratios=heights)
    for line, (name, compared) in enumerate(rows.items()):
        left, middle = (drawn.add_subplot(grid[2 * line, column]) for column in (0, 1))
        below = drawn.add_subplot(grid[2 * line + 1, :])
        places = range(len(compared), 0, -1)
        for place, (series, authors) in zip(places, compared, strict=True):
            _two_ends(left, place, series, authors)
            _gap(middle, place, series, authors)
        for number, (series, authors) in enumerate(compared):
            _fifths(below, series, authors, 0.05 * (number - (len(compared) - 1) / 2))
        few = len(ends(compared[0][1])[0])
        left.set_title(f"{name}: {few} authors at either end")
        _label(left, middle, below, [series.label for series, _ in compared])
        if max(abs(change.percent) for _, authors in compared for change in authors) > FAR:
            for axes, which in ((left, "x"), (middle, "x"), (below, "y")):
                _wide(axes, which)  # else the small changes would be one dot
    every = [pair for compared in rows.values() for pair in compared]
    legend = [*_ends_legend(), *(series.handle() for series, _ in every)]
    return drawn, _caption(shown, every), legend


def _compared(shown: Shown, name: str) -> Compared:
    """Series of a corpus with their authors' changes, without the runs they are compared with."""
    results = shown.results
    starts = {id(baseline(result, results)) for result in results}
    compared = []
    for series in shown.series[name]:
        runs = series.at(shown.gamma)
        authors = [] if all(id(result) in starts for result in runs) else changes(runs, results)
        if len(authors) > 1:
            compared.append((series, authors))
    return compared


def _two_ends(axes: Axes, place: int, series: Series, authors: list[Change]) -> None:
    """Means of the authors with the most and the least text, and each of them as a dot."""
    dots: dict[str, Any] = {"s": 6, "color": INK, "alpha": 0.4, "linewidths": 0, "zorder": 4}
    color = series.look.color
    for values, marker, shift in zip(ends(authors), (MOST, LEAST), (0.14, -0.14), strict=True):
        y = place + shift
        mean = mean_over(values)
        face = color if marker == MOST else "white"
        marks: dict[str, Any] = {"color": color, "marker": marker, "markerfacecolor": face}
        whisker(axes, series, mean.ends, y, linewidth=1.3)
        axes.plot([mean.value], [y], linestyle="", markersize=7, markeredgewidth=1.2, **marks)
        axes.scatter(values, [y] * len(values), **dots)


def _gap(axes: Axes, place: int, series: Series, authors: list[Change]) -> None:
    """How much more a method costs the authors with the least text, with its interval in words."""
    most, least = ends(authors)
    gap = difference(most, least)
    mark(axes, series, gap, place)
    value, low, high = map(_short, gap.numbers)
    axes.annotate(
        f"{value} [{low}, {high}]",
        (1, place),
        xycoords=axes.get_yaxis_transform(),
        xytext=(0, 6),
        textcoords="offset points",
        ha="right",
        fontsize=7.8,
        bbox=BOX,
    )


def _short(value: float) -> str:
    return f"{value:,.1f}" if abs(value) < 100 else f"{value:,.0f}"


def _fifths(axes: Axes, series: Series, authors: list[Change], shift: float) -> None:
    """Mean of each fifth of the authors over the mean of their training points."""
    parts = quantiles(authors)
    numbers = range(1, len(parts) + 1)
    x = [number + shift for number in numbers]
    means = [mean_over([change.percent for change in part]) for part in parts]
    joined(axes, series, x, means, {"linewidth": 1.1} | BUTT, markersize=5.5)
    labels = [f"{part[0].train_points}–{part[-1].train_points}" for part in parts]
    axes.set_xticks(numbers, labels)


def _label(left: Axes, middle: Axes, below: Axes, names: list[str]) -> None:
    middle.set_title("gap between the ends")
    below.set_title("all authors, by training text")
    left.set_xlabel("change of test perplexity (%)")
    middle.set_xlabel("least minus most (points)")
    below.set_xlabel("training points of an author, in equal parts")
    below.set_ylabel("change of test perplexity (%)")
    for axes, labels in ((left, names), (middle, [""] * len(names))):
        axes.axvline(0, color=FAINT, linewidth=1, zorder=1)
        name_rows(axes, labels)
    left.margins(x=0.1)
    middle.margins(x=0.3)
    below.axhline(0, color=FAINT, linewidth=1, zorder=1)


def _wide(axes: Axes, which: str) -> None:
    """Make an axis logarithmic but for small changes, for which a linear part is left."""
    getattr(axes, f"set_{which}scale")("symlog", linthresh=LINEAR)
    low, high = getattr(axes, f"get_{which}lim")()
    ticks = [tick for tick in TICKS if low <= tick <= high]
    getattr(axes, f"set_{which}ticks")(ticks, [f"{tick:,}" for tick in ticks])


def _ends_legend() -> list[Artist]:
    plain: dict[str, Any] = {"linestyle": "", "markersize": 7, "color": INK}
    return [
        style.entry("most training text", marker=MOST, **plain),
        style.entry("least training text", marker=LEAST, markerfacecolor="white", **plain),
        style.dot("one author", 2.5),
    ]


def _caption(shown: Shown, compared: Compared) -> str:
    counts = sorted({len(authors) for _, authors in compared})
    seeds = "An author is the mean over {} seeds, each against its own non-private run."
    return (
        "Final models. For each author with text to train on and to test on, the perplexity of the "
        "test text over that of the non-private model, in per cent; 0 is no change, above it is "
        f"worse ({', '.join(map(str, counts))} authors; groups of at most {FEW}). Where changes "
        f"reach {FAR} %, scales are logarithmic beyond {LINEAR} %. Whiskers: 95 % bootstrap "
        "interval over the authors of a group, too short for so few. A gap whose interval holds 0 "
        "shows no disparate impact, nor that there is none. Authors with little text may write "
        "like the others or not: the groups differ in more than their size. Planted canaries count "
        "for no author. "
        f"{shown.averaged(seeds)}"
    )
