"""Redaction schedules (DPT, Figure 3): how often an update reads redacted text, over training.

The paper is Domain Private Transformers. What is above a curve is noised: its share of the updates
is what each schedule costs, and all there is to the paper's gap of 35 % in epsilon between the
schedule and training in two stages. Closed forms; nothing of the study is in this figure.
"""

from typing import Any

import numpy as np

from confide.methods.schedule import SCHEDULES, ScheduleName
from confide.report.figures import style
from confide.report.figures.frame import Drawn, Shown, figure
from confide.report.figures.style import FAINT, INK

EPOCHS = 10  # T of the figure
# eta -> whose
TEMPERATURES = {15.0: "the paper's experiments", 1.0: "the authors' code unless told"}
GRID = 20_001
CHOICE = style.look("schedule").color
WORDS = {
    "linear": "linear",
    "step": "step (as JFT)",
    "staircase": "staircase (step in\nthe authors' code)",
    "exp_convex": "exponential, convex",
    "exp_concave": "exponential, concave\n(the paper's choice)",
}
LINES: dict[ScheduleName, dict[str, Any]] = {
    "linear": {"color": INK, "linestyle": "-", "linewidth": 1.2},
    "step": {"color": INK, "linestyle": (0, (6, 2)), "linewidth": 1.4},
    "staircase": {"color": FAINT, "linestyle": (0, (2, 1)), "linewidth": 1.2},
    "exp_convex": {
        "color": style.shade(CHOICE, -0.3),
        "linestyle": (0, (4, 1.5, 1, 1.5)),
        "linewidth": 2,
    },
    "exp_concave": {"color": CHOICE, "linewidth": 2.6},
}


@figure("Redaction schedules")
def schedules(shown: Shown) -> Drawn:
    """One panel per temperature: probability of an update on redacted text, over T = 10 epochs."""
    drawn, (grid,) = style.panels(style.WIDTH, 3.0, 1, len(TEMPERATURES), sharey=True)
    for axes, (eta, whose) in zip(grid, TEMPERATURES.items(), strict=True):
        x = np.linspace(0, 1, 2001)
        for name, line in LINES.items():
            axes.plot(EPOCHS * x, _probabilities(name, x, eta), **line)
        axes.set_ylim(-0.03, 1.05)
        axes.set_title(f"η = {eta:g} ({whose})")
        axes.set_xlabel(f"epochs of T = {EPOCHS}")
    grid[0].set_ylabel("probability of an update on redacted text")
    legend = [style.entry(_label(name), **line) for name, line in LINES.items()]
    return drawn, _caption(), legend


def _probabilities(name: ScheduleName, shares: np.ndarray, eta: float) -> list[float]:
    """Of an update on redacted text, after shares of the training."""
    return [SCHEDULES[name](share, EPOCHS, eta) for share in shares.tolist()]


def noised(name: ScheduleName, eta: float) -> float:
    """Expected share of the updates that are noised."""
    return float(1 - np.mean(_probabilities(name, (np.arange(GRID) + 0.5) / GRID, eta)))


def _label(name: ScheduleName) -> str:
    """A schedule with its share of noised updates: one where it is the same in all panels."""
    shares = [noised(name, eta) for eta in TEMPERATURES]
    if len({round(share, 6) for share in shares}) == 1:
        shares = shares[:1]
    return f"{WORDS[name]}\nnoised: {' / '.join(f'{100 * share:.3g} %' for share in shares)}"


def _caption() -> str:
    few = noised("exp_concave", 15.0)
    return (
        "With the probability of the curve an update is an ordinary one on redacted text, and else "
        "one of DP-SGD on the original text; coins are flipped before training and read no data. "
        "Legend: the expected share of noised updates (left / right panel). With η = 15 the "
        f"concave schedule noises {100 * few:.1f} % of them. The paper makes noise for all, so "
        "that what is spent in the end is about 35 % less than the ε of two-stage training: that "
        "counts noised updates and says nothing else of the methods. At equal ε the schedule needs "
        "less noise. With η = 1 the concave one does not start with redacted text alone. Drawn "
        "from the formulas; no model was trained for it."
    )
