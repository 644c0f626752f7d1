"""Exposure of word canaries over how often their author repeats them (PR, Figure 2).

The paper, Privacy Regularization, has one panel per perplexity; here the final models stand beside
them, with the epochs that each had (`levels`).
"""

from typing import Any

from matplotlib.axes import Axes
from matplotlib.ticker import FuncFormatter, NullFormatter

from confide.attacks.exposure.null import null_band
from confide.report.figures import style
from confide.report.figures.authors import EXPOSURE, by_copies, exposure_curve
from confide.report.figures.frame import AUTHORS, Drawn, Shown, figure
from confide.report.figures.levels import (
    Moment,
    caption,
    epoch_words,
    heading,
    hollow,
    levels,
    moments,
)
from confide.report.figures.series import BUTT, Series, joined
from confide.report.figures.style import DARK, INK, NULL
from confide.report.results import Json, Result

FIRST: dict[str, Any] = {"color": INK, "linestyle": ":"}
AHEAD: dict[str, Any] = {"color": DARK, "linestyle": (0, (6, 2, 1, 2))}
COLUMNS = 2  # more would be too narrow
HEIGHT = 3.0  # inches of a line of panels


def _attacked(attacks: dict[str, Json]) -> bool:
    """Whether any author's canary has an exposure."""
    return bool(_canaries(attacks).get("exposures"))


def _canaries(attacks: dict[str, Json]) -> Json:
    return attacks.get(EXPOSURE, {}).get("canaries") or {}


@figure(
    "Exposure over repetitions",
    lambda result: _attacked(result.attacks),
    "no run of this study was attacked by its authors' canaries",
)
def author_exposure(shown: Shown) -> Drawn:
    """A panel of each corpus and perplexity level, and one of the final models.

    The caption names the epochs that are compared.
    """
    at_levels = levels(shown.spec, shown.results, EXPOSURE)
    columns = min(COLUMNS, len(at_levels))
    lines = -(-len(at_levels) // columns)  # of panels, of each corpus
    rows = shown.series
    drawn, grid = style.panels(
        style.WIDTH, HEIGHT * lines * len(rows), lines * len(rows), columns, sharey=True
    )
    compared = []
    for of_corpus, (name, row) in zip(grid.reshape(len(rows), -1), rows.items(), strict=True):
        for axes, level in zip(of_corpus, at_levels, strict=False):
            title = f"{name}: {heading(level)}"
            words = _panel(axes, shown.corpora[name], row, level, shown.gamma)
            compared.append(f"{title}: {', '.join(words)}.")
            axes.set_title(title)
        for axes in of_corpus[len(at_levels) :]:
            drawn.delaxes(axes)
    for line in grid:
        line[0].set_ylabel("mean exposure (bits)")
    legend = [
        *shown.handles(),
        *hollow(at_levels),
        style.entry("first of all sequences", linewidth=1.2, **FIRST),
        style.entry("all canaries before\nall else, mean", linewidth=1.2, **AHEAD),
        style.band("never seen, 95 %"),
    ]
    return drawn, " ".join([_caption(shown, at_levels), *compared]), legend


def _panel(
    axes: Axes, results: list[Result], drawn: list[Series], level: float | None, gamma: float
) -> list[str]:
    """Draw one panel; returns which epochs of each series it compares, in words."""
    _bounds(axes, results)
    notes = []
    ticks: set[int] = set()
    for number, series in enumerate(drawn):
        runs = [run for run in moments(series.at(gamma), level, EXPOSURE) if _attacked(run.attacks)]
        if not runs:
            continue
        ticks |= set(_line(axes, series, runs, 1.0 + 0.03 * (number - (len(drawn) - 1) / 2)))
        notes.append(f"{series.label} {epoch_words(runs)}")
    axes.set_xscale("log")
    axes.set_xticks(_apart(sorted(ticks)))
    axes.xaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:g}"))
    axes.xaxis.set_minor_formatter(NullFormatter())
    axes.set_ylim(bottom=min(0.0, axes.get_ylim()[0]))
    axes.set_xlabel("copies of a canary (log scale)")
    return notes


def _line(axes: Axes, series: Series, runs: list[Moment], shift: float) -> list[int]:
    """Means with whiskers, beside those of other series; returns the numbers of copies.

    Hollow where the level was not reached.
    """
    curve = exposure_curve(runs)
    more: dict[str, Any] = (
        {} if all(run.near for run in runs) else {"fillstyle": "none", "linewidth": 0.8}
    )
    x = [copies * shift for copies in curve]
    joined(axes, series, x, curve.values(), {"linewidth": 1.1} | BUTT, markersize=5.5, **more)
    return list(curve)


def _bounds(axes: Axes, results: list[Result]) -> None:
    """What unseen canaries of one number of copies score in the mean; the most that any can."""
    canaries = [_canaries(result.attacks) for result in results]
    counts = [
        sum(map(len, authors.values()))
        for attack in canaries
        for authors in by_copies(attack).values()
    ]
    _, low, high = null_band("mean", min(counts))
    axes.axhspan(low, high, color=NULL, zorder=0, linewidth=0)
    for bits in {result.attacks[EXPOSURE]["space_bits"] for result in results}:
        axes.axhline(bits, linewidth=1, zorder=1, **FIRST)
    for bits in {most for attack in canaries if (most := attack.get("mean_most")) is not None}:
        axes.axhline(bits, linewidth=1, zorder=1, **AHEAD)


def _apart(values: list[int]) -> list[int]:
    """Ticks whose labels do not touch on the log axis."""
    ticks: list[int] = []
    for value in values:
        last = ticks[-1] if ticks else 0
        round_one = value < 10 or value % 5 == 0
        if value >= 1.3 * last and (round_one or value > 1.6 * last):
            ticks.append(value)
    return ticks


def _caption(shown: Shown, at_levels: list[float | None]) -> str:
    canaries = [_canaries(result.attacks) for result in shown.results]
    authors = sorted({len(set(attack["authors"])) for attack in canaries})
    ranks = " Ranks are estimated from random sequences; the error of that is not in the whiskers."
    if all(attack.get("exact") for attack in canaries):
        ranks = ""
    return (
        "Exposure = log2 |R| - log2 rank of a sequence of random words among all |R| of its "
        "length; a canary is planted in the text of one author. Lines: mean over "
        f"{', '.join(map(str, authors))} authors; whiskers: 95 % bootstrap interval over authors."
        f"{ranks} Grey: mean of as many canaries that the model never saw. "
        f"{caption(at_levels)}{shown.averaged(AUTHORS)}"
    )
