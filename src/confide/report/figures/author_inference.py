"""Whether a model's representations say who wrote a text: accuracy of a probe on them (Privacy
Regularization, section 2.1).

The paper regularises against such a discriminator and does not report one that is trained
afterwards. Beside the probe's accuracy: chance, the author with the most text, and a bag of words,
which never sees the model.
"""

from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D

from confide.report.figures.series import Series, averaged, chosen_gamma, corpora, group
from confide.report.figures.style import BOX, FAINT, INK, blank, figure, legend, title
from confide.report.results import Result
from confide.specs import ReportSpec

KIND = "author_inference"
LINES = {  # field -> words, line style, colour
    "chance": ("chance", "-", FAINT),
    "majority": ("always the author with\nthe most text", (0, (6, 2)), "#555555"),
    "blind": ("bag of words,\nwithout the model", (0, (1, 1.5)), INK),
}


def author_inference(spec: ReportSpec, results: list[Result]) -> Figure:
    """One panel per corpus: a dot with its interval per row of the sample sheet, and what no model
    is needed for.
    """
    known = [result for result in results if result.metric(KIND, "accuracy") is not None]
    names = corpora(known)
    gamma = chosen_gamma(spec.gamma, known)
    rows = [group(known, name) for name in names]
    heights = [max(2, len(row)) for row in rows]
    if not names:
        return blank("no run of this study was probed for authors")
    drawn = figure(10.8, 2.1 + sum(0.9 + 0.36 * height for height in heights))
    grid = drawn.subplots(len(names), 1, squeeze=False, gridspec_kw={"height_ratios": heights})
    for (axes,), name, row in zip(grid, names, rows, strict=True):
        own = [result for result in known if result.corpus == name]
        for field, (_, line, color) in LINES.items():
            for value in {
                value for result in own if (value := result.metric(KIND, field)) is not None
            }:
                axes.axvline(value, color=color, linestyle=line, linewidth=1.2, zorder=1)
        for place, series in zip(range(len(row), 0, -1), row, strict=True):
            _row(axes, place, series, gamma)
        axes.set_yticks(list(range(len(row), 0, -1)), [series.label for series in row])
        axes.set_ylim(0.4, len(row) + 0.6)
        axes.set_xlim(left=0)
        axes.set_title(name, loc="left")
        axes.set_xlabel("share of held-out texts whose author the probe names")
    counts = {
        name: sorted({result.metric(KIND, name) for result in known})
        for name in ("authors", "points")
    }
    seeds = len({result.run.seed for result in known})
    words = (
        f"Final models. A probe of the last hidden state names the author of {', '.join(map(str, counts['points']))} held-out "
        f"texts, one of {', '.join(map(str, counts['authors']))}. Lower hides more. Whiskers: 95 % interval. The bag of words "
        "tells what the text itself gives away: the hidden state only tells more to an attacker who does not have the text. "
        f"{averaged(seeds, 'Means over {} seeds, of the intervals too.')}"
    )
    title(drawn, f"Author inference — {spec.title}", words)
    legend(
        drawn,
        [
            Line2D([], [], color=c, linestyle=s, linewidth=1.3, label=w)
            for w, s, c in LINES.values()
        ],
    )
    return drawn


def _row(axes: Axes, place: int, series: Series, gamma: float) -> None:
    runs = series.at(gamma)
    value, low, high = (_mean(runs, f"accuracy{end}") for end in ("", "_low", "_high"))
    if low is not None and high is not None:
        axes.plot([low, high], [place] * 2, color=series.look.color, linewidth=1.3)
    axes.plot([value], [place], **series.marks(linestyle="", markersize=7))
    axes.annotate(
        f"{value:.2f}",
        (value, place),
        (7, 3.5),
        textcoords="offset points",
        fontsize=7.8,
        color=INK,
        bbox=BOX,
    )


def _mean(runs: list[Result], field: str) -> float | None:
    values = [value for result in runs if (value := result.metric(KIND, field)) is not None]
    return sum(values) / len(values) if values else None
