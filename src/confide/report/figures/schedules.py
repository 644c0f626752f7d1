"""Redaction schedules (Domain Private Transformers, Figure 3): how often an update reads redacted
text, over training.

What is above a curve is noised: its share of the updates is what each schedule costs, and all there
is to the paper's gap of 35 % in epsilon between the schedule and training in two stages. Closed
forms; nothing of the study is in this figure.
"""

from typing import Any, NamedTuple

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D

from confide.methods.schedule import SCHEDULES
from confide.report.figures.style import INK, figure, legend, look, shade, title
from confide.report.results import Result
from confide.specs import ReportSpec

EPOCHS = 10  # T of the figure
TEMPERATURES = {
    15.0: "the paper's experiments",
    1.0: "the authors' code unless told",
}  # eta -> whose
GRID = 20_001


class Curve(NamedTuple):
    """A schedule's name in words, and how it is drawn."""

    words: str
    line: dict[str, Any]


CURVES = {
    "linear": Curve("linear", {"color": INK, "linestyle": "-", "linewidth": 1.2}),
    "step": Curve("step (as JFT)", {"color": INK, "linestyle": (0, (6, 2)), "linewidth": 1.4}),
    "staircase": Curve(
        "staircase (step in\nthe authors' code)",
        {"color": "#8a8a8a", "linestyle": (0, (2, 1)), "linewidth": 1.2},
    ),
    "exp_convex": Curve(
        "exponential, convex",
        {
            "color": shade(look("schedule").color, -0.3),
            "linestyle": (0, (4, 1.5, 1, 1.5)),
            "linewidth": 2,
        },
    ),
    "exp_concave": Curve(
        "exponential, concave\n(the paper's choice)",
        {"color": look("schedule").color, "linewidth": 2.6},
    ),
}


def schedules(spec: ReportSpec, results: list[Result]) -> Figure:
    """One panel per temperature: the probability of an update on redacted text after each share of
    T = 10 epochs.
    """
    drawn = figure(10.6, 4.6)
    for axes, (eta, whose) in zip(
        drawn.subplots(1, len(TEMPERATURES), sharey=True), TEMPERATURES.items(), strict=True
    ):
        _panel(axes, eta)
        axes.set_title(f"η = {eta:g} ({whose})", loc="left")
        axes.set_xlabel(f"epochs of T = {EPOCHS}")
    drawn.axes[0].set_ylabel("probability of an update on redacted text")
    title(drawn, f"Redaction schedules — {spec.title}", _caption())
    legend(drawn, [_handle(name) for name in CURVES])
    return drawn


def noised(name: str, eta: float, epochs: int = EPOCHS) -> float:
    """Expected share of the updates that are noised."""
    x = (np.arange(GRID) + 0.5) / GRID
    return float(1 - np.mean([SCHEDULES[name](share, epochs, eta) for share in x.tolist()]))


def _panel(axes: Axes, eta: float) -> None:
    x = np.linspace(0, 1, 2001)
    for name, curve in CURVES.items():
        p = [SCHEDULES[name](share, EPOCHS, eta) for share in x.tolist()]
        axes.plot(EPOCHS * x, p, **curve.line)
    axes.set_ylim(-0.03, 1.05)


def _handle(name: str) -> Line2D:
    shares = [noised(name, eta) for eta in TEMPERATURES]
    told = " / ".join(
        f"{100 * share:.3g} %"
        for share in (shares if len({round(s, 6) for s in shares}) > 1 else shares[:1])
    )
    return Line2D([], [], **CURVES[name].line, label=f"{CURVES[name].words}\nnoised: {told}")


def _caption() -> str:
    few = noised("exp_concave", 15.0)
    return (
        "With the probability of the curve an update is an ordinary one on redacted text, and else one of DP-SGD on the "
        "original text; coins are flipped before training and read no data. Legend: the expected share of noised updates (left "
        f"/ right panel). With η = 15 the concave schedule noises {100 * few:.1f} % of them. The paper makes noise for all, "
        "so that what is spent in the end is about 35 % less than the ε of two-stage training: that counts noised updates and "
        "says nothing else of the methods. At equal ε the schedule needs less noise. With η = 1 the concave one does not start "
        "with redacted text alone. Drawn from the formulas; no model was trained for it."
    )
