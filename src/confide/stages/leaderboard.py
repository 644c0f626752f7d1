"""Compare models that certify as much: the best of the papers' methods and of ours, ε by ε."""

from pathlib import Path

from confide.files.io import atomic_folder
from confide.output.escaping import table_of
from confide.report.figures import style
from confide.report.figures.leaderboard import leaderboard as drawn
from confide.report.leaderboard import page
from confide.report.leaderboard.cells import cells
from confide.report.leaderboard.panels import read
from confide.specs import LeaderboardSpec


def leaderboard(spec: LeaderboardSpec, *, panels: Path, output: Path) -> None:
    """Write the folder `output`: cells.csv, rows.csv, leaderboard.md and the figure.

    panels: folder with a file of each study that is compared.

    cells.csv has a line for each comparison, rows.csv one for each row of the sample sheet, with
    what it claims. Runs that were not made are named, and so are those that an audit refutes. All
    files appear, or none does; the same inputs give the same bytes. InputError for a panel that is
    missing or damaged.
    """
    rows = {study: read(panels / f"{study}.json") for study in spec.panels}
    compared = cells(spec, rows)
    with style.settings():
        figure = drawn(spec, compared)
    texts = {
        "cells.csv": table_of(page.cell_rows(compared)),
        "rows.csv": table_of(page.entry_rows(rows)),
        "leaderboard.md": page.markdown(spec, compared, rows, figure),
    }
    with atomic_folder(output) as folder:
        for name, text in texts.items():
            (folder / name).write_text(text, encoding="utf-8")
        with style.settings():
            style.save(figure, folder / "leaderboard")
