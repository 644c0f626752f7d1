"""Whether a model's representations say who wrote a text: accuracy of a probe on them.

Privacy Regularization (section 2.1) regularises against such a discriminator and does not report
one that is trained afterwards. Beside the probe's accuracy: chance, the author with the most text,
and a bag of words, which never sees the model.
"""

from functools import partial
from typing import Any

from matplotlib.axes import Axes

from confide.report.figures import style
from confide.report.figures.frame import INTERVALS, Drawn, Shown, figure, has_number
from confide.report.figures.series import Series, mark, name_rows, over_runs, row_heights
from confide.report.figures.style import BOX, DARK, DOTTED, FAINT, INK
from confide.report.results import Result
from confide.report.seeds import Estimate

KIND = "author_inference"
WORDS = {
    "chance": "chance",
    "majority": "always the author with\nthe most text",
    "blind": "bag of words,\nwithout the model",
}
LINES: dict[str, dict[str, Any]] = {
    "chance": {"linestyle": "-", "color": FAINT},
    "majority": {"linestyle": (0, (6, 2)), "color": DARK},
    "blind": {"linestyle": DOTTED, "color": INK},
}


@figure(
    "Author inference",
    has_number(KIND, "accuracy"),
    "no run of this study was probed for authors",
)
def author_inference(shown: Shown) -> Drawn:
    """One panel per corpus: a dot with its interval per series, and what no model is needed for."""
    heights = row_heights(shown.series.values())
    height = 2.1 + sum(0.9 + 0.36 * height for height in heights)
    drawn, grid = style.panels(style.WIDTH, height, len(heights), height_ratios=heights)
    for axes, (name, row) in zip(grid[:, 0], shown.series.items(), strict=True):
        for field, line in LINES.items():
            for value in {result.metric(KIND, field) for result in shown.corpora[name]} - {None}:
                axes.axvline(value, linewidth=1.2, zorder=1, **line)
        places = name_rows(axes, [series.label for series in row])
        for place, series in zip(places, row, strict=True):
            _row(axes, place, series, shown.gamma)
        axes.set_xlim(left=0)
        axes.set_title(name)
        axes.set_xlabel("share of held-out texts whose author the probe names")
    authors, points = (
        ", ".join(map(str, sorted({result.metric(KIND, field) for result in shown.results})))
        for field in ("authors", "points")
    )
    caption = (
        f"Final models. A probe of the last hidden state names the author of {points} held-out "
        f"texts, one of {authors}. Lower hides more. Whiskers: 95 % interval. The bag of words "
        "tells what the text itself gives away: the hidden state only tells more to an attacker "
        f"who does not have the text. {shown.averaged(INTERVALS)}"
    )
    legend = [style.entry(WORDS[name], linewidth=1.3, **line) for name, line in LINES.items()]
    return drawn, caption, legend


def _row(axes: Axes, place: int, series: Series, gamma: float) -> None:
    runs = series.at(gamma)
    accuracy, low, high = (
        over_runs(runs, partial(Result.metric, kind=KIND, name=f"accuracy{end}"))
        for end in ("", "_low", "_high")
    )
    if accuracy is None:
        return
    interval = Estimate(accuracy.value, low.value, high.value) if low and high else None
    mark(axes, series, interval or accuracy.value, place)
    style.beside(axes, f"{accuracy.value:.2f}", accuracy.value, place, (7, 3.5), bbox=BOX)
