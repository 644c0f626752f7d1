"""Exposure of word canaries over how often their author repeats them (Privacy Regularization,
Figure 2), panel by panel.

The paper has one panel per perplexity; here the final models stand beside them, with the epochs
that each had (`levels`).
"""

from typing import Any

from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.patches import Patch
from matplotlib.ticker import FuncFormatter, NullFormatter

from confide.attacks.exposure.null import null_band
from confide.report.figures.authors import by_copies, exposure_curve
from confide.report.figures.levels import Moment, caption, heading, hollow, levels, moments, told
from confide.report.figures.series import Series, averaged, chosen_gamma, corpora, group
from confide.report.figures.style import INK, NULL, blank, figure, legend, title
from confide.report.results import Json, Result
from confide.specs import ReportSpec

KIND = "sequence_exposure"
AHEAD = (0, (6, 2, 1, 2))


def author_exposure(spec: ReportSpec, results: list[Result]) -> Figure:
    """One row per corpus, a panel per perplexity level and one of the final models, a line per row
    of the sample sheet.
    """
    known = [result for result in results if _canaries(result.attacks)]
    names = corpora(known)
    shown = levels(spec, known, KIND)
    gamma = chosen_gamma(spec.gamma, known)
    below = 0.16 * len({result.run.name for result in known})
    if not names:
        return blank("no run of this study was attacked by its authors' canaries")
    drawn = figure(3.4 + 3.7 * max(2, len(shown)), 2.2 + (3.2 + below) * len(names))
    grid = drawn.subplots(len(names), len(shown), squeeze=False, sharey="row")
    for line, name in zip(grid, names, strict=True):
        for axes, level in zip(line, shown, strict=True):
            own = [result for result in known if result.corpus == name]
            _panel(axes, own, group(known, name), level, gamma)
            axes.set_title(f"{name}: {heading(level)}", loc="left")
        line[0].set_ylabel("mean exposure (bits)")
    title(drawn, f"Exposure over repetitions — {spec.title}", _words(known, shown))
    extra: list[Any] = [
        Line2D([], [], color=INK, linestyle=":", linewidth=1.2, label="first of all sequences"),
        Line2D(
            [],
            [],
            color="#555555",
            linestyle=AHEAD,
            linewidth=1.2,
            label="all canaries before\nall else, mean",
        ),
        Patch(color=NULL, label="never seen, 95 %"),
    ]
    legend(drawn, [*(series.handle() for series in group(known)), *hollow(shown), *extra])
    return drawn


def _canaries(attacks: dict[str, Json]) -> Json | None:
    found = attacks.get(KIND, {}).get("canaries")
    return found if found and found.get("exposures") else None


def _panel(
    axes: Axes, own: list[Result], drawn: list[Series], level: float | None, gamma: float
) -> None:
    _bounds(axes, own)
    notes = []
    ticks = set()
    for number, series in enumerate(drawn):
        found = [one for one in moments(series.at(gamma), level, KIND) if _canaries(one.attacks)]
        if not found:
            continue
        ticks |= set(_line(axes, series, found, 1.0 + 0.03 * (number - (len(drawn) - 1) / 2)))
        notes.append(f"{series.label}: {told(found)}")
    axes.set_xscale("log")
    axes.set_xticks(_apart(sorted(ticks)))
    axes.xaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:g}"))
    axes.xaxis.set_minor_formatter(NullFormatter())
    axes.set_ylim(bottom=min(0.0, axes.get_ylim()[0]))
    axes.set_xlabel(
        "copies of a canary in its author's text (log scale)\n\n" + "\n".join(notes), fontsize=8
    )


def _line(axes: Axes, series: Series, found: list[Moment], shift: float) -> list[int]:
    """Means with whiskers, beside those of other series; hollow where the level was not reached.
    Returns the copies.
    """
    curve = exposure_curve(found)
    more = {} if all(one.near for one in found) else {"fillstyle": "none", "linewidth": 0.8}
    x = [copies * shift for copies in curve]
    for place, mean in zip(x, curve.values(), strict=True):
        axes.plot(
            [place] * 2,
            [mean.low, mean.high],
            color=series.look.color,
            linewidth=1.1,
            solid_capstyle="butt",
        )
    axes.plot(x, [mean.value for mean in curve.values()], **series.marks(markersize=5.5) | more)
    return list(curve)


def _bounds(axes: Axes, own: list[Result]) -> None:
    """What unseen canaries score in the mean at one number of copies, and the most that one and all
    of them can.
    """
    counts = [
        sum(map(len, authors.values()))
        for r in own
        for authors in by_copies(_canaries(r.attacks)).values()
    ]
    _, low, high = null_band("mean", min(counts))
    axes.axhspan(low, high, color=NULL, zorder=0, linewidth=0)
    for bits in {result.attacks[KIND]["space_bits"] for result in own}:
        axes.axhline(bits, color=INK, linewidth=1, linestyle=":", zorder=1)
    for bits in {
        most for result in own if (most := _canaries(result.attacks).get("mean_most")) is not None
    }:
        axes.axhline(bits, color="#555555", linewidth=1, linestyle=AHEAD, zorder=1)


def _apart(values: list[int]) -> list[int]:
    """Ticks whose labels do not touch on the log axis."""
    kept: list[int] = []
    for value in values:
        if not kept or (
            value >= 1.22 * kept[-1] and (value < 10 or value % 5 == 0 or value > 1.6 * kept[-1])
        ):
            kept.append(value)
    return kept


def _words(known: list[Result], shown: list[float | None]) -> str:
    authors = sorted({len(set(_canaries(result.attacks)["authors"])) for result in known})
    exact = all(_canaries(result.attacks).get("exact") for result in known)
    seeds = len({result.run.seed for result in known})
    ranks = (
        ""
        if exact
        else " Ranks are estimated from random sequences; the error of that is not in the whiskers."
    )
    return (
        "Exposure = log2 |R| - log2 rank of a sequence of random words among all |R| of its length; a canary is planted in the "
        f"text of one author. Lines: mean over {', '.join(map(str, authors))} authors; whiskers: 95 % bootstrap interval over "
        f"authors.{ranks} Grey: mean of as many canaries that the model never saw. {caption(shown)}"
        f"{averaged(seeds, 'An author is the mean over {} seeds.')}"
    )
