"""A leaderboard as tables and as a page: comparisons, and rows of the sample sheet."""

from collections.abc import Iterable
from itertools import chain

from confide.output import templates
from confide.output.rounding import rounded_up
from confide.report.figures.style import Drawing
from confide.report.leaderboard.cells import NOT_RUN, Cell, of_panel, worth
from confide.report.leaderboard.panels import ALL, BESIDE, PASSES, UNITS, Entry
from confide.report.leaderboard.standing import CELLS
from confide.report.seeds import Estimate, over_seeds
from confide.report.tables.table import Row, show
from confide.specs import LeaderboardSpec

SIDES = ("papers", "ours")
MASKED = ("redacted", "crt", "jft", "schedule")  # methods that train on masks


def cell_rows(cells: Iterable[Cell]) -> list[Row]:
    """One row per comparison; None where there is nothing to say."""
    return [cell_row(cell) for cell in cells]


def cell_row(cell: Cell) -> Row:
    """What cells.csv says of a comparison."""
    row: Row = {
        "study": cell.study,
        "title": cell.title,
        "tokens": cell.tokens,
        "secret": cell.secret,
        "epsilon": cell.epsilon,
        "verdict": cell.verdict,
        **ends("difference", cell.difference),
        "pairs": cell.pairs,
        "p": cell.p,
        "p_corrected": cell.corrected,
        "missing": cell.missing,
        "refuted": cell.refuted,
    }
    for side in SIDES:
        entry: Entry | None = getattr(cell, side)
        claim = None if entry is None else entry.claims[cell.secret]
        row |= {
            side: None if entry is None else entry.label,
            f"{side}_name": None if entry is None else entry.name,
            f"{side}_epsilon": None if claim is None else claim.epsilon,
            f"{side}_rests": None if claim is None else claim.rests,
            **{f"{side}_{key}": value for key, value in numbers(entry, cell.tokens).items()},
        }
    return row


def ends(name: str, estimate: Estimate | None) -> Row:
    """A mean over seeds and its interval; of one seed no interval."""
    several = estimate is not None and len(estimate.each) > 1
    return {
        name: None if estimate is None else estimate.value,
        f"{name}_low": estimate.low if estimate is not None and several else None,
        f"{name}_high": estimate.high if estimate is not None and several else None,
    }


def numbers(entry: Entry | None, tokens: str = ALL) -> Row:
    """What a row is worth: bits with their interval, and what stands beside."""
    each = [] if entry is None else list(entry.bits(tokens).values())
    return {
        "seeds": len(each),
        **ends("bits", over_seeds(each) if each else None),
        **{name: None if entry is None else entry.mean(name) for name in (*BESIDE, PASSES)},
    }


def entry_rows(panels: dict[str, list[Entry]]) -> list[Row]:
    """One row per row of the sample sheet: its seeds, claims and numbers."""
    return [entry_row(study, entry) for study, entries in panels.items() for entry in entries]


def entry_row(study: str, entry: Entry) -> Row:
    """What rows.csv says of a row of the sample sheet."""
    row: Row = {
        "study": study,
        "name": entry.name,
        "label": entry.label,
        "gamma": entry.gamma,
        "missing": listed(entry.missing),
        "refuted": listed(entry.refuted),
        "audits": listed(dict.fromkeys(entry.outcomes.values())),
    }
    for cell in CELLS:
        claim = entry.claims.get(cell)
        row[f"epsilon_{cell}"] = None if claim is None else claim.epsilon
        row[f"rests_{cell}"] = None if claim is None else claim.rests
    return row | numbers(entry)


def listed(values: Iterable[object]) -> str | None:
    """Values in words; None of none."""
    return ", ".join(map(str, values)) or None


def markdown(
    spec: LeaderboardSpec, cells: list[Cell], panels: dict[str, list[Entry]], figure: Drawing
) -> str:
    """The figure with its caption, and tables panel by panel."""
    values = {
        "heading": figure.heading,
        "caption": figure.caption,
        "words": CELLS,
        "all": ALL,
        "units": UNITS,
        "panels": {
            title: {
                "cells": {tokens: of_panel(cells, study, tokens) for tokens in UNITS},
                "passes": passes(panels[study]),
                "untried": untried(panels[study]),
                "start": start([cell for cell in cells if cell.study == study]),
                "missing": [entry for entry in panels[study] if entry.missing],
                "refuted": [entry for entry in panels[study] if entry.refuted],
            }
            for study, title in spec.panels.items()
        },
        "verdict": verdict,
        "difference": difference,
        "rests": rests,
        "called": called,
        "bits": bits,
        "beside": beside,
    }
    return templates.filled(__file__, values)


