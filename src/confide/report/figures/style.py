"""The one place of colours, markers and line styles: a method looks the same in every figure of
every study.

Colours stay apart for colour-blind readers (Okabe-Ito); markers and dashes alone are enough in
grey. SVG and PNG bytes depend on the data only: fixed hash salt, no dates.
"""

import textwrap
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Any, NamedTuple

import matplotlib
import matplotlib.ticker
from matplotlib.axes import Axes
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.colors import to_hex, to_rgb
from matplotlib.figure import Figure
from matplotlib.text import Text

from confide.output import escaping

DPI = 170
INK = "#222222"
FAINT = "#8a8a8a"
NULL = "#e4e4e4"
BOX = {
    "facecolor": "white",
    "edgecolor": "none",
    "pad": 0.6,
    "alpha": 0.8,
}  # behind words that lie on lines
TITLE = 0.3  # inches at the top of a figure that are its heading's
FILLS = (
    "full",
    "left",
    "bottom",
    "right",
    "top",
)  # tells a second model, variant or ablation of one method; "none": conditional
TINTS = (0.0, 0.45, -0.45, 0.7, -0.65)  # beside the fills: towards black, or white if negative

RC: dict[str, Any] = {
    "font.family": "DejaVu Sans",
    "font.size": 9,
    "axes.titlesize": 9.5,
    "axes.titlelocation": "left",
    "axes.labelsize": 9,
    "axes.edgecolor": "#555555",
    "axes.linewidth": 0.8,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.grid": True,
    "axes.axisbelow": True,
    "grid.color": "#ececec",
    "grid.linewidth": 0.7,
    "legend.frameon": False,
    "legend.fontsize": 8.5,
    "legend.handlelength": 3.2,
    "text.parse_math": False,  # words are words, whatever dollars and backslashes are in them
    "lines.linewidth": 1.5,
    "lines.markersize": 6,
    "svg.hashsalt": "confide",
    "svg.fonttype": "path",
    "figure.constrained_layout.h_pad": 0.06,
    "figure.constrained_layout.w_pad": 0.06,
}


class Look(NamedTuple):
    """How a method is named and drawn; `policy`: whether its training depends on the screening
    policy (and on gamma).
    """

    label: str
    color: str
    marker: str
    line: Any
    policy: bool = True


METHODS: dict[str, Look] = {
    "nonprivate": Look("Non-private", "#d55e00", "X", (0, (1, 1)), policy=False),
    "redacted": Look("Redacted only", "#009e73", "s", (0, (5, 1, 1, 1, 1, 1))),
    "dpsgd": Look("DP-SGD", "#e69f00", "^", (0, (5, 2)), policy=False),
    "crt": Look("CRT", "#0072b2", "o", "-"),
    "selective": Look("Selective DP-SGD", "#cc79a7", "D", (0, (6, 1.5, 1, 1.5))),
    "jft": Look("JFT", "#56b4e9", "v", (0, (3, 1))),
    "schedule": Look("Redaction schedule", "#8c564b", "P", (0, (8, 2))),
    "domain_only": Look("One domain only", "#6f6f6f", "<", (0, (2, 2))),
    "adversarial": Look("Adversarial", "#998a00", ">", (0, (4, 1, 1, 1)), policy=False),
    "triplet": Look("Triplet", "#332288", "h", (0, (10, 2, 2, 2)), policy=False),
}


def look(method: str) -> Look:
    """Look of a method; one that is not listed is drawn in black under its own name."""
    return METHODS.get(method, Look(method, "#000000", "p", "-"))


def shade(color: str, amount: float) -> str:
    """A colour mixed with black (amount from 0 to 1) or with white (from 0 to -1)."""
    other, share = (0.0, amount) if amount > 0 else (1.0, -amount)
    return to_hex([(1 - share) * part + share * other for part in to_rgb(color)])


def tinted(own: Look, place: int) -> Look:
    """Look of a method's first, second, ... variant: the first is the method's own."""
    return own._replace(color=shade(own.color, TINTS[place])) if TINTS[place] else own


