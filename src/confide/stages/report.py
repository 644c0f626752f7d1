"""Make a study's tables and figures: what is certified beside what is measured."""

from pathlib import Path

from confide.errors import InputError
from confide.files.io import atomic_folder, write_json
from confide.report.figures import style
from confide.report.figures.amplification import rows as amplification_rows
from confide.report.figures.registry import FIGURES
from confide.report.pages import examples
from confide.report.published import quotes
from confide.report.results import load
from confide.report.tables import table as tables
from confide.specs import ReportSpec


def report(spec: ReportSpec, *, results: Path, models: Path, output: Path) -> None:
    """Write the tables and figures of a study (PNG and SVG) to the folder `output`.

    The tables are table.csv, table.md, summary.json and epochs.csv.

    Beside them amplification.csv with that figure, published.csv where the spec names what to
    quote, and examples.md. All files appear, or none does; the same inputs give the same bytes.
    InputError names a missing run's file.
    """
    for name in spec.figures:
        if name not in FIGURES:
            raise InputError(f"is not one of {', '.join(FIGURES)}", key="figures", value=name)
    quoted = quotes(spec.published)
    found = load(spec.runs, results, models)
    with atomic_folder(output) as folder:
        _write(spec, found, folder)
        if quoted:
            (folder / "published.csv").write_text(
                tables.as_csv([quote._asdict() for quote in quoted])
            )


def _write(spec: ReportSpec, found: list, folder: Path) -> None:
    table = tables.rows(found)
    (folder / "table.csv").write_text(tables.as_csv(table))
    conditions = (result.condition for result in found)
    units = (result.meaning.unit for result in found)
    (folder / "table.md").write_text(tables.markdown(spec, table, conditions, units))
    (folder / "epochs.csv").write_text(tables.as_csv(tables.epoch_rows(found)))
    write_json(folder / "summary.json", tables.summary(table))
    if spec.examples:
        (folder / "examples.md").write_text(examples.markdown(spec, found))
    if "amplification" in spec.figures:
        (folder / "amplification.csv").write_text(
            tables.as_csv(amplification_rows(spec.amplification))
        )
    with style.settings():
        for name in spec.figures:
            style.save(FIGURES[name](spec, found), folder / name)