def verdict(cell: Cell) -> str:
    """The verdict, so far where runs of the panel are missing."""
    return f"{cell.verdict}, so far" if cell.missing and cell.verdict != NOT_RUN else cell.verdict


def called(entry: Entry | None) -> str:
    """A row's name."""
    return "–" if entry is None else entry.label


def bits(cell: Cell, entry: Entry | None) -> str:
    """What a row takes, with half its interval over seeds."""
    if entry is None:
        return "–"
    each = list(entry.bits(cell.tokens).values())
    estimate = over_seeds(each)
    half = estimate.high - estimate.value
    return f"{estimate.value:.3f}" + (f" ± {half:.2g}" if len(each) > 1 else "")


def difference(cell: Cell) -> str:
    """Ours less theirs, with the interval over seeds where there are several."""
    if cell.difference is None:
        return "–"
    value, low, high = cell.difference.numbers
    interval = f" [{low:+.3f}, {high:+.3f}]" if cell.pairs > 1 else ""
    return f"{value:+.3f}{interval}"


def rests(panel: dict[str, list[Cell]]) -> dict[str, str]:
    """On what the claims of the rows in a panel's cells rest, by what is protected and the rows,
    with what they claim.
    """
    claims: dict[tuple[str, str, str], dict[str, None]] = {}
    order = list(CELLS)
    for cell in sorted(chain(*panel.values()), key=lambda cell: order.index(cell.secret)):
        for entry in cell.best_rows:
            claim = entry.claims[cell.secret]
            said = (cell.secret, entry.label, claim.rests)
            claims.setdefault(said, {})[rounded_up(claim.epsilon, 3)] = None
    return {
        f"{CELLS[secret]}, {label} (ε {', '.join(epsilons)})": on
        for (secret, label, on), epsilons in claims.items()
    }


def passes(entries: Iterable[Entry]) -> str:
    """How often the rows of a panel read the training text, and which reads it most often."""
    trained = [entry for entry in entries if not entry.is_start]
    known = {entry.label: mean for entry in trained if (mean := entry.mean(PASSES)) is not None}
    if not known:
        return ""
    most = max(known, key=lambda label: known[label])
    least = min(known.values())
    if round(known[most]) == round(least):
        return f"All rows read the training text {least:.0f} times."
    return f"Rows read the training text {least:.1f} to {known[most]:.1f} times: most, {most}."


def untried(entries: Iterable[Entry]) -> str:
    """With which methods no row of a panel has values in place of masks, but for covers."""
    rows = list(entries)
    filled = {entry.method for entry in rows if entry.filled and not entry.covered}
    masked = [entry for entry in rows if entry.method in MASKED and not entry.is_ours]
    lacking = dict.fromkeys(entry.label for entry in masked if entry.method not in filled)
    if not lacking:
        return ""
    return f"Covers aside, values in place of masks were not tried with {', '.join(lacking)}."


def start(cells: list[Cell]) -> str:
    """What the start takes that nothing was trained on, and which of the best take more."""
    untrained = cells[-1].start
    if untrained is None:
        return ""
    takes = " and ".join(
        f"{worth(untrained, tokens):.3f} {unit} (by {tokens})" for tokens, unit in UNITS.items()
    )
    worse = " and ".join(behind_start(cells))
    more = f" More than that take {worse}." if worse else ""
    return f"The start takes {takes}, before any training, at ε = 0.{more}"


def behind_start(cells: list[Cell]) -> list[str]:
    """Rows that take more than the start, each with the cells in which it does."""
    epsilons: dict[str, dict[str, list[str]]] = {}  # by row and tokens, then by what is protected
    for cell in cells:
        for entry in cell.behind:
            by_secret = epsilons.setdefault(f"{entry.label} by {cell.tokens}", {})
            by_secret.setdefault(CELLS[cell.secret], []).append(f"{cell.epsilon:g}")
    named = []
    for whose, by_secret in epsilons.items():
        places = [f"{secret}, ε {', '.join(each)}" for secret, each in by_secret.items()]
        named.append(f"{whose} ({'; '.join(places)})")
    return named


def beside(entry: Entry) -> list[str]:
    """Accuracy on public and private tokens in per cent, and perplexity on them."""
    shown = []
    for name in BESIDE:
        value = entry.mean(name)
        if value is None:
            shown.append("–")
        else:
            shown.append(f"{100 * value:.1f} %" if name.startswith("accuracy") else show(value))
    return shown
