"""Whether a model's representations say who wrote a text: accuracy of a probe on them.

Privacy Regularization (section 2.1) regularises against such a discriminator and does not report
one that is trained afterwards. Beside the probe's accuracy: chance, the author with the most text,
and a bag of words, which never sees the model.
"""

from typing import Any

from matplotlib.axes import Axes
from matplotlib.figure import Figure

from confide.report.figures import style
from confide.report.figures.series import (
    INTERVALS,
    Series,
    averaged,
    by_corpus,
    chosen_gamma,
    group,
    name_rows,
    over_runs,
    row_heights,
    whisker,
)
from confide.report.figures.style import BOX, DARK, DOTTED, FAINT, INK
from confide.report.results import Result
from confide.specs import ReportSpec

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


def author_inference(spec: ReportSpec, results: list[Result]) -> Figure:
    """One panel per corpus: a dot with its interval per series, and what no model is needed for."""
    known = [result for result in results if result.metric(KIND, "accuracy") is not None]
    if not known:
        return style.blank("no run of this study was probed for authors")
    gamma = chosen_gamma(spec.gamma, known)
    corpora = by_corpus(known)
    rows = [group(known, name) for name in corpora]
    heights = row_heights(rows)
    drawn = style.figure(10.8, 2.1 + sum(0.9 + 0.36 * height for height in heights))
    ratios = {"height_ratios": heights}
    grid = drawn.subplots(len(rows), 1, squeeze=False, gridspec_kw=ratios)
    for axes, (name, own), row in zip(grid[:, 0], corpora.items(), rows, strict=True):
        for field, line in LINES.items():
            for value in {result.metric(KIND, field) for result in own} - {None}:
                axes.axvline(value, linewidth=1.2, zorder=1, **line)
        places = name_rows(axes, [series.label for series in row])
        for place, series in zip(places, row, strict=True):
            _row(axes, place, series, gamma)
        axes.set_xlim(left=0)
        axes.set_title(name)
        axes.set_xlabel("share of held-out texts whose author the probe names")
    authors, points = (
        ", ".join(map(str, sorted({result.metric(KIND, field) for result in known})))
        for field in ("authors", "points")
    )
    caption = (
        f"Final models. A probe of the last hidden state names the author of {points} held-out "
        f"texts, one of {authors}. Lower hides more. Whiskers: 95 % interval. The bag of words "
        "tells what the text itself gives away: the hidden state only tells more to an attacker "
        f"who does not have the text. {averaged(known, INTERVALS)}"
    )
    legend = [style.entry(WORDS[name], linewidth=1.3, **line) for name, line in LINES.items()]
    return style.finish(drawn, f"Author inference — {spec.title}", caption, legend)


def _row(axes: Axes, place: int, series: Series, gamma: float) -> None:
    runs = series.at(gamma)
    accuracy = over_runs(runs, lambda result: result.metric(KIND, "accuracy"))
    low = over_runs(runs, lambda result: result.metric(KIND, "accuracy_low"))
    high = over_runs(runs, lambda result: result.metric(KIND, "accuracy_high"))
    if accuracy is None:
        return
    if low is not None and high is not None:
        whisker(axes, series, (low.value, high.value), place, linewidth=1.3)
    axes.plot([accuracy.value], [place], **series.marks(linestyle="", markersize=7))
    style.beside(axes, f"{accuracy.value:.2f}", accuracy.value, place, (7, 3.5), bbox=BOX)
