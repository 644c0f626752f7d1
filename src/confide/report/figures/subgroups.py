"""Whose perplexity a method raises: authors with much and with little training text (Privacy
Regularization, Figure 3c).

The paper subtracts perplexities, which weighs authors who are hard to predict more; here the change
is relative to the non-private model, per author, and beside the five at either end stand all, in
fifths.
"""

from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D

from confide.report.figures.authors import (
    FEW,
    Change,
    baseline,
    changes,
    ends,
    gap,
    mean_over,
    quantiles,
)
from confide.report.figures.series import Series, averaged, chosen_gamma, corpora, group
from confide.report.figures.style import BOX, FAINT, INK, blank, figure, legend, title
from confide.report.results import Result
from confide.specs import ReportSpec

MOST = "^"
LEAST = "v"
FAR, LINEAR = (
    500,
    10,
)  # per cent: changes above which axes are logarithmic, and below which these are linear still
TICKS = (-10_000, -100, 0, 100, 10_000)  # of such axes


def subgroups(spec: ReportSpec, results: list[Result]) -> Figure:
    """One row per corpus: the two ends and their gap by row of the sample sheet, then all authors
    in fifths.
    """
    gamma = chosen_gamma(spec.gamma, results)
    rows = {name: _compared(results, name, gamma) for name in corpora(results)}
    rows = {name: found for name, found in rows.items() if found}
    if not rows:
        return blank("no run of this study can be compared author by author with a non-private one")
    drawn = figure(13.2, 2.2 + sum(1.1 + max(2.2, 0.36 * len(found)) for found in rows.values()))
    grid = drawn.subplots(len(rows), 3, squeeze=False)
    for line, (name, found) in zip(grid, rows.items(), strict=True):
        for place, (series, authors) in zip(range(len(found), 0, -1), found, strict=True):
            _two_ends(line[0], place, series, authors)
            estimate = gap(series.at(gamma), results)
            color = series.look.color
            line[1].plot([estimate.low, estimate.high], [place] * 2, color=color, linewidth=1.3)
            line[1].plot([estimate.value], [place], **series.marks(linestyle="", markersize=7))
            where = {
                "xytext": (0, 6),
                "textcoords": "offset points",
                "ha": "right",
                "fontsize": 7.8,
                "bbox": BOX,
            }
            words = "{} [{}, {}]".format(*map(_short, estimate))
            line[1].annotate(words, (1, place), xycoords=line[1].get_yaxis_transform(), **where)
        for number, (series, authors) in enumerate(found):
            _fifths(line[2], series, authors, 0.05 * (number - (len(found) - 1) / 2))
        _label(line, name, found)
    title(drawn, f"Utility by author — {spec.title}", _words(rows, results))
    legend(
        drawn,
        [*_ends_legend(), *(series.handle() for found in rows.values() for series, _ in found)],
    )
    return drawn


def _short(value: float) -> str:
    return f"{value:,.1f}" if abs(value) < 100 else f"{value:,.0f}"


def _compared(results: list[Result], name: str, gamma: float) -> list[tuple[Series, list[Change]]]:
    """Series of a corpus with their authors' changes, without the non-private runs that they are
    compared with.
    """
    starts = {id(baseline(result, results)) for result in results}
    found = []
    for series in group(results, name):
        runs = series.at(gamma)
        authors = [] if all(id(result) in starts for result in runs) else changes(runs, results)
        if len(authors) > 1:
            found.append((series, authors))
    return found


def _two_ends(axes: Axes, place: int, series: Series, authors: list[Change]) -> None:
    """Means of the authors with the most and the least text, with intervals, and every one of these
    authors as a dot.
    """
    for values, marker, shift in zip(ends(authors), (MOST, LEAST), (0.14, -0.14), strict=True):
        mean = mean_over(values)
        color = series.look.color
        axes.plot([mean.low, mean.high], [place + shift] * 2, color=color, linewidth=1.3)
        fill = {"markerfacecolor": color if marker == MOST else "white", "markeredgewidth": 1.2}
        axes.plot(
            [mean.value],
            [place + shift],
            color=color,
            marker=marker,
            markersize=7,
            linestyle="",
            **fill,
        )
        axes.scatter(
            values, [place + shift] * len(values), s=6, color=INK, alpha=0.4, linewidths=0, zorder=4
        )


