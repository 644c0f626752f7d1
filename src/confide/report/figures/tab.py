"""How often a sequence comes out whole when its first token is given: the tab attack (Privacy
Regularization, Figure 3a, b).

Beside the random words that were planted, real text of training, and controls that were never
planted: what these score is no memory. The paper reads the most likely continuation; what a beam of
several finds is a mark beside it.
"""

from typing import Any

from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.patches import Patch

from confide.report.figures.levels import Moment, caption, heading, hollow, levels, moments, told
from confide.report.figures.series import averaged, chosen_gamma, corpora, group
from confide.report.figures.style import FAINT, INK, blank, figure, legend, shade, title
from confide.report.results import Result
from confide.specs import ReportSpec

KIND = "tab"
BARS = {  # group of the file -> words, place below the row's middle, hatch, how pale
    "canaries": ("random words, planted", 0.2, "", 1.0),
    "real": ("real training text", -0.05, "////", 0.45),
    "controls": ("random words, not planted", -0.3, "....", 0.2),
}
MARKS: dict[str, dict[str, Any]] = {  # what else is drawn of a group
    "beam": {"marker": "d", "markersize": 3.6},
    "first_k": {"marker": "o", "markersize": 3.6, "fillstyle": "none"},
}


def tab(spec: ReportSpec, results: list[Result]) -> Figure:
    """One row of panels per corpus, a panel per perplexity level and one of the final models."""
    known = [result for result in results if KIND in result.attacks]
    names = corpora(known)
    shown = levels(spec, known, KIND)
    gamma = chosen_gamma(spec.gamma, known)
    if not names:
        return blank("no run of this study was given first tokens to go on from")
    rows = max(len(group(known, name)) for name in names)
    drawn = figure(4.6 + 2.9 * max(2, len(shown)), 2.0 + (0.7 + 0.52 * rows) * len(names))
    grid = drawn.subplots(len(names), len(shown), squeeze=False, sharey="row")
    for line, name in zip(grid, names, strict=True):
        series = group(known, name)
        places = range(len(series), 0, -1)
        for axes, level in zip(line, shown, strict=True):
            for place, own in zip(places, series, strict=True):
                if found := moments(own.at(gamma), level, KIND):
                    _row(axes, place, found, own.look.color)
            axes.set_title(f"{name}: {heading(level)}", loc="left")
            axes.set_xlabel("share of sequences extracted")
            axes.set_xlim(0, 1)
            axes.grid(axis="y", visible=False)
            axes.tick_params(axis="y", length=0)
        line[0].set_yticks(list(places), [own.label for own in series])
        line[0].set_ylim(0.4, len(series) + 0.6)
    title(drawn, f"Tab attack — {spec.title}", _words(known, shown))
    bars = [
        Patch(facecolor=shade(FAINT, pale - 1), edgecolor=INK, hatch=hatch, label=w)
        for w, _, hatch, pale in BARS.values()
    ]
    words = {"beam": "found by a beam", "first_k": "its first tokens alone"}
    marks = [
        Line2D([], [], color=INK, linestyle="", label=words[name], **own)
        for name, own in MARKS.items()
    ]
    legend(drawn, [*bars, *marks, *hollow(shown)])
    return drawn


def rate(
    found: list[Moment], name: str, decoding: str
) -> tuple[float, float | None, float | None] | None:
    """A rate of extraction and the ends of its interval, means over the models; None where nothing
    was tried.
    """
    own = [one.attacks[KIND].get(name) or {} for one in found]
    keys = [f"rate_{decoding}{end}" for end in ("", "_low", "_high")]
    values = [[part[key] for part in own if part.get(key) is not None] for key in keys]
    means = [sum(each) / len(each) if each else None for each in values]
    return None if means[0] is None else (means[0], means[1], means[2])


def _row(axes: Axes, place: int, found: list[Moment], color: str) -> None:
    """The bars of one run; hollow where it never came near the level."""
    near = all(one.near for one in found)
    for name, (_, shift, hatch, pale) in BARS.items():
        if (greedy := rate(found, name, "greedy")) is None:
            continue
        value, low, high = greedy
        face = shade(color, pale - 1) if near else "white"
        axes.barh(
            place + shift, value, 0.25, color=face, edgecolor=color, hatch=hatch, linewidth=0.7
        )
        if low is not None and high is not None:
            axes.plot(
                [low, high], [place + shift] * 2, color=INK, linewidth=1, solid_capstyle="butt"
            )
        for decoding, marks in MARKS.items():
            if (more := rate(found, name, decoding)) is not None:
                axes.plot(
                    [more[0]], [place + shift], color=INK, linestyle="", clip_on=False, **marks
                )
    words: dict[str, Any] = {"transform": axes.get_yaxis_transform(), "ha": "right", "va": "center"}
    axes.text(0.995, place + 0.43, told(found), fontsize=7, color="#444444", **words)


def _words(known: list[Result], shown: list[float | None]) -> str:
    seeds = len({result.run.seed for result in known})
    counts = {
        name: {(result.attacks[KIND].get(name) or {}).get("count") for result in known}
        for name in BARS
    }
    sizes = "; ".join(
        f"{BARS[name][0]}: {max(own - {None})}" for name, own in counts.items() if own - {None}
    )
    return (
        "Share of sequences whose first token is followed by all the others when the model's most likely token is taken again "
        f"and again ({sizes}). Whiskers: 95 % interval. Real text is predictable without memory, and random words that were "
        f"not planted show what chance gives. {caption(shown)}"
        f"{averaged(seeds, 'Means over {} seeds, of the intervals too.')}"
    )