def figure(width: float, height: float) -> Figure:
    """Empty figure with its own Agg canvas; needs no display and no pyplot state."""
    drawn = Figure(figsize=(width, height), layout="constrained", dpi=DPI)
    FigureCanvasAgg(drawn)
    return drawn


def blank(words: str) -> Figure:
    """A figure of a study that measured nothing of what it would show, which says so."""
    drawn = figure(10.6, 1.5)
    drawn.text(0.5, 0.5, words, ha="center", color=FAINT)
    return drawn


def say(axes: Axes, words: str) -> None:
    """The same for one panel."""
    axes.text(0.5, 0.5, words, transform=axes.transAxes, ha="center", color=FAINT)
    axes.set(xticks=[], yticks=[])


def title(drawn: Figure, text: str, caption: str) -> None:
    """Heading on the left above and what a reader must know to read the figure alone below."""
    drawn.suptitle(
        escaping.visible(text), x=0.012, ha="left", fontsize=11.5, fontweight="bold", color=INK
    )
    drawn.supxlabel(
        textwrap.fill(caption, 172),
        x=0.012,
        ha="left",
        fontsize=7.8,
        color="#444444",
        linespacing=1.35,
    )


def legend(drawn: Figure, handles: list[Any]) -> None:
    """Legend beside the data, never on it, on the heading nor on the caption: the figure grows with
    it; one entry per label.
    """
    unique = {handle.get_label(): handle for handle in handles}
    lines = sum(1 + label.count("\n") for label in unique)
    drawn.set_figheight(max(drawn.get_figheight(), 0.225 * lines + 0.8 + TITLE))
    drawn.legend(
        handles=list(unique.values()),
        loc="outside right upper",
        borderaxespad=0.2,
        labelspacing=0.7,
    )


def plain_log(axes: Axes, which: str) -> None:
    """Log axis whose ticks read 2, 5, 10, 20 instead of powers."""
    axis = getattr(axes, f"{which}axis")
    getattr(axes, f"set_{which}scale")("log")
    low, high = getattr(axes, f"get_{which}lim")()
    steps = (1, 2, 3, 5, 7) if high / low < 20 else (1, 2, 5) if high / low < 300 else (1,)
    base = 100.0 if high / low > 1e5 else 10.0  # labels of six digits would touch
    axis.set_major_locator(matplotlib.ticker.LogLocator(base, subs=steps, numticks=12))
    axis.set_major_formatter(matplotlib.ticker.FuncFormatter(lambda value, _: f"{value:,.10g}"))
    axis.set_minor_formatter(matplotlib.ticker.NullFormatter())


def settings() -> AbstractContextManager[None]:
    """Context in which figures are drawn and saved: matplotlib's defaults and ours, whatever the
    user's own style.
    """
    return matplotlib.rc_context(dict(matplotlib.rcParamsDefault) | RC)


def save(drawn: Figure, stem: Path) -> None:
    """Write stem.svg and stem.png; the same figure gives the same bytes."""
    settle(drawn)
    drawn.savefig(stem.with_suffix(".svg"), metadata={"Date": None, "Creator": None})
    drawn.savefig(stem.with_suffix(".png"), dpi=DPI, metadata={"Software": None})


def plain(drawn: Figure) -> None:
    """What stands in a figure, but for the names of ticks, as words that can be seen: it may come
    from anybody.
    """
    for text in drawn.findobj(Text):
        text.set_text(escaping.figure(text.get_text()))


def settle(drawn: Figure) -> None:
    """Lay out once and round: the solver's last digits depend on the order of objects in memory.
    Then lower the legend.
    """
    plain(drawn)
    drawn.draw_without_rendering()
    drawn.set_layout_engine("none")
    # Not before: the solver keeps no room beside the panels for a legend that was given a place.
    for beside in drawn.legends:
        beside.set_bbox_to_anchor((0, 0, 1, 1 - TITLE / drawn.get_figheight()), drawn.transFigure)
    for axes in drawn.axes:
        axes.set_position([round(value, 4) for value in axes.get_position().bounds])
    for text in drawn.texts:
        text.set_position([round(value, 4) for value in text.get_position()])
