"""Certified epsilon against measured epsilon: a point per audited model, of secrets (replace-one)
and of records.

Measured: log(v / (r - v)) for v right of r guesses of coins that decided what was planted; its
interval ends below in the bound that holds with 95 % (Steinke et al. 2023) and above in the
Clopper-Pearson bound of the share. A point above the identity line by its lower end would refute
its certificate.
"""

import math
from typing import Any, NamedTuple

from matplotlib.axes import Axes
from matplotlib.cm import ScalarMappable
from matplotlib.colors import LogNorm
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.patches import Patch

from confide.certify.gate import record_claim, secret_claim
from confide.dp.accounting.bounds import clopper_pearson
from confide.report.figures.series import group
from confide.report.figures.style import blank, figure, legend, plain_log, title
from confide.report.pages import audits
from confide.report.results import Result
from confide.specs import ReportSpec

PANELS = {"game": "of one secret, replace-one", "inclusion": "of one record, add-or-remove"}
COLOURS = "viridis_r"
REFUTED = "#f6dcd6"


class Point(NamedTuple):
    """One model in one panel."""

    certified: float  # PLD
    by_rdp: float  # what the looser accountant says of the same updates
    measured: float
    low: float
    high: float
    ppl: float
    marks: dict[str, Any]


def frontier(spec: ReportSpec, results: list[Result]) -> Figure:
    """Two panels, each with strips for epsilon = 0 and infinity; colour is test perplexity."""
    known = [result for result in results if result.metric("game", "confidence") is not None]
    found = {audit: points(known, audit) for audit in PANELS}
    shown = [point for some in found.values() for point in some]
    if not shown:
        return blank("no run of this study was audited")
    drawn = figure(10.6, 4.6)
    colours = ScalarMappable(LogNorm(*spread([point.ppl for point in shown])), COLOURS)
    grid = drawn.subplots(1, 6, sharey=True, gridspec_kw={"width_ratios": (0.13, 1, 0.13) * 2})
    top = 1.08 * max(1.0, *(point.high for point in shown))
    for line, (audit, words) in zip((grid[:3], grid[3:]), PANELS.items(), strict=True):
        _panel(line, found[audit], words, colours, top)
    grid[0].set_ylabel("measured ε")
    bar = drawn.colorbar(
        colours, ax=list(grid), label="test perplexity, all tokens", pad=0.01, aspect=30
    )
    plain_log(bar.ax, "y")
    title(drawn, f"Certified against measured ε — {spec.title}", _caption(known))
    marks = [
        Line2D([], [], **series.marks(linestyle="", color="#444444", label=series.label))
        for series in group(known)
    ]
    lines = [
        Line2D(
            [], [], color="#444444", linewidth=3, alpha=0.35, label="certified: from PLD\nto RDP"
        ),
        Patch(facecolor=REFUTED, label="lower end here:\ncertificate refuted"),
    ]
    legend(drawn, marks + lines)
    return drawn


def points(results: list[Result], audit: str) -> list[Point]:
    """Models that were audited, with their marks."""
    found = []
    for series in group(results):
        for result in series.results:
            value = {key: result.metric("game", f"{audit}_{key}") for key in ("guesses", "correct")}
            value["lower"] = audits.lower(result, audit)
            if None in value.values() or not value["guesses"]:
                continue
            name = (secret_claim if audit == "game" else record_claim)(result.certificate)
            certified = result.claim(name)
            by_rdp = (
                "record_add_or_remove_rdp"
                if name == "record_add_or_remove_pld"
                else "record_replace_one_rdp"
            )
            loose = result.claim(by_rdp)
            guesses = int(value["guesses"])
            correct = int(value["correct"])
            cap = odds(1 - 0.5 / guesses)  # of half a guess wrong: all right would be infinity
            measured = min(cap, odds(correct / guesses))
            high = min(cap, odds(clopper_pearson(correct, guesses, 0.975)))
            low = min(value["lower"], high)
            drawn = (certified, loose or certified, measured, low, high, result.evaluation["ppl"])
            found.append(Point(*drawn, series.marks(linestyle="")))
    return found


