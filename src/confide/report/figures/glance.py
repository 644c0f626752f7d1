"""What opens the summary: of each model the certified ε of any record, beside what it remembers.

It is for readers of one figure. The models are those of one study at the policy as it is, and seeds
are dots of their own.
"""

import base64
import io
import math

from matplotlib.axes import Axes

from confide.output import escaping
from confide.report.figures import style
from confide.report.results import largest_exposure
from confide.report.tables.table import Row

LINE = 0.3  # inches of a model
EDGES = 0.95  # above and below
PANELS = ("certified ε of any record (log scale)", "largest exposure, bits")


def glance(models: dict[str, list[Row]]) -> style.Drawing:
    """A line for each model, by name: lines of table.csv of its seeds."""
    drawn, ((privacy, memory),) = style.panels(
        style.WIDTH, EDGES + LINE * len(models), 1, 2, sharey=True
    )
    _epsilons(privacy, models)
    _exposures(memory, models)
    privacy.set_yticks(range(len(models)), list(map(escaping.figure, models)))
    privacy.set_ylim(len(models) - 0.5, -0.5)
    for axes, title in zip((privacy, memory), PANELS, strict=True):
        axes.set_xlabel(title)
    return drawn


def _dot(axes: Axes, value: float, place: int, row: Row) -> None:
    look = style.look(row["method"])
    axes.plot([value], [place], color=look.color, marker=look.marker, linestyle="")


def _epsilons(axes: Axes, models: dict[str, list[Row]]) -> None:
    """Finite ones by size; 0 and infinity, which no such axis has, are words at its ends."""
    claimed = [row["epsilon_any_record"] for rows in models.values() for row in rows]
    finite = [value for value in claimed if value is not None and 0 < value < math.inf]
    low = min(finite) / 2 if finite else 0.1
    high = max(finite) * 2 if finite else 10.0
    axes.set_xscale("log")
    axes.set_xlim(low, high)
    style.plain_log(axes, "x")
    for place, rows in enumerate(models.values()):
        for row in rows:
            epsilon = row["epsilon_any_record"]
            if epsilon is None or epsilon in (0, math.inf):
                words = {None: "not claimed", 0: "0"}.get(epsilon, "∞: not every record is covered")
                side = 0.02 if epsilon == 0 else 0.98
                axes.text(
                    side,
                    place,
                    words,
                    transform=axes.get_yaxis_transform(),
                    ha="left" if epsilon == 0 else "right",
                    va="center",
                    color=style.DARK,
                    fontsize=8.5,
                )
            else:
                _dot(axes, epsilon, place, row)


def _exposures(axes: Axes, models: dict[str, list[Row]]) -> None:
    """Beside each the largest that chance gives, as a grey bar."""
    has_value = False
    for place, rows in enumerate(models.values()):
        for row in rows:
            value = largest_exposure(row, "exposure_")
            chance = row.get("exposure_null_max_high")
            if chance is not None:
                axes.barh(place, chance, height=0.7, color=style.NULL)
            if value is not None:
                has_value = True
                _dot(axes, value, place, row)
    if has_value:
        axes.set_xlim(left=0)
    else:
        axes.text(
            0.5, 0.5, "not measured", transform=axes.transAxes, ha="center", color=style.FAINT
        )
        axes.set_xticks([])


def embedded(drawn: style.Drawing) -> str:
    """The figure as the address of an image in a page: PNG within, so that the page is one file."""
    image = io.BytesIO()
    style.settle(drawn)
    drawn.savefig(image, format="png", dpi=150, metadata={"Software": None})
    return f"data:image/png;base64,{base64.b64encode(image.getvalue()).decode()}"
