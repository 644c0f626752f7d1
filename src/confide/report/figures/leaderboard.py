"""Who is worth most at equal epsilon: the best of the papers' methods beside the best of ours.

A panel for each corpus and model, a line for each comparison, and at its end who is ahead.
"""

from collections.abc import Iterable
from typing import Any

from matplotlib.artist import Artist
from matplotlib.axes import Axes

from confide.output.escaping import visible
from confide.report.figures import style
from confide.report.leaderboard.cells import (
    BETTER,
    NOBODY,
    NOT_RUN,
    OURS_ALONE,
    PAPERS_ALONE,
    WORSE,
    Cell,
    of_panel,
    worth,
)
from confide.report.leaderboard.panels import ALL, PUBLIC, UNITS, Entry
from confide.report.leaderboard.standing import CELLS
from confide.report.seeds import over_seeds
from confide.specs import LeaderboardSpec

OURS = "#0072b2"
PAPERS = "#d55e00"
LINE = 0.2  # inches of a comparison
EDGES = 0.75  # of a panel, above and below
ALONE = {OURS_ALONE: ("ours alone", OURS), PAPERS_ALONE: ("theirs alone", PAPERS)}
VERDICTS = (1.01, 1.16)  # columns beside a panel, in its widths
IN_SIGHT = 1.1  # times the most bits of a row
COPIES = "left"  # fill of a marker of ours where copies stay


def leaderboard(spec: LeaderboardSpec, cells: list[Cell]) -> style.Drawing:
    """The figure of all panels, one below the other."""
    rows = len(spec.panels)
    by_all = [cell for cell in cells if cell.tokens == ALL]
    lines = max(len(of_panel(cells, study, ALL)) for study in spec.panels)
    drawn, grid = style.panels(style.WIDTH, rows * (EDGES + LINE * lines), rows, 1)
    for axes, (study, title) in zip(grid.flat, spec.panels.items(), strict=True):
        shown = of_panel(cells, study, ALL)
        again = of_panel(cells, study, PUBLIC)
        _panel(axes, shown, again)
        axes.set_title(visible(title))
    grid[-1, 0].set_xlabel(f"{UNITS[ALL]} of test text")
    missing = sum(panel_missing(cells, study) for study in spec.panels)
    caption = (
        "Of the models that certify the claim, the best of the papers' methods (hollow, orange) "
        "and the best of ours, behind a cover or with values in place of masks (filled, "
        "blue; half: copies stay); further left is better. Lines: a secret that the policy finds, "
        "one that it misses, and any record, each with an ε of at most that. Whiskers: 95 % over "
        "seeds. Percentages: how many more bits ours take than theirs (−: fewer), by all tokens "
        "and by public ones alone; coloured where that is significant, over seeds and corrected "
        "for the number of tests. Claims rest on different conditions, which are named below the "
        "tables. Dotted: the start before any training, where that is in sight."
    )
    if missing:
        caption += f" So far: {missing} runs are missing."
    return style.finish(drawn, "Who is worth most at equal ε", caption, _legend(by_all))


def panel_missing(cells: Iterable[Cell], study: str) -> int:
    """How many runs of a panel are missing, which each of its cells knows."""
    return next((cell.missing for cell in cells if cell.study == study), 0)