def odds(share: float) -> float:
    """The epsilon at which coins can be guessed with this share right: log(p / (1 - p)), 0 below
    one half.
    """
    return math.inf if share >= 1 else max(0.0, math.log(share / (1 - share))) if share > 0 else 0.0


def spread(values: list[float]) -> tuple[float, float]:
    """Limits of a logarithmic colour scale."""
    low = min(values)
    high = max(values)
    return (low, high) if high > low else (low / 1.1, high * 1.1)


def _panel(line: Any, found: list[Point], words: str, colours: ScalarMappable, top: float) -> None:
    zero, finite, infinite = line
    for axes in line:
        axes.set_ylim(-0.03 * top, top)
    inside = [point for point in found if 0 < point.certified < math.inf]
    right = 1.12 * max(
        (point.certified if point.by_rdp == math.inf else point.by_rdp for point in inside),
        default=1.0,
    )
    finite.set_xlim(0, right)
    finite.fill_between([0, right], [0, right], [top, top], color=REFUTED, zorder=0, linewidth=0)
    finite.plot([0, right], [0, right], color="#b5533c", linewidth=1)
    zero.set_facecolor(REFUTED)
    for axes, some in (
        (zero, [p for p in found if p.certified == 0]),
        (infinite, [p for p in found if p.certified == math.inf]),
    ):
        axes.set_xlim(-1, 1)
        axes.set_xticks([])
        for place, point in zip(aside(len(some)), some, strict=True):
            _draw(axes, place, point, colours)
    for place, point in zip(
        apart([point.certified for point in inside], right), inside, strict=True
    ):
        finite.plot(
            [place, min(point.by_rdp, right)],
            [point.measured] * 2,
            color="#444444",
            linewidth=3,
            alpha=0.35,
        )
        _draw(finite, place, point, colours)
    zero.set_title("0", loc="center")
    infinite.set_title("∞", loc="center")
    finite.set_title(words, loc="left")
    finite.set_xlabel("certified ε")


def apart(places: list[float], right: float) -> list[float]:
    """Equal places set a little apart, so that no point hides another."""
    seen: dict[float, int] = {}
    found = []
    for place in places:
        number = seen[round(place, 2)] = seen.get(round(place, 2), -1) + 1
        found.append(place + 0.022 * right * ((number + 1) // 2) * (-1) ** number)
    return found


def aside(count: int) -> list[float]:
    """Places within a strip."""
    return [(2 * number + 1) / count - 1 for number in range(count)]


def _draw(axes: Axes, place: float, point: Point, colours: ScalarMappable) -> None:
    colour = colours.to_rgba(point.ppl)
    axes.plot(
        [place] * 2,
        [point.low, point.high],
        color=colour,
        linewidth=1.6,
        solid_capstyle="butt",
        clip_on=False,
    )
    face = {"color": colour, "markersize": 8, "markeredgecolor": "black"}
    axes.plot([place], [point.measured], **point.marks | face, clip_on=False, zorder=4)


def _caption(known: list[Result]) -> str:
    coins = sorted({result.metric("game", "game_coins") for result in known} - {None})
    return (
        f"Before training, fair coins decided for {', '.join(map(str, coins)) or 'no'} planted sentences each whether they "
        "hold their secret or <MASK> (left), or are there at all (right); the attacker guesses the coins from the trained "
        "model. Marker: log odds of a right guess. Line: from the bound that holds with 95 %, whatever the attack, up to the "
        "Clopper–Pearson end; all guesses right are drawn as half a guess wrong. Certified: ε of a secret that the policy "
        "misses (0 if it misses none), or of a record; equal ones side by side. "
        "A line that begins in the red region refutes its claim."
    )