def _fifths(axes: Axes, series: Series, authors: list[Change], shift: float) -> None:
    """Mean of each fifth of the authors over the mean of their training points."""
    parts = quantiles(authors)
    x = [number + shift for number in range(1, len(parts) + 1)]
    means = [mean_over([one.percent for one in part]) for part in parts]
    for at, mean in zip(x, means, strict=True):
        axes.plot(
            [at] * 2,
            [mean.low, mean.high],
            color=series.look.color,
            linewidth=1.1,
            solid_capstyle="butt",
        )
    axes.plot(x, [mean.value for mean in means], **series.marks(markersize=5.5))
    axes.set_xticks(
        range(1, len(parts) + 1),
        [f"{part[0].train_points}–{part[-1].train_points}" for part in parts],
        fontsize=7.5,
    )


def _label(line: list[Axes], name: str, found: list[tuple[Series, list[Change]]]) -> None:
    places = list(range(len(found), 0, -1))
    few = len(ends(found[0][1])[0])
    line[0].set_title(f"{name}: {few} authors at either end", loc="left")
    line[1].set_title("gap between the ends", loc="left")
    line[2].set_title("all authors, by training text", loc="left")
    line[0].set_xlabel("change of test perplexity (%)")
    line[1].set_xlabel("least minus most (points)")
    line[2].set_xlabel("training points of an author, in equal parts")
    line[2].set_ylabel("change of test perplexity (%)")
    for axes in line[:2]:
        axes.axvline(0, color=FAINT, linewidth=1, zorder=1)
        axes.set_yticks(places, [series.label for series, _ in found] if axes is line[0] else [])
        axes.set_ylim(0.4, len(found) + 0.6)
    line[1].margins(x=0.3)
    line[2].axhline(0, color=FAINT, linewidth=1, zorder=1)
    if (
        max(abs(one.percent) for _, authors in found for one in authors) > FAR
    ):  # else the small changes would be one dot
        for axes, which in zip(line, "xxy", strict=True):
            getattr(axes, f"set_{which}scale")("symlog", linthresh=LINEAR)
            low, high = getattr(axes, f"get_{which}lim")()
            ticks = [tick for tick in TICKS if low <= tick <= high]
            getattr(axes, f"set_{which}ticks")(ticks, [f"{tick:,}" for tick in ticks])


def _ends_legend() -> list[Line2D]:
    plain = {"linestyle": "", "markersize": 7, "color": INK}
    return [
        Line2D([], [], marker=MOST, label="most training text", **plain),
        Line2D([], [], marker=LEAST, markerfacecolor="white", label="least training text", **plain),
        Line2D([], [], marker="o", color=FAINT, markersize=2.5, linestyle="", label="one author"),
    ]


def _words(rows: dict[str, list[tuple[Series, list[Change]]]], results: list[Result]) -> str:
    counts = sorted({len(authors) for found in rows.values() for _, authors in found})
    seeds = len({result.run.seed for result in results})
    return (
        "Final models. For each author with text to train on and to test on, the perplexity of the test text over that of the "
        f"non-private model, in per cent; 0 is no change, above it is worse ({', '.join(map(str, counts))} authors; groups of "
        f"at most {FEW}). Where changes reach {FAR} %, scales are logarithmic beyond {LINEAR} %. "
        "Whiskers: 95 % bootstrap interval over the authors of a group, too short for so few. A gap whose "
        "interval holds 0 shows no disparate impact. Authors with little text may write like the others or not: the groups "
        "differ in more than their size. Planted canaries count for no author. "
        f"{averaged(seeds, 'An author is the mean over {} seeds, each against its own non-private run.')}"
    )