def _panel(axes: Axes, cells: list[Cell], by_public: list[Cell]) -> None:
    places = [-float(place) - 0.5 * (place // _epsilons(cells)) for place in range(len(cells))]
    for place, cell, again in zip(places, cells, by_public, strict=True):
        _line(axes, cell, place)
        _verdicts(axes, (cell, again), place)
    for column, words in zip(VERDICTS, ("all", "public"), strict=True):
        _at_edge(axes, column, 1.0, words, style.FAINT)
    labels = [f"{CELLS[cell.secret]}, ε {cell.epsilon:g}" for cell in cells]
    axes.set_yticks(places, labels)
    axes.tick_params(axis="y", length=0)
    axes.grid(axis="y", visible=False)
    axes.set_ylim(places[-1] - 0.7, 0.7)
    axes.margins(x=0.08)
    _start(axes, cells)
    if not any(cell.papers or cell.ours for cell in cells):
        style.say(axes, "nothing was measured")


def _start(axes: Axes, cells: list[Cell]) -> None:
    """What the start takes, if that is no more than a little beyond what the worst row takes."""
    start = cells[-1].start
    shown = [entry for cell in cells for entry in cell.best_rows]
    if start is None or not shown:
        return
    bits = worth(start, ALL)
    if bits <= IN_SIGHT * max(worth(entry, ALL) for entry in shown):
        axes.axvline(bits, color=style.FAINT, linewidth=1.0, linestyle=":", zorder=0)


def _epsilons(cells: list[Cell]) -> int:
    """How many epsilons there are: after so many lines another claim begins."""
    return len({cell.epsilon for cell in cells})


def _line(axes: Axes, cell: Cell, place: float) -> None:
    """Both sides of one comparison, joined in the colour of who is ahead."""
    both = cell.best_rows
    _, color = _ahead(cell)
    if len(both) == 2:
        axes.plot([worth(entry, ALL) for entry in both], [place] * 2, color=color, linewidth=2.2)
    for entry in both:
        each = over_seeds(list(entry.bits(ALL).values()))
        side = _side(entry)
        axes.plot(each.ends, [place] * 2, color=side, linewidth=1.0)
        axes.plot([each.value], [place], **_marker(entry), linestyle="", markersize=6.5)


def _verdicts(axes: Axes, pair: tuple[Cell, Cell], place: float) -> None:
    """Who is ahead by all tokens, and by public ones; once where that is no number."""
    words = [_ahead(cell) for cell in pair]
    for column, (text, color) in zip(VERDICTS, words, strict=True):
        if column == VERDICTS[0] or words[0] != words[1] or "%" in text:
            _at_edge(axes, column, place, text, color)


def _at_edge(axes: Axes, column: float, place: float, text: str, color: str) -> None:
    """Write words beside a panel."""
    edge: dict[str, Any] = {"transform": axes.get_yaxis_transform(), "va": "center"}
    axes.text(column, place, text, color=color, fontsize=8, fontweight="bold", **edge)


def _ahead(cell: Cell) -> tuple[str, str]:
    """How much fewer bits ours take than theirs, in the colour of who is shown to be better."""
    if cell.verdict in ALONE:
        return ALONE[cell.verdict]
    if cell.verdict == NOT_RUN:
        return cell.verdict, style.FAINT
    if cell.verdict == NOBODY or cell.papers is None or cell.ours is None:
        return "nobody", style.FAINT
    share = 100 * (worth(cell.ours, cell.tokens) / worth(cell.papers, cell.tokens) - 1)
    shown = f"{share:+.0f} %" if abs(share) >= 10 else f"{share:+.1f} %"
    colors = {BETTER: OURS, WORSE: PAPERS}
    return shown.replace("-", "−"), colors.get(cell.verdict, style.FAINT)


def _side(entry: Entry) -> str:
    return OURS if entry.is_ours else PAPERS


def _marker(entry: Entry) -> dict[str, Any]:
    """Of the method's shape: hollow, or of ours filled, half where copies stay."""
    fill = "none"
    if entry.is_ours:
        fill = "full" if entry.dedup else COPIES
    return {
        "color": _side(entry),
        "marker": style.look(entry.method).marker,
        "fillstyle": fill,
        "markerfacecoloralt": "white",
        "markeredgewidth": 1.2,
    }


def _legend(cells: Iterable[Cell]) -> list[Artist]:
    """The rows that are the best of a side somewhere: theirs first."""
    entries = [entry for cell in cells for entry in cell.best_rows]
    entries.sort(key=lambda entry: (entry.is_ours, entry.label))
    return [style.entry(entry.label, linestyle="", **_marker(entry)) for entry in entries]
