"""The one place of colours, markers and line styles: a method looks the same in every figure.

Colours stay apart for colour-blind readers (Okabe-Ito); markers and dashes alone are enough in
grey. SVG and PNG bytes depend on the data only: fixed hash salt, no dates.

A figure is as wide as two columns of a paper (6.9 inches), and its letters are as large as print's,
so that it can still be read at the width of one column. Heading and caption stand beside it.
"""

import math
import textwrap
from collections.abc import Sequence
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Any, NamedTuple

import matplotlib
import matplotlib.ticker
from matplotlib.artist import Artist
from matplotlib.axes import Axes
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.colors import to_hex, to_rgb
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.patches import Patch
from matplotlib.text import Text

from confide.output import escaping

DPI = 250
WIDTH = 6.9  # inches
INK = "#222222"
FAINT = "#8a8a8a"
NULL = "#e4e4e4"
DARK = "#555555"
DOTTED = (0, (1, 1.5))
# the line that guessing draws
GUESS: dict[str, Any] = {"color": FAINT, "linewidth": 1.2, "linestyle": (0, (4, 3))}
# behind words that lie on lines
BOX = {"facecolor": "white", "edgecolor": "none", "pad": 0.6, "alpha": 0.8}
ENTRY = 0.2  # inches of a line of the legend
LETTER = 0.075  # inches that a letter of a heading takes in the mean
ENTRY_LETTER = 0.068  # of the legend
HANDLE = 0.75  # inches before a label and behind it
# tells a second model, variant or ablation of one method; "none": conditional
NARROW = 2.5  # an axis whose ends are nearer has even steps
FILLS = ("full", "left", "bottom", "right", "top")
TINTS = (0.0, 0.45, -0.45, 0.7, -0.65)  # beside the fills: towards black, or white if negative

