"""Certified epsilon against measured epsilon: a point per audited row, of secrets and of records.

Measured: log(v / (r - v)) for v right of r guesses of coins that decided what was planted; its
interval ends below in the bound that holds with 95 % (Steinke et al. 2023) and above in the
Clopper-Pearson bound of the share. Over seeds the point is their mean, and each end is the largest
of theirs: a line that begins above the identity line would refute the certificate of one of them.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.cm import ScalarMappable
from matplotlib.colors import LogNorm
from matplotlib.patches import Patch
from scipy.optimize import isotonic_regression

from confide.certify.facts import SECRET_CAUGHT, SECRET_MISSED
from confide.certify.gate import record_claim, secret_claim
from confide.dp.accounting.bounds import clopper_pearson
from confide.report.figures import style
from confide.report.figures.frame import Drawn, Nothing, Shown, figure, has_number
from confide.report.figures.series import SEED, group
from confide.report.pages import audits
from confide.report.results import Result
from confide.report.seeds import mean_of

# set of coins -> what its panel is of, and which claim of a certificate it tests
PANELS = {
    "game": ("of one secret, replace-one", secret_claim),
    "inclusion": ("of one record, add-or-remove", record_claim),
}
COLOURS = "viridis_r"
REFUTED = "#f6dcd6"
# claims that the looser accountant prices, too, and the names of those prices
RDP = {
    SECRET_CAUGHT: "caught_replace_one_rdp",
    SECRET_MISSED: "record_replace_one_rdp",
    "record_add_or_remove_pld": "record_add_or_remove_rdp",
}
GREY = "#444444"
APART = 0.09  # widths of a panel between two markers
FEET = 0.07  # heights of a panel below a measured epsilon of 0
FOOT: dict[str, Any] = {"color": "#999999", "linewidth": 0.8, "zorder": 1}
BY_RDP: dict[str, Any] = {"color": GREY, "linewidth": 3, "alpha": 0.35}


@dataclass(frozen=True, kw_only=True)
class Point:
    """One model in one panel, or those of several seeds together."""

    certified: float  # PLD
    by_rdp: float  # what the looser accountant says of the same claim
    measured: float
    low: float
    high: float
    ppl: float
    gamma: float | None  # of what depends on the policy
    marks: dict[str, Any]
    seeds: tuple[float, ...]  # what was measured of each


@figure(
    "Certified against measured ε",
    has_number("game", "confidence"),
    "no run of this study was audited",
)
def frontier(shown: Shown) -> Drawn:
    """Two panels, each with strips for epsilon = 0 and infinity; colour is test perplexity."""
    points = {name: audited(shown.results, name) for name in PANELS}
    every = [point for of_panel in points.values() for point in of_panel]
    if not every:
        raise Nothing
    gammas = {point.gamma for point in every} - {None}
    if len(gammas) == 1:  # the caption says it
        points = {name: [replace(p, gamma=None) for p in some] for name, some in points.items()}
    ppl = [point.ppl for point in every]
    wider = 1.0 if max(ppl) > min(ppl) else 1.1
    colours = ScalarMappable(LogNorm(min(ppl) / wider, max(ppl) * wider), COLOURS)
    drawn, (grid,) = style.panels(
        style.WIDTH, 3.6, 1, 6, sharey=True, width_ratios=(0.36, 1, 0.42) * 2
    )
    top = 1.08 * max(1.0, *(point.high for point in every))
    for line, (name, (title, _)) in zip((grid[:3], grid[3:]), PANELS.items(), strict=True):
        _panel(line, points[name], colours, top)
        line[1].set_title(title)
    grid[0].set_ylabel("measured ε")
    label = "test perplexity, all tokens"
    bar = drawn.colorbar(colours, ax=list(grid), label=label, pad=0.01, aspect=30)
    style.plain_log(bar.ax, "y")
    legend = [
        *shown.handles(linestyle="", color=GREY),
        style.entry("certified: from PLD\nto RDP", **BY_RDP),
        Patch(facecolor=REFUTED, label="lower end here:\ncertificate refuted"),
    ]
    return drawn, _caption(shown.results, gammas), legend


def audited(results: list[Result], name: str) -> list[Point]:
    """Models that were audited by a set of coins."""
    points = []
    for series in group(results):
        of_series = []
        for result in series.results:
            guesses = result.metric("game", f"{name}_guesses")
            correct = result.metric("game", f"{name}_correct")
            lower = audits.lower(result, name)
            if correct is None or lower is None or not guesses:
                continue
            claim = PANELS[name][1](result.certificate)
            certified = result.claim(claim)
            if certified is None:
                continue
            by_rdp = result.claim(RDP[claim]) if claim in RDP else None
            cap = odds(1 - 0.5 / guesses)  # of half a guess wrong: all right would be infinity
            high = min(cap, odds(clopper_pearson(correct, guesses, 0.975)))
            measured = min(cap, odds(correct / guesses))
            of_series.append(
                Point(
                    certified=certified,
                    by_rdp=by_rdp or certified,
                    measured=measured,
                    low=min(lower, high),
                    high=high,
                    ppl=result.evaluation["ppl"],
                    gamma=result.run.gamma if series.look.policy else None,
                    marks=series.marks(linestyle=""),
                    seeds=(measured,),
                )
            )
        points += together(of_series)
    return points


def together(points: list[Point]) -> list[Point]:
    """One point for all of a row that have one certified epsilon, whatever their seeds."""
    alike: dict[Any, list[Point]] = {}
    for point in points:
        alike.setdefault((point.gamma, point.certified, point.by_rdp), []).append(point)
    return [
        replace(
            some[0],
            measured=mean_of([point.measured for point in some]),
            low=max(point.low for point in some),
            high=max(point.high for point in some),
            ppl=mean_of([point.ppl for point in some]),
            seeds=tuple(point.measured for point in some),
        )
        for some in alike.values()
    ]


def odds(share: float) -> float:
    """The epsilon at which a share of coins can be guessed: log(p / (1 - p)), 0 below one half."""
    if share >= 1:
        return math.inf
    return math.log(share / (1 - share)) if share > 0.5 else 0.0


def _panel(line: list[Axes], points: list[Point], colours: ScalarMappable, top: float) -> None:
    zero, finite, infinite = line
    for axes in line:
        axes.set_ylim(-FEET * top, top)
    inside = [point for point in points if 0 < point.certified < math.inf]
    ends = (point.certified if point.by_rdp == math.inf else point.by_rdp for point in inside)
    right = 1.12 * max(ends, default=1.0)
    finite.set_xlim(0, right)
    finite.fill_between([0, right], [0, right], [top, top], color=REFUTED, zorder=0, linewidth=0)
    finite.plot([0, right], [0, right], color="#b5533c", linewidth=1)
    zero.set_facecolor(REFUTED)
    for axes, epsilon, title in ((zero, 0, "0"), (infinite, math.inf, "∞")):
        at_end = [point for point in points if point.certified == epsilon]
        axes.set_xlim(-1, 1)
        axes.set_xticks([])
        axes.set_title(title, loc="center")
        for number, point in enumerate(at_end):
            _draw(axes, (2 * number + 1) / len(at_end) - 1, point, colours, lines=number % 2)
    places = apart([point.certified for point in inside], APART * right, right)
    ranks = np.argsort(np.argsort(places))
    top_of_inside = max((point.high for point in inside), default=0.0)
    for place, rank, point in zip(places, ranks, inside, strict=True):
        finite.plot([point.certified, place], [-FEET * top, point.low], **FOOT)
        finite.plot([place, max(place, min(point.by_rdp, right))], [point.measured] * 2, **BY_RDP)
        _draw(finite, place, point, colours, above=top_of_inside, lines=rank % 2)
    finite.set_xlabel("certified ε")


def apart(places: Sequence[float], step: float, right: float) -> list[float]:
    """The places from 0 to `right` next to these, in the same order, no two nearer than a step.

    Next to: with the least squares of moves. Where there is no room for so many, the step is
    smaller.
    """
    if not len(places):
        return []
    order = np.argsort(places, kind="stable")
    steps = min(step, right / len(places)) * np.arange(len(places))
    moved = np.zeros(len(places))
    free = isotonic_regression(np.asarray(places)[order] - steps).x
    moved[order] = np.clip(free, 0.0, right - steps[-1]) + steps
    return moved.tolist()


def _draw(
    axes: Axes,
    place: float,
    point: Point,
    colours: ScalarMappable,
    *,
    above: float = 0.0,
    lines: int = 0,
) -> None:
    """A point with its interval, and its miss rate above that, and above a height, by some lines
    of letters.
    """
    line: dict[str, Any] = {"color": colours.to_rgba(np.asarray(point.ppl)), "clip_on": False}
    whole = {"linewidth": 1.6, "solid_capstyle": "butt"}
    axes.plot([place] * 2, [point.low, point.high], **line | whole)
    if len(point.seeds) > 1:
        axes.plot([place] * len(point.seeds), point.seeds, **SEED | {"color": GREY, "zorder": 5})
    face = {"markersize": 6.5, "markeredgecolor": "black", "zorder": 4}
    axes.plot([place], [point.measured], **point.marks | line | face)
    if point.gamma is not None:
        properties: dict[str, Any] = {"ha": "center", "fontsize": 7.5, "zorder": 6}
        height = max(point.high, above)
        style.beside(axes, f"{point.gamma:g}", place, height, (0, 2 + 8 * lines), **properties)


def _caption(results: list[Result], gammas: set[float | None]) -> str:
    coins = sorted({result.metric("game", "game_coins") for result in results} - {None})
    miss_rates = ""
    if len(gammas) > 1:
        miss_rates = (
            "Numbers above lines: simulated miss rates γ of methods that depend on the policy. "
        )
    elif gammas:
        (gamma,) = gammas
        miss_rates = f"Methods that depend on the policy: simulated miss rate γ = {gamma:g}. "
    return (
        f"Before training, fair coins decided for {', '.join(map(str, coins)) or 'no'} planted "
        "sentences each whether they hold their secret or <MASK> (left), or are there at all "
        "(right); the attacker guesses the coins from the trained model. Marker: log odds of a "
        "right guess. Line: from the bound that holds with 95 %, whatever the attack, up to the "
        "Clopper–Pearson end; all guesses right are drawn as half a guess wrong. Of several seeds "
        "the marker is the mean, a dot is each, and the ends are their largest. Certified: ε of a "
        "secret that the policy misses (that it catches, if it misses none), or of a record: where "
        "a line's grey foot stands, as those that would overlap are drawn side by side. "
        f"{miss_rates}A line that begins in the red region refutes its claim."
    )