RC: dict[str, Any] = {
    "font.family": "DejaVu Sans",
    "font.size": 9.5,
    "axes.titlesize": 9.5,
    "axes.titlelocation": "left",
    "axes.labelsize": 9.5,
    "xtick.labelsize": 9,
    "ytick.labelsize": 9,
    "axes.edgecolor": "#555555",
    "axes.linewidth": 0.8,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.grid": True,
    "axes.axisbelow": True,
    "grid.color": "#ececec",
    "grid.linewidth": 0.7,
    "legend.frameon": False,
    "legend.fontsize": 9,
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
    """How a method is named and drawn.

    `policy`: whether its training depends on the screening policy (and on gamma).
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
    "behind_cover": Look("Behind a cover", "#00798c", "H", (0, (9, 1, 2, 1))),
    "schedule": Look("Redaction schedule", "#8c564b", "P", (0, (8, 2))),
    "atdp": Look("ATDP", "#117733", "p", (0, (7, 1, 1, 1))),
    "sa_adp": Look("SA-ADP", "#882255", "*", (0, (4, 2, 1, 2)), policy=False),
    "domain_only": Look("One domain only", "#6f6f6f", "<", (0, (2, 2)), policy=False),
    "adversarial": Look("Adversarial", "#998a00", ">", (0, (4, 1, 1, 1)), policy=False),
    "triplet": Look("Triplet", "#332288", "h", (0, (10, 2, 2, 2)), policy=False),
    "untouched": Look("Untouched", "#1a1a1a", "d", (0, (1, 4)), policy=False),
}


def look(method: str) -> Look:
    """Look of a method; one that is not listed is drawn in black under its own name."""
    return METHODS.get(method, Look(method, "#000000", "p", "-"))


def shade(color: str, amount: float) -> str:
    """A colour mixed with black (amount from 0 to 1) or with white (from 0 to -1)."""
    other = 0.0 if amount > 0 else 1.0
    red, green, blue = ((1 - abs(amount)) * part + abs(amount) * other for part in to_rgb(color))
    return to_hex((red, green, blue))


def tinted(look: Look, place: int) -> Look:
    """Look of a method's first, second, ... variant: the first is the method's own."""
    return look._replace(color=shade(look.color, TINTS[place])) if TINTS[place] else look


class Drawing(Figure):
    """A figure with the heading and the caption that stand beside it, outside of the image."""

    heading = ""
    caption = ""


def figure(width: float, height: float) -> Drawing:
    """Empty figure with its own Agg canvas; needs no display and no pyplot state."""
    drawn = Drawing(figsize=(width, height), layout="constrained", dpi=DPI)
    FigureCanvasAgg(drawn)
    return drawn


def panels(
    width: float, height: float, rows: int = 1, columns: int = 1, **more: Any
) -> tuple[Drawing, Any]:
    """A figure with a grid (rows, columns) of panels."""
    drawn = figure(width, height)
    return drawn, drawn.subplots(rows, columns, squeeze=False, **more)


def blank(text: str) -> Drawing:
    """A figure of a study that measured nothing of what it would show, which says so."""
    drawn = figure(WIDTH, 0.8)
    drawn.text(0.5, 0.5, text, ha="center", color=FAINT)
    return drawn


def say(axes: Axes, text: str) -> None:
    """Say in an empty panel why it is empty."""
    axes.text(0.5, 0.5, text, transform=axes.transAxes, ha="center", color=FAINT)
    axes.set(xticks=[], yticks=[])


def beside(
    axes: Axes, text: str, x: float, y: float, offset: tuple[float, float], **more: Any
) -> None:
    """Write words beside a point of a panel; `offset`: how far, in points of print."""
    where: dict[str, Any] = {
        "xytext": offset,
        "textcoords": "offset points",
        "fontsize": 8.5,
        "color": INK,
    }
    axes.annotate(text, (x, y), **where | more)


def entry(label: str, **line: Any) -> Line2D:
    """Legend entry of a line or marker; `line`: properties of Line2D."""
    return Line2D([], [], label=label, **line)


def dot(label: str, markersize: float, **line: Any) -> Line2D:
    """Legend entry of a round grey marker without a line."""
    grey = {"color": FAINT, "marker": "o", "linestyle": "", "markersize": markersize}
    return entry(label, **grey | line)


def band(label: str) -> Patch:
    """Legend entry of a grey area."""
    return Patch(color=NULL, label=label)


def finish(drawn: Drawing, heading: str, caption: str, handles: Sequence[Artist] = ()) -> Drawing:
    """Give a figure its heading, its caption and a legend if it has one; returns the figure.

    The caption is what a reader must know to read the figure alone.
    """
    drawn.heading = escaping.visible(heading)
    drawn.caption = escaping.visible(caption)
    if handles:
        legend(drawn, handles)
    return drawn


def legend(drawn: Figure, handles: Sequence[Artist]) -> None:
    """Legend below the data, with one entry per label.

    It never lies on the data: the figure grows with it.
    """
    unique = {str(handle.get_label()): handle for handle in handles}
    letters = max(len(line) for label in unique for line in label.split("\n"))
    width = drawn.get_figwidth()
    columns = max(1, min(len(unique), int(width / (ENTRY_LETTER * letters + HANDLE))))
    rows = -(-len(unique) // columns)
    most = max(1 + label.count("\n") for label in unique)
    drawn.set_figheight(drawn.get_figheight() + ENTRY * rows * most + 0.1)
    drawn.legend(
        handles=list(unique.values()),
        loc="outside lower center",
        ncols=columns,
        borderaxespad=0.1,
        labelspacing=0.4,
        columnspacing=1.2,
    )


def plain_log(axes: Axes, which: str) -> None:
    """Log axis whose ticks read 2, 5, 10, 20 instead of powers."""
    axis = getattr(axes, f"{which}axis")
    getattr(axes, f"set_{which}scale")("log")
    low, high = getattr(axes, f"get_{which}lim")()
    steps = (1, 2, 3, 5, 7) if high / low < 10 else (1, 2, 5) if high / low < 40 else (1,)
    base = 100.0 if high / low > 1e5 else 10.0  # labels of six digits would touch
    if high / low < NARROW:
        axis.set_major_locator(matplotlib.ticker.MaxNLocator(5))
    else:
        axis.set_major_locator(matplotlib.ticker.LogLocator(base, subs=steps, numticks=12))
    axis.set_major_formatter(matplotlib.ticker.FuncFormatter(lambda value, _: f"{value:,.10g}"))
    axis.set_minor_formatter(matplotlib.ticker.NullFormatter())


def settings() -> AbstractContextManager[None]:
    """Context of drawing and saving: matplotlib's defaults and ours, whatever the user's style."""
    defaults: dict[Any, Any] = dict(matplotlib.rcParamsDefault)
    return matplotlib.rc_context(defaults | RC)


def save(drawn: Figure, stem: Path) -> None:
    """Write stem.svg and stem.png; the same figure gives the same bytes."""
    settle(drawn)
    drawn.savefig(stem.with_suffix(".svg"), metadata={"Date": None, "Creator": None})
    drawn.savefig(stem.with_suffix(".png"), dpi=DPI, metadata={"Software": None})


def plain(drawn: Figure) -> None:
    """Spell out what cannot be seen in the words of a figure, which may come from anybody.

    The names of ticks are left to who sets them.
    """
    for text in drawn.findobj(Text):
        text.set_text(escaping.figure(text.get_text()))


def fit(drawn: Figure) -> None:
    """Break titles and names of horizontal axes where they would reach into the next panel."""
    for axes in drawn.axes:
        width = axes.get_position().width * drawn.get_figwidth()
        letters = max(10, int(round(width, 2) / LETTER))
        for side in ("left", "center"):
            title = axes.get_title(loc=side)
            if len(title) > letters:
                axes.set_title(textwrap.fill(title, letters), loc=side)
        lines = axes.get_xlabel().split("\n")
        whole = [
            line.replace(" = ", "\u00a0=\u00a0") for line in lines
        ]  # a value stays with its name
        axes.set_xlabel("\n".join(textwrap.fill(line, letters + 4) for line in whole))


def thin(axes: Axes) -> None:
    """Leave out ticks whose names would touch the one to their left."""
    low, high = axes.get_xlim()
    labels = axes.get_xticklabels()
    shown = [
        (tick, label)
        for tick, label in zip(axes.get_xticks(), labels, strict=True)
        if low <= tick <= high
    ]
    kept = []
    end = -math.inf
    for tick, label in shown:
        box = label.get_window_extent()
        if box.x0 > end:
            kept.append((tick, label.get_text()))
            end = box.x1 + box.height / 2
    if len(kept) < len(shown):
        axes.set_xticks([tick for tick, _ in kept], [text for _, text in kept])
        axes.set_xlim(low, high)


def settle(drawn: Figure) -> None:
    """Lay out once and round, with titles and names of axes in lines that fit their panels.

    The last digits of the solver depend on the order of objects in memory.
    """
    plain(drawn)
    drawn.draw_without_rendering()
    fit(drawn)
    drawn.draw_without_rendering()
    for axes in drawn.axes:
        thin(axes)
    drawn.set_layout_engine("none")
    for axes in drawn.axes:
        left, bottom, width, height = (round(value, 4) for value in axes.get_position().bounds)
        axes.set_position((left, bottom, width, height))
    for text in drawn.texts:
        x, y = text.get_position()
        text.set_position((round(x, 4), round(y, 4)))
